"""A trained scorer of requests about memory: which clause asks not to store the talk, or to forget something.

`training/wishes.py` produces `request_scorer.bin`: for each head a scale, a shift and one byte for each of 49,152
hashed features. Words of six languages are folded to what they do (deny, keep, remove, name a place, …), so that a
clause is scored by the order of these, whatever its words are.
"""

from __future__ import annotations

import functools
import re
import struct
import unicodedata
from binascii import crc32
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from nanoclaw_memory.caches import bounded
from nanoclaw_memory.patterns import regex

HEADS = ("store", "forget")
SIZE = 48 * 1024  # weights of a head
FILE = Path(__file__).with_name("request_scorer.bin")
HEADER = struct.Struct("<ff")
MOST_WORDS = 28  # of a clause
WINDOW = 9  # words at either end of a longer clause, which people without punctuation write
MOST_CLAUSES = 400
UNKNOWN = "x"
MISTYPED = 6  # letters of the shortest word in which a slip is looked for
THRESHOLD = {"store": 1.0, "forget": 0.6}  # logits: one ordinary message in 500 is over the first

# What a word does; a star stands for any ending. Kinds in capitals are the ones without which nothing is asked.
_ROLES = {
    "n": "not dont never no none nothing didnt doesnt isnt shouldnt mustnt neednt wont cant without skip avoid "
    "nicht nich nie niemals nichts nix nirgends nirgendwo* nirgendswo kein keine keinen keinesfalls "
    "keinerlei bloss ohne ne n pas jamais rien sans nulle nunca nada ni sin ningun* ninguna non mai "
    "niente nessun* senza niet nooit nergens niets niks geen zonder",
    "K": "sav* stor* keep* kept log logs logged logging archiv* retain* persist* record* jot* note noted notes "
    "noting preserv* captur* file filed track hold* learn* speicher* abspeicher* gespeicher* einspeicher* "
    "notier* aufschreib* aufgeschrieb* mitschreib* mitgeschrieb* festhalt* festgehalt* aufheb* aufbewahr* "
    "aufzeichn* protokollier* vermerk* verzeichn* dokumentier* behalt* ableg* abgelegt sicher hinterleg* "
    "aufnehm* aufgenommen auftauch* eintrag* gard* enregistr* note* noti* conserv* stock* sauvegard* "
    "inscri* guard* apunt* anot* registr* almacen* grab* salv* annot* segn* tener* tien* opsla* "
    "opgeslagen bewar* bewaar* noteer* noter* opschrijv* opschrijf* vastleg* vastgelegd archiver* "
    "archiveer*",
    "v": "writ* commit* schreib* geschrieb* escrib* scriv* schrijf* schrijv* hang put add ingest* stay* stays "
    "goes go end show turn treat* handle* use bleib* lern* nimm nehm* trag* halt* heb leg tu pack steck "
    "setz steh* land* komm* gehort behandel* mets met laisse reste* deja deje manten* quede queda lascia "
    "resta resti rimane sla hou houd zet stop neem blijft",
    "R": "memori[sz]* merk* gemerk* retien* retenir memoris* memoric* memorizz* onthou* remember* rember* "
    "remeber* remebr* recall* erinner* souven* souvien* recuerd* ricord* herinner*",
    "D": "delet* eras* remov* wip* drop* scrap* purg* clear* scrub* trash* discard* strik* rid unremember "
    "unlearn losch* gelosch* entfern* streich* gestrich* tilg* verwirf* rausnehm* rauswerf* schmeiss* "
    "efface* effac* supprim* enlev* retir* borr* elimin* quit* suprim* saca* cancell* togli* rimuov* "
    "verwijder* wis wissen wist schrap*",
    "F": "forget* forgot* vergiss* vergess* vergis oubli* olvid* dimentic* vergeet* vergeten",
    "P": "forrecord mind head brain kopf hinterkopf hirn tete cabeza testa hoofd memor* notes records logs "
    "archive* histor* gedachtnis* notiz* protokoll* speicher archiv* aufzeichnung* akten unterlagen "
    "memoire memoria notas registros apuntes note appunti geheugen* notities aantekeningen logboek",
    "t": "this that it these das dies dieses es hier folgende* davon hiervon ca cela ceci le l lo esto eso "
    "questo cio quello dit dat het hiervan",
    "M": "number* name figure* date sum address zahl namen satz summe",
    "m": "message* chat* conversation* msg nachricht* gesprach* unterhaltung* conversation mensaje "
    "conversacion messaggio conversazione bericht gesprek",
    "a": "thing things stuff bit part story info information details sache geschichte kram zeug infos histoire "
    "truc chose historia cosa storia faccenda verhaal gedoe dingen everything anything all whatever alles "
    "tout todo tutto",
    "b": "about regarding concerning uber von zu mit sur sobre del de su over van met",
    "s": "said say saying told tell telling mention* wrote shared gesag* sag* erzahl* geschrieb* erwahn* dit "
    "raconte* dije conte digo cuento detto dico raccont* zei gezegd vertel*",
    "k": "know weisst sais sabes sai weet",
    "i": "i im ive id ich je yo io ik we wir nous hab habe",
    "y": "you your yours yourself du dir dich dein* tu te ta tes tus ti tua tue jij jouw",
    "z": "my mein* mon ma mes mi mio mia mis mijn our unser*",
    "q": "can could would will kannst konntest wurdest kannste peux peut pourrais puedes podrias puoi potresti "
    "kun kan zou",
    "w": "want wish rather prefer* like mochte will lieber gern veux voudrais quiero quisiera vorrei voglio "
    "preferir* wil liever",
    "o": "from out off of aus raus weg hors dehors fuera fuori dalla dalle uit buiten",
    "d": "down onto auf fest ab rein away",
    "p": "please bitte merci gracias grazie thanks danke",
    "l": "later afterwards after again anymore longer wieder danach hinterher nachher apres despues dopo "
    "daarna weer mehr",
    "e": "anywhere irgendwo somewhere part partout parte dessuno",
    "C": "confiden* secret* discreet* private* sensitive vertraulich* geheim* privat* diskret* incognito "
    "offrecord betweenus confidenc* riservat* privad* vertrouwelijk*",
    "u": "must should may need* shall have soll* darf* muss* brauch* doit devrait debe deve mag moet hoeft be "
    "is are was werden wird ist etre ser essere va worden wordt",
    "h": "how why what when where who which did do does was wie warum wieso wann wo wer hast que comment "
    "pourquoi como cosa come wat hoe waarom",
    "g": "the a an der die den dem das ein eine la les el los las il i gli un una de het een",
}  # fmt: skip
_CUES = frozenset("KRDFPC")
_DENYING = frozenset("noDFC")
_KEEPING = frozenset("KRDFPCv")
_SHORT = {
    "pls": "please", "plz": "please", "plss": "please", "plse": "please", "stp": "please", "svp": "please",
    "aub": "please", "porfa": "please", "u": "you", "ur": "your", "dnt": "dont", "donot": "dont", "thx": "thanks",
    "alsjeblieft": "please", "alstublieft": "please", "ned": "nicht", "nit": "nicht", "nid": "nicht", "nich": "nicht",
}  # fmt: skip
_ELISION = regex(r"\b([ljdmtscn]|qu)'(?=[^\W\d_]{2})")
_PHRASES = (
    (regex(r"\bdo not\b|\bdon t\b"), "dont"),
    (regex(r"\boff (?:the )?records?\b"), "offrecord"),
    (regex(r"\bfor the (?:record|books|files)\b"), "forrecord"),
    (
        regex(
            r"\b(?:between (?:us|you and me)|unter uns|zwischen uns|unter vier augen|entre nous|entre nosotros|"
            r"(?:tra|fra) (?:di )?noi|onder ons|im vertrauen|en confianza)\b"
        ),
        "betweenus",
    ),
    (regex(r"s'il (?:te|vous) plait|\bpor favor\b|\bper (?:favore|piacere)\b"), "please"),
)
_WORD = regex(r"[^\W_]+")
_SENTENCE = regex(r"[.!?…\n]+(?=\s|\Z|[\"')])|\n")
_INNER = regex(
    r"(?!,\s*(?:was|dass|wo|what|that)\b)[,;:()–—]+|\s-\s|\s(?=(?:and|but|so|because|und|aber|weil|sondern|et|mais|pero|y|ma|maar|en)\s)"
)


