"""Learn lessons from what a person says: with the judge if available, else by rules, to be judged later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.intake.authorship import read, split_exchange
from nanoclaw_memory.intake.signs import rule_before_sign
from nanoclaw_memory.intake.suspicion import addresses, from_others, steering, suspicions
from nanoclaw_memory.lessons import corrections
from nanoclaw_memory.lessons.corrections import MAX_LESSON, MAX_TRIGGER
from nanoclaw_memory.lessons.matching import content_stems
from nanoclaw_memory.lessons.places import LessonPlace, place_of
from nanoclaw_memory.lessons.wording import holds_for_good, holds_once, is_of_oneself, orders_for_good
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.statements import Features, agree, features, overlap, same_statement
from nanoclaw_memory.store.entries import BEHAVIORAL
from nanoclaw_memory.store.lessons import (
    ABOUT,
    HELD,
    NO_CORRECTION,
    NOTED,
    STATES,
    LessonTable,
    NewLesson,
    trigger_of,
)
from nanoclaw_memory.text import language, one_line, sentences, words
from nanoclaw_memory.types import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nanoclaw_memory.lessons.corrections import Correction
    from nanoclaw_memory.providers.judge import Judge
    from nanoclaw_memory.store.exchanges import Exchanges
    from nanoclaw_memory.types import Exchange, Lesson

CORRECTION_FROM = 0.7  # minimal probability that a message corrects
SURELY = 0.9  # the same for recording that the previous answer was corrected
RULE_FROM = 0.65  # minimal probability that a message is a rule for the work, whatever was said before
RULE_BESIDE_JUDGE = 0.4  # the same if no answer came before and the judge takes it for a correction
ALONE_FROM = 0.65  # the same if only the scorer says so
CORRECTS_FROM = 0.8  # minimal probability with which the scorer alone says that words correct an answer
CORRECTS_BESIDE_WORD = 0.7  # the same if they share a word with that answer
WORKS_FROM = 0.2  # minimal probability that such words are a rule; without one they only state something
BESIDE_PATTERN = 0.01  # the same if a pattern also says so
PATTERN_ALONE_FROM = 0.45  # the same to make such a lesson active where the judge finds no correction
STATES_BELOW = 0.02  # below this probability a correction only states a fact, which recall covers
APART_STATES_BELOW = 0.1  # the same if it shares no word with the previous answer
ONLY_STATES_BELOW = 0.12  # the same if only the scorer says so
BESIDE_PASTE_FROM = 0.9  # the same if most of the message is somebody else's: such a message is mostly a task
GENERAL_FROM = 0.75  # minimal share for a lesson that applies to every answer
GENERAL_ALONE_FROM = 0.88  # the same without an answer before, beside which the judge is surer
LASTING_BELOW = 0.8  # from this share of "once" even words that sound lasting hold once
LASTING_FROM = 0.3  # minimal probability that such words are a rule
ONCE_FROM = 0.4  # better a lesson that must be repeated than one that is kept too long
PERSONAL_FROM = 0.9  # minimal probability that what a person says only of themselves is a rule
ACTIVE_FROM = 0.7  # weight of a rule that makes a lesson at once where there is no judge
STANDING = frozenset(
    ("stop", "dont", "should", "future", "always", "use", "repeated")
)  # kinds of rule that instruct
FACT_FROM = 0.5  # minimal share of "fact"; such words correct only an answer with which they share a word
ELLIPTIC = 5  # lessons with fewer content words need a subject
MAX_SUBJECT = 120
MAX_JUDGED = 20  # sentences of a long message
_DIGIT = regex(r"\d")
_CONTRACTED = regex(r"\w+['’]\w+")  # "you're", "I'll" carry no meaning
# Words without content of their own that make another rule of the same content.
_TURNING = frozenset(
    "before after first last more less with without avoid stop quit instead rather only except longer shorter but and"
    " or vor nach zuerst zuletzt mehr weniger mit ohne vermeide statt lieber nur außer länger kürzer aber und"
    " oder".split()
)
_OPPOSITES = [
    set(pair.split("/"))
    for pair in "before/after first/last more/less longer/shorter with/without vor/nach bevor/nachdem zuerst/zuletzt"
    " mehr/weniger länger/kürzer mit/ohne".split()
]
_OPEN = ("active", "candidate")


class Teaching(msgspec.Struct, frozen=True):
    """A correction or a rule: the words that teach, how far they reach, and who found it."""

    words: str
    reach: str
    sure: bool
    why: str
    beside: bool = False  # whether the message may contain somebody else's words
    states: bool = False  # whether it only states a fact, which is no lesson for the work


class Learner:
    """Find corrections in exchanges and store lessons."""

    def __init__(self, lessons: LessonTable, exchanges: Exchanges, judge: Judge | None) -> None:
        self._lessons = lessons
        self._exchanges = exchanges
        self._judge = judge

    def read(self, exchange: Exchange) -> Teaching | None:
        """Return what the message of an exchange teaches; None for most messages."""
        answer = self._answer_before(exchange)
        if self._judge is None:
            return by_rules(exchange.user_message, answer)
        return judged(self._judge, exchange.user_message, answer)

    def _answer_before(self, exchange: Exchange) -> str:
        """Return the answer that a message may correct; after "Sorry." in reply to a correction, the corrected one."""
        before = self._exchanges.before(exchange)
        while before and not _has_content(before) and self._lessons.learnt_from(before.id):
            before = self._exchanges.before(before)
        return before.agent_response if before and _has_content(before) else ""

    def learn(self, exchange: Exchange, taught: Teaching | None) -> None:
        """Store what an exchange teaches, once; without a judge it is recorded to be judged later."""
        if taught is not None:
            self._keep(exchange, taught)
        if self._judge is None:
            self._lessons.mark_unjudged(exchange.id)

    def learn_later(self, limit: int) -> int:
        """Judge what was found by rules alone; return how many lessons changed."""
        changed = 0
        for number in self._lessons.unjudged(limit) if self._judge else ():
            exchange = self._exchanges.get([number]).get(number)
            if exchange is not None:
                changed += self._revise(exchange)
                own = read(exchange.user_message, self._judge)
                self._exchanges.set_foreign(number, own.foreign if own.rest else ())
            self._lessons.mark_judged(number)
        return changed

    def _revise(self, exchange: Exchange) -> bool:
        """Replace the rules' verdict by the judge's, unless the lesson has proved useful since."""
        taught = self.read(exchange)
        found = [self._lessons.get(number) for number in self._lessons.learnt_from(exchange.id)]
        unproved = [one for one in found if one and one.seen == 1 and not one.helped and one.state in _OPEN]
        if taught is None:
            for lesson in unproved:
                self._lessons.update(
                    lesson.id, state="retired", retired_because="the judge found no correction"
                )
        elif unproved:
            new = self._new(exchange, taught)
            self._lessons.update(
                unproved[0].id,
                lesson_text=new.lesson,
                state=new.state,
                reach=new.reach,
                general=new.general,
                why=new.why,
                project=new.project,
                only_there=new.only_there,
            )
        elif not found:
            self._keep(exchange, taught)
        return taught is not None or bool(unproved)

    def _keep(self, exchange: Exchange, taught: Teaching) -> None:
        """Add a lesson, or count the correction once more."""
        new = self._new(exchange, taught)
        known = self._known(taught.words, exchange.private, LessonPlace(new.project, new.only_there))
        if known is None:
            self._lessons.add(new, exchange.timestamp)
            return
        # Said again, what was not certain becomes a lesson; what was held for another reason stays so.
        held = taught.sure or taught.reach == "once" or taught.states or new.why.startswith((HELD, NOTED))
        is_held = new.state == "candidate" and held
        woken = known.state in ("candidate", "retired") and not is_held
        same_place = new.project == known.project
        self._lessons.update(
            known.id,
            seen=known.seen + 1,
            state="active" if woken else known.state,
            exchange_id=exchange.id,
            last_seen=exchange.timestamp,
            retired_because="" if woken else known.retired_because,
            project=known.project if same_place else "",
            only_there=known.only_there and same_place,
        )

    def _new(self, exchange: Exchange, taught: Teaching) -> NewLesson:
        before = self._exchanges.before(exchange)
        talk = trigger_of(split_exchange(before).text, before.agent_response) if before else ""
        reason = _hold_reason(exchange, taught)
        place = self._place(exchange, taught)
        active = taught.sure and taught.reach != "once" and not taught.states and not reason
        return NewLesson(
            trigger=talk or taught.words[:MAX_TRIGGER],
            lesson=_with_subject(taught.words, before),
            principle=corrections.principle_of(taught.words),
            state="active" if active else "candidate",
            general=taught.reach == "general",
            private=exchange.private,
            origin=exchange.origin,
            session_id=exchange.session_id,
            exchange_id=exchange.id,
            reach=taught.reach,
            why=f"{_held_as(taught)}{reason}; {taught.why}" if reason else taught.why,
            project=place.project,
            only_there=place.only,
        )

    def _place(self, exchange: Exchange, taught: Teaching) -> LessonPlace:
        """Return the project of a lesson; a conversation of others does not learn the names of private projects."""
        known = [name for name, _, _ in self._exchanges.projects(exchange.private)]
        return place_of(taught.words, exchange.project, False, known)

    def _known(self, lesson: str, private: bool, place: LessonPlace) -> Lesson | None:
        """Return an existing lesson with the same content and visibility, unless both are bound to other projects."""
        known = [
            one
            for one in self._lessons.all((), private)
            if one.private == private
            and not (place.only and one.project != place.project and (one.only_there or not one.project))
        ]
        new = features(lesson)
        same = [one for one in known if _same(_bare(one.lesson), lesson) and _is_persons(one, new)]
        return max(same, key=lambda one: overlap(features(one.lesson).stems, new.stems), default=None)


def _same(one: str, other: str) -> bool:
    """Return whether two lessons say the same."""
    if _same_rule(one, other):
        return True
    first, second = set(words(one)), set(words(other))
    if any(pair <= first ^ second for pair in _OPPOSITES):
        return False
    return same_statement(features(one), features(other))


def _same_rule(one: str, other: str) -> bool:
    """Return whether two rules have the same content and nothing that turns one into another: "tabs please" repeats
    "we use tabs".
    """
    spoken = language(one, other)
    same = set(content_stems(one, spoken)) == set(content_stems(other, spoken)) != set()
    return same and agree(features(one), features(other)) and _turns(one) == _turns(other)


def _turns(rule: str) -> set[str]:
    return set(words(rule)) & _TURNING


def _is_persons(lesson: Lesson, said: Features) -> bool:
    """Return whether a lesson is certainly the person's or adds nothing to their words; only such are activated."""
    surely = lesson.origin in ("owner", "user") and not lesson.why.startswith((HELD, NOTED))
    return surely or features(_bare(lesson.lesson)).stems <= said.stems


