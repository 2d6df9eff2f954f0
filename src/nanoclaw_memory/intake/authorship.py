"""Separate a person's own words from what they quoted, pasted, fenced or forwarded, and from what a client added."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import FREQUENT, sentences, words

if TYPE_CHECKING:
    from nanoclaw_memory.providers.judge import Judge
    from nanoclaw_memory.types import Exchange

MAX_CHARS = 8_000
OWN_FROM = 0.5  # minimal probability that a line is the person's own
OWN_AFTER_MAIL = 0.9  # the same for the last paragraph under a forwarded mail
LONG_QUOTE = 8  # words of a quotation that is more than a name for something
FEW_WORDS = 4  # words after a colon that may be an introduced text
LONG = 600  # characters of a message that hardly anybody types; five of a thousand corrections are longer
# Clients put their own context into a message in elements with such names; a truncated one has no end.
_CONTEXT = regex(r"<([A-Za-z]\w*[_-][\w-]*)\b[^<>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_ELEMENT = regex(r"<([A-Za-z]\w*)\b[^<>\n]*>.*?</\1\s*>", re.DOTALL)
_LEFT_OVER = regex(r"\A.*</[A-Za-z][\w-]*\s*>", re.DOTALL)  # an element that was closed twice
_FENCE = regex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTE = regex(
    r"\"([^\"\n]*)\"|“([^”\n]*)”|„([^“”\"\n]*)[“”\"]|«([^»\n]*)»|»([^«\n]*)«|‘([^’\n]*)’(?!\w)|"
    r"`([^`\n]*)`|「([^」\n]*)」|『([^』\n]*)』|‹([^›\n]*)›|›([^‹\n]*)‹|‚([^‘’\n]*)[‘’]|"
    r"(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))*)'(?!\w)"
)
_QUOTED_LINE = regex(r"\s*>|(?: {4}|\t)|\$ ")
_MAIL_HEADER = regex(
    r"(?:from|to|cc|subject|date|sent|von|an|betreff|datum|gesendet)\s*: ?\S|-{2,} ?\w.*\w ?-{2,}\s*$|"
    r"(?:begin forwarded message|anfang der weitergeleiteten nachricht)\b|"
    r"(?:on|am)\b.{6,80}\b(?:wrote|schrieb)\b.{0,60}:\s*$",
    re.IGNORECASE,
)
_SALUTATION = regex(
    r"(?:dear|hi|hello|hey|sehr geehrte\w*|liebe[rs]?|hallo|guten tag)\b[^.!?]{0,50}[,!]?\s*$", re.I
)
_LEVEL = r"(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|NOTICE|CRITICAL)"
# One such line may be the person's, unless it goes on with a level, a host or a request.
_LOGGED = (
    rf"\W{{0,2}}\d{{4}}-\d\d-\d\d[T ]?[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?\W{{1,3}}{_LEVEL}\b|"
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[|[IWEF]\d{4} \d\d:\d\d:|"
    r"(?:[\w.]+=(?:\"[^\"]*\"|\S+)\s+){2,}[\w.]+=|\s*\{\".*\}\s*$|npm (?:ERR!|(?:WARN|error|warn)\b)|"
    r"goroutine \d+ \[|panic: |(?:---|===) (?:FAIL|PASS|RUN|SKIP)\b"
)
_STAMPED = regex(r"\W{0,2}(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b")
_SPEAKER = regex(r"[\w.@ -]{1,30}:\s+\S")
_NUMBER = regex(r"\d+")
REPEATED = 3  # lines that differ only in their numbers ask nothing, whoever wrote them
_TERMINAL = "\x1b"  # nobody types it: a line with it was copied
_MACHINE = regex(
    r"Traceback \(|\s*File \"|\s+at [\w$.<>]+\(|\w*(?:Error|Exception|Warning): |"
    rf"\W{{0,2}}{_LEVEL}\b|{_LOGGED}|"
    r"[\w./\\-]+\.\w{1,5}:\d+|@@ |diff --git |"
    r"[+-]{3} [ab]/|"
    rf"\s*[{{}}\[\]]+,?\s*$|\s*\"[\w .-]+\"\s*:|\s*\|.*\|\s*$|\s*<[!/\w]|.*{_TERMINAL}"
)
_UNSPACED = r"[^\x00-\u2fff]{8}"  # as long as a few words, in a script without blanks
_FEW = rf"(?:(?:\S{{1,300}}[ \t]+){{{FEW_WORDS - 1},}}\S|{_UNSPACED})"
# "Summarize this: …"; a few words before a colon, of whatever width, and a sentence after it.
_INTRODUCED = regex(rf"^([^:：∶\n]{{1,120}}(?:[:∶][ \t]|：))[ \t]*{_FEW}.*", re.MULTILINE)
# "Proofread this — …", "translate (…)": the part before the sign may ask something about the text after it.
_SIGN = regex(
    rf"(?:[∶：；|→—]|[:;]\s|\s(?:--?|–|=|/|[-=]>)\s)\s*{_FEW}|"
    rf"[\[{{(]\s*(?:(?:[^\s\])}}]{{1,300}}[ \t]+){{{FEW_WORDS - 1},}}[^\s\])}}]|{_UNSPACED})"
)
# "Translate this", "is that good English?": what is asked of a text that stands behind it in the same line.
_CLAUSE = r"(?:(?![.!?…;,:|→/(\[—–]|\s[-=]).)*"
_OF_A_TEXT = regex(
    r"\W*(?:(?:please|pls|bitte|can|could|would|you|kannst|könntest|du|mir|just|now|hey|hi|ok)[\s,]+)*"
    r"(?:(?:transl\w+|summar\w+|tl;?dr|proofread\w*|rephras\w+|paraphras\w+|rewrit\w+|reword\w*|shorten|polish|"
    r"simplif\w+|spell-?check|(?:fix|check|correct|improve)(?: the)? (?:grammar|spelling|wording|typos?|style)|"
    r"übersetz\w*|zusammenfass\w*|fass\w*|korrigier\w*|formulier\w*|umschreib\w*|kürz\w*|summaris\w+)"
    rf"(?:\s+(?:\w+\s+){{0,2}}?(?:this|these|that|it|following|below|text|dies\w*|das|folgend\w*)\b{_CLAUSE}|"
    r"\s+(?:into|to|ins|auf|nach)\s\w+)?|"
    rf"(?:is|does|what|how|ist|was|wie|stimmt|klingt)\b(?:\s+\w+){{0,2}}?\s+(?:this|that|das|dies\w*)\b{_CLAUSE}"
    rf"\b(?:correct|right|english|grammar\w*|means?|say|sound|read|richtig|korrekt|deutsch|heißt|bedeutet|so)\b"
    rf"{_CLAUSE}(?=\?))"
    r"(?=\s*(?:[.!?…;,:|→/(\[—–]|[-=]|$)|(?<=tl;dr)|(?<=tldr))",
    re.I,
)
_BEHIND_COLON = regex(r"^([^:：∶\n]{1,120}(?:[:∶][ \t]|：)).*", re.MULTILINE)
# Before a colon: who speaks or writes, what was written, and what is asked about a text.
_OF_OTHERS = regex(
    r"\b(?:sa(?:ys?|id|ying)|wr(?:ites?|ote|itten)|t(?:ells?|old)|asks?|asked|states?|stated|claims?|"
    r"claimed|repl(?:y|ies|ied)|"
    r"answer(?:s|ed)?|respon[ds]\w*|mention\w*|announce\w*|explain\w*|report(?:s|ed)?|post(?:s|ed)?|"
    r"sent|reads?|reading|"
    r"accord\w+|from|means?|quot\w+|cite\w*|add(?:s|ed)|suggest\w*|recommend\w*|advis\w*|insist\w*|demand\w*|"
    r"warn(?:s|ed)?|instruct\w*|promis\w*|"
    r"e-?mails?|messages?|letters?|articles?|comments?|tickets?|paragraphs?|sentences?|texts?|text|"
    r"website|page|readme|logs?|"
    r"transcript|subject|source|document|prompt|output|passage|snippet|draft|paste\w*|forward\w*|"
    r"statement|speech|"
    r"transl\w+|summar\w+|tl;?dr|proofread\w*|rephras\w+|rewrit\w+|reword\w*|review|check|correct "
    r"this|improve|shorten|"
    r"polish|edit|analy[sz]e|classify|convert|interpret|describe|discuss|evaluate|rate|simplif\w+|"
    r"extract|format|respond|"
    r"what|why|how|which|who|is this|(?<!\w )was|wie|warum|wer|"
    r"sag\w*|schr(?:eib|ieb)\w*|geschrieben|mein(?:t|te|ten)|erzähl\w*|frag\w*|antwort\w*|behaupt\w*|"
    r"erklär\w*|laut|von|aus|"
    r"zitat|zitiert?|lies|lest|liest|mails?|briefe?|artikel|kommentare?|absatz|satz|sätze|texte?|"
    r"webseite|seite|quelle|betreff|"
    r"dokument|entwurf|übersetz\w*|fass\w*|zusammenfass\w*|korrigier\w*|prüf\w*|verbesser\w*|"
    r"formulier\w*|umschreib\w*|"
    r"kürz\w*|bewert\w*|analysier\w*|following|below|folgend\w*|these|diese\w*)\b"
    r"(?!e?[nrs]? (?:woche|monat|jahr|wochenende)\b)|"
    r"(?<!fix )\bthis\b(?! (?:week|weekend|month|quarter|year|morning|afternoon|evening|season|sprint)\b)",
    re.I,
)
# Names for what one says next; German forms compounds with them.
_LABEL = regex(
    r"(?:\b(?:fyi|ps|p\.s\.|btw|news|update|updates|heads[- ]up|fun fact|facts?|context|thing|"
    r"situation|things|note to self|"
    r"side note|reminder|confession|secret|private(?:ly)?|confidential(?:ly)?|between (?:us|you and "
    r"me)|off the record|"
    r"good to know|long story short|details|summary so far|fix this(?: please)?|bug|todo|plan|idea|"
    r"goal|problem|issue|"
    r"result|question|etwas|eins|sache|lage|idee|ziel|info|zur info|info vorab|vorab|kurz|"
    r"neuigkeit(?:en)?|fakt|unter uns|"
    r"vertraulich|geheim|privat|off the record|(?:gute|schlechte) nachricht(?:en)?|stand(?: der "
    r"dinge)?|hinweis|ergebnis)|"
    r"(?:background|hintergrund|change|änderung|correction|korrektur|decision|entscheidung|beschluss|"
    r"rule|regel|policy|"
    r"richtlinie|deadline|frist|address|adresse|number|nummer|appointment|termin|meeting|date|datum|"
    r"status|setup|"
    r"schedule|zeitplan|plan|budget|price|preis|limit|frage|problem|wunsch|vorliebe|preference|"
    r"requirement|requirements|"
    r"convention|vereinbarung|agreement|erinnerung|notiz|note))\b(?:(?: (?:for|on|of|about|with|für|"
    r"zu[mr]?|mit|über|beim?|des|der)"
    r" [^:]{1,60})|,? (?:please|bitte)|es)?\s*[:：∶]",
    re.I,
)
# "The board also voted", "release moved": a sentence about an action that is no saying, or its headline.
_TELLS = regex(
    r"(?:[\w.'’-]+\s){1,3}(?:moved|changed|postponed|delayed|rescheduled|cancell?ed|renamed|replaced|switched|raised"
    r"|lowered|fixed|verschoben|verlegt|geändert|abgesagt|umbenannt|ersetzt|erhöht|gesenkt)\s*[:：∶]|"
    r"(?:we|i|they|the|our|my|wir|ich|der|die|das|unser\w*|mein\w*)\s(?:[\w'’-]+\s){0,6}"
    r"(?:\w+ed|chose|beschlossen|entschieden|abgestimmt|gewählt|geeinigt|festgelegt)\s*[:：∶]",
    re.I,
)
_I_TELL = regex(
    r"\b(?:i(?:['’]m| am|['’]ll| will)? (?:just |now |about to )?(?:tell|say)\w*(?: you)?(?: this| that)?|"
    r"what i .*|was ich .*|sage? ich dir|ich (?:sag|erzähl)e? dir|this (?:is|was|must|should|may|stays|one))\b",
    re.I,
)
# "Beschluss von gestern", "as from May": when something was said, and not by whom.
_SINCE = regex(
    r"\b(?:von|vom|aus|from)(?= (?:\d|gestern|heute|vorgestern|eben|neulich|letzte\w*|yesterday|today|last"
    r"|this|mon|tue|wed|thu|fri|sat|sun|mo\w*tag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|jan|feb|mar|mär"
    r"|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez))",
    re.I,
)
_I_STATE = regex(
    r"(?:(?:so|also|and|und|ok|hm),? )?(?:i|we|ich|wir|our|my|unser\w*|mein\w*)\b['’\w]* \w+", re.I
)
_LETTER = regex(
    r"\w(?:briefe?|mails?|nachricht|zettel|schreiben|aushang|protokoll)\b|\b(?:newsletter|memo)\b", re.I
)
_RECEIVED = regex(
    r"\b(?:g[eo]t|received|bekommen|bekam|gekriegt|erhalten|sa(?:ys|id)|wr(?:ote|ites)|told|asked|sagt\w*|schr(?:eib|ieb)\w*"
    r"|geschrieben|transl\w+|übersetz\w*|summar\w+)\b",
    re.I,
)
# Before a colon, of a sentence and not of a name: "Vergiss nicht: …", "Finance reorganised: …"
_NO_NAME = regex(
    r"\b(?:nicht|not|never|nie|vergiss|vergesst|merk\w*|denk\w*|forget|remember)\b|(?<=\s)[a-zäöüß]{3,}(?:ed|iert)\b",
    re.I,
)
NAME_WORDS = 2  # of a speaker's name or role
FEW_LETTERS = 2  # of a frequent word that other languages have too: a, in, du
LISTED = 2  # commas of a list rather than a sentence
# What somebody else announces is their rule, even as a statement: "Eve: from now on invoices go to her".
_FROM_NOW_ON = regex(
    r"\b(?:from (?:now|here) on|henceforth|going forward|ab (?:jetzt|sofort|heute)|(?:zu)?künftig|in zukunft)\b",
    re.I,
)
_LONG_UNSPACED = regex(rf"(?:{_UNSPACED}){{2}}")
_LONG_LINE = regex(rf".{{{LONG},}}")
_MARKS = frozenset(
    f'\n\t<>`~:：∶"“„«»‘‚‹›「『$|{{}}[]{_TERMINAL}'
)  # without any of these, no part can be recognised as foreign


class OwnWords(msgspec.Struct, frozen=True):
    """A message with its parts by author."""

    text: str  # the person's own lines; a long quotation in them is "…"
    lines: str  # the same with their quotations
    rest: str  # what they quoted, pasted or forwarded, without what a client added
    foreign: frozenset[int]  # the numbers of the lines that contain nothing of their own
    alone: bool  # whether the message certainly contains only the person's own words


def own_words(message: str, judge: Judge | None = None) -> str:
    """Return the person's own lines of a message; long quotations inside them are left out."""
    return read(message, judge).text


