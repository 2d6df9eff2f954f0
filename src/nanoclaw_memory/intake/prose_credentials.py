"""Credentials in prose: plain words and numbers that only the sentence reveals."""

from __future__ import annotations

from collections.abc import Iterator

from nanoclaw_memory.intake.secret_names import ABOUT, WORDS, CredentialName
from nanoclaw_memory.intake.secret_values import CHOSEN, is_chosen, is_passphrase, is_reference, verbose

ADVERB = r"""now|still|currently|just|then|again|always|simply|also|probably|actually|since|from|today|yesterday
    |jetzt|nun
    |neu|aktuell|weiterhin|wieder|immer|noch|seit|ab|sofort|heute|gestern|einfach|nu|nog|steeds|altijd|sinds|ahora
    |siempre
    |desde|hoy|ayer|ora|adesso|sempre|oggi|agora|hoje|maintenant|désormais|toujours|depuis|hier|teraz|zawsze|od|dziś
    |теперь
    |сейчас|снова|всегда"""
# pw for the zip is bluebottle: a single word, at the end of the statement
_PREPOSITION = r"""for|of|to|on|at|in|f[üu]rs?|vom|beim|von|zum|zur|der|des|del|della|de|du|da|do|van|voor|pour
    |per|para|til|till"""
_TOLD = verbose(
    rf"""(?:[ ](?P<of>{_PREPOSITION})[ ][^\n.:;,?!"]{{1,40}}?)?
    (?:(?P<colon>:)|[ ](?:(?P<is>is|was|ist|war|lautet)|est|es|è|é|är|er|jest|to|auf)(?:[ ](?:{ADVERB}))?
    |(?-i:(?=[ ][A-Z][a-z])))[ ](?P<value>[^\W\d_]{{5,20}}(?:[-_.][^\W\d_]{{2,20}}){{0,4}})
    (?=[.,;!)]{{0,2}}[ ]?(?:[\r\n]|\Z)|,[ ])"""
)
_OWNED = verbose(r"(?:['’]s|s['’]|my|our|his|her|mein|unser)[ ](?:[\w-]{1,16}[ ]){0,2}\Z")
# passphrase: three blind mice run
_WORDS_TOLD = verbose(
    rf"""(?:[ ](?:{_PREPOSITION})[ ][^\n.:;,?!"]{{1,40}}?)?(?:[ ]?(?:[:=]|(?<=[ ])(?:is|ist|lautet))[ ]["“]?|[ ]["“])
    (?!(?:ask|see|stored?|in|on|the|a|an|same|not|your|my|our|leave|enter|type|use[sd]?|from|for|of|to|kept|will|must|should
    |can|has|is|or|and|was|when|with|if|that|which|protect\w*|siehe|im|in|beim|bei|steht|liegt|wird|nicht|und|oder)[ ])
    (?P<value>[^\W\d_]{{2,12}}(?:[ ][^\W\d_]{{2,12}}){{2,7}})(?=["”.]{{0,2}}[ ]?(?:[\r\n]|\Z)|["”,]|[ ]but[ ])"""
)
# Endings of English, German and Dutch adjectives and participles: required, trivial, abgelaufen, onbekend.
_STATE = verbose(
    r""".*(?:ed|ing|[ai]ble|ive|ous|[aei]nt|ful|less|[ao]ry|ic|ish|[ai]te|ete|ct|some|own|al|ar|id|ique|ex|[iou]re|are
    |[dfklpstv]y|[dfklmnrstx]en|[ai]s|rs|w|ong|eak|ard|good|fine|blank|ale|[am]e|fe|one|ve|ough|om|mon|ase|[tv]er|ple|[^n]t
    |lich|ig|lijk|isch|bar|los|falsch|heim|leer|weg|är|ell|ach|ark|here|elbe|elfde|erk|cher|annt|kend|igd)"""
)
# changed the password from … to …
_REPLACED = verbose(
    r"""[^\n.;]{0,40}?[ ](?:from|von|de|da|van|od|z|с|fra|från|du)[ ](?P<old>[^\s"'`]{5,64})[ ]
    (?:to|auf|zu|in|a|à|en|naar|na|på|til|till|на)[ ](?P<new>[^\s"'`,;]{5,64})"""
)
# PIN for the blue card 4821
_NUMBER_FOR = verbose(
    rf"""(?:[ ](?:{_PREPOSITION})(?:[ ](?!no\b|nr\b|number|order|card)[^\W\d_]{{1,20}}){{1,3}}
    |[ ](?!mode|version|n[ro]\b|number|in\b|on\b)[^\W\d_]{{2,16}})?
    [ ]\#?(?P<value>\d{{4,8}}|\d{{1,2}}(?:[ -]\d{{1,2}}){{2,3}})
    (?=[.,;!)]{{0,2}}(?:\s|\Z))(?![ ][a-z])"""
)
# hunter2 is the password, set it to … as the password
_REVERSED_LINKS = ("is", "as", "ist", "als", "est", "comme", "es", "como", "è", "come")
_REVERSED = verbose(
    rf"""(?:["“](?P<phrase>[^"”\n]{{8,60}})["”]
    |(?<![^\s"'`(/\#;*])(?P<value>[^\s"'`(){{}}<>,;:=]{{5,200}})["'`)*]{{0,3}})[ \t]{{1,3}}
    (?P<link>{"|".join(_REVERSED_LINKS)})
    (?:[ ](?:the|my|our|your|his|her|their|a|das|mein|unser|[a-zà-ɏ0-9-]{{1,12}})){{0,3}}[ ](?:{WORDS}|pin)(?![a-z])
    (?![ _-]?{ABOUT})"""
)


def find_in_prose(name: CredentialName, text: str) -> Iterator[tuple[int, int]]:
    """Yield values that only a few words reveal: from Patito22 to Cisne23, for the zip is bluebottle."""
    replaced = _REPLACED.match(text, name.end)
    if replaced and is_chosen(replaced["old"]) and is_chosen(replaced["new"]):
        yield from (replaced.span("old"), replaced.span("new"))
    if name.is_code:
        if number := _NUMBER_FOR.match(text, name.end):
            yield number.span("value")
    elif name.plain and name.least == CHOSEN and (told := _TOLD.match(text, name.end)):
        of = told["of"] or _OWNED.search(text[max(0, name.start - 40) : name.start])
        if is_noun(told["value"], bool(of and (told["is"] or told["colon"]))):
            yield told.span("value")
    elif name.is_phrase and (words := _WORDS_TOLD.match(text, name.end)):
        yield words.span("value")


def is_noun(word: str, of: bool) -> bool:
    """Return whether a word after `is` is probably the password, not its description: Persimmon, of the zip
    bluebottle.
    """
    if is_reference(word) or not is_passphrase(word, 1):
        return False
    return word.istitle() or (of and not _STATE.fullmatch(word))


def find_reversed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield values before their name: hunter2 is the password."""
    linked = not set(_REVERSED_LINKS).isdisjoint(text[start:end].lower().split())
    for match in _REVERSED.finditer(text, start, end) if linked else ():
        if match["phrase"]:
            if is_passphrase(match["phrase"], 2):
                yield match.span("phrase")
            continue
        value = match["value"].rstrip(".!?*_")
        phrase = is_passphrase(value, 2) and match["link"] in ("as", "als", "como", "comme", "come")
        if phrase or (any(char.isdigit() for char in value) and is_chosen(value)):
            yield match.start("value"), match.start("value") + len(value)