def held_lessons(lessons: LessonTable) -> list[Lesson]:
    """Return the lessons that await a person's approval and steer nothing until then."""
    return [lesson for lesson in lessons.all(("candidate",)) if lesson.awaits_review]


def by_rules(message: str, before: str) -> Teaching | None:
    """Return what a message teaches according to patterns and the small scorer."""
    found = corrections.find(message)
    own = read(message)
    works = _works(own.text)
    rule = _rule(own.text, found, works, ALONE_FROM) if own.alone else 0.0
    if not rule and before and own.alone and _seems_to_correct(own.text, before, works):
        rule = works
    if not (rule or (found if before else not own.alone and _lasting_rules(found))):
        return None
    lesson = corrections.lesson_of(found, own.text) if found else corrections.worded(sentences(own.text))
    general = corrections.is_general(lesson, found)
    reach = "once" if holds_once(own.text) else "general" if general else "topic"
    states = _only_states_fact(found, rule, works, ONLY_STATES_BELOW)
    why = _reasons(found, rule, bool(before) and _contradicts(found), states)
    sure = bool(rule) or found[0].weight >= ACTIVE_FROM
    beside = not own.alone or corrections.asks_of(own.text)
    return Teaching(lesson, reach, sure, why, beside, states)


def _seems_to_correct(own: str, before: str, works: float) -> bool:
    """Return whether the scorer takes words for a correction that says how to work; facts are left to the judge."""
    if not scorer.usable() or works < WORKS_FROM or own.rstrip().endswith("?"):
        return False
    least = CORRECTS_FROM if _shares_no_word(own, before) else CORRECTS_BESIDE_WORD
    return scorer.probability("correction", own) >= least and not corrections.is_ruled_out(own)


