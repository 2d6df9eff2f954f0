"""The program `nanoclaw-memory`: the command line, whose parser a plain hook or MCP server skips."""

from __future__ import annotations

import sys

from nanoclaw_memory.interfaces import shim


def main() -> None:
    """Answer a hook, serve an MCP client, or run the command line."""
    request = shim.parse(sys.argv[1:])
    if request is not None and request.kind == "hook":
        _import_msgspec()
        from nanoclaw_memory.interfaces.hooks import run_and_exit

        run_and_exit(request)
    elif request is not None and request.argument in ("core", "all") and sys.stdin is not None:
        from nanoclaw_memory.interfaces.mcp.opening import run

        run(request)
    else:
        _import_msgspec()
        from nanoclaw_memory.interfaces.cli import main

        main()


def _import_msgspec() -> None:
    """Import msgspec without `typing_extensions`, which it does not need and which costs 8 ms."""
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]


if __name__ == "__main__":
    main()