def asking_words(message: str) -> str:
    """Return what a message asks: its lines without those whose form shows a log, code, a mail or a quotation.

    It is empty if only such lines are there. A paste of plain sentences cannot be told apart and stays.
    """
    if "\n" not in message.strip():
        return message.strip()
    text = message
    for pattern in (_CONTEXT, _ELEMENT, _LEFT_OVER, _FENCE):
        text = pattern.sub(_nothing, text)
    lines = text.split("\n")
    foreign = _foreign(lines) | _repeated(lines)
    return "\n".join(line for number, line in enumerate(lines) if number not in foreign).strip()


def own_and_introduced(message: str) -> str:
    """Return the same, with text behind a colon unless it is marked as another person's."""
    own = read(message, teaches=False).text
    return _BEHIND_COLON.sub(lambda found: found[1] if _names_another(found[1]) else found[0], own)


def split_exchange(exchange: Exchange, teaches: bool = True) -> OwnWords:
    """Separate an archived message, using what the judge decided when it was recorded."""
    return read(exchange.user_message, known=exchange.foreign_lines, teaches=teaches)


def read(
    message: str, judge: Judge | None = None, known: Collection[int] = (), teaches: bool = True
) -> OwnWords:
    """Separate the lines of a message by their form, and by the judge if it is available.

    If nothing is learnt from the message (`teaches` is False), a text behind a colon stays with its introduction.
    `known` are lines that the judge called foreign before. A message of several lines is never certainly the person's
    own alone: four of a thousand corrections have more than one.
    """
    if len(message) <= LONG and _MARKS.isdisjoint(message) and " '" not in f" {message}":
        return OwnWords(message.strip(), message.strip(), "", frozenset(), alone=True)
    typed = _CONTEXT.sub(_nothing, message[:MAX_CHARS])
    cut: list[str] = []

    def leave_out(found: re.Match[str]) -> str:
        cut.append(found[0])
        return _nothing(found)

    text = typed
    for pattern in (_ELEMENT, _LEFT_OVER, _FENCE):
        text = pattern.sub(leave_out, text)
    lines = text.split("\n")
    foreign = _foreign(lines).union(known)
    for number in set(range(len(lines))) - foreign if judge is None and teaches else ():
        line = _INTRODUCED.sub(lambda found: found[1] + leave_out(found), lines[number])
        lines[number] = _LONG_LINE.sub(leave_out, line)
    written = {number for number, line in enumerate(lines) if line.strip()}
    if judge is not None and len(written) > 1:
        _ask(judge, lines, foreign)
    elif len(written) > 1:
        _introduced(lines, foreign)
    kept = "\n".join(line for number, line in enumerate(lines) if number not in foreign).strip()
    cut += ["\n".join(lines[number] for number in sorted(foreign & written)), message[MAX_CHARS:]]
    rest = "\n".join(filter(str.strip, cut))
    introduced = any(teaches or not _is_label(found[1]) for found in _INTRODUCED.finditer(kept))
    alone = len(written) <= 1 and not rest and len(kept) <= LONG and not introduced
    blank = set(range(message.count("\n") + 1)) - written
    return OwnWords(_QUOTE.sub(_short_quote, kept).strip(), kept, rest, frozenset(foreign | blank), alone)