def judged(judge: Judge, message: str, before: str) -> Teaching | None:
    """Return what the judge finds that a message teaches: a rule or a correction, in the person's own words.

    A correction that only states a fact is marked as such.
    """
    read_as = read(message, judge)
    own = read_as.text
    pasted = own != message.strip()
    alone = read_as.alone and not pasted
    patterns = corrections.find(own)
    works = _works(own, judge)
    asked = not before and RULE_BESIDE_JUDGE <= works < RULE_FROM  # else reading it once more cannot matter
    least = RULE_FROM
    if asked and judge.probability("correction", own) >= CORRECTION_FROM:
        least = RULE_BESIDE_JUDGE
    rule = _rule(own, patterns, works, least) if alone else 0.0
    probability = _probability(judge, own, message if pasted else "", before)
    found = bool(before) and probability >= (BESIDE_PASTE_FROM if pasted else CORRECTION_FROM)
    found = found and (bool(patterns) or not _is_no_correction(judge, own, before))
    denied = bool(before) and alone and _only_denies(own, patterns)
    if not (found or rule or denied):
        return None
    plain = _lasting_rules(patterns)
    standing = rule if plain else 0.0
    lasts = standing >= RULE_FROM or bool(standing and holds_for_good(own))
    share = 1.0 if lasts else LASTING_BELOW if standing >= LASTING_FROM else ONCE_FROM
    reach = _reach(judge, own, before, share)
    below = APART_STATES_BELOW if _shares_no_word(own, before) else STATES_BELOW
    states = not rule and works < below
    states = states or (works < PERSONAL_FROM and not patterns and is_of_oneself(own))
    surely = found and not states and probability >= SURELY
    # The judge is also sure of what is told after an answer about something else.
    about_it = _contradicts(patterns) or not _shares_no_word(own, before)
    rejects = found and not states and corrections.rejects(own, before)
    corrects = denied or rejects or (surely and about_it)
    why = f"judge: correction {probability:.2f}, reach {reach}; {_reasons(plain, rule, corrects, states)}"
    words = corrections.worded(_taught(judge, own, before))
    beside = not read_as.alone or corrections.asks_of(own)
    certain = found or lasts or rule >= PATTERN_ALONE_FROM
    return Teaching(words, reach, certain, why.rstrip("; "), beside, states)


