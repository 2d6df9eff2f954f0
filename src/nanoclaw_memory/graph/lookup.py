"""Search in four phases: entity and intent, all of the entity, facts by keyword, relations by keyword."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial

import msgspec
from msgspec.structs import replace

from nanoclaw_memory.graph import hops, intents
from nanoclaw_memory.graph.asked import own_asks
from nanoclaw_memory.graph.entities import PLAIN, EntityMention, ParsedQuestion, Resolver, words_of
from nanoclaw_memory.settings.sections import GraphMemorySettings
from nanoclaw_memory.store.facts import MAX_OF_ENTITY, FactRow, FactTable, RelationRow, View
from nanoclaw_memory.store.keywords import terms_of
from nanoclaw_memory.store.names import NameTable, fold
from nanoclaw_memory.store.relations import RelationTable
from nanoclaw_memory.text import STOP_WORDS, content_words, encodable, stem, words
from nanoclaw_memory.types import FOREIGN, Fact, GraphAnswer, GraphHit, Relation

MAX_QUERY = 20_000
MAX_TERMS = 24
POOL = 60  # keyword matches that are ranked by how much of the question they cover
MAX_COVERED = 600  # characters of a value compared with the question
ENTITY_INTENT, RELATION_INTENT = 95, 90
ENTITY_FACT, ENTITY_RELATION = 70, 65
KEYWORD_FACT, KEYWORD_RELATION = 50, 40
ALIAS = "is another name of"
MOST_CONTEXT = 2  # rows beside an answer in a turn
LINKED = 30  # the phase of linked facts, after all others
MATCHED_ENTITY = 100.0  # added to the score of what an entity match found, so that it always ranks first


class GraphCandidate(msgspec.Struct, frozen=True):
    """A possible hit: its group in the answer, and how much of the question it covers."""

    row: FactRow | RelationRow
    score: int
    phase: int
    why: str
    group: int
    cover: float = 0.0
    context: bool = False

    @property
    def key(self) -> tuple[str, int]:
        return "fact" if isinstance(self.item, Fact) else "relation", self.item.id

    @property
    def item(self) -> Fact | Relation:
        return self.row.item

    def elsewhere(self, project: str) -> str:
        """Return the other project in which it was stated; empty for the reader's own and for none."""
        return self.item.project if self.item.project != project else ""

    def hit(self, combined: float) -> GraphHit:
        return GraphHit(self.item, self.score, self.phase, self.why, combined, context=self.context)


class EntityReader:
    """Rows of entities by their names, read once per search."""

    def __init__(self, facts: FactTable, relations: RelationTable, view: View) -> None:
        self.view = view
        self.facts = cache(partial(facts.of, view=view))
        self.relations = cache(partial(relations.of, view=view))


