"""Edit one file of a client: our servers, plugins and hooks are added and removed by key; everything else stays."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from nanoclaw_memory.interfaces.install import json_edit, toml_edit
from nanoclaw_memory.interfaces.install.calls import (
    SERVER,
    Call,
    Commands,
    Target,
    call_of_hook,
    call_of_server,
)

KeyPath = tuple[str | int, ...]
Located = tuple[KeyPath, Call]
_MARK = re.compile(r"^# nanoclaw-memory:(?:start|end)\r?\n", re.MULTILINE)  # of earlier releases, in TOML


class ConfigEntry(msgspec.Struct, frozen=True):
    """A member with our name: an MCP server, or the settings of a plugin."""

    parent: tuple[str, ...]
    make: Callable[[Commands], dict[str, Any]]
    call: Callable[[Any], Call | None] = call_of_server
    allowed: tuple[str, ...] = ()  # a list of names that must contain ours, if the file has one


class HookTable(msgspec.Struct, frozen=True):
    """The events for which a client runs hooks: our names for them, and the allowed seconds."""

    events: Mapping[str, tuple[str, int]]
    nested: bool = True  # event, groups, handlers; Cursor lists handlers under the event
    unit: int = 1  # per second; Gemini counts milliseconds

    def group(self, commands: Commands, event: str) -> dict[str, Any]:
        """Return what is listed under an event."""
        name, seconds = self.events[event]
        handler = {"command": commands.hook(name), "timeout": seconds * self.unit}
        return {"hooks": [{"type": "command", **handler}]} if self.nested else handler


class ConfigFile(msgspec.Struct, frozen=True):
    """One file of a client and what we have in it."""

    path: Path
    entries: tuple[ConfigEntry, ...] = ()
    hooks: HookTable | None = None
    empty: str = "{}\n"  # the initial content of a missing file
    whole: str = ""  # its text, if the whole file is ours
    plugins: tuple[str, ...] = ()  # where the client lists its plugins

    @property
    def kind(self) -> str:
        """Return the usual name of its format."""
        return "TOML" if self.path.suffix == ".toml" else "JSON"

    def calls(self, text: str) -> list[Located]:
        """Return every place in the file that calls this program; raise ValueError when it cannot be read."""
        return [] if self.whole else self._calls(self._editor.load(text))

    def has_plugin(self, text: str) -> bool:
        """Return whether the client has our plugin, which does the same as install."""
        listed = _at(self._editor.load(text), self.plugins) if self.plugins else None
        members = listed.items() if isinstance(listed, dict) else ()
        ours = [one for name, one in members if name.startswith(f"{SERVER}@")]
        return any(our.get("enabled", True) if isinstance(our, dict) else our for our in ours)

    def add(self, text: str, commands: Commands) -> str:
        """Return the text with our part in it, once; a person's own call of this program counts and stays."""
        if self.whole:
            return self.whole
        added = self._without(self._unmarked(text), self._surplus(self.calls(text), commands.target))
        for entry in self.entries:
            added = self._with_entry(added, entry, commands)
        if self.hooks:
            added = self._with_hooks(added, self.hooks, commands)
        return self._checked(text, added)

    def remove(self, text: str, target: Target | None = None) -> str:
        """Return the text without what install wrote for this memory, or for any."""
        ours = [path for path, call in self.calls(text) if call.is_ours and target in (None, call.target)]
        return self._checked(text, self._without(self._unmarked(text), ours))

    @property
    def _editor(self) -> ModuleType:
        return toml_edit if self.kind == "TOML" else json_edit

    # ---- servers and plugins ----

    def _with_entry(self, text: str, entry: ConfigEntry, commands: Commands) -> str:
        found = {path[-1]: call for path, call in self.calls(text) if path[:-1] == entry.parent}
        own = found.pop(SERVER, None)
        by_hand = [call for call in found.values() if not call.is_ours and call.serves(commands.target)]
        if (own and not own.is_ours) or (by_hand and not own):
            return text
        made = entry.make(commands)
        if own:
            for key, value in made.items():  # what a person added to our entry stays
                text = self._editor.put(text, (*entry.parent, SERVER, key), value)
        else:
            text = self._editor.put(text, (*entry.parent, SERVER), made)
        names = self._allowed(text, entry)
        return text if names is None or SERVER in names else json_edit.append(text, entry.allowed, SERVER)

    def _allowed(self, text: str, entry: ConfigEntry) -> list[Any] | None:
        names = _at(self._editor.load(text), entry.allowed) if entry.allowed else None
        return names if isinstance(names, list) else None

    # ---- hooks ----

    def _with_hooks(self, text: str, table: HookTable, commands: Commands) -> str:
        located = self.calls(text)
        hooks = _at(self._editor.load(text), ("hooks",))
        if not isinstance(hooks, dict | None):
            raise ValueError('"hooks" must be an object')
        for event in table.events:
            if hooks and not isinstance(hooks.get(event), list | None):
                raise ValueError(f'"hooks" must have a list as "{event}"')
        for event, (name, _) in table.events.items():
            found = [(path, call) for path, call in located if path[:2] == ("hooks", event)]
            ours = [path for path, call in found if call.is_ours]
            if ours:
                text = json_edit.put(text, (*ours[0], "command"), commands.hook(name))
            elif not any(call.serves(commands.target) for _, call in found):
                text = json_edit.append(text, ("hooks", event), table.group(commands, event))
        return text

    def _surplus(self, located: list[Located], target: Target) -> list[KeyPath]:
        """Return our handlers for an event that we do not answer, or that has one already."""
        hooks = [(path, call) for path, call in located if path[0] == "hooks"]
        taken = {path[1] for path, call in hooks if not call.is_ours and call.serves(target)}
        surplus = []
        for path, call in hooks:
            if call.is_ours and self.hooks:
                if path[1] in taken or path[1] not in self.hooks.events:
                    surplus.append(path)
                taken.add(path[1])
        return surplus

    # ---- the whole ----

    def _calls(self, tree: Any) -> list[Located]:
        found: list[Located] = []
        for entry in self.entries:
            members = _at(tree, entry.parent)
            for name, member in members.items() if isinstance(members, dict) else ():
                by_hand = Call(Target(), "hand") if name == SERVER else None
                if call := entry.call(member) or by_hand:
                    found.append(((*entry.parent, name), call))
        events = _at(tree, ("hooks",)) if self.hooks else None
        nested = self.hooks is not None and self.hooks.nested
        for event, groups in events.items() if isinstance(events, dict) else ():
            for path, handler in _handlers(groups, ("hooks", event), nested):
                if isinstance(handler, dict) and (call := call_of_hook(handler.get("command"))):
                    found.append((path, call))
        return found

    def _unmarked(self, text: str) -> str:
        plain = _MARK.sub("", text)
        return plain if self._editor.load(plain) == self._editor.load(text) else text

    def _without(self, text: str, paths: list[KeyPath]) -> str:
        for path in reversed(paths):
            text = self._editor.remove(text, _extent(self._editor.load(text), path))
        for entry in self.entries:
            names = self._allowed(text, entry)
            if names and SERVER in names and (*entry.parent, SERVER) in paths:
                text = json_edit.remove(text, (*entry.allowed, names.index(SERVER)))
        return text

    def _checked(self, before: str, after: str) -> str:
        """Return the text after a change, once it is certain that only our part differs."""
        if self._foreign(before) != self._foreign(after) or (_is_strict(before) and not _is_strict(after)):
            raise ValueError("the change would touch more than our part")
        return after

    def _foreign(self, text: str) -> Any:
        """Return the file's content without ours and without empty parts."""
        tree = copy.deepcopy(self._editor.load(text))
        for path, call in reversed(self._calls(tree)):
            if call.is_ours:
                whole = _extent(tree, path)
                del _at(tree, whole[:-1])[whole[-1]]
        for entry in self.entries:
            names = _at(tree, entry.allowed) if entry.allowed else None
            if isinstance(names, list) and SERVER in names:
                names.remove(SERVER)
        return _pruned(tree)


def _at(tree: Any, path: KeyPath) -> Any:
    for key in path:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _handlers(groups: Any, path: KeyPath, nested: bool) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the handlers below an event with their paths."""
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        if nested:
            inner = group.get("hooks") if isinstance(group, dict) else None
            yield from _handlers(inner, (*path, index, "hooks"), nested=False)
        else:
            yield (*path, index), group


def _extent(tree: Any, path: KeyPath) -> KeyPath:
    """Return what is removed with our call: its whole group of hooks, unless others share it."""
    in_group = len(path) == 5 and path[3] == "hooks"
    return path[:3] if in_group and len(_at(tree, path[:4])) == 1 else path


def _pruned(tree: Any) -> Any:
    if isinstance(tree, dict):
        members = {key: _pruned(member) for key, member in tree.items()}
        return {key: member for key, member in members.items() if member not in ({}, [])}
    if isinstance(tree, list):
        return [member for member in map(_pruned, tree) if member not in ({}, [])]
    return tree


def _is_strict(text: str) -> bool:
    """Return whether every JSON parser accepts it."""
    try:
        json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True