def surely_corrects(judge: Judge, message: str, before: str) -> bool:
    """Return whether the judge is sure that a message says what was wrong in the previous answer."""
    taught = judged(judge, message, before)
    return taught is not None and not taught.states and not taught.why.endswith(NO_CORRECTION)


def _only_states_fact(patterns: Sequence[Correction], rule: float, works: float, below: float) -> bool:
    """Return whether it only states a fact, even if a pattern says that an answer was wrong."""
    return (
        not rule and all(correction.kind in ("wrong", "value") for correction in patterns) and works < below
    )


def _reasons(patterns: Sequence[Correction], rule: float, corrects: bool, states: bool) -> str:
    """Return why something was learnt, for people, and whether the previous answer was surely corrected."""
    found = [STATES] if states else []
    found += [f"rule: {correction.kind} {correction.weight:.2f}" for correction in patterns[:1]]
    if rule and not patterns:
        found.append(f"says how to work {rule:.2f}")
    return "; ".join(found if corrects else [*found, NO_CORRECTION])


def _only_denies(own: str, patterns: Sequence[Correction]) -> bool:
    """Return whether words say that an answer was wrong, and nothing else ("No, that is wrong")."""
    return _contradicts(patterns) and len(content_stems(own)) <= 1


def _contradicts(patterns: Sequence[Correction]) -> bool:
    """Return whether a pattern says that an answer was wrong, and not only how to work."""
    return any(correction.kind not in STANDING for correction in patterns)


def _rule(own: str, patterns: Sequence[Correction], works: float, least: float) -> float:
    """Return the probability that words are a lasting rule for the work, or 0 if it is below `least`."""
    standing = bool(_lasting_rules(patterns))
    if not scorer.usable():
        return 1.0 if standing else 0.0
    if own.rstrip().endswith("?"):
        return 0.0
    if standing and orders_for_good(own):
        return max(works, LASTING_FROM)
    enough = works >= (BESIDE_PATTERN if standing else least)
    return works if enough and (standing or not corrections.is_ruled_out(own)) else 0.0


def _works(own: str, judge: Judge | None = None) -> float:
    """Return the probability that words are a rule, or those of them before a sign, which examples may follow."""
    return max(_is_rule(part, judge) for part in {own, rule_before_sign(own) or own})