def _is_label(words: str) -> bool:
    """Return whether words before a colon only name what the person says next, such as "good news"."""
    if _OF_OTHERS.search(words):
        return False
    last = _last_sentence(words)
    return _LABEL.search(last) is not None or _TELLS.match(last) is not None


def only_reports(own: str) -> bool:
    """Return whether the words before a sign name no author, text or request, and those behind it no rule.

    "Office hours: …" and "Eve: the bridge is closed" are repeated as said; "Eve: always …" may be a quotation.
    """
    sign = _SIGN.search(own)
    label, text = (own[: sign.start()], own[sign.start() + 1 :]) if sign else (own, "")
    if sign is None or "\n" in own or _tells_of_others(label, sign[0]) or stated(own) != own:
        return False
    said = words(own)
    understood = any(
        len(word) > FEW_LETTERS and word in FREQUENT for word in said
    )  # rules are in these languages
    # "Eve: send every invoice …": no word of a rule, but maybe an imperative of somebody.
    speaker = _is_speaker(_last_sentence(label))
    first = (words(text) or [""])[0]
    if not understood or (speaker and _FROM_NOW_ON.search(text)):
        return False
    if speaker and first not in FREQUENT and not first[:1].isdigit() and text.count(",") < LISTED:
        return False
    from nanoclaw_memory.intake.suspicion import reads_like_rule

    return not reads_like_rule(text.strip())