class Lookup:
    """Search one graph; read only."""

    def __init__(
        self,
        facts: FactTable,
        relations: RelationTable,
        names: NameTable,
        resolver: Resolver,
        settings: GraphMemorySettings,
    ) -> None:
        self.facts = facts
        self.relations = relations
        self.names = names
        self.resolver = resolver
        self.settings = settings

    def search(
        self, query: str, top_k: int, view: View, named_only: bool = False, asking: str | None = None
    ) -> GraphAnswer:
        """Return at most `top_k` hits for a question, then facts linked to them.

        With `named_only` the answer has only what the message asks about an entity it names: facts with a matching
        key or value and a little context, or everything if it asks nothing specific; keywords are not tried. `asking`
        is the part of the message that asks, requests or plans, if not all of it does.
        """
        text = _shortened(query)
        question = self.resolver.read(text)
        if named_only and not question.named:
            return GraphAnswer(())
        intent = intents.read([word.folded for word in question.words], question.taken)
        own = intent
        if named_only:
            said = frozenset(word.folded for word in words_of(query if asking is None else asking))
            own, intent = own_asks(question, intent, said), intent.without_synonyms(said)
        reader = EntityReader(self.facts, self.relations, view)
        found: dict[tuple[str, int], GraphCandidate] = {}
        if question.named:
            _merge(found, self._of_entities(question, intent, own, reader))
        if named_only:
            found = _only_asked(found, question, intent, own)
        elif not found:
            _merge(found, _of_relative(question, self._by_keyword(text, top_k, view)))
        elif _asks_of_us(question):
            others = [one for one in self._by_keyword(text, top_k, view) if _matches_intent(one, intent)]
            _merge(found, _of_relative(question, [replace(one, group=2) for one in others]))
        hits = self._ranked(found, top_k, view.project)
        named = question.named if view.all else _seen(question.named, found.values())
        entities = ParsedQuestion(question.words, named).entities
        labels = self.names.labels(entities) if entities else {}
        return GraphAnswer(
            hits=tuple(hits + self._linked(hits, view)),
            entities=tuple(labels.get(name, name) for name in entities),
            ambiguous=tuple(name.text for name in named if name.ambiguous),
        )

    # ---- phases 1 and 2 ----

    def _of_entities(
        self, question: ParsedQuestion, intent: intents.Intent, own: intents.Intent, reader: EntityReader
    ) -> list[GraphCandidate]:
        """Return answers and context; `own` is what is asked of the person, `intent` what is asked of others."""
        only_self = all(name.how == "self" for name in question.named)
        answers = self._answers(question, intent, own, reader)
        answers += hops.over_relations(self.names, reader, question, own if only_self else intent)
        best = min((candidate.group for candidate in answers), default=0)
        answers = [replace(c, context=True) if c.group > best else c for c in answers]
        rest = _everything_about(question, reader, context=bool(answers))
        if intent and only_self and not answers:
            # "my notes on GraphQL" asks for what the keywords find, not for everything about me.
            rest = [] if _relative_of(question.named[0], question) else [c for c in rest if c.cover]
        return answers + rest + self._other_names(question, intent, bool(answers or rest), reader.view)

    def _other_names(
        self, question: ParsedQuestion, intent: intents.Intent, known: bool, view: View
    ) -> list[GraphCandidate]:
        """Return the entity of an alias about which nothing else is known, and other names when these are asked for."""
        found: list[GraphCandidate] = []
        for name in question.named:
            asked = intent.fit("nickname") == 1.0 or (name.how == "alias" and not known)
            aliases = (
                [alias for entity in name.entities for alias in self.names.aliases(entity)] if asked else []
            )
            for alias in aliases:
                if view.trust == "foreign" and alias.origin not in FOREIGN:
                    continue
                # Not a row of the table: a negative id can never be warmed.
                shown = Relation(-1 - len(found), alias.alias, ALIAS, alias.entity, origin=alias.origin)
                row = RelationRow(shown, (fold(alias.alias), fold(alias.entity)), ALIAS, shared=False)
                found.append(GraphCandidate(row, RELATION_INTENT, 1, f"another name of {alias.entity}", 2))
        return found

    def _answers(
        self, question: ParsedQuestion, intent: intents.Intent, own: intents.Intent, reader: EntityReader
    ) -> list[GraphCandidate]:
        """Phase 1: return facts under the key that the question names, and relations with its predicate."""
        found: list[GraphCandidate] = []
        others = [name for name in question.named if name.how != "self"]
        for name in question.named:
            asked = _owned_by(name, question, own if name.how == "self" else intent)
            if not asked:
                continue
            if name.how == "self" and (relative := _relative_of(name, question)):
                # "Where does our mother live?" asks where she lives; of my own facts only who she is can answer.
                asked = asked.only(*(ask for ask in asked.asks if ask.start == relative[0]))
            group = 2 if name.how == "self" and others else 1
            rows = self._facts_of(name.entities, asked, reader)
            # "What is my dog called?" asks for the dog's name: a fact of the dog, and no name of mine.
            thing = asked.named_thing
            asked = thing if any(thing.fit(row.slot) == 1.0 for row in rows) else asked
            fits = [(asked.fit(row.slot), row) for row in rows]
            best = max((fit for fit, _ in fits), default=0.0)
            found += [
                GraphCandidate(
                    row,
                    ENTITY_INTENT,
                    1,
                    f"{_described(name, row)} and intent {row.slot}",
                    group,
                    asked.names(row.slot),
                )
                for fit, row in fits
                if fit == best > 0
            ]
            found += _related(name, asked, question, group, reader)
        return found

    def _facts_of(self, names: tuple[str, ...], asked: intents.Intent, reader: EntityReader) -> list[FactRow]:
        rows = reader.facts(names)
        if len(rows) < MAX_OF_ENTITY:
            return rows
        # Not all facts of such a large entity were read: look up those under the wanted keys.
        seen = {row.item.id for row in rows}
        exact = self.facts.at(names, sorted(asked.slots), reader.view)
        return rows + [row for row in exact if row.item.id not in seen]

    # ---- phases 3 and 4 ----

    def _by_keyword(self, text: str, top_k: int, view: View) -> list[GraphCandidate]:
        terms = terms_of(text)[:MAX_TERMS]
        asked = {stem(word) for word in content_words(text) or terms}
        found: list[GraphCandidate] = []
        for table, score, phase in ((self.facts, KEYWORD_FACT, 3), (self.relations, KEYWORD_RELATION, 4)):
            for row in table.match(terms, view, top_k * 4 + POOL) if len(found) < top_k else ():
                why, cover = _shared(asked, row.item.text)
                found.append(GraphCandidate(row, score, phase, why, group=4, cover=cover))
        return found

    # ---- the answer ----

    def _ranked(
        self, found: dict[tuple[str, int], GraphCandidate], top_k: int, project: str
    ) -> list[GraphHit]:
        hottest = max((candidate.item.activation for candidate in found.values()), default=0.0)

        def combined(candidate: GraphCandidate) -> float:
            warmth = candidate.item.activation / hottest if hottest > 0 else 0.0
            return self._combined(candidate.score, warmth)

        order = sorted(
            ((candidate, combined(candidate)) for candidate in found.values()),
            key=lambda pair: (
                pair[0].group,
                -round(pair[0].cover, 2),
                bool(pair[0].elsewhere(project)),
                -pair[1],
                -_importance(pair[0].item),
                pair[0].key,
            ),
        )
        # What was said in two projects is one hit.
        first = {pair[0].item.text: pair for pair in reversed(order)}
        chosen = [pair for pair in order if first[pair[0].item.text] is pair]
        return [
            replace(candidate.hit(score), elsewhere=candidate.elsewhere(project))
            for candidate, score in chosen[:top_k]
        ]

    def _combined(self, score: int, warmth: float) -> float:
        """Return the score of a hit; `warmth` is its activation relative to the hottest one's (0 to 1)."""
        boost = MATCHED_ENTITY if score >= ENTITY_RELATION else 0.0
        relevance = self.settings.relevance_weight * score / 100
        return boost + relevance + self.settings.activation_weight * min(warmth, 1.0)

    def _linked(self, hits: list[GraphHit], view: View) -> list[GraphHit]:
        """Return facts that were often retrieved together with the answers."""
        pulling = {hit.item.id: hit for hit in hits if hit.kind == "fact" and not hit.context}
        shown = {hit.item.id for hit in hits if hit.kind == "fact"}
        most = self.settings.co_occurrence_limit
        if not pulling or not most:
            return []
        links = self.facts.linked(
            list(pulling), self.settings.co_occurrence_min_weight, most + len(shown), view
        )
        fresh = [link for link in links if link[0].item.id not in shown][:most]
        return [
            GraphHit(
                row.item,
                LINKED,
                0,
                f"retrieved together with {_named(pulling[puller])} {weight:g} times",
                combined=self._combined(LINKED, 0.0),
                linked=True,
            )
            for row, puller, weight in fresh
        ]


