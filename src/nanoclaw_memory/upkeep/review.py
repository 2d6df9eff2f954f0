"""Carry out a person's decisions on proposals: an accepted one changes a page, a rejected one never returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nanoclaw_memory.entries import lifecycle
from nanoclaw_memory.entries.ledger import held_key
from nanoclaw_memory.errors import Conflict, FileProblem, InvalidValue, Refused, StoreError
from nanoclaw_memory.intake.suspicion import STEERING
from nanoclaw_memory.lessons.learning import held_lessons
from nanoclaw_memory.store.entries import Filter
from nanoclaw_memory.store.names import fold, slot_of
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import Entry, Lesson, Proposal
from nanoclaw_memory.upkeep import pages
from nanoclaw_memory.upkeep.demote import MAX_BYTES, MAX_LINES, size_of
from nanoclaw_memory.upkeep.retain import with_archived
from nanoclaw_memory.workspace.files import locked, read_or_empty, replace_text
from nanoclaw_memory.workspace.merging import merge
from nanoclaw_memory.workspace.paths import ARCHIVE, project_in_path, within
from nanoclaw_memory.workspace.projects import STARTER

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

DEMOTED_PAGE = f"{ARCHIVE}/MEMORY.md"
MAX_LINE = 500
PAGE_KINDS = ("promotion", "demotion", "memory", "lesson")  # all other kinds concern an entry
NEW_PAGES = {"MEMORY.md": "# Long-Term Memory\n", "SOUL.md": "# Soul\n"}
PROPOSALS_PAGE = "proposals.md"


def open_proposals(group: Group) -> list[Proposal]:
    """Return every open proposal: those that make room first, and within a kind those that read like an attack."""
    with suppress(StoreError):  # a read-only home lists what it has
        for own in _with_held(group):
            propose_held(own)
    found = [
        proposal for own in group.private_and_shared("entries") for proposal in own.proposals.listed("open")
    ]
    order = {"demotion": 0, "promotion": 1, "lesson": 2}
    return sorted(found, key=lambda proposal: (order.get(proposal.kind, 3), STEERING not in proposal.why))


def count_open(group: Group) -> int:
    """Count what `open_proposals` returns; write nothing."""
    listed = sum(len(own.proposals.listed("open")) for own in group.private_and_shared("entries"))
    return listed + sum(1 for own in _with_held(group) for _ in (*_new_lessons(own), *_new_entries(own)))


def holder(group: Group, proposal_id: str) -> Group:
    """Return the group itself or its shared chats, whichever has a proposal."""
    return next((own for own in group.private_and_shared("entries") if own.proposals.has(proposal_id)), group)


def propose_held(group: Group) -> int:
    """Propose every lesson and entry that awaits approval and is in no open proposal; return how many are new."""
    lessons, entries = _new_lessons(group), _new_entries(group)
    for lesson in lessons:
        _propose_lesson(group, lesson)
    for entry in entries:
        ledger = group.entries.ledger
        with ledger.db.transaction():
            ledger.propose(entry)
            _ask_again(group, "held", held_key(entry.type, entry.content), {"id": entry.id})
    return len(lessons) + len(entries)


def _with_held(group: Group) -> list[Group]:
    """Return this group and its shared chats, if they have lessons or entries."""
    both = (*group.private_and_shared("facts"), *group.private_and_shared("entries"))
    return list({id(own): own for own in both}.values())


def _new_lessons(group: Group) -> list[Lesson]:
    """Return the lessons that await approval and are in no open proposal."""
    waiting = held_lessons(group.lessons) if group.has("facts") else []
    return [one for one in waiting if not _is_asked(group, "lesson", _held_key(one))]


def _new_entries(group: Group) -> list[Entry]:
    """Return the entries that await approval and are in no open proposal."""
    if not group.has("entries"):
        return []
    found = group.entries.ledger.table.all(Filter(group.moment(), statuses=("held",)))
    return [one for one in found if not _is_asked(group, "held", held_key(one.type, one.content))]


def _is_asked(group: Group, kind: str, key: str) -> bool:
    found = group.proposals.find(kind, key) if group.has("entries") else None
    return found is not None and found.status == "open"


def _ask_again(group: Group, kind: str, key: str, payload: Mapping[str, Any]) -> None:
    """Reopen the proposal of a text that was decided before and is held anew."""
    found = group.proposals.find(kind, key)
    if found is not None and found.status != "open":
        group.proposals.reopen(found.id, group.moment())
        group.proposals.reword(found.id, payload)


def _propose_lesson(group: Group, lesson: Lesson) -> None:
    reach = "at the start of every session" if lesson.general else "before messages that it applies to"
    where = f" in project {lesson.project}" if lesson.only_there else ""
    payload = {"text": lesson.lesson, "lesson": lesson.id}
    group.proposals.propose(
        "lesson",
        payload,
        why=lesson.why,
        key=_held_key(lesson),
        moment=group.moment(),
        source=f"lesson {lesson.id}",
        diff=f"+ {lesson.lesson}",
        origin=lesson.origin,
        effect=f"is given as a lesson {reach}{where}",
    )
    _ask_again(group, "lesson", _held_key(lesson), payload)


def lesson_key(lesson: Lesson) -> str:
    """Return the key under which a lesson is proposed."""
    return f"{lesson.id}\n{lesson.lesson.casefold()}"


def _held_key(lesson: Lesson) -> str:
    return f"held\n{lesson_key(lesson)}"


def decide(group: Group, proposal_id: str, accept: bool, text: str = "") -> Proposal:
    """Carry out a decision. If killed at any point, repeating the decision ends in the same state.

    The page is written first and the proposal closed last; a line that the page already contains is not written
    twice.
    """
    group.require_owner("decide on a proposal")
    group = holder(group, proposal_id)
    proposal = group.proposals.get(proposal_id)
    if text and not proposal.may_be_reworded:
        raise InvalidValue(f"a {proposal.kind} cannot be reworded", "accept or reject it")
    if proposal.status != "open":
        raise InvalidValue(f"proposal {proposal_id} was {proposal.status} already", "see: ncm review")
    if act := _GRAPH_ACTS.get(proposal.kind):
        if accept:
            act(group, proposal.payload)
        return group.proposals.decide(proposal_id, accept, group.moment())
    if proposal.kind not in PAGE_KINDS:
        return lifecycle.decide(group.entries, proposal, accept)
    if proposal.kind == "lesson" and "file" not in proposal.payload:
        _decide_held(group, _reworded(group, proposal, text) if text else proposal.payload, accept)
    elif accept:
        payload = _reworded(group, proposal, text) if text else proposal.payload
        if proposal.kind == "demotion":
            _demote(group, str(payload["text"]))
        else:
            _add_line(group, payload)
        if proposal.kind == "lesson":  # a principle of SOUL.md needs no injection any more
            group.lessons.update(int(payload["lesson"]), state="metabolized", is_metabolized=1)
    return group.proposals.decide(proposal_id, accept, group.moment())


def undo(group: Group, proposal_id: str) -> Proposal:
    """Undo a decision: its changes are reverted, and the proposal is open again."""
    group.require_owner("take a decision back")
    group = holder(group, proposal_id)
    proposal = group.proposals.get(proposal_id)
    if proposal.status == "open":
        raise InvalidValue(f"proposal {proposal_id} is not decided", "see: ncm review")
    accepted, payload = proposal.status == "accepted", proposal.payload
    if act := _GRAPH_ACTS.get(proposal.kind):
        if accepted:
            act(group, payload, undo=True)
    elif proposal.kind not in PAGE_KINDS:
        lifecycle.undo(group.entries, proposal)
    elif proposal.kind == "lesson" and "file" not in payload:
        group.lessons.update(int(payload["lesson"]), state="candidate", why=proposal.why, retired_because="")
    elif accepted:
        _undo_page(group, proposal)
        if proposal.kind == "lesson":
            group.lessons.update(int(payload["lesson"]), state="active", is_metabolized=0)
    return group.proposals.reopen(proposal_id, group.moment())


def _resolve(group: Group, payload: Mapping[str, Any], undo: bool = False) -> None:
    """Retire the older of two values or entries that two machines set, or restore both."""
    if payload["table"] == "pages":
        return _resolve_page(group, payload, undo)
    if payload["table"] == "entries":
        return _resolve_entries(group, str(payload["older"]), str(payload["newer"]), undo)
    table = group.graph.facts if payload["table"] == "facts" else group.graph.relations
    rows = table.line([fold(str(payload["entity"]))], slot_of(str(payload["key"])))
    newer = [row.item for row in rows if row.item.value == payload["newer"] and not row.item.valid_to]
    for row in rows:
        if newer and row.item.value == payload["older"] and bool(row.item.valid_to) == undo:
            end = None if undo else newer[0].valid_from
            with group.database("facts").transaction():
                table.retire(row.item.id, end, None if undo else newer[0].id)
    return None


def _resolve_entries(group: Group, older: str, newer: str, undo: bool) -> None:
    ledger = group.entries.ledger
    entry = ledger.entry(older)
    with ledger.db.transaction():
        if undo:
            ledger.table.restore(older, ledger.moment())
            ledger.audit("undo", older)
        else:
            ledger.supersede(entry, newer)
    ledger.changed(gone=[] if undo else [entry], come=[ledger.entry(older)] if undo else [])


def _resolve_page(group: Group, payload: Mapping[str, Any], undo: bool) -> None:
    """Replace the lines of a conflict by the other text, preserving later changes of the page."""
    there, wanted = str(payload["older"]), str(payload["newer"])
    page = str(payload["file"])

    def change(now: str) -> str:
        made = merge(wanted, there, now) if undo else merge(there, wanted, now)
        if made.conflict:
            raise Conflict(
                f"these lines of {page} were changed again", "edit the page by hand, then reject this"
            )
        return made.text

    pages.rewrite(group, page, change)


def _prune(group: Group, payload: Mapping[str, Any], undo: bool = False) -> None:
    """Retire facts that nobody uses, which stay as history; or make them current again."""
    facts = group.graph.facts
    with group.graph.db.transaction():
        for number in payload["facts"]:
            facts.revive(int(number)) if undo else facts.retire(int(number), group.moment(), None)


_GRAPH_ACTS: dict[str, Callable[..., None]] = {"conflict": _resolve, "prune": _prune}


def _undo_page(group: Group, proposal: Proposal) -> None:
    """Restore the version before the decision; on a page that was edited since, revert only the decided line."""
    payload = proposal.payload
    page, line, old = (str(payload.get(name, "")) for name in ("file", "text", "replaces"))
    demoted = proposal.kind == "demotion"
    kept = [pages.version(group, page, version.name) for version in pages.versions(group, page)]

    def change(now: str) -> str:
        for before in kept:
            if bool(pages.find_item(before, line)) == demoted and _decided(before, payload, demoted) == now:
                return before
        if demoted:
            block = next(filter(None, (pages.find_item(before, line) for before in kept)), None)
            return now if block is None else pages.add_item(now, block.heading, line)
        return pages.replace_item(now, line, old) if old else pages.remove_item(now, line)

    pages.rewrite(group, page, change)
    if demoted:
        pages.rewrite(group, DEMOTED_PAGE, lambda text: pages.remove_item(text, line))


def _decided(before: str, payload: Mapping[str, Any], demoted: bool) -> str:
    line, old = str(payload["text"]), str(payload.get("replaces", ""))
    if demoted:
        return pages.remove_item(before, line)
    if old and pages.find_item(before, old):
        return pages.replace_item(before, old, line)
    return pages.add_item(before, str(payload["section"]), line)


def _decide_held(group: Group, payload: Mapping[str, Any], accept: bool) -> None:
    """Activate a lesson that awaited review, in the accepted words, or retire it."""
    number = int(payload["lesson"])
    if accept:
        group.lessons.update(
            number, state="active", lesson_text=str(payload["text"]), why="accepted in review"
        )
    else:
        group.lessons.update(number, state="retired", retired_because="rejected in review")


def _reworded(group: Group, proposal: Proposal, text: str) -> Mapping[str, Any]:
    """Return the payload in the person's own words; stored before the page is written."""
    line = group.intake.admit(one_line(text).removeprefix("- ")).text
    if not line or len(line) > MAX_LINE:
        raise InvalidValue(f"the text has {len(line)} characters", f"give one line of 1 to {MAX_LINE}")
    payload = {**proposal.payload, "text": line}
    group.proposals.reword(proposal.id, payload)
    return payload