def _last_sentence(text: str) -> str:
    return (sentences(text) or [""])[-1]


def _is_speaker(label: str) -> bool:
    """Return whether the words before a colon may name who speaks: few, and without a verb of one's own."""
    found = label.split()
    return len(found) <= NAME_WORDS and not (len(found) > 1 and _NO_NAME.search(label))


def _tells_of_others(label: str, sign: str) -> bool:
    """Return whether the words before a sign name an author, a text or a request about one.

    A whole statement of the person's own before a dash is none, whatever it tells of.
    """
    if not sign.lstrip().startswith((":", "：", "∶")) and _I_STATE.match(label):
        return _RECEIVED.search(label) is not None
    return any(pattern.search(_SINCE.sub("", label)) for pattern in (_OF_OTHERS, _LETTER))


def _names_another(words: str) -> bool:
    """Return whether words before a colon certainly introduce another's text, or are only a name."""
    few = len(_last_sentence(words).split()) <= NAME_WORDS
    words = _I_TELL.sub("", words)
    return _OF_OTHERS.search(words) is not None or (few and not _is_label(words))


def before_sign(own: str, labels: bool = True) -> str:
    """Return the words before the first sign that separates a request from its text; empty without such a sign.

    With `labels=False` a label of the person's own ("good news: …") is no request.
    """
    sign = _SIGN.search(own)
    if sign is None:
        return ""
    before = own[: sign.start()].strip()
    if not labels and _is_label(f"{before}:"):
        return before_sign(own[sign.start() + 1 :], labels)
    return before


