"""The server: one process for hooks, MCP and a JSON API; started only by `ncm serve`."""