class Clause(msgspec.Struct, frozen=True):
    """A part of a message that may ask something, with the words before and after it in the same sentence."""

    text: str
    before: str
    after: str
    sign: str  # what ends it
    start: int
    end: int


def asks(head: str, text: str) -> bool:
    """Return whether any clause of a text is probably such a request."""
    return strongest(head, text) > THRESHOLD[head]


def strongest(head: str, text: str) -> float:
    """Return the highest logit of any clause of a text; negative if none has a word of keeping or removing."""
    scale, shift, weights = _model()[HEADS.index(head)]
    found = (features(clause) for clause in clauses(text))
    scores = (scale * sum(map(weights.__getitem__, places)) + shift for places in found if places)
    return max(scores, default=-30.0)


def clauses(text: str) -> list[Clause]:
    """Return the clauses of a text, its sentences, and the ends of those that are long."""
    found: list[Clause] = []
    last = ""
    for begin, end, sign in _spans(text, _SENTENCE, 0, len(text)):
        parts = list(_spans(text, _INNER, begin, end, sign))
        named = [text[one:other] for one, other, _ in parts]
        around = ["" if not at else named[at - 1] for at in range(len(parts))]
        around[:1] = [last]
        for at, (one, other, stop) in enumerate(parts):
            after = named[at + 1] if at + 1 < len(named) else ""
            found += _ends(Clause(named[at], around[at], after, stop, one, other))
        if len(parts) > 1:
            found += _ends(Clause(text[begin:end], last, "", sign, begin, end))
        last = named[-1] if named else last
        if len(found) > MOST_CLAUSES:
            break
    return found