def stated(own: str) -> str:
    """Return the words that may state something: of a line with a request about a text, only the request."""
    asked = _OF_A_TEXT.match(own)
    return asked[0] if asked else own


def _nothing(found: re.Match[str]) -> str:
    """Return as many empty lines as the match has."""
    return " " + "\n" * found[0].count("\n")


def _short_quote(found: re.Match[str]) -> str:
    return "…" if len(found[0].split()) >= LONG_QUOTE or _LONG_UNSPACED.search(found[0]) else found[0]


def _repeated(lines: Sequence[str]) -> set[int]:
    """Return the lines that differ from others only in their numbers: of a log, or of a person's own list."""
    shapes = [_NUMBER.sub("0", line.strip()) for line in lines]
    often = Counter(shape for shape, line in zip(shapes, lines, strict=True) if shape != line.strip())
    return {number for number, shape in enumerate(shapes) if often[shape] >= REPEATED}


def _foreign(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines whose form shows that somebody else wrote them."""
    found = {number for number, line in enumerate(lines) if _QUOTED_LINE.match(line) or _MACHINE.match(line)}
    for pattern in (
        _STAMPED,
        _SPEAKER,
    ):  # one such line may be the person's; two in a row are a log or a chat
        marked = [number for number, line in enumerate(lines) if pattern.match(line)]
        found.update(number for pair in pairwise(marked) if pair[1] == pair[0] + 1 for number in pair)
    if any(line.startswith("-") for line in lines) and any(line.startswith("+") for line in lines):
        found.update(number for number, line in enumerate(lines) if line[:1] in "+-" and line)
    for number, line in enumerate(lines):  # output of a command
        if number and line.strip() and number - 1 in found and lines[number - 1].startswith("$ "):
            found.update(_up_to_blank(lines, number))
    start = _mail(lines)
    return found | set(range(start, len(lines)))


def _up_to_blank(lines: Sequence[str], start: int) -> range:
    return range(start, next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines)))


def _mail(lines: Sequence[str]) -> int:
    """Return where a forwarded mail or a letter begins; after the last line if there is none."""
    for number, line in enumerate(lines):
        if _MAIL_HEADER.match(line):
            return number
        opens = number > 0 and not lines[number - 1].strip() and any(map(str.strip, lines[number + 1 :]))
        if opens and _SALUTATION.match(line):
            return number
    return len(lines)


def _ask(judge: Judge, lines: Sequence[str], foreign: set[int]) -> None:
    """Let the judge decide on lines without a telling form, and on the last paragraph under a mail."""
    probabilities = judge.own_lines(lines)
    mail, last = _mail(lines), _last_paragraph(lines)
    for number, probability in enumerate(probabilities):
        if number >= mail:
            if number >= last > mail + 1 and probability >= OWN_AFTER_MAIL:
                foreign.discard(number)
        elif probability < OWN_FROM:
            foreign.add(number)


def _last_paragraph(lines: Sequence[str]) -> int:
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    return blank[-1] + 1 if blank else 0


def _introduced(lines: Sequence[str], foreign: set[int]) -> None:
    """Mark text that a question or colon introduces, or that a closing question is about, as foreign.

    Used if the judge is not available.
    """
    blank = [number for number, line in enumerate(lines) if not line.strip()]
    if not blank:
        return
    first, last = blank[0], blank[-1]
    if first and lines[first - 1].rstrip().endswith((":", "?")):
        foreign.update(range(first, len(lines)))
    elif any(line.rstrip().endswith("?") for line in lines[last:]) and last > 1:
        foreign.update(range(last))
