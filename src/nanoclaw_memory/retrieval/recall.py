"""Recall: pack search results into a token budget; entries come first when equally good."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime

import msgspec
from msgspec.structs import replace

from nanoclaw_memory import tokens
from nanoclaw_memory.conversations.service import excerpt
from nanoclaw_memory.entries.entries import Entries, check_query
from nanoclaw_memory.entries.lines import age, as_hit, masked, origin_of, other_project
from nanoclaw_memory.entries.rules import choice, whole
from nanoclaw_memory.entries.shared import SharedEntries
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import fenced, item, item_line, marks, short_ids, visible_line
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.chunker import BY, without_speaker
from nanoclaw_memory.retrieval.hits import hits_of
from nanoclaw_memory.retrieval.ordering import after_newer
from nanoclaw_memory.retrieval.ranking import snippet
from nanoclaw_memory.retrieval.relevance import Coverage
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.retrieval.service import Retrieval
from nanoclaw_memory.store.entries import PRIORITIES
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.text import content_words
from nanoclaw_memory.types import EntryHit, Hit, Newer, Recall, RecalledEntry, Scope
from nanoclaw_memory.types.search import IN_SHARED_CHAT
from nanoclaw_memory.workspace.log import parse_line

CANDIDATES = 50
WORTH = 0.4  # minimal share of the best answer's score
HIT_TOKENS = (
    70  # average tokens of a hit in a list for a model; with 45 a quarter of the answers were cut away
)
MOST_TOKENS = 160  # maximal tokens of a hit
LEAST_TOKENS = 30  # tokens of a hit that is cut, unless its place needs more
LEAST_CHARS = 40  # minimal characters of its text
BRIEF_CHARS = 200
MAX_BUDGET = 200_000
# The share of relevance in an entry's rank; the rest is its importance.
RELEVANCE, IMPORTANCE = 0.75, 0.25
_ARCHIVE = regex(r"\Aconversations/(?=\d{4}-\d\d-\d\d-[^/]+\Z)")  # such a name is found without its folder
_BULLET = regex(r"\A\s*[-*+•]\s+(?=\S)")
OF_OTHERS = 0.25  # the importance of other kinds of hits: an equally good entry precedes them
PASTED = 0.5  # the share of its relevance that counts of what others wrote: a paste is long and covers much
FORMATS = ("brief", "detailed")
WITH_RELATED = 3  # answers whose related entries are added
MOST_RELATED = 3


class RecallRequest(msgspec.Struct, frozen=True):
    """The arguments of a recall."""

    query: str
    types: tuple[str, ...] | None = None
    priority_min: str = "low"
    token_budget: int = 3_000
    include_context: bool = False
    format: str = "brief"
    fast: bool = False

    def __post_init__(self) -> None:
        choice("format", self.format, FORMATS)
        whole("token_budget", self.token_budget, 0, MAX_BUDGET)


class _Packed(msgspec.Struct, frozen=True):
    entry: RecalledEntry
    line: str
    held: bool = False


class _Answers(msgspec.Struct, frozen=True):
    lines: list[_Packed]
    matched: int
    fallback: str = ""
    degraded: tuple[str, ...] = ()


def recall(
    entries: Entries,
    retrieval: Retrieval,
    wanted: RecallRequest,
    chats: tuple[Entries, Retrieval] | None = None,
) -> Recall:
    """Return the best answers as whole lines within the budget; those of shared `chats` come last."""
    scope = entries.ledger.scope
    own = _answers(entries, retrieval, wanted, scope)
    said = _answers(*chats, wanted, scope) if chats is not None else _Answers([], 0)
    return pack(
        [*own.lines, *said.lines],
        wanted,
        own.matched + said.matched,
        own.fallback,
        tuple(dict.fromkeys((*own.degraded, *said.degraded))),
    )


def _answers(entries: Entries, retrieval: Retrieval, wanted: RecallRequest, scope: Scope) -> _Answers:
    """Return what answers in one memory, best first, as the scope may see it."""
    if wanted.types is not None or not check_query(wanted.query).strip():
        known = entries.search(
            wanted.query,
            types=wanted.types,
            priority_min=wanted.priority_min,
            limit=CANDIDATES,
            fast=wanted.fast,
        )
        packed = [_from_entry(hit, wanted, scope) for hit in ranked(known.hits)]
        more = _related(packed, entries, wanted, scope)
        return _Answers([*packed, *more], len(packed), degraded=known.degraded)
    choice("priority_min", wanted.priority_min, PRIORITIES)
    filter_ = replace(retrieval.filter_for(scope), lowest_priority=PRIORITIES.index(wanted.priority_min))
    today = retrieval.clock.now().date()
    question = Question(wanted.query, CANDIDATES, today, wanted.fast, wanted=filter_, project=scope.project)
    ranking, known_entries = retrieval.find(question)
    shared = retrieval.scope.private != scope.private
    lines = list(_lines(ranking.found, known_entries, wanted, scope, shared))
    least = WORTH * max((one.entry.score for _, one in lines), default=0.0)
    newer = {candidate.newer_id for candidate, answer in lines if answer.entry.score >= least}
    lines = [pair for pair in lines if pair[1].entry.score >= least or pair[0].stored.id in newer]
    lines.sort(key=lambda pair: (pair[1].held, -pair[1].entry.score, pair[1].entry.id))
    lines = after_newer(lines, lambda pair: pair[0].stored.id, lambda pair: pair[0].newer_id)
    fallback = "files" if lines and not known_entries else ""
    answers = [one for _, one in lines]
    answers += _related(answers, entries, wanted, scope)
    return _Answers(answers, len(known_entries), fallback, tuple(ranking.degraded))


def _related(
    answers: Sequence[_Packed], entries: Entries, wanted: RecallRequest, scope: Scope
) -> list[_Packed]:
    """Return entries related to the best answers by their authors that are not among the answers."""
    known = {packed.entry.id for packed in answers}
    ids = [name for packed in answers[:WITH_RELATED] for name in packed.entry.related_to if name not in known]
    now = entries.ledger.clock.now()
    hits = [as_hit(entry, 0.0, "related", now) for entry in entries.related(list(dict.fromkeys(ids)))]
    return [_from_entry(hit, wanted, scope) for hit in hits[:MOST_RELATED]]


def _lines(
    found: Iterable[Candidate],
    entries: Mapping[int, EntryHit],
    wanted: RecallRequest,
    scope: Scope,
    shared: bool,
) -> Iterator[tuple[Candidate, _Packed]]:
    for candidate in found:
        for hit in hits_of([candidate], wanted.query, entries, "", explain=False):
            if hit.kind == "entry":
                yield candidate, _from_entry(entries[candidate.stored.passage.number], wanted, scope, hit)
            else:
                yield candidate, _from_hit(replace(hit, shared=shared), wanted, scope)


def hits_text(hits: Sequence[Hit], today: date, project: str = "", question: str = "") -> str:
    """Render hits, fenced as data with origin, age and the names of other projects, for an agent to read.

    A line has at most HIT_TOKENS on average: the best keep their texts, the others are cut to what says most.
    """
    places = {hit.place for hit in hits}
    overtaking = {hit.newer.place for hit in hits if hit.newer}
    hits = [replace(hit, newer=_pointer(hit.newer, places)) if hit.newer else hit for hit in hits]
    lines = [item(*_parts(hit, project, today)) for hit in hits]
    costs = list(map(tokens.estimate, lines))
    if sum(costs) > HIT_TOKENS * len(hits) or max(costs, default=0) > MOST_TOKENS:
        first = [hit.place in overtaking for hit in hits]
        lines = _cut_lines(hits, lines, costs, first, lambda hit: _parts(hit, project, today), question)
    return fenced(lines)


def _pointer(newer: Newer, shown: Container[str]) -> Newer | None:
    """Return where the newer statement is, unless it is shown; for conversations only the day, as no tool reads
    more.
    """
    if newer.place in shown:
        return None
    return replace(newer, place="") if newer.place.startswith("session ") else newer


def _cut_lines(
    hits: Sequence[Hit],
    lines: Sequence[str],
    costs: Sequence[int],
    first: Sequence[bool],
    parts: Callable[[Hit], tuple[list[str], str]],
    question: str,
) -> list[str]:
    """Cut every hit to its minimum, then spend the rest on those that come `first` and on the best."""

    def cut(hit: Hit, most: int) -> str:
        # A line is cut to what says most, not at its end.
        room = max(most * 3, *map(len, hit.text.split("\n")))
        start, end, text = snippet(hit.text, hit.start_line, question, room)
        return _cut_line(*parts(replace(hit, text=text, start_line=start, end_line=end)), question, most)

    shown = [
        cut(hit, LEAST_TOKENS) if cost > LEAST_TOKENS else line
        for hit, line, cost in zip(hits, lines, costs, strict=True)
    ]
    least = list(map(tokens.estimate, shown))
    left = HIT_TOKENS * len(hits) - sum(least)
    for place in sorted(range(len(hits)), key=lambda place: not first[place]):
        own = min(least[place] + left, MOST_TOKENS)
        if own >= costs[place]:
            shown[place] = lines[place]
        elif own > least[place]:
            shown[place] = cut(hits[place], own)
        left -= tokens.estimate(shown[place]) - least[place]
    return shown


def _parts(hit: Hit, project: str, today: date | None = None) -> tuple[list[str], str]:
    """Return what is known about a hit (place or id, speaker, time, trust), and its text."""
    text = hit.text
    about = [hit.speaker, hit.place, hit.when]
    if hit.kind == "entry" and today:
        stored = _stored(hit.day, (today - date.fromisoformat(hit.day)).days)
        about = [f"{hit.type} {hit.id}", hit.origin, stored]
    elif hit.kind == "chunk":
        last = f"-{hit.end_line}" if hit.end_line != hit.start_line else ""
        dated = bool(hit.day) and hit.day in hit.path
        path = _ARCHIVE.sub("", hit.path)
        about = [f"{path}:{hit.start_line}{last}", hit.speaker, "" if dated else hit.when]
        about += ["agent"] if hit.origin == "agent" and not hit.speaker else []
        shown = _log_text if dated else _without_bullet
        text = without_speaker(text, hit.speaker) if hit.speaker else shown(text)
    warned = marks(hit.origin if hit.untrusted else "", hit.suspicions, hit.unconfirmed)
    about += [hit.status, other_project(hit.project, project), warned]
    return list(map(short_ids, about)), item_line(masked(text))


def _without_bullet(text: str) -> str:
    """Return a list item as a line of its own."""
    return _BULLET.sub("", BY.sub("", text, 1))


def _log_text(text: str) -> str:
    """Return a log line without its marks; its tag stays within the text, where it cannot pass for our own label."""
    first, newline, rest = text.partition("\n")
    said = parse_line(first)
    return f"{said.tag}: {said.text}".removeprefix(": ") + newline + rest if said else text


def _cut_line(about: list[str], text: str, question: str, most: int) -> str:
    """Return a line of so many tokens, with the part of its text that says most about the question."""
    wanted = set(content_words(question))
    chars = min(len(text), most * 4)
    while True:
        line = item(about, excerpt(text, wanted, chars))
        if tokens.estimate(line) <= most or chars <= LEAST_CHARS:
            return line if "…" in line else f"{line} …"
        chars = max(chars * 4 // 5, LEAST_CHARS)


def shared_recall(shared: SharedEntries, now: datetime, scope: Scope, wanted: RecallRequest) -> Recall:
    """Recall from what other groups have published and granted."""
    found = shared.matching(check_query(wanted.query), wanted.types, wanted.priority_min)
    terms = dict.fromkeys(terms_of(wanted.query), 1.0)
    coverage = Coverage(wanted.query, terms, len(found))
    hits = []
    for entry in found:
        text = " ".join((entry.content, *entry.tags, entry.reason))
        share = coverage.of(text) if terms else 1.0
        hits.append(as_hit(entry, share, "keyword" if terms else "recent", now))
    return pack([_from_entry(hit, wanted, scope) for hit in ranked(hits)[:CANDIDATES]], wanted, len(hits))


def ranked(hits: Iterable[EntryHit]) -> list[EntryHit]:
    """Sort by relevance and importance together; held entries come last."""
    return sorted(hits, key=lambda hit: (hit.status == "held", -_score(hit), hit.id))


def pack(
    candidates: Sequence[_Packed],
    wanted: RecallRequest,
    matched: int,
    fallback: str = "",
    degraded: tuple[str, ...] = (),
) -> Recall:
    """Pack as many whole lines as the budget allows, in order; the count is that of the final text."""
    fence = tokens.count(fenced(["-"]))
    budget = tokens.Budget(wanted.token_budget - fence, tokens.count)
    chosen = [candidate for candidate in candidates if budget.take(candidate.line + "\n")]
    text = fenced(packed.line for packed in chosen)
    # lines are counted separately, the promise is about the text
    while (cost := tokens.count(text)) > wanted.token_budget:
        chosen.pop()
        text = fenced(packed.line for packed in chosen)
    left = wanted.token_budget - cost
    first = candidates[0].line if candidates and not chosen else ""
    needed = max(tokens.count(fenced([first])), fence + tokens.count(first + "\n")) if first else 0
    shown = tuple(packed.entry for packed in chosen)
    return Recall(shown, text, cost, left, matched, fallback, degraded, needed)


def _score(hit: EntryHit) -> float:
    return RELEVANCE * hit.relevance_score + IMPORTANCE * hit.importance


def _from_entry(hit: EntryHit, wanted: RecallRequest, scope: Scope, found: Hit | None = None) -> _Packed:
    brief = wanted.format == "brief"
    context = hit.reason if wanted.include_context else ""
    entry = RecalledEntry(
        id=hit.id,
        type=hit.type,
        category=hit.type,
        content=item_line(hit.content, BRIEF_CHARS) if brief else hit.content,
        priority=hit.priority,
        score=round(_score(hit), 4),
        stored_at=hit.created_at,
        tags=hit.tags,
        origin=hit.provenance.origin,
        age_days=hit.age_days,
        untrusted=hit.untrusted,
        unconfirmed=hit.unconfirmed,
        suspicions=hit.suspicions,
        context=context,
        group=hit.provenance.group,
        project=hit.provenance.project,
        mark=found.mark if found else "",
        newer=found.newer if found else None,
        shared=scope.private and not hit.provenance.private,
        related_to=hit.related_to,
    )
    when = _stored(hit.day, hit.age_days)
    about = [f"{hit.type} {hit.id}", hit.priority, origin_of(hit.provenance, scope.group), when]
    about += [IN_SHARED_CHAT] if entry.shared else []
    about += ["related" if hit.why == "related" else found.status if found else ""]
    about.append(other_project(hit.provenance.project, scope.project))
    about.append(marks(hit.provenance.origin if hit.untrusted else "", hit.suspicions, hit.unconfirmed))
    tail = f" (why: {item_line(context, BRIEF_CHARS)})" if context else ""
    line = item(map(short_ids, about), item_line(hit.content, BRIEF_CHARS if brief else None) + tail)
    return _Packed(entry, line, hit.status == "held")


def _stored(day: str, days: int | None) -> str:
    """Return when an entry was stored: its day, and how long ago that is."""
    return f"{day}, {age(days)}" if days else age(days)


def _from_hit(hit: Hit, wanted: RecallRequest, scope: Scope) -> _Packed:
    """Return a line of a file, an exchange or a fact, each with its place."""
    kind, place = hit.kind, hit.place
    if kind == "chunk":
        kind, place = "file", f"{hit.path}:{hit.start_line}-{hit.end_line}"
    most = BRIEF_CHARS if wanted.format == "brief" else None
    relevance = hit.score * (PASTED if hit.untrusted else 1.0)
    entry = RecalledEntry(
        id=place,
        type=kind,
        category=kind,
        content=item_line(masked(_without_bullet(hit.text)), most),
        priority="medium",
        score=round(RELEVANCE * relevance + IMPORTANCE * OF_OTHERS, 4),
        stored_at=hit.created_at,
        tags=(),
        origin=hit.origin or kind,
        age_days=None,
        untrusted=hit.untrusted,
        project=hit.project,
        mark=hit.mark,
        newer=hit.newer,
        shared=hit.shared,
    )
    about, text = _parts(hit, scope.project)
    return _Packed(entry, item(about, visible_line(text, most)))
