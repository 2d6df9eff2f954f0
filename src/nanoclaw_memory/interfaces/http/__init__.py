"""The server: one process for hooks, MCP and a JSON API; started by `ncm serve` or a client's session."""
