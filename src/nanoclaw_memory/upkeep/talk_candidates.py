"""Select statements from a person's messages for MEMORY.md: decisions, rules and facts that nobody revoked for a
week.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from nanoclaw_memory.clock import local_day, stamp
from nanoclaw_memory.graph import wording
from nanoclaw_memory.graph.clauses import sentences, stated
from nanoclaw_memory.graph.extract import FileRules, extract
from nanoclaw_memory.graph.ingest import LASTING
from nanoclaw_memory.graph.keys import is_several
from nanoclaw_memory.graph.triples import Triple
from nanoclaw_memory.intake.authorship import split_exchange
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.currency import NAMED
from nanoclaw_memory.retrieval.stated_parts import stated_in
from nanoclaw_memory.retrieval.value_changes import says_change
from nanoclaw_memory.store.names import slot_of
from nanoclaw_memory.text import one_line
from nanoclaw_memory.types import OWN, Exchange
from nanoclaw_memory.upkeep import settled
from nanoclaw_memory.upkeep.log_candidates import CERTAIN, SAID, WINDOW, DatedLine

if TYPE_CHECKING:
    from nanoclaw_memory.memory.group import Group

SETTLED = timedelta(days=7)  # a statement that nobody revoked for so long is valid
MOST_READ = 20_000  # exchanges
LEAST_WORDS = 4
_FROM_NOW_ON = regex(
    r"\b(?:from (?:now|today|\w+day|\d+ \w+|\w+ \d+) on|as of (?:now|today)|new rule|in future|ab sofort|ab jetzt|"
    r"künftig|in zukunft|von jetzt an)\b",
    re.IGNORECASE,
)
_HOME_AND_WORK = frozenset("lives live works work wohnt wohne arbeitet arbeite".split())


def talk_lines(group: Group) -> Iterator[DatedLine]:
    """Yield sentences of a person's own messages that are worth keeping, without lessons and superseded statements."""
    if not group.has("continuity") or not group.scope.private:
        return
    oldest = group.clock.now() - timedelta(days=WINDOW)
    told: list[DatedLine] = []
    for exchange in group.exchanges.recent(since=stamp(oldest), limit=MOST_READ):
        day = date.fromisoformat(local_day(exchange.timestamp, group.clock.now().tzinfo))
        if exchange.origin in OWN and day <= group.today - SETTLED:
            told += _lines(exchange, day, group.settings.user.entity)
    overtaken = outdated_exchanges(group, [line.exchange for line in told])
    lessons = {line.exchange for line in told if group.lessons.learnt_from(line.exchange)}
    yield from (one for one in told if one.exchange not in overtaken and one.exchange not in lessons)


def outdated_exchanges(group: Group, numbers: Sequence[int]) -> set[int]:
    """Return the exchanges that a later statement marks; where only a name is shared, one that reports a change."""
    if not numbers:
        return set()
    sure = group.retrieval.overtaken("exchanges", numbers)
    doubtful = group.retrieval.overtaken("exchanges", numbers, least_sure=NAMED)
    return {number for number, (_, newer) in doubtful.items() if number in sure or says_change(newer.text)}


def _lines(exchange: Exchange, day: date, user: str) -> Iterator[DatedLine]:
    for sentence in sentences(one_line(split_exchange(exchange, teaches=False).text)):
        if tag := kind_of(sentence, user):
            path = f"{SAID}{exchange.id}"
            yield DatedLine(day, path, 1, sentence, tag, CERTAIN, exchange.origin, exchange.project)


def kind_of(sentence: str, user: str) -> str:
    """Return the kind of a sentence for MEMORY.md: a decision, an instruction, a fact of the user; empty for none."""
    if sentence.endswith("?") or len(sentence.split()) < LEAST_WORDS:
        return ""
    if settled.is_called_decision(sentence):
        return "decision"
    if settled.forbids(sentence):
        return "instruction"
    if not stated(sentence):
        return ""
    if settled.is_decided(sentence):
        return "decision"
    if _FROM_NOW_ON.search(sentence):
        return "instruction"
    read = extract(f"- {sentence}", FileRules(user, "user", user, talk=True)) if stated_in(sentence) else []
    return "user" if any(_is_lasting(triple, user) for triple in read) else ""


def _is_lasting(triple: Triple, user: str) -> bool:
    """Return whether a statement is about the person, or true of somebody for life."""
    what = triple.predicate.casefold()
    if slot_of(what) in LASTING or (triple.kind == "fact" and triple.subject == user):
        return True
    near = wording.is_kin(what) or wording.is_pet(what) or is_several(what)
    return (
        triple.kind == "relation" and user == triple.subject and (near or what.split()[0] in _HOME_AND_WORK)
    )
