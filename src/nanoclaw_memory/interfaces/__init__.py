"""Command line, MCP, HTTP, hooks, installers, SDK adapters: they parse, call Memory and print."""