def _add_line(group: Group, payload: Mapping[str, Any]) -> None:
    """Add the proposed line to its page, in place of the one it replaces."""
    page, line, old = str(payload["file"]), str(payload["text"]), str(payload.get("replaces", ""))

    def change(before: str) -> str:
        if pages.find_item(before, line):
            return before
        if old and pages.find_item(before, old):
            after = pages.replace_item(before, old, line)
        else:
            start = NEW_PAGES.get(page) or STARTER.format(title=project_in_path(page))
            after = pages.add_item(before or start, str(payload["section"]), line)
        _refuse_loss(before, after, allowed=old)
        if page == "MEMORY.md":
            _refuse_growth(before, after)
        return after

    pages.rewrite(group, page, change)


def _demote(group: Group, line: str) -> None:
    """Write the line to the archive first, then remove it from MEMORY.md."""
    block = pages.find_item(group.page("MEMORY.md"), line)
    if block is None:
        return  # removed by an earlier, killed decision
    archive = within(group.workspace / DEMOTED_PAGE, group.workspace)
    with locked(archive.parent):
        before = read_or_empty(archive)
        if f"\n{block.text}\n" not in before.replace("\r\n", "\n"):
            start = before or "# What left MEMORY.md\n"
            replace_text(archive, with_archived(start, group.today, [replace(block, day=None)]))

    def change(before: str) -> str:
        after = pages.remove_item(before, line)
        _refuse_loss(before, after, allowed=line)
        return after

    pages.rewrite(group, "MEMORY.md", change)


