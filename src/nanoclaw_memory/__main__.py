"""The entry point `nanoclaw-memory`: the command line, or a hook or MCP server without its parser."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from nanoclaw_memory.interfaces import shim
from nanoclaw_memory.patterns import kept_imports


def main() -> None:
    """Answer a hook, serve an MCP client, or run the command line."""
    gc.disable()  # nothing that imports allocate is garbage
    request = shim.parse(sys.argv[1:])
    if request is not None and request.kind == "hook":
        import_without("pathlib", "msgspec", "json")
        from nanoclaw_memory.interfaces.hooks import run_and_exit

        run_and_exit(request)
    elif request is not None and request.argument in ("core", "all") and sys.stdin is not None:
        from nanoclaw_memory.interfaces.mcp.opening import run

        gc.enable()
        run(request)
    else:
        import_without("pathlib", "msgspec", "click")
        from nanoclaw_memory.interfaces.cli import main

        gc.enable()
        gc.freeze()
        main()


class _Later(ModuleType):
    """A module that is imported when a missing attribute of its stand-in is first used."""

    def __getattr__(self, name: str) -> object:
        if name == "__path__":  # asked by `from … import`
            raise AttributeError(name)
        self.leave()
        return getattr(importlib.import_module(self.__name__), name)

    def leave(self) -> None:
        """Allow the real module to be imported."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _real(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported when it is called."""
    return lambda *args: getattr(importlib.import_module(module), name)(*args)


def _cleandoc(text: str) -> str:
    return _real("inspect", "cleandoc")(text) if "\n" in text else text.strip()


# Modules that others import for little, and that cost a hook 17 ms and a command 30; with stand-ins for what is used
# at once.
_LATER: dict[str, dict[str, Any]] = {
    "ast": {},
    "gettext": {"gettext": str, "ngettext": lambda one, many, count: one if count == 1 else many},
    "inspect": {"cleandoc": _cleandoc},
    "ipaddress": {},
    "linecache": {},
    "msgspec.inspect": {},
    "platform": {"system": lambda: os.uname().sysname},  # for `uuid`
    "textwrap": {},
    "tokenize": {},
    "urllib.parse": {"quote_from_bytes": _real("urllib.parse", "quote_from_bytes")},
}
_NEVER = "typing_extensions"  # msgspec works without it


def import_without(*names: str) -> None:
    """Import modules with stand-ins for their rarely used dependencies."""
    later = [_Later(name) for name in _LATER if name not in sys.modules]
    for one in later:
        sys.modules[one.__name__] = one
        one.__dict__.update(_LATER[one.__name__])
    known = sys.modules.get(_NEVER)
    sys.modules[_NEVER] = known  # type: ignore[assignment]
    try:
        with kept_imports():
            for name in names:
                importlib.import_module(name)
    finally:
        for one in later:
            one.leave()
        if known is None:
            del sys.modules[_NEVER]


if __name__ == "__main__":
    main()