def _is_rule(own: str, judge: Judge | None) -> float:
    """Return the probability that words are a rule: the scorer's odds times the judge's."""
    found = scorer.probability("rule", own)
    if judge is None:
        return found
    types = judge.line_types(own, "")
    kind = sum(types[name] for name in BEHAVIORAL)
    return found * kind / (found * kind + (1 - found) * (1 - kind) or 1.0)


def _has_content(before: Exchange) -> bool:
    """Return whether an answer has any content that can be corrected, unlike "Ok."."""
    asked = before.user_message.rstrip().endswith("?")
    words = _CONTRACTED.sub("", before.agent_response)
    return asked or len(content_stems(words)) > 1 or bool(_DIGIT.search(words))


def _lasting_rules(found: Sequence[Correction]) -> list[Correction]:
    """Return the matches that are lasting rules for the work, whatever was said before."""
    return [
        correction for correction in found if correction.kind in STANDING and correction.weight >= ACTIVE_FROM
    ]


def _is_no_correction(judge: Judge, own: str, before: str) -> bool:
    """Return whether words ask, or state a fact unrelated to the previous answer, and so do not correct it."""
    if own.rstrip().endswith("?"):
        return True
    return _shares_no_word(own, before) and judge.line_types(own, "")["fact"] >= FACT_FROM


def _shares_no_word(own: str, before: str) -> bool:
    """Return whether words share none with the previous answer."""
    return not set(content_stems(own)).intersection(content_stems(before))


def _probability(judge: Judge, own: str, whole: str, before: str) -> float:
    """Return how likely words correct the previous answer; beside a paste the whole message must do so too."""
    found = judge.probability("correction", own, before)
    return min(found, judge.probability("correction", whole, before)) if whole else found


def _reach(judge: Judge, own: str, before: str, once_from: float) -> str:
    """Return how far a lesson reaches; general only if that is certain, because every session pays for it."""
    if holds_once(own):
        return "once"
    shares = judge.reach(own, before)
    if shares["general"] >= (GENERAL_FROM if before else GENERAL_ALONE_FROM):
        return "general"
    return "once" if shares["once"] > once_from else "topic"


def _taught(judge: Judge, own: str, before: str) -> list[str]:
    """Return the sentences of a message that teach: all of a short one, the surest of a long one, in order."""
    said = sentences(own)
    said = [one for one in said if content_stems(one)] or said  # "No, that's wrong." teaches nothing
    if sum(map(len, said)) + len(said) <= MAX_LESSON:
        return said
    sure = {
        number: judge.probability("correction", sentence, before)
        for number, sentence in enumerate(said[:MAX_JUDGED])
    }
    room, kept = MAX_LESSON, []
    for number in sorted(sure, key=lambda one: -sure[one]):
        if len(said[number]) < room:
            room -= len(said[number]) + 1
            kept.append(number)
    return [said[number] for number in sorted(kept)] or [own]


def _hold_reason(exchange: Exchange, taught: Teaching) -> str:
    """Return why a lesson must await a person's approval; empty for most."""
    if exchange.origin in FOREIGN:
        return from_others(exchange.origin)
    reasons = ["said beside a quoted or pasted text"] if taught.beside else []
    if addresses(taught.words):
        reasons.append("names an address, which somebody else may have put into the message")
    return ", ".join([*reasons, *suspicions(taught.words), *steering(taught.words)])


def _held_as(taught: Teaching) -> str:
    """Return whether a lesson that may be somebody else's awaits review; a fact and what holds once steer nothing."""
    return NOTED if taught.states or taught.reach == "once" else HELD


def _with_subject(lesson: str, before: Exchange | None) -> str:
    """Add the agent's words to a lesson whose own words do not name their subject.

    An answer to a message with somebody else's words may repeat them: parts that sound like a rule are left out.
    """
    if (
        before is None
        or not _has_content(before)
        or len(content_stems(lesson)) >= ELLIPTIC
        or not split_exchange(before).alone
    ):
        return lesson
    subject = next(iter(sentences(one_line(before.agent_response))), "")[:MAX_SUBJECT]
    new = set(content_stems(subject)).difference(content_stems(lesson))
    if len(new) < 2 or suspicions(subject) or corrections.find(subject):
        return lesson
    return f"{lesson}{ABOUT}{subject})"


def _bare(lesson: str) -> str:
    return lesson.partition(ABOUT)[0]
