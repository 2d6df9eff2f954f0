"""Recall (order 7): inject lines of pages and logs, entries and facts that help with a message."""

from __future__ import annotations

import re
from contextlib import suppress

from nanoclaw_memory.entries.lines import masked
from nanoclaw_memory.errors import NotFound, StoreError
from nanoclaw_memory.intake.secrets import mask_fact
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.rendering import item_line, label_of, marks
from nanoclaw_memory.retrieval.candidates import BINDS, Candidate
from nanoclaw_memory.retrieval.prepare import body_of
from nanoclaw_memory.retrieval.ranking import snippet
from nanoclaw_memory.retrieval.searcher import Question
from nanoclaw_memory.retrieval.service import MAX_QUESTION
from nanoclaw_memory.store.entries import BEHAVIORAL
from nanoclaw_memory.text import content_words
from nanoclaw_memory.turn import blocks
from nanoclaw_memory.turn.context import PluginContext
from nanoclaw_memory.turn.plugin import Answer, Draft, Moment, Plugin, Silence
from nanoclaw_memory.types import OWN, Hit, Newer, Passage
from nanoclaw_memory.types.search import IN_SHARED_CHAT

MAX_LINE = 300  # characters of a passage
MOST_DOCUMENTS = 2  # number of passages of domain documents
LEAST_SCORE = 0.5  # minimal score of a passage of domain documents
FEW_WORDS = 2  # domain documents are not searched for messages with fewer content words
_PAIR = regex(r"(?P<name>[^=:\n]{1,60})(?P<sign>\s*[=:]\s+)(?P<value>\S.*)\Z")
SAID = "exchanges"  # the source that continuity injects


class RecallPlugin(Plugin):
    """Recall what was written down, in whatever source."""

    name = "recall"

    def __init__(self, context: PluginContext) -> None:
        self.context = context
        self.own = context.settings.plugins.entries.recall
        self.order = self.own.order
        self.timeout_ms = self.own.timeout_ms

    def before_turn(self, message: str, moment: Moment) -> Answer:
        recalled = self.context.recaller.recall(message, moment)
        own = [
            candidate
            for candidate in recalled.chosen
            if candidate.stored.source != SAID and not _steers(candidate)
        ]
        said = [candidate for candidate in recalled.said if not _steers(candidate, "shared")]
        chosen = [*own, *said]
        documents = self._documents(message, moment) if self.own.corpora else ()
        if not chosen and not documents:
            return Silence(recalled.silence, recalled.notes, recalled.nearly)
        texts = [_text(candidate, message) for candidate in chosen]
        labels = [_label(candidate, moment, recalled.later(candidate)) for candidate in own]
        labels += [f"{IN_SHARED_CHAT} · {_label(one, moment, None)}" for one in said]
        return Draft(
            blocks.RECALLED,
            (
                *(f"• [{label}] {text}" for label, text in zip(labels, texts, strict=True)),
                *map(_document, documents),
            ),
            hits=len(chosen) + len(documents),
            notes=recalled.notes,
            reasons=(
                *(f"helps {candidate.score:.2f}; {_why(candidate)}" for candidate in chosen),
                *(f"domain documents {hit.corpus}, {hit.why} {hit.score:.2f}" for hit in documents),
            ),
            statements=(*texts, *(hit.text for hit in documents)),
            nearly=recalled.nearly,
            newer=tuple(body_of(candidate.newer.passage) if candidate.newer else "" for candidate in chosen),
            scores=tuple(0.0 if BINDS in candidate.parts else candidate.score for candidate in chosen),
        )

    def _documents(self, message: str, moment: Moment) -> tuple[Hit, ...]:
        """Return the best passages of the injectable domain documents, if any answers the message."""
        question = Question(
            text=message[:MAX_QUESTION],
            limit=MOST_DOCUMENTS,
            today=moment.now.date(),
            fast=self.context.embedder is None,
            deadline=moment.deadline,
        )
        found: list[Hit] = []
        for name in self.own.corpora if len(content_words(message)) >= FEW_WORDS else ():
            with suppress(StoreError, NotFound):  # removed or damaged, as doctor reports
                found += self.context.retrieval.search(question, name).hits
        from nanoclaw_memory.intake.suspicion import signs_of_attack

        best = sorted(found, key=lambda hit: -hit.score)[:MOST_DOCUMENTS]
        return tuple(
            hit for hit in best if hit.score >= LEAST_SCORE and not signs_of_attack(hit.text, "import")
        )


def _steers(candidate: Candidate, origin: str = "") -> bool:
    """Return whether a text of an agent or others, or the name of its page, reads like an attack.

    Such entries were held or approved.
    """
    passage, by = candidate.stored.passage, origin or candidate.stored.passage.origin
    if passage.kind == "entry" or by in OWN:
        return False
    # imported here: a cold hook seldom has such a line
    from nanoclaw_memory.intake.suspicion import signs_of_attack

    page = " ".join(re.findall(r"\w+", candidate.stored.path))
    return any(signs_of_attack(text, by) for text in (passage.text, page))


def _document(hit: Hit) -> str:
    return (
        f"• [{label_of((f'{hit.corpus}/{hit.path}', hit.heading))}] {item_line(masked(hit.text), MAX_LINE)}"
    )


def _text(candidate: Candidate, message: str) -> str:
    """Return the lines of a passage that say most, without label and list mark."""
    passage = candidate.stored.passage
    lines = snippet(body_of(passage), 1, message, MAX_LINE)[2].split("\n")
    return item_line(
        masked("\n".join(_without_credential(line, passage.heading) for line in lines)), MAX_LINE
    )


def _without_credential(line: str, heading: str) -> str:
    """Return a key-value line of a page without its value, if the key names a credential."""
    pair = _PAIR.match(line)
    if not pair:
        return line
    entity, _, key = pair["name"].rpartition(".")
    return pair["name"] + pair["sign"] + mask_fact(entity or heading, key.strip(), pair["value"])[0]


def _label(candidate: Candidate, moment: Moment, newer: Newer | None) -> str:
    """Return a line's place, project and date, and the newer statement on its subject."""
    passage = candidate.stored.passage
    named = {"line": "log", "fact": "fact", "relation": "fact", "turn": passage.speaker}
    place = named.get(passage.kind, candidate.stored.path)
    about = [passage.type, passage.origin] if passage.kind == "entry" else [place]
    about += ["agent"] if passage.origin == "agent" and passage.kind not in ("entry", "turn") else []
    trust = marks(passage.origin, (), passage.type in BEHAVIORAL and passage.origin == "agent")
    project = passage.project if passage.project != moment.scope.project else ""
    mark = newer.told(candidate.mark) if newer else candidate.mark
    return label_of((*about, project, _when(passage), trust, mark))


def _when(passage: Passage) -> str:
    return passage.day or (f"by {passage.seen}" if passage.seen else "undated")


def _why(candidate: Candidate) -> str:
    return ", ".join(
        f"{name} {value:.2f}" for name, value in candidate.parts.items() if value and name != "recency"
    )
