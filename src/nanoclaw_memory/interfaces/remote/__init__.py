"""The thin client: hooks, MCP and commands of a home that is connected to a server on another machine."""