def _refuse_loss(before: str, after: str, allowed: str) -> None:
    """Refuse a change that loses any item but the allowed one."""
    left = {pages.item_text(item) for item in pages.items(after)} | {allowed}
    lost = [text for item in pages.items(before) if (text := pages.item_text(item)) not in left]
    if lost:
        raise FileProblem(
            f"the page would lose “{lost[0][:80]}”", "nothing was changed; edit the page by hand"
        )


def _refuse_growth(before: str, after: str) -> None:
    """Refuse a change that makes MEMORY.md grow over its limits."""
    size = size_of(after)
    if not size.fits and size.bytes > size_of(before).bytes:
        raise Refused(
            f"MEMORY.md would have {size.bytes:,} bytes and {size.lines} lines (limits {MAX_BYTES:,} and {MAX_LINES})",
            "accept a demotion first: nanoclaw-memory upkeep promote, then nanoclaw-memory review",
        )


def write_page(group: Group) -> None:
    """Write all open proposals to data/proposals.md; remove it when there are none."""
    path = group.data / PROPOSALS_PAGE
    found = open_proposals(group)
    if not found:
        path.unlink(missing_ok=True)
        return
    sections = ["# Proposals\n\nDecide with `ncm review`.\n"]
    for proposal in found:
        diff = "\n".join(f"    {line}" for line in proposal.diff.split("\n"))
        about = {
            "Why": proposal.why,
            "From": proposal.source,
            "Said by": proposal.origin,
            "If accepted": proposal.effect,
        }
        told = "".join(f"{name}: {value}\n" for name, value in about.items() if value)
        sections.append(f"## {proposal.id} ({proposal.kind})\n\n{told}\n{diff}\n")
    text = "\n".join(sections)
    if read_or_empty(path) != text:
        replace_text(path, text, durable=False)
