"""Recognise what a person is working on (decisions, plans, unfinished work), and what nobody is told unasked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.intake.memory_requests import UNKEPT, asks_not_to_store, asks_to_forget
from nanoclaw_memory.intake.secret_values import MARKER
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.retrieval.reactions import is_substantial
from nanoclaw_memory.retrieval.stated_parts import only_asks, stated_in
from nanoclaw_memory.store.phrases import FORGOTTEN
from nanoclaw_memory.text import sentences

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge

MOST_READ = 4_000  # characters; nothing longer is told unasked
LONGEST_SENTENCE = 600
NO_WORK_FROM = 0.5  # share with which the judge says that a sentence is a fact, a taste or a reaction
NO_WORK = ("person", "preference", "none")

# ---- what is told only when it is asked for ----

_MAIL = regex(r"\w@\w[\w-]{0,60}\.\w")
_DAY = regex(r"\b\d{4}-\d\d(?:-\d\d)?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b")
# Of a bank account, a card, a phone, a person's papers: more digits than people use to say how much.
_LONG_NUMBER = regex(
    r"(?<![\w.])\(?(?:[A-Za-z]{0,6}\d(?:[ /()-]{0,3}\d){8,24}|(?:\+\d|0)(?:[ /()-]{0,3}\d){5,24})(?!\w)"
)
_BANK = regex(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){3}")
# A town after its postcode; any noun may stand after a number elsewhere: "wir drucken noch 2000 Flyer".
_TOWN = regex(
    r"(?:^|(?<=[,;(])|(?<=[,;] )|(?<=\d )|(?<=\d[a-z] )|(?<=\b[IiAa][nm] )|(?<=\bnach )|(?<=\baus )|"
    r"(?<=\bto )|(?<=\bfrom ))"
    r"\d{4,5} [A-ZÄÖÜ][a-zäöüß]{2,}\s*(?=[,;)]|[.!]?$)"
)


@bounded(512 * 1024)
def is_confidential(text: str) -> bool:
    """Return whether a text had a credential or asks to forget, or tells how to reach or to pay somebody."""
    text = text[:MOST_READ]
    if MARKER.search(text) or FORGOTTEN in text or UNKEPT in text:
        return True
    if asks_to_forget(text) or asks_not_to_store(text):
        return True
    if "@" not in text and not any(map(str.isdigit, text)):
        return False
    from nanoclaw_memory.graph.values import ADDRESS  # imported here: few messages have a number

    undated = _DAY.sub(" ", text)
    return any(one.search(undated) for one in (_MAIL, _LONG_NUMBER, _BANK, _TOWN, ADDRESS))


def without_confidential(text: str) -> str:
    """Return the sentences of a text that are not confidential, each on a line; the text itself if all are."""
    told = sentences(text[:MOST_READ])
    kept = [sentence for sentence in told if not is_confidential(sentence)]
    return text if len(kept) == len(told) else "\n".join(kept)


# ---- work under way, by closed classes of words ----

DECIDES = regex(
    r"\b(?:we|i|wir|ich)\b(?:['’]\w+)?[^.;!?]{0,40}?\b(?:decided|chose|chosen|settled (?:on|for|that)|agreed|picked|"
    r"opted|(?:go|going|went) with|entschieden|beschlossen|festgelegt|geeinigt)\b",
    re.IGNORECASE,
)
# What a team has changed is decided as well; "we moved" and "we changed" may be said of anything.
HAS_CHANGED = regex(
    r"\bwe(?:['’]ve| have)? (?:\w+ly )?(?:switched|migrated|dropped|replaced|abandoned|adopted|scrapped|postponed|"
    r"deprecated|stick with|are sticking with|stay with)\b|\bwir (?:haben |sind )[^.;!?]{0,60}?"
    r"(?:umgestellt|umgestiegen|verworfen|ersetzt|gestrichen|migriert)\b|\bwir bleiben [^.;!?]{0,30}?\bbei\b",
    re.IGNORECASE,
)
_LABEL = regex(
    r"(?:todo|to-do|task|spike|next|next steps?|wip|decision|decided|plan|goal|blocker|offen|aufgabe|als nächstes|"
    r"nächste[rn]? schritte?|entscheidung|beschluss|beschlossen|ziel|noch zu tun)\s*[:–—-]\s*\S",
    re.IGNORECASE,
)
# "I need to", "next we", "wir müssen": what they say of themselves or their team, not of somebody else.
_INTENDS = regex(
    r"\b(?:i|we)(?:['’](?:m|re|ll|ve|d)| am| are| have)?(?: (?:just|still|also|now|only|really|probably|\w+ly))* "
    r"(?:need to|have to|must|got to|plan(?:ning|ned)? (?:to|on)|(?:am |are )?(?:going|about|trying) to|intend to|"
    r"aim(?:ing)? to|(?:would |['’]d )?like to|want to|will|should|might|may)"
    r"(?! (?:know|see|ask|hear|thank|say|tell|forget)\b)|"
    r"(?:^|[,;:] (?:so |and |but |then )?)(?:i|we)['’]ll\b(?! (?:see|ask|tell|be back)\b)|"
    r"^(?:still )?(?:need|have|got) to\b|^muss noch\b|^let['’]?s (?!see\b|go on\b|move on\b|stop\b|continue\W*$)|"
    r"\b(?:remains?|has|have|needs?) to be \w+(?:ed|en|t|ne|ilt)\b|"
    r"\b(?:our|my|unser|mein)e? (?:goals?|plans?|next steps?|ziel|plan|nächster schritt) (?:\w+ ){0,4}(?:is|are|ist)\b|"
    r"^(?:tomorrow|morgen|übermorgen) (?!hab|hatt|bin\b|sind\b|have\b|am\b)(?:\w+ )?(?:i|we|ich|wir)\b|"
    r"\b(?:ich habe|wir haben) vor\b|\b(?:ich|wir) (?:\w+ ){0,2}?"
    r"(?:muss|müssen|will|wollen|werde|werden|möchte|möchten|plane|planen|sollten)\b"
    r"(?! (?:wissen|sehen|fragen|hören|sagen)\b)|"
    r"\b(?:muss|müssen|wollen|werde|werden|möchte|möchten|plane|planen|sollten) (?:ich|wir)\b|"
    r"^(?:next|als nächstes|danach|then),? (?:\w+ )?(?:i|we|ich|wir)\b|"
    r"\b(?:next|nächste[nrsm]?|kommende[nrsm]?) (?:week|month|quarter|sprint|woche|monat|quartal|jahr)\b[^.;!?]{0,30}"
    r"\b(?:we|i|wir|ich)\b|\b(?:we|i|wir|ich)\b[^.;!?]{0,60}\b(?:next|nächste[nrsm]?) (?:week|month|quarter|sprint|"
    r"woche|monat|quartal)\b|"
    r"\b(?:we|i|wir|ich) (?!am\b|are\b|was\b|were\b|ha[dvs]|bin\b|sind\b|hab|hatt|war)[^.;!?]{3,60}?\b"
    r"(?:this|diese[nrsm]?) (?:week|sprint|month|quarter|woche|monat|quartal)\b",
    re.IGNORECASE,
)
_IS_DOING = regex(
    r"\b(?:i|we)(?:['’](?:m|re|ve been)| am| are| have been)(?: (?:just|still|also|now|currently|busy|\w+ly))* "
    r"(?!(?:feel|hav|be|go|com|sitt|liv|ly|jok|kidd|wonder|ask|say|talk|gett|stay|sleep|wear|eat|suffer)(?:y)?ing\b)"
    r"(?!looking forward)[a-z]{3,}ing\b|\b(?:halfway|midway|in the middle of|work(?:ing)? on)\b|"
    r"\b(?:i|we)(?:['’]ve| have)? (?:\w+ )?(?:started|began|begun)\b|"
    r"\b(?:arbeite|arbeiten|sitze|sitzen) (?:ich |wir |gerade |noch |derzeit |weiter |im moment )*an\b|"
    r"\b(?:ich|wir) (?!bin\b|sind\b|hab)\w+ (?:\w+ )?(?:gerade|derzeit|momentan|aktuell)\b|"
    r"\b(?:gerade|derzeit|momentan|aktuell|im moment) (?!bin\b|sind\b|hab)\w+ (?:ich|wir)\b|"
    r"\b(?:bin|sind) (?:\w+ )?(?:gerade |noch )?(?:dabei|mitten in)\b|\b(?:ich|wir) \w+ (?:\w+ )?angefangen\b",
    re.IGNORECASE,
)
_IS_UNFINISHED = regex(
    r"\bstill (?:open|missing|pending|to do|broken|slow|red|down|flaky|failing|fails?|unclear|unfinished|waiting|"
    r"in (?:review|progress)|needs?|lacks?|has to|have to|being|under way|not (?:done|ready|working|fixed|merged))\b|"
    r"\bnot (?:yet (?:done|finished|ready|working|decided|merged|fixed|released|deployed)|"
    r"(?:done|finished|ready|working|decided|merged|fixed|released|deployed) yet)\b|"
    r"\b(?:haven|hasn)['’]t (?:\w+ )?(?:finished|done|decided|merged|fixed|started|released|deployed|written|tested)\b|"
    r"\bkeeps? (?:getting|failing|crashing|breaking|timing)\b|\bhalf (?:of )?(?:\w+ ){1,4}(?:is|are) (?:done|ready)\b|"
    r"\b(?:build|pipeline|tests?|deploy(?:ment)?|ci)\b[^.;!?]{0,25}\b(?:red|rot|broken|down|kaputt)\b|"
    r"\bnoch nicht (?:\w+ )?(?:durch|dran|da|so weit|weiter|gelöst|getestet|geschrieben)\b|"
    r"\b(?:is|are|remains?|keeps?) (?:still )?(?:missing|pending|unfinished|unresolved|undecided|blocked|on hold|"
    r"in progress|under way|in review|failing|stuck|(?:half|nearly|almost) (?:done|finished|ready)|left(?=\W*$))\b|"
    r"\b(?:unfinished|half[- ]done|half[- ]finished|work in progress|blocked (?:by|on)|"
    r"waiting (?:for|on)|waits? (?:for|on))\b|"
    r"\b(?:fails|crashes|times out|stopped working|does(?:n['’]t| not) (?:work|build|compile|start|pass))\b|"
    r"\bpending\W*$|\b(?:planned|scheduled|slated|due) (?:for|by|to|on|in)\b|\bdeadline\b|"
    r"\bnoch\b[^.;!?]{0,40}\b(?:offen|unklar|aus|ausstehend|fehlt|fehlen|fertig|erledigt|geklärt|entschieden|zu tun|"
    r"zu klären|zu machen|funktioniert|umgesetzt|gebaut|unfertig)\b|"
    r"\b(?:fehlt|fehlen)\b[^.;!?]{0,30}\bnoch\b|\bes fehl(?:t|en)\b|"
    r"\b(?:offen|unfertig|blockiert|in arbeit) (?:ist|sind)\b|\bnoch in arbeit\b|"
    r"\b(?:ist|sind) (?:\w+ )?(?:in arbeit|blockiert|halb fertig|fast fertig|in planung|zur hälfte|geplant|fällig)\b|"
    r"\bzur hälfte fertig\b|\bwart(?:e|en) (?:\w+ )?(?:noch |gerade )?auf\b|"
    r"\bwart(?:e|en) (?:ich|wir)\b|\bfunktioniert (?:\w+ ){0,2}nicht\b|\bschl(?:ägt|agen) (?:\w+ ){0,4}fehl\b|"
    r"\b(?:stürzt|stürzen) (?:\w+ ){0,3}ab\b|\b(?:muss|müssen|soll|sollen) (?:\w+ ){0,3}bis\b",
    re.IGNORECASE,
)
_TO_THE_AGENT = regex(
    r"\b(?:you|your|yours|yourself|du|dir|dich|dein\w*|please|bitte|thanks|danke)\b", re.IGNORECASE
)
# Sentences without a subject that are no requests to somebody else.
_WITHOUT_SUBJECT = regex(r"let['’]?s\b|(?:still )?(?:need|have|got) to\b|muss (?:ich )?noch\b", re.IGNORECASE)
_QUESTION_WORD = regex(
    r"(?:what|which|who|whom|whose|how|why|where|when|wann|welche[nrsm]?|wer|wen|wem|wie|warum|wieso|wo|wohin|worauf|"
    r"wofür|womit|woran)\b",
    re.IGNORECASE,
)
# Who leaves is not at work: "so I have to run".
_LEAVES = regex(
    r"\b(?:brb|afk|gotta (?:run|go)|got to (?:run|go)|off for today|bye|ciao|tschüss|bis (?:gleich|später|morgen))\b|"
    r"\b(?:have|need|must|want|going|gotta|should|will|['’]ll|got)(?: to)? "
    r"(?:run|go|leave|bounce|dash|sleep|rest|lie down|eat(?: something)?|"
    r"head (?:out|off|home)|(?:hop|sign|log|drop) off|call it a day|be (?:away|off|out|back))"
    r"(?: (?:now|soon|early|first|home|again|today|then|at|in|until|till|by|to bed|\d\S*))*"
    r"\s*(?:[.,;!–—-]|$|until\b|till\b)|"
    r"\b(?:muss|müssen|will|wollen) (?:ich |wir )?(?:\w+ ){0,2}?(?:los|weg|schlafen|essen|ins bett|nach hause)\b|"
    r"\bfeierabend\b|\bcatch (?:my|the|a) (?:train|bus|flight|tram|plane)\b",
    re.IGNORECASE,
)
# Who says so asks: "I forgot my dentist's number".
_LACKS = regex(
    r"\b(?:i|we)\b[^.;!?]{0,20}\b(?:forgot(?:ten)?|(?:don['’]?t|do not|can['’]?t|cannot) (?:know|remember|recall|find)|"
    r"need|wonder|lost|looking for)\b|\b(?:ich|wir)\b[^.;!?]{0,40}\b(?:vergessen|nicht mehr)\b|"
    r"\b(?:brauch|brauche|brauchen|suche|suchen) (?:ich|wir)\b|"
    r"\b(?:ich|wir) (?:brauch|brauche|brauchen|suche|suchen)\b|"
    r"\b(?:weiß|weiss|finde) (?:ich |wir )?[^.;!?]{0,40}nicht\b",
    re.IGNORECASE,
)
LABELLED, UNFINISHED = "labelled", "unfinished"
_KINDS = (
    ("decided", DECIDES),
    ("decided", HAS_CHANGED),
    ("intended", _INTENDS),
    ("being done", _IS_DOING),
    (UNFINISHED, _IS_UNFINISHED),
)
# "Could you commit that?": a request, whatever its form.
_ASKS_AGENT = regex(
    r"^(?:(?:ok(?:ay)?|and|und|hey|please|bitte|now|so),? )*(?:(?:can|could|would|will) you|"
    r"(?:kannst|könntest|würdest|magst) du)\b",
    re.IGNORECASE,
)


def asks_for_action(text: str) -> bool:
    """Return whether a question asks the agent to do something."""
    return bool(_ASKS_AGENT.match(text.strip()))


def asking_part(message: str) -> str:
    """Return the sentences and clauses of a message that ask, request or plan, without what it only states."""
    return " ".join(filter(None, map(_asked_in, sentences(message))))


def _asked_in(sentence: str) -> str:
    if _INTENDS.search(sentence) or _LACKS.search(sentence):
        return sentence
    stated = stated_in(sentence)
    return sentence.replace(stated, " ", 1).strip() if stated else sentence


def labels_work(text: str) -> bool:
    """Return whether a text begins with a label such as "TODO:" or "Decision:"."""
    return bool(_LABEL.match(text))


def leaves(sentence: str) -> bool:
    """Return whether somebody says that they leave the conversation: "so I have to run"."""
    return bool(_LEAVES.search(sentence))


def reports_work(sentence: str, judge: Judge | None = None) -> bool:
    """Return whether a sentence says what the person has decided, plans, is doing or has not finished.

    Words decide; the judge, if it is loaded, may object that the sentence is a fact, a taste or a reaction. A sentence
    that only says of a thing that it is unfinished is a fact as well.
    """
    kind = _kind_of_work(sentence)
    if not kind or judge is None or kind == LABELLED:
        return bool(kind)
    types = judge.line_types(sentence, "")
    objecting = NO_WORK if kind == UNFINISHED else (*NO_WORK, "fact")
    return sum(types[kind] for kind in objecting) < NO_WORK_FROM


@bounded(512 * 1024)
def _kind_of_work(sentence: str) -> str:
    """Return the kind of work that a sentence reports; empty if it asks, requests, reacts, or only states a fact."""
    if len(sentence) > LONGEST_SENTENCE or sentence.endswith("?"):
        return ""
    if not is_substantial(sentence) or is_confidential(sentence) or leaves(sentence):
        return ""
    if _LABEL.match(sentence):
        return LABELLED
    if _TO_THE_AGENT.search(sentence) or only_asks(sentence) or _QUESTION_WORD.match(sentence):
        return ""
    # A request with a reason ("reboot the router, the film is stuck") states something only at its end.
    if not (_WITHOUT_SUBJECT.match(sentence) or stated_in(sentence).startswith(sentence[:12])):
        return ""
    return next((kind for kind, pattern in _KINDS if pattern.search(sentence)), "")


def work_in(text: str, judge: Judge | None = None) -> str:
    """Return the sentences of a person's message that report work under way; empty if none does."""
    return " ".join(sentence for sentence in sentences(text) if reports_work(sentence, judge))