def _asks_of_us(question: ParsedQuestion) -> bool:
    """Return whether "our wholesaler" is asked for and nobody is named: it may be a practice's, a company's, a
    family's.
    """
    return any(
        name.how == "self" and question.words[name.start].folded in ("our", "unser", "unsere")
        for name in question.named
    )


def _matches_intent(candidate: GraphCandidate, intent: intents.Intent) -> bool:
    return isinstance(candidate.item, Fact) and intent.fit(candidate.row.slot) == 1.0


def _related(
    name: EntityMention, asked: intents.Intent, question: ParsedQuestion, group: int, reader: EntityReader
) -> list[GraphCandidate]:
    matching = [row for row in reader.relations(name.entities) if asked.fit(row.slot) == 1.0]
    return [
        GraphCandidate(
            row,
            RELATION_INTENT,
            1,
            f"{_described(name, row)} and relation {row.slot}",
            group,
            asked.names(row.slot),
        )
        for row in hops.in_direction(matching, name, question, asked)
    ]


def _everything_about(
    question: ParsedQuestion, reader: EntityReader, context: bool = False
) -> list[GraphCandidate]:
    """Phase 2: return every fact and relation of the entities."""
    taken = question.taken
    others = (word.folded for place, word in enumerate(question.words) if place not in taken)
    terms = {stem(word) for word in others if word not in STOP_WORDS}
    found: list[GraphCandidate] = []
    for name in question.named:
        rows: list[FactRow | RelationRow] = [
            *reader.facts(name.entities),
            *reader.relations(name.entities),
        ]
        found += [
            GraphCandidate(
                row=row,
                score=ENTITY_FACT if isinstance(row.item, Fact) else ENTITY_RELATION,
                phase=2,
                why=f"known of {_described(name, row)}",
                group=3,
                cover=_cover(terms, _compared(row)),
                context=context,
            )
            for row in rows
        ]
    return found


def _seen(named: Iterable[EntityMention], found: Iterable[GraphCandidate]) -> tuple[EntityMention, ...]:
    """Return the names that a shared scope may know: only entities with a fact or relation that it sees.

    Names are not marked as private or shared; without this, a question about Mama would disclose who she is.
    """
    seen = {name for candidate in found for name in candidate.row.names}
    kept = ((name, tuple(entity for entity in name.entities if entity in seen)) for name in named)
    return tuple(
        replace(name, entities=entities, ambiguous=name.ambiguous and len(entities) > 1)
        for name, entities in kept
        if entities
    )