def features(clause: Clause) -> list[int]:
    """Return the indexes of a clause's features; none if nothing in it can be such a request."""
    words = folded(clause.text)
    if not words or len(words) > MOST_WORDS:
        return []
    roles = [role_of(word) for word in words]
    if _DENYING.isdisjoint(roles) or _KEEPING.isdisjoint(roles):
        return []
    line = ["^", *_collapsed(words, roles), f"${clause.sign[:1]}"]
    named = [f"1{role}" for role in line]
    for size in (2, 3, 4):
        named += [f"{size}{' '.join(line[at : at + size])}" for at in range(len(line) - size + 1)]
    named += [f"s{one} {other}" for at, one in enumerate(line) for other in line[at + 2 : at + 7]]
    marks = sorted(set("".join(roles)) & set("nKRDFPCtmMabskyzowuev"))
    unknown = min(sum(role == UNKNOWN for role in roles), 4)
    named += [
        f"S{''.join(marks)}",
        f"S{''.join(marks)}{unknown}",
        f"N{unknown}",
        f"L{len(words).bit_length()}",
    ]
    named += [f"w{word}" for word, role in zip(words, roles, strict=True) if role not in _CUES]
    named += [f"p{one} {other}" for one, other in pairwise(_shown(words, roles))]
    named += _around("b", clause.before, marks) + _around("a", clause.after, marks)
    return [crc32(name.encode("utf-8", "surrogatepass")) % SIZE for name in dict.fromkeys(named)]


def folded(text: str) -> list[str]:
    """Return the words of a text as everybody types them: no case, marks or apostrophes, and no abbreviations."""
    plain = unicodedata.normalize("NFKD", text.casefold().replace("’", "'").replace("`", "'"))
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    plain = _ELISION.sub(r"\1 ", plain).replace("'", "")
    for pattern, short in _PHRASES:
        plain = pattern.sub(short, plain)
    return [_SHORT.get(word, word) for word in _WORD.findall(plain)]


