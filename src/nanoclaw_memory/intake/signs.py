"""Read the signs of a line, such as a colon or a dash: they introduce another's text, or go on with one's own."""

from __future__ import annotations

import re

from nanoclaw_memory.patterns import regex
from nanoclaw_memory.providers import scorer
from nanoclaw_memory.text import FREQUENT, sentences, words

FEW_WORDS = 4  # words after a colon that may be an introduced text
RULE_BEFORE_SIGN = (
    0.3  # minimal probability that words before a sign are a rule; those of requests have .17 at most
)
UNSPACED = r"[^\x00-\u2fff]{8}"  # as long as a few words, in a script without blanks
_FEW = rf"(?:(?:\S{{1,300}}[ \t]+){{{FEW_WORDS - 1},}}\S|{UNSPACED})"
# "Summarize this: …"; a few words before a colon, of whatever width, and a sentence after it.
INTRODUCED = regex(rf"^([^:：∶\n]{{1,120}}(?:[:∶][ \t]|：))[ \t]*{_FEW}.*", re.MULTILINE)
# "Proofread this — …", "translate (…)": the part before the sign may ask something about the text after it.
_SIGN = regex(
    rf"(?:[∶：；|→—]|[:;]\s|\s(?:--?|–|=|/|[-=]>)\s)\s*{_FEW}|"
    rf"[\[{{(]\s*(?:(?:[^\s\])}}]{{1,300}}[ \t]+){{{FEW_WORDS - 1},}}[^\s\])}}]|{UNSPACED})"
)
# "Translate this", "is that good English?": what is asked of a text that stands behind it in the same line.
_CLAUSE = r"(?:(?![.!?…;,:|→/(\[—–]|\s[-=]).)*"
_OF_A_TEXT = regex(
    r"\W*(?:(?:please|pls|bitte|can|could|would|you|kannst|könntest|du|mir|just|now|hey|hi|ok)[\s,]+)*"
    r"(?:(?:transl\w+|summar\w+|tl;?dr(?!\s+(?:first|last|only|at|on|before|zuerst|oben|unten|am|vor|voran)\b)|proofread\w*|rephras\w+|paraphras\w+|rewrit\w+|reword\w*|shorten|polish|"
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
BEHIND_COLON = regex(r"^([^:：∶\n]{1,120}(?:[:∶][ \t]|：)).*", re.MULTILINE)
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
# What says of itself that it is a rule of the person's own: its time, a denial, an example, a label.
_LASTS = regex(
    rf"{_FROM_NOW_ON.pattern}|\b(?:always|never|every time|each time|immer|nie|niemals|stets|jedes mal)\b|"
    r"^(?:no+|nope|nah|nein|nee)\b[,.!]* (?:not|don'?t|nicht|kein\w*)\b|"
    r"^(?:(?:and|also|und|auch|ok|noch|a|one|another|eine?|my|our|meine?|unsere?|new|neue|house|more|weitere) )*"
    r"(?:rule|regel|preference|vorliebe|convention|konvention|style|stil)$",
    re.I,
)
_EXAMPLE = regex(
    r"(?<!\w)(?:e\.? ?g\b\.?|i\.e\.|for (?:example|instance)|such as|z\. ?b\.|zb|zum beispiel|bspw\b\.?)(?!\w)",
    re.I,
)
# "also prettier: …", "for the newsletter: …", "when you write SQL: …": a topic, as no speaker is named.
_TOPIC = regex(
    r"(?:also|and|oh|plus|außerdem|auch|und|noch was|for|in|on|with|when(?:ever)?|if|für|bei|beim|im|mit|wenn|zum|zur)"
    r"\b(?! (?:(?:i|ich|we|wir)\b|\w*(?:ish|isch)|french|german|deutsch|one (?:line|sentence|word)|short|other words|"
    r"me|him|her|them)\b)"
    r"(?: \S+){1,8}$",
    re.I,
)
# "Can you help me: …" asks for something now.
_ASKS = regex(r"^(?:(?:can|could|would|will) (?:you|u)|(?:kannst|könntest|würdest|magst) du)\b", re.I)
# "Answer as a landlord would: …" may ask for one text, unless the words say that they last.
_MAKES = regex(
    r"(?:(?:please|pls|bitte|now|just) )*(?:answer|reply|respond|write|draft|pretend|act|say|tell|give|make|put|turn|"
    r"change|schreib\w*|antworte|sag\w*|mach\w*|gib|tu|ändere?)\b",
    re.I,
)
# Somebody else's wish before a sign: "my boss wants: …"
_WISH = regex(
    r"\b(?:wants?|wanted|expects?|requires?|demands?|insists?|möchten?|will|wollen|verlang\w+|wünsch\w+|bittet|bitten)$",
    re.I,
)


def is_own_rule(line: str) -> bool:
    """Return whether a line with a sign is a rule of the person's own: "in SQL: keywords upper case, never …".

    The words before the first sign of each sentence must say how to work or when it holds, and ask nothing about a
    text. A lone name before a colon may be a speaker's, and what somebody wrote is theirs.
    """
    start, sign = 0, _SIGN.search(line)
    if sign is None or "\n" in line or any(map(_OF_A_TEXT.match, sentences(line))):
        return False
    while sign is not None:
        before = sentences(line[start : sign.start()])
        label = before[-1].strip(" ,;") if before else ""
        if _OF_A_TEXT.match(label) or any(pattern.search(label) for pattern in (_ASKS, _RECEIVED, _WISH)):
            return False
        if (not start or len(before) > 1) and not _opens_rule(label, sign[0]):
            return False
        start = sign.start() + 1
        sign = _SIGN.search(line, start)
    return True


def rule_before_sign(line: str) -> str:
    """Return the words of an own rule that stand before its example, colon or bracket; empty for a mere topic.

    What stands behind a dash may take back what is said before it ("no background – the office wants it so").
    """
    sign, example = _SIGN.search(line), _EXAMPLE.search(line)
    if sign is not None and not (is_own_rule(line) and (example or sign[0].lstrip().startswith((":", "(")))):
        return ""
    ends = [found.start() for found in (sign, example) if found]
    before = line[: min(ends)].strip(" ,(") if ends else ""
    return "" if _TOPIC.match(before) else before


def _opens_rule(label: str, sign: str) -> bool:
    """Return whether words before a sign say how to work, when that holds, or what it is about."""
    if _LASTS.search(label) or _EXAMPLE.search(label):
        return True
    if (
        len(label.split()) > NAME_WORDS
        and not _MAKES.match(label)
        and scorer.probability("rule", label) >= RULE_BEFORE_SIGN
    ):
        return True
    return _TOPIC.match(label) is not None and not _tells_of_others(label, sign)


def is_label(words: str) -> bool:
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


def names_another(words: str) -> bool:
    """Return whether words before a colon certainly introduce another's text, or are only a name."""
    few = len(_last_sentence(words).split()) <= NAME_WORDS
    words = _I_TELL.sub("", words)
    return _OF_OTHERS.search(words) is not None or (few and not is_label(words))


def before_sign(own: str, labels: bool = True) -> str:
    """Return the words before the first sign that separates a request from its text; empty without such a sign.

    With `labels=False` a label of the person's own ("good news: …") is no request.
    """
    sign = _SIGN.search(own)
    if sign is None:
        return ""
    before = own[: sign.start()].strip()
    if not labels and is_label(f"{before}:"):
        return before_sign(own[sign.start() + 1 :], labels)
    return before


def stated(own: str) -> str:
    """Return the words that may state something: of a line with a request about a text, only the request."""
    asked = _OF_A_TEXT.match(own)
    return asked[0] if asked else own