def _merge(found: dict[tuple[str, int], GraphCandidate], more: Iterable[GraphCandidate]) -> None:
    """Add candidates; the first reason found for a fact stays."""
    for candidate in more:
        found.setdefault(candidate.key, candidate)


def _owned_by(name: EntityMention, question: ParsedQuestion, intent: intents.Intent) -> intents.Intent:
    """Return the part of the intent that belongs to this entity: for "my" in "my wife's birthday" that is the wife."""
    gaps = [
        place
        for place, word in enumerate(question.words)
        if word.possessive and place not in question.taken and place >= name.end
    ]
    return intent.until(gaps[0] + 1) if gaps else intent


def _relative_of(name: EntityMention, question: ParsedQuestion) -> tuple[int] | None:
    """Return the place of the relative or pet in "my mother", "our dog"; None if the question means me."""
    for place in range(name.start, min(name.end + 2, len(question.words))):
        if stem(question.words[place].folded) in intents.relatives():
            return (place,)
    return None


def _of_relative(question: ParsedQuestion, rows: list[GraphCandidate]) -> list[GraphCandidate]:
    """Keep of the keyword hits for "my uncle's phone" only those that name an uncle: others have phones, too."""
    mine = (name for name in question.named if name.how == "self" and name.end > name.start)
    places = [_relative_of(name, question) for name in mine]
    asked = {stem(question.words[place[0]].folded) for place in places if place}
    return [row for row in rows if asked <= _stems(row.item.text)]


def _only_asked(
    found: dict[tuple[str, int], GraphCandidate],
    question: ParsedQuestion,
    intent: intents.Intent,
    own: intents.Intent,
) -> dict[tuple[str, int], GraphCandidate]:
    """Return what a message asks for: answers and a little of their context, else rows that share a word with it.

    A message with only names ("tell me about Keystone") asks for everything. A question about something of one's own
    asks for nothing else of it.
    """
    only_self = all(name.how == "self" for name in question.named)
    if any(candidate.phase == 1 for candidate in found.values()):
        rest = (c for c in found.values() if c.phase != 1 and (c.cover or not only_self))
        context = sorted(rest, key=lambda c: -c.cover)[:MOST_CONTEXT]
        return {c.key: c for c in found.values() if c.phase == 1 or c in context}
    if only_self and intent:
        telling = {part for ask in own.asks if not ask.beside for part in ask.phrase.split()}
        return {key: c for key, c in found.items() if telling & _stems(_compared(c.row))}
    plain = all(ask.text in PLAIN for ask in intent.asks)
    return {key: c for key, c in found.items() if c.cover or plain}


def _described(name: EntityMention, row: FactRow | RelationRow) -> str:
    """Return the entity of a row, and how the question named it."""
    item = row.item
    labels = (item.entity,) if isinstance(item, Fact) else (item.subject, item.object)
    entity = labels[0] if row.names[0] in name.entities else labels[-1]
    if name.how == "self":
        return f"entity {entity}"
    notes = {
        "alias": f" (alias {name.text})",
        "part": f" (part of a name: {name.text})",
        "typo": f" (read {name.text} as this name)",
    }
    ambiguous = f"; {name.text} may mean several" if name.ambiguous else ""
    return f"entity {entity}{notes.get(name.how, '')}{ambiguous}"


def _compared(row: FactRow | RelationRow) -> str:
    """Return the text of a row that is compared with the question, without the entity that it already names."""
    return f"{row.item.key} {row.item.value}" if isinstance(row.item, Fact) else row.item.text


def _importance(item: Fact | Relation) -> float:
    return item.importance if isinstance(item, Fact) else 0.5


def _named(hit: GraphHit) -> str:
    return hit.text.split(" = ", 1)[0]


def _cover(terms: set[str], text: str) -> float:
    if not terms:
        return 0.0
    return len(terms & _stems(text)) / len(terms)


def _shared(terms: set[str], text: str) -> tuple[str, float]:
    """Return the reason for a keyword hit, and the share of the question's stems that the text contains."""
    shared = terms & _stems(text)
    return f"keywords {', '.join(sorted(shared)) or 'in part'}", len(shared) / len(terms) if terms else 0.0


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text[:MAX_COVERED].replace("_", " "))}


def _shortened(query: str) -> str:
    plain = encodable(query.replace("\x00", " "))
    return plain if len(plain) <= MAX_QUERY else plain[: MAX_QUERY // 2] + " " + plain[-MAX_QUERY // 2 :]