@bounded(1024 * 1024)
def role_of(word: str) -> str:
    """Return what a word does, also if it is inflected or mistyped."""
    whole, stems, near = _lexicon()
    if word in whole:
        return whole[word]
    for size in range(len(word), 2, -1):
        if role := stems.get(word[:size]):
            return role
    if len(word) >= MISTYPED:  # "tests" is no slip of the Italian "testa"
        for variant in (word, *_shortened(word)):
            if role := near.get(variant):
                return role
    return UNKNOWN


def _collapsed(words: list[str], roles: list[str]) -> Iterator[str]:
    """Yield the roles, a row of unknown words as one."""
    last = ""
    for role in roles:
        if role != UNKNOWN or last != UNKNOWN:
            yield role
        last = role


def _shown(words: list[str], roles: list[str]) -> list[str]:
    """Return the small words, and what the others do."""
    return [
        role if role == UNKNOWN or role in _CUES else word for word, role in zip(words, roles, strict=True)
    ]


def _around(side: str, text: str, marks: list[str]) -> list[str]:
    """Name the features of a neighbouring clause: how it begins, and whether somebody states something in it."""
    words = folded(text)[:MOST_WORDS]
    if not words:
        return [f"{side}none", f"{side}none{''.join(marks)}"]
    roles = [role_of(word) for word in words]
    kinds = "".join(sorted(set(roles)))
    first = " ".join(roles[:2])
    named = [f"{side}f{first}", f"{side}w{_shown(words, roles)[0]}"]
    return [*named, *(f"{side}k{kind}" for kind in kinds), f"{side}n{min(len(words), 5)}"]


def _ends(clause: Clause) -> Iterator[Clause]:
    """Yield a clause, and of a long one also both ends."""
    yield clause
    words = clause.text.split()
    if len(words) > WINDOW + 1:
        head, tail = " ".join(words[:WINDOW]), " ".join(words[-WINDOW:])
        rest = " ".join(words[WINDOW:])
        yield Clause(head, clause.before, rest, "~", clause.start, clause.start + len(head))
        rest = " ".join(words[:-WINDOW])
        yield Clause(tail, rest, clause.after, clause.sign, clause.end - len(tail), clause.end)


def _spans(
    text: str, border: re.Pattern[str], begin: int, end: int, last: str = ""
) -> Iterator[tuple[int, int, str]]:
    """Yield where the parts between borders are, and the sign behind each."""
    at = begin
    for sign in border.finditer(text, begin, end):
        if text[at : sign.start()].strip():
            yield at, sign.start(), sign[0].strip()
        at = sign.end()
    if text[at:end].strip():
        yield at, end, last


@functools.cache
def _lexicon() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the roles of whole words, of stems, and of mistyped words."""
    whole: dict[str, str] = {}
    stems: dict[str, str] = {}
    near: dict[str, str] = {}
    for role, said in _ROLES.items():
        for word in said.split():
            plain, _, choice = word.rstrip("*").partition("[")
            forms = [plain + char for char in choice.rstrip("]")] if choice else [plain]
            for form in forms:
                (stems if word.endswith("*") else whole).setdefault(form, role)
    for known in (whole, stems):
        for form, role in known.items():
            if len(form) >= MISTYPED and role in "nKRDFPCp":
                for variant in (form, *_shortened(form)):
                    near.setdefault(variant, role)
    return whole, stems, near


def _shortened(word: str) -> Iterator[str]:
    return (word[:at] + word[at + 1 :] for at in range(1, len(word)))


@functools.cache
def _model() -> tuple[tuple[float, float, memoryview], ...]:
    """Return scale, shift and weights of each head; if the file is damaged, ones that find nothing."""
    try:
        content = FILE.read_bytes()
    except OSError:
        content = b""
    one = HEADER.size + SIZE
    if len(content) != one * len(HEADS):
        return ((0.0, -1.0, memoryview(bytes(SIZE))),) * len(HEADS)
    return tuple(
        (
            *HEADER.unpack_from(content, at * one),
            memoryview(content)[at * one + HEADER.size : (at + 1) * one].cast("b"),
        )
        for at in range(len(HEADS))
    )
