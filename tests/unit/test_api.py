"""The shape of the public API: few verbs, typed parts, every argument typed, nothing under two names."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nanoclaw_memory import Memory
from nanoclaw_memory.memory import api, conversations, entries, host, upkeep, workspace
from nanoclaw_memory.memory.admin import AdminPart
from nanoclaw_memory.types import arguments

PARTS = {
    "graph": "KnowledgeGraph",
    "entries": "EntriesPart",
    "conversations": "ConversationsPart",
    "lessons": "LessonService",
    "workspace": "WorkspacePart",
    "upkeep": "UpkeepPart",
    "host": "HostPart",
    "admin": "AdminPart",
}
OWN_PARTS = (
    entries.EntriesPart,
    conversations.ConversationsPart,
    workspace.WorkspacePart,
    upkeep.UpkeepPart,
    host.HostPart,
    AdminPart,
)


def methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class, class methods included."""
    for name, found in inspect.getmembers(cls):
        if not name.startswith("_") and (inspect.isfunction(found) or inspect.ismethod(found)):
            yield name, found


def test_memory_has_at_most_thirty_verbs() -> None:
    verbs = [name for name, _ in methods(Memory)]
    assert len(verbs) <= 30, verbs


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_typed(part: str) -> None:
    found = inspect.getattr_static(Memory, part)
    getter = getattr(found, "func", None) or found.fget
    assert getter.__annotations__["return"] == PARTS[part]


def test_no_act_has_two_names() -> None:
    """A verb of Memory is no method of a part, unless the part acts on something else (search, archive …)."""
    verbs = {name for name, _ in methods(Memory)}
    doubled = {f"{cls.__name__}.{name}" for cls in OWN_PARTS for name, _ in methods(cls) if name in verbs} - {
        "ConversationsPart.search",  # sessions only, each hit with its session
        "EntriesPart.get",  # one entry; Memory.get reads lines of a file
        "UpkeepPart.status",  # of the jobs
    }
    assert doubled == set()


@pytest.mark.parametrize("cls", [Memory, *OWN_PARTS], ids=lambda cls: cls.__name__)
def test_every_argument_and_result_is_typed_and_nothing_is_taken_unnamed(cls: type) -> None:
    for name, method in methods(cls):
        signature = inspect.signature(method)
        kinds = {parameter.kind for parameter in signature.parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}, name
        hints = method.__annotations__
        assert {"return", *signature.parameters} - {"self"} <= set(hints), name
        assert not [key for key, hint in hints.items() if key != "return" and "Any" in str(hint)], name


def test_memorys_own_verbs_resolve_their_types_at_run_time() -> None:
    """Interfaces derive their arguments from them."""
    for name, method in methods(Memory):
        if name not in ("open", "for_session"):
            assert typing.get_type_hints(method, vars(api), vars(arguments)), name
