"""Lessons that have proved themselves are proposed as principles of SOUL.md; a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nanoclaw_memory.intake.suspicion import suspicions
from nanoclaw_memory.lessons.maturity import days, ripe
from nanoclaw_memory.statements import features, restates
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Done, Lesson
from nanoclaw_memory.upkeep import page
from nanoclaw_memory.workspace.boot import SIZE_TARGETS

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

PAGE = "SOUL.md"
SECTION = "Core Principles"


def metabolize(group: Group, dry_run: bool = False) -> Done:
    """Propose every ripe lesson once; one that SOUL.md says already is left out, one that was learnt badly is named."""
    if not group.has("facts"):
        return Done()
    found = ripe(group.lessons.all(("active",)), group.clock.now())
    soul = group.page(PAGE)
    known = [features(page.says(item)) for item in page.items(soul)]
    proposed, notes = 0, []
    for lesson in found:
        said = _principle(lesson)
        if reasons := suspicions(said):
            notes.append(f"lesson {lesson.id} is not proposed: {', '.join(reasons)}")
        elif any(restates(other, features(said)) for other in known):
            notes.append(f"lesson {lesson.id} is not proposed: {PAGE} says it already")
        elif dry_run:
            proposed += group.proposals.find("lesson", _key(lesson)) is None
        else:
            proposed += _propose(group, lesson, said, len(soul.encode()))
    return Done(proposed, tuple(notes))


def _principle(lesson: Lesson) -> str:
    principle = one_line(lesson.principle)
    text = one_line(lesson.lesson)
    return f"{principle}: {text}" if principle else text


def _key(lesson: Lesson) -> str:
    return f"{lesson.id}\n{lesson.lesson.casefold()}"


def _propose(group: Group, lesson: Lesson, said: str, size: int) -> bool:
    why = (
        f"learnt {days(lesson, group.clock.now())} days ago, injected {lesson.injections} times, "
        f"effective in {lesson.effectiveness:.0%}"
    )
    if lesson.private:
        why += "; it was learnt in private, and SOUL.md is read in shared chats too"
    if (after := size + len(said.encode()) + 3) > SIZE_TARGETS[PAGE]:
        why += f"; {PAGE} would have {after:,} bytes, over its target of {SIZE_TARGETS[PAGE]:,}"
    made = group.proposals.propose(
        "lesson",
        {"file": PAGE, "section": SECTION, "text": said, "lesson": lesson.id},
        why=why,
        key=_key(lesson),
        moment=group.moment(),
        source=f"lesson {lesson.id}",
        diff=f"## {SECTION}\n+ {said}",
    )
    return made is not None
