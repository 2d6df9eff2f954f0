"""Turn ranked passages into hits: each with its kind, date, place and most telling lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nanoclaw_memory.retrieval import ranking
from nanoclaw_memory.retrieval.candidates import Candidate
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.store.passage_search import StoredPassage
from nanoclaw_memory.types import FOREIGN, EntryHit, Hit, Newer

NEWER_CHARS = 200
_WHY = {
    "keyword": "words",
    "cosine": "meaning",
    "neighbours": "turns beside it",
    "speaker": "speaker",
    "day": "the day",
}
# The path of a row of a database: `start_line` 0 means that it has no line.
_DATABASES = {
    "turn": "data/continuity.db",
    "fact": "data/facts.db",
    "relation": "data/facts.db",
    "lesson": "data/facts.db",
}


def hits_of(
    found: Iterable[Candidate], question: str, entries: Mapping[int, EntryHit], corpus: str, explain: bool
) -> list[Hit]:
    """Return the passages as hits; `entries` are the entries among them by number. Deleted ones are left out."""
    hits = []
    for one in found:
        passage = one.stored.passage
        parts = {name: round(value, 4) for name, value in one.parts.items()} if explain else {}
        if passage.kind == "entry":
            if passage.number in entries:
                hits.append(entry_hit(entries[passage.number], parts, one))
            continue
        start, end, text = ranking.snippet(passage.text, passage.start_line, question)
        of_file = one.stored.source == "files"
        hits.append(
            Hit(
                kind="chunk" if of_file else "exchange" if passage.kind == "turn" else passage.kind,
                path=one.stored.path if of_file else _DATABASES[passage.kind],
                start_line=start if of_file else 0,
                end_line=end if of_file else 0,
                text=text,
                score=round(one.score, 4),
                why=why(one),
                id=str(one.stored.id if of_file else passage.number),
                heading=passage.heading,
                day=passage.day,
                speaker=passage.speaker,
                corpus=corpus,
                parts=parts,
                created_at=passage.moment,
                origin=passage.origin,
                untrusted=passage.origin in FOREIGN,
                place=place_of(one.stored, start),
                session=passage.session,
                project=passage.project,
                mark=one.mark,
                newer=newer_of(one.newer) if one.newer else None,
                seen=passage.seen,
            )
        )
    return hits


def newer_of(stored: StoredPassage) -> Newer:
    """Return a passage as a newer statement: where it is, when it was said, and its words."""
    passage = stored.passage
    text = ranking.snippet(body_of(passage), 0, "", NEWER_CHARS)[2]
    return Newer(place_of(stored, passage.start_line), passage.said, text)


def place_of(stored: StoredPassage, line: int) -> str:
    """Return where a passage is, for people."""
    passage = stored.passage
    if stored.source == "files":
        return f"{stored.path}:{line}"
    if passage.kind == "entry":
        return f"entry {passage.reference}"
    if passage.kind == "turn":
        return f"session {passage.session or '(none)'}, exchange {passage.number}"
    read = f" ({passage.reference})" if passage.reference else ""
    return f"{passage.kind} {passage.number}{read}"


def entry_hit(hit: EntryHit, parts: Mapping[str, float], found: Candidate | None = None) -> Hit:
    """Return an entry as a hit: its path is its type's domain file, `start_line` 0 means that it has no line."""
    from nanoclaw_memory.entries.domains import domain_path

    return Hit(
        kind="entry",
        path=domain_path(hit.type),
        start_line=0,
        end_line=0,
        text=hit.content,
        score=hit.relevance_score,
        why=why(found) if found else hit.why,
        id=hit.id,
        day=hit.day,
        type=hit.type,
        tags=hit.tags,
        parts=parts,
        behavioral=hit.behavioral,
        created_at=hit.created_at,
        origin=hit.provenance.origin,
        untrusted=hit.untrusted,
        unconfirmed=hit.unconfirmed,
        suspicions=hit.suspicions,
        place=f"entry {hit.id}",
        project=hit.provenance.project,
        mark=found.mark if found and found.mark else "superseded" if hit.status == "superseded" else "",
        newer=newer_of(found.newer) if found and found.newer else None,
    )


def why(candidate: Candidate) -> str:
    """Return why a passage was found, in words."""
    parts = candidate.parts
    reasons = [shown for name, shown in _WHY.items() if parts.get(name, 0.0) > 0]
    if parts.get("project", 1.0) < 1:
        reasons.append("another project")
    if parts.get("recency", 1.0) < 1:
        reasons.append(f"aged ×{parts['recency']:.2f}")
    return " + ".join(reasons) or "newer on its subject"
