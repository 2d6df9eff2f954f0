"""Load the plugins that a person allowed by name: the built-in six and third-party ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Plugin
from nanoclaw_memory.types import PluginNote

ENTRY_POINTS = "nanoclaw_memory.plugins"
_NAME = regex(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
BUILT_IN = {  # imported only when allowed: a hook is a new process
    "policies": ("policy_gate", "PolicyGate"),
    "graph-memory": ("graph_memory", "GraphMemory"),
    "recall": ("recall", "RecallPlugin"),
    "continuity": ("continuity", "Continuity"),
    "stability": ("stability", "Stability"),
    "growth-vectors": ("growth", "Growth"),
}


def load(context: PluginContext) -> tuple[list[Plugin], list[PluginNote]]:
    """Return the plugins to run, and notes about those that were allowed but cannot run."""
    plugins: list[Plugin] = []
    refused: list[PluginNote] = []
    for name in dict.fromkeys(context.settings.plugins.allow):
        if name in BUILT_IN:
            if _entry(context, name).enabled:
                plugins.append(_built_in(name, context))
            continue
        settings = context.settings_of(name)
        if settings.get("enabled") is False:
            continue
        try:
            plugins.append(_third_party(name, context))
        except BaseException as error:  # noqa: BLE001 part of the pipeline's one place: foreign code is loaded here
            refused.append(
                PluginNote(name, f"could not be loaded: {type(error).__name__}: {str(error)[:200]}")
            )
    return plugins, refused


def _built_in(name: str, context: PluginContext) -> Plugin:
    module, plugin = BUILT_IN[name]
    found: Plugin = getattr(import_module(f"nanoclaw_memory.turn.{module}"), plugin)(context)
    return found


def _entry(context: PluginContext, name: str) -> Any:
    return getattr(context.settings.plugins.entries, name.replace("-", "_"))


def _third_party(name: str, context: PluginContext) -> Plugin:
    made = _factory(name, context.home.root / "extensions")(context)
    if not isinstance(made, Plugin):
        raise TypeError(f"its plugin() returned a {type(made).__name__}, not a Plugin")
    made.name = name
    settings = context.settings_of(name)
    made.order = int(settings.get("order", settings.get("priority", made.order)))
    made.timeout_ms = int(settings.get("timeoutMs", made.timeout_ms))
    return made


def _factory(name: str, extensions: Path) -> Callable[[PluginContext], Any]:
    """Return `plugin` of extensions/NAME/plugin.py, or the entry point of that name."""
    if not _NAME.match(name):
        raise ValueError("a plugin's name is lower-case letters, digits and hyphens")
    path = extensions / name / "plugin.py"
    if path.is_file():
        return _from_file(name, path)
    for found in _entry_points(name):
        return found
    raise LookupError(f"there is no extensions/{name}/plugin.py and no installed package offers it")


def _from_file(name: str, path: Path) -> Callable[[PluginContext], Any]:
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"nanoclaw_extension_{name.replace('-', '_')}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    factory: Callable[[PluginContext], Any] = module.plugin
    return factory


def _entry_points(name: str) -> Iterator[Callable[[PluginContext], Any]]:
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS, name=name):
        yield point.load()
