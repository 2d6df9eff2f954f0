"""Detect a person's requests about memory: not to store something, or to forget something.

A trained scorer finds most of them (`request_scorer`); the grammar below finds those not to store something that name
a confidence, or consist of few words in an unusual order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from nanoclaw_memory.intake import request_scorer
from nanoclaw_memory.patterns import regex
from nanoclaw_memory.text import STOP_WORDS, words
from nanoclaw_memory.types import Utterance

UNKEPT = "[off the record]"  # replaces text in the spool that must not be stored
MAX_CHARS = 8_000  # of a message's beginning, and of its last paragraph: people state such wishes there
_PARAGRAPH = regex(r"\n[ \t\r]{0,40}\n")

# Phrases about a conversation and nothing else.
_CONFIDENTIAL = regex(
    # "but was printed" is a statement about somebody else's past.
    r"(?<![\"“„'])\boff the record\b(?!,? (?:but|and) (?:was |were |then )?\w+(?:ed|wn|nt)\b)|"
    r"\bkeep (?:this|that|it|all of this) (?:strictly |just |all )?(?:to yourself|between (?:us|you and me))\b|"
    r"\b(?:stays?|remains?|just|strictly) between (?:us|you and me)\b(?! and\b)|"
    r"(?:^|[.!?,]\s)(?:purely |strictly |just )?between (?:us|you and me):|"
    r"^incognito(?:,? (?:please|bitte))?(?:[:,.!]|\s?[–—]|\s-\s)|"
    r"^(?:(?:strictly|this is|streng|ganz) ){0,2}(?:confidential(?:ly)?|in (?:strict )?confidence|vertraulich|"
    r"im vertrauen(?: gesagt)?): ?\b|"
    r"\b(?:bleib(?:t|en)|nur|streng|ganz) (?:bitte |aber )?(?:unter|zwischen) uns\b|\b(?:unter|zwischen) uns "
    r"(?:gesagt|bleiben)\b|"
    r"(?:^|[.!?,]\s)unter uns:|\bbleibt (?:bitte )?hier im raum\b|"
    r"\b(?:behalt(?:e|en sie)? (?:das|dies|es) (?:bitte )?für (?:dich|sich)|das (?:bitte )?für dich "
    r"behalten)\b|"
    r"\bque (?:ça|cela|ceci) reste entre nous\b|\b(?:ça|cela|ceci) (?:doit rester|reste) entre nous\b|"
    r"\b(?:que )?(?:esto |eso )?(?:quede|queda|se queda) entre (?:nosotros|t[uú] y yo)\b|"
    r"\b(?:che )?(?:resti|rimanga|resta|rimane) (?:tra|fra) (?:di )?noi\b|\bblijft onder ons\b|"
    r"(?:^|[.!?]\s)(?:entre nous|entre nosotros|tra noi|onder ons gezegd)\s?:",
    re.I,
)
# "That was private, please forget it again: …"
_PRIVATE_FORGET = regex(
    r"\b(?:privat|vertraulich|geheim|private|confidential|secret|privé|confidentiel|privado|confidencial|privato)\b"
    r"[^.!?:\n]{0,12}(?:[,;–—]| -| und| and| et| y| e)\s+[^.!?:\n]{0,8}"
    r"\b(?:bitte (?:gleich |sofort |schnell )?(?:wieder )?vergessen|"
    r"please forget (?:it|this|that)(?: again)?|oublie(?:-le)?(?: ça)?|olv[ií]dalo|dimentica(?:lo)?)"
    r"(?:,? (?:s'il te plaît|por favor|per favore))?\s?(?:[:.!]|\Z)",
    re.I,
)
# A clause that asks the agent not to store something consists only of these words, in any order, so that "don't store
# the token in git" and "don't save it as a draft" do not match.
_KINDS = {
    "n": "not don't dont never no none nothing without skip avoid "
    "nicht nie niemals nichts nirgends nirgendwo kein keine keinen keinesfalls",
    "N": "didn't won't wouldn't isn't aren't",  # of a hope or of what went wrong
    # they deny beside a memory: leave this out of your notes
    "o": "out off leave aus raus heraus lass lasst",
    "k": "written jotted store save log archive persist retain record stored saved logged archived "
    "persisted retained recorded storing saving "
    "logging recording archiving retaining speicher speichere speichern speicherst gespeichert "
    "abspeichern abgespeichert "
    "archivier archiviere archivieren archiviert notier notiere notieren notierst notiert "
    "aufschreiben aufgeschrieben "
    "mitschreiben festhalten festgehalten aufheben aufbewahren aufzeichnen preserve preserved capture captured "
    "protokollieren protokolliert vermerken vermerkt verzeichnen dokumentieren dokumentiert "
    "einspeichern loggen",
    "K": "keep keeping kept stay stays bleiben bleibt behalt "
    "behalten behalte behältst ablegen eintragen auftauchen",  # also of other things
    "m": "remember memorize memorise remembered memorized memorised remembering memorizing memorising "
    "merk merke merken "
    "merkst gemerkt erinnere erinnern erinnerst",
    "v": "put add write jot note noted hold hang file take make keep schreib schreibe halt halte leg "
    "lege trag trage nimm "
    # they mean storing only with one of the next
    "nehmen heb hebe aufnehmen commit learn schreiben legen tragen halten heben",
    "d": "down away onto auf fest ab ein mit track",
    "r": "this that it these one part bit last following same any all das dies dieses diese es folgende "
    "folgendes folgenden hier davon dazu daran "
    "message conversation chat nachricht gespräch unterhaltung unterhaltungen nachrichten "
    "number information detail details zahl satz",
    "s": "memory notes note record records history memories gedächtnis notizen notiz protokoll "
    "erinnerung erinnerungen archiv "
    "langzeitgedächtnis kopf entry entries eintrag storage speicher archive aufzeichnung aufzeichnungen",
    "w": "want wish glad wünsche wanted like rather prefer hope best better appreciate sure will möchte "
    "mag lieber besser hoffe wäre",
    "q": "can could would will kannst könntest würdest können könnten würden",
    "i": "i ich",
    "p": "please bitte kindly",
    "b": "must should may might needn't mustn't shouldn't soll sollst solltest sollte sollen darf darfst dürft dürfen "
    "muss musst müssen brauchst braucht need be to",
    "y": "you your yours du dir dich dein deine deinem deinen deiner ihr sie",
    "c": "confidential confidentially private secret discreet vertraulich geheim privat diskret",
    "t": "treat treated handle handled behandeln behandle behandelt behandelst",  # as confidential
    "a": "our unser unsere unseren unserem unserer "
    "anywhere around at about me later ever again just only in into of on from for up the a an "
    "thing something anything really "
    "any end go goes come is are was were i'd i'm it'd you'd if so make kept keine ok okay thanks "
    "hey and or too either now "
    "right then also all ins im in den der auch mal bloß nur zu zum fürs für von vom werden wird "
    "würde gern gerne haben "
    "hat wieder gleich einfach dann jetzt mir ist war wenn kommt geht gehört landet taucht danke "
    "dass were even do while as everything nowhere permanently answer respond help antworte "
    "antworten drin irgendwo irgendwas "
    "überhaupt fall umständen unter keinen ausnahmsweise später danach gerade eben ja doch noch "
    "schön gut nett nice good kind",
}
# The same in other languages, and "tell nobody" in all: a clause of these words alone denies keeping or telling this.
_CLOSED_KINDS = {
    "n": "ne n' pas jamais no nunca non mai niet nooit",
    "N": "not don't dont never mustn't shouldn't nicht nie niemals",  # with verbs of telling only
    "k": "garde gardez garder enregistre enregistrez enregistrer retiens retenez retenir mémorise mémorisez mémoriser "
    "note notez noter sauvegarde sauvegarder stocke archive conserve guardes guarde guardar grabes grabe recuerdes "
    "recuerde memorices memorice anotes anote apuntes registres conserves memorizzare memorizza salvare salva "
    "ricordare conservare registrare annotare tenere opslaan bewaren onthouden onthoud bewaar noteren noteer",
    # with the object at its end
    "K": "guardarlo anotarlo recordarlo memorizarlo memorizzarlo salvarlo ricordarlo conservarlo registrarlo annotarlo "
    "ricordartelo segnarlo segnartelo tenerlo",
    "t": "sag sage sagt erzähl erzähle erzählt verrat verrate sagen erzählen verraten weitersagen weitererzählen tell "
    "say mention dis dites répète répétez raconte racontez digas diga cuentes cuente dire raccontare zeg vertel",
    "T": "dirlo raccontarlo ripeterlo",
    "o": "keinem niemandem niemanden nobody no-one personne nadie nessuno niemand",
    "a": "anyone anybody",
    "r": "es ça cela ceci le l' lo esto eso questo quello ciò dit dat",
    "R": "das dies dieses this that it",  # with verbs of telling only: "no archive that" means "no, archive that"
    "p": "bitte please",
    "m": "mémoire memoria geheugen notes notas notizen appunti memory kopf",
    "f": "weiter aber ja mal doch auch bloß du dir dich darfst sollst solltest you must should to en dans ta tes tu "
    "tus in nella tua tuoi je jouw aan à a se te ti gli im dein deinem else bien que but sonst ok okay oye écoute",
}
_CLOSED_KIND_OF = {word: kind for kind, said in _CLOSED_KINDS.items() for word in said.split()}
_ELISION = regex(r"\b([nl])['’](?=\w)", re.I)
_POLITE = regex(
    r",?\s*\b(?:s['’]il (?:te|vous) pla[iî]t|por favor|per (?:favore|piacere)|alsjeblieft|alstublieft)", re.I
)
_JUST_SAID = regex(
    r"\b(?:ce que je viens de (?:te )?dire|lo que (?:te )?acabo de (?:decir|contar)|"
    r"quello che (?:ti )?ho (?:appena )?detto|wat ik (?:net|zojuist) (?:zei|heb gezegd))\b",
    re.I,
)
_CLOSED_CLAUSE = regex(
    r"(?:^|(?<=[.!?:;,–—(\n]))([^.!?:;,–—()\n]{4,80})(?=(\s*(?:[.!?:;,–—)\n]|\s-\s|\Z)))", re.M
)
_KIND_OF: dict[str, str] = {}
for _kind, _said in _KINDS.items():
    for _word in _said.split():
        _KIND_OF.setdefault(_word, _kind)
# Inflected forms that the table does not list.
_STEMS = (
    (
        "k",
        regex(
            r"(?:ab|ein|auf|mit|fest)?(?:ge|zu)?(?:speicher|archivier|notier|protokollier|dokumentier|vermerk|"
            r"verzeichn|zeichn|bewahr)(?:e|st|t|n|en|et|ung)?|"
            r"(?:auf|mit|ein)zu(?:schreiben|tragen|nehmen|heben)|(?:auf|mit)(?:schreib|geschrieb)(?:e|st|t|en)|"
            r"(?:stor|sav|record|archiv|retain|persist|preserv|captur)(?:e|ed|es|ing|s)?\Z"
        ),
    ),
    ("m", regex(r"(?:ge|zu)?(?:merk|erinner)(?:e|st|t|n|en)|(?:remember|memori[sz])(?:e|s|ed|es|ing)?\Z")),
)
_WORD = regex(r"[\w'-]+")
_CLOSED_WORD = regex(r"[^\W\d_]+(?:['’](?:t\b)?)?(?:-one\b)?")
# A reference to a conversation of any length counts as one word: "what I just said about Clara", "das mit Olga".
_TALK = regex(
    r"\b(?:what(?:ever)?|everything|anything|all|nothing|none of what)(?: that)? i(?:['’]ve|['’]m| am| have)? "
    r"(?:\w+ ){0,3}?(?:say|said|saying|tell|told|telling|mention(?:ed)?|write|wrote)\b[^.!?:;,\n]{0,40}?"
    r"(?=[.!?:;,\n]|$| (?:must|should|may|is|are|please)\b)|"
    r"\bthat i (?:just )?(?:said|told you|mentioned)\b(?: (?:this|that|it|so))?|"
    r"\b(?:this|that|the|it|any|none|nothing|part|bit|one|some)(?: last)?(?: part| bit| one)? "
    r"(?:about|regarding) "
    r"(?!me\b|my memory)(?:\w+ ?){1,3}?(?=[.!?:;,\n]|$| (?:must|should|may|is|goes|please)\b)|"
    r"\b(?:nichts von dem, )?was ich (?:[\wäöüß]+ ){0,6}?"
    r"(?:sage|gesagt habe|erzähle|erzählt habe|schreibe|geschrieben habe)\b"
    r"(?:,(?= (?:darf|soll|sollte|muss)\b))?|"
    r"\b(?:das|die sache) (?:mit|über|von|zu) (?:[\wäöüß]+ ){1,3}?(?=bitte|nicht|soll|darf|muss)",
    re.I,
)
_KEEPING = regex(
    r"stor|stay|sav|remember|memor|record|archiv|note|keep|kept|log|persist|retain|writ|jot|hold|learn|file|hang|"
    r"speicher|merk|notier|notiz|schr[ei]|halt|gedächtnis|aufheb|aufbew|behalt|bleib|leg|trag|erinner|protokoll|zeichn|"
    r"treat|handle|behand|vermerk|dokument",
    re.I,
)
_DENIED = regex(
    r"n['’]?t\b|\bno|nev|without|skip|avoid|\bout\b|\boff\b|nich|nie|nirgend|kein|\baus\b|raus", re.I
)
_BREAK = regex(
    r"(?P<sign>[.!?;:,–—()\n…]|\s-\s|^)|"
    r"\b(?:and|but|so|because|und|aber|also|weil)\s|\b(?=that (?:i|"
    r"we|he|she|they|my|our)\b)",
    re.I,
)
_JOINED = regex(
    r"(\b(?:möchte|will|mag|lieber|hoffe|schön|gut|wünsche|sicher|darum)\b[^.!?:;,\n]{0,30}),(?= "
    r"(?:dass|du|wenn)\b)",
    re.I,
)
# Phrases that declare something private.
_PRIVATE = regex(
    r"(?:^|[.!?,:–—\n]\s?)(?:(?:ok(?:ay)?|just|strictly|this|that|it|is|was|'s|das|ist|war|top|"
    r"streng|ganz|nur|very|in|im|ps|"
    r"i tell you|i'm telling you|ich sag(?:e|s)? dir das|this in)[ ,]{1,2}){0,6}(?:between (?:us|you and me)|"
    r"confidential(?:ly)?|confidence|private(?:ly)?|secret|sensitive|personal|unter uns|vertraulich|"
    r"vertrauen|geheim|privat|"
    r"persönlich|unter vier augen)(?: gesagt)?\s?(?=[:,.!–—\n]|$)",
    re.I,
)
# Kinds of words in a clause: it denies storing, or it says something else.
_DENIES = regex(r"(?=.*(?:[nN]|o.*s))(?=.*(?:[kKms]|v.*[ds]|d.*v|n.*v.*a|v.*n))(?=.*(?:[rmsk]))", re.DOTALL)
_OTHERWISE = regex(r"x|^[^w]*N(?!.*w)")
_SECRECY = regex(r"confiden|secret|private|discre|vertraul|geheim|privat|diskret", re.I)
# What stands before a colon or "but", and says of what follows that it is not to be kept.
_INTRODUCES = regex(r"\s*:")
_BUT = regex(r"\s*,?\s(?:but|aber)\b")
_OF_MEMORY = regex(r"[rya]*[nNb]+.*s")
_ENDS = ("", ".", "!", ":", "\n")
_CLOSED = regex(r"(?=.*r)(?=.*[Kt])(?=.*c)[^nNx]*")
# A request to forget what is said now, as soon as it has served its purpose.
_FOR_NOW = regex(
    r"(?:^|[.!?:;,–—\n]\s{0,4}|\b(?:and|so|then|und|dann) )"
    r"(?:(?:please|bitte|kindly|just|you can|du kannst) ){0,3}"
    r"(?:forget|vergiss)(?: (?:please|bitte|just|mal|doch|everything|all|alles|gleich|wieder))*,? (?:"
    r"(?:this|that|it|all of (?:this|that|it)|the following|das|dies|es|das alles|das folgende)\b[^.!?:;\n]{0,30}?"
    r"\b(?:afterwards?|after (?:this|that|you)|as soon as|once (?:we|you|this|that)|"
    r"when (?:we|you)(?:['’]re| are| have)|danach|hinterher|anschließend|nachher|(?:gleich|sofort) wieder)\b|"
    r"(?:what|that|whatever|everything|all) i(?:['’]m| am)? "
    r"(?:(?:about|going) to (?:say|tell|write|mention|share)|"
    r"(?:say|tell you|write) (?:now|next))\b|"
    r"(?:that )?i (?:said|told you|mentioned|asked) (?:this|that|it)(?: afterwards?| again| please)?(?=[:,–—])|"
    r"was ich (?:(?:dir|euch|ihnen) )?(?:jetzt|gleich|nun) (?:[\w]+ ){0,3}?(?:sage|erzähle|schreibe|verrate)\b)",
    re.I,
)
_WANTS_TO = regex(r"\bno one\b|\b(?:want|like|wish|prefer|hope|rather) to\b")
_DONE = regex(
    r"\b(?:\w{3,}ed|kept|written|(?:ge|auf|ab|fest)\w{4,}t|notiert|archiviert|\w*geschrieben|\w*gehalten)\b"
)
_ADDRESSED = regex(r"\b(?:for|your|my|fürs?|dein\w*|ins|into)\b")
_YOU_FIRST = regex(r"[ar]*y")
_ASKED_OF = regex(r"[ap]*qy")
_CONVERSATION = regex(r"\b(?:message|conversation|chat|nachricht(?:en)?|gespräch|unterhaltung(?:en)?)\b")
_PLEASE_AFTER = regex(r"\s*,?\s*(?:please|bitte|thanks|danke)\b", re.I)
_UNLESS = regex(r"\s*,?\s*(?:before|until|unless|when|while|bevor|bis|ehe|solange|wenn|sondern)\b", re.I)
_STATING = frozenset(
    "is are was were has have had will wants says said told owe ist sind war hat haben will".split()
)
_ASKING = frozenset("please do don't can could would will you let's just then now once when if bitte".split())


def asks_not_to_store(message: str) -> bool:
    """Return whether the person asks that the conversation itself is not stored."""
    return _in_own_words(message, _matches_unkept)


def asks_to_forget(message: str) -> bool:
    """Return whether the person asks to forget something, which only their own command does."""
    return _in_own_words(message, partial(request_scorer.asks, "forget"))


def without_off_record(said: Iterable[Utterance]) -> Iterator[Utterance]:
    """Yield the turns of a transcript without those that must not be stored, and their answers."""
    unkept = False
    for turn in said:
        if turn.speaker == "User":
            unkept = asks_not_to_store(turn.text)
        if not unkept:
            yield turn


def _in_own_words(message: str, says: Callable[[str], bool]) -> bool:
    """Return whether the person says it in their own words; checked last because hardly any message says it at all."""
    last = _PARAGRAPH.split(message)[-1][-MAX_CHARS:] if len(message) > MAX_CHARS else ""
    ends = (message[:MAX_CHARS], last)
    if not any(map(says, ends)):
        return False
    from nanoclaw_memory.intake.authorship import own_and_introduced

    return any(says(one) and says(own_and_introduced(one)) for one in ends)


def _matches_unkept(said: str) -> bool:
    if any(pattern.search(said) for pattern in (_CONFIDENTIAL, _FOR_NOW, _PRIVATE_FORGET)):
        return True
    if _denies_keeping_this(said) or request_scorer.asks("store", said):
        return True
    if not (_KEEPING.search(said) and (_DENIED.search(said) or _SECRECY.search(said))):
        return False
    said = _JOINED.sub(r"\1", _TALK.sub(_as_message, said.replace("’", "'")))
    breaks = [*_BREAK.finditer(said)]
    ends = [*(one.start() for one in breaks[1:]), len(said)]
    return any(_asks_not_to_store(said, one, end) for one, end in zip(breaks, ends, strict=True))


def _denies_keeping_this(said: str) -> bool:
    """Return whether a clause consists of a negation, a verb of keeping or telling, and "this", in any language."""
    polite = _POLITE.sub(" please", _JUST_SAID.sub("ça", said))
    for clause in _CLOSED_CLAUSE.finditer(_ELISION.sub(r"\1' ", polite)):
        found = [_CLOSED_KIND_OF.get(word, "x") for word in _CLOSED_WORD.findall(clause[1].casefold())]
        kinds = "".join(found)
        if "x" in kinds or not kinds:
            continue
        opens = clause[2].strip() == ":"
        this = not {"r", "R"}.isdisjoint(kinds) or opens
        if "n" in kinds and ("K" in kinds or ("k" in kinds and ("r" in kinds or (opens and "p" in kinds)))):
            return True
        told = "T" in kinds or ("t" in kinds and (this or clause[2].strip() == ","))
        if told and ("o" in kinds or ("a" in kinds and not {"n", "N"}.isdisjoint(kinds))):
            return True
    return False


def _asks_not_to_store(said: str, begin: re.Match[str], end: int) -> bool:
    """Return whether the clause between two breaks asks the agent not to store what is said."""
    clause, after = said[begin.end() : end].lower(), said[end : end + 16]
    kinds = "".join(map(_sort_of, _WORD.findall(clause))) + "n" * ("n't" in clause)
    polite = "p" in kinds or _PLEASE_AFTER.match(after) is not None
    if _CLOSED.fullmatch(kinds) and begin["sign"] != "," and (polite or after[:1] in _ENDS):
        return True
    if _introduces(clause, kinds, begin["sign"], after):
        return True
    if (
        not _DENIES.search(kinds)
        or _OTHERWISE.search(kinds)
        or _WANTS_TO.search(clause)
        or _UNLESS.match(after)
    ):
        return False
    done = _DONE.search(clause) is not None
    if set(kinds).isdisjoint("kKmv") and not (_ADDRESSED.search(clause) or "r" in kinds):
        return False  # a name for something
    if "i" in kinds and not ("w" in kinds and ("y" in kinds or "s" in kinds or done)):
        return False  # what they do not store themselves
    if not (polite or set("bwq").intersection(kinds)) and (_YOU_FIRST.match(kinds) or done):
        return False  # a complaint, or a description
    if "?" in after[:1] and not (polite or _ASKED_OF.match(kinds)):
        return False
    if "m" in kinds or _CONVERSATION.search(clause) or ("s" in kinds and "y" in kinds):
        return True
    if "o" in kinds and "n" not in kinds and not polite and "memory" in clause:
        return False
    return polite or _PRIVATE.search(said) is not None or _is_of_talk(said, begin, "K" not in kinds)


def _sort_of(word: str) -> str:
    return _KIND_OF.get(word) or next((kind for kind, stem in _STEMS if stem.fullmatch(word)), "x")


def _introduces(clause: str, kinds: str, sign: str | None, after: str) -> bool:
    """Return whether a clause says of what follows it that it is not to be kept ("not for the record: …")."""
    if "x" in kinds or "i" in kinds.partition("w")[0] or not _DENIES.search(kinds.replace("N", "n")):
        return False
    of_memory = _OF_MEMORY.match(kinds) is not None or bool(re.search(r"\bfor the record\b", clause))
    if _BUT.match(after):
        return of_memory
    begins = sign != "," or kinds[0] == "r" or of_memory
    return _INTRODUCES.match(after) is not None and begins and ("r" in kinds or of_memory)


def _as_message(talk: re.Match[str]) -> str:
    return (
        " nothing this message "
        if talk[0].lower().startswith(("none", "nothing", "nichts"))
        else " this message "
    )


def _is_of_talk(said: str, begin: re.Match[str], alone: bool) -> bool:
    """Return whether a clause is a sentence, if that suffices, or follows a statement rather than a task."""
    ends = begin["sign"] in ("", ".", "!", "?", "…", "\n")
    if ends and alone:
        return True
    sentence = re.split(r"[.!?…:\n]+", said[: begin.start()])[-1]
    before = words(sentence)[:2]
    stated = bool(before) and before[0] in STOP_WORDS and before[0] not in _ASKING
    return stated or (len(before) > 1 and before[1] in _STATING)
