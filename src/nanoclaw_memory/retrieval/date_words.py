"""The English and German words for days and periods, and those of questions that only ask what was said or done."""

from __future__ import annotations

import msgspec

from nanoclaw_memory.text import GERMAN_STOP_WORDS, STOP_WORDS


class Lexeme(msgspec.Struct, frozen=True):
    """A word of time: its kind (empty for other words), its name, and its number."""

    kind: str
    name: str
    value: int = 0


# By kind; each group is a name, its number, and synonyms and forms. Months and weekdays are numbered in order. Plural
# weekdays are left out: what is done "on Mondays" happens on no particular day.
_MONTHS = (
    "january januar jan jaenner, february februar feb, march maerz mar, april apr, may mai, june juni jun,"
    " july juli jul, august aug, september sept sep, october oktober oct okt, november nov, december dezember dec dez"
)
_WEEKDAYS = (
    "monday montag, tuesday dienstag, wednesday mittwoch, thursday donnerstag, friday freitag,"
    " saturday samstag sonnabend, sunday sonntag"
)
_LAST = "letzt vergangen vorig"
_OTHERS: dict[str, tuple[tuple[int, str], ...]] = {
    "unit": (
        (0, "hour hours stunde stunden minute minutes minuten"),
        (1, "day days tag tage tagen tages"),
        (7, "week weeks woche wochen"),
        (14, "fortnight fortnights"),
        (30, "month months monat monate monaten monats"),
        (91, "quarter quarters quartal quartale quartalen quartals"),
        (365, "year years jahr jahre jahren jahres"),
    ),
    "weekend": ((7, "weekend weekends wochenende wochenenden wochenendes"),),
    "part": (
        (0, "morning vormittag frueh morgen"),
        (0, "noon midday mittag"),
        (0, "afternoon nachmittag"),
        (0, "evening abend"),
        (0, "night nacht"),
    ),
    "season": (
        (3, "spring fruehling fruehjahr"),
        (6, "summer sommer"),
        (9, "autumn fall herbst"),
        (12, "winter"),
    ),
    "holiday": (
        (0, "christmas xmas weihnachten heiligabend"),
        (0, "silvester neujahr"),
        (0, "new"),
        (0, "easter ostern"),
        (0, "whitsun pentecost pfingsten"),
        (0, "halloween"),
    ),
    "dayword": (
        (0, "today heute vorhin"),
        (1, "yesterday gestern"),
        (2, "vorgestern"),
        (0, "tonight"),
        (0, "recently lately neulich kuerzlich letztens kurzem"),
    ),
    "coming": ((1, "tomorrow"), (2, "uebermorgen")),
    "last": ((1, "last previous"), (1, "past"), (1, _LAST), (2, "vorletzt")),
    "this": ((0, "this current dies"),),
    "next": ((0, "next coming upcoming naechst kommend"),),
    # The value is 1 where "of" has to follow: to start this week is not the start of it.
    "edge": (
        (1, "start beginning first erst"),
        (0, "anfang early beginn"),
        (0, "middle mid mitte"),
        (1, "end"),
        (0, "ende late"),
    ),
    "number": (
        (1, "one a an ein"),
        (2, "two zwei couple"),
        (3, "three drei"),
        (4, "four vier"),
        (5, "five fuenf"),
        (6, "six sechs"),
        (7, "seven sieben"),
        (8, "eight acht"),
        (9, "nine neun"),
        (10, "ten zehn"),
        (11, "eleven elf"),
        (12, "twelve zwoelf"),
        (3, "few several paar einig mehrer"),
        (0, "half halb haelfte"),
    ),
    "": (
        (0, "ago back earlier"),
        (0, "vor"),
        (0, "before"),
        (0, "after nach"),
        (0, "since seit"),
        (0, "between zwischen"),
        (0, "from von vom"),
        (0, "until till to through bis"),
        (0, "and und"),
        (0, "of in im des"),
        (0, "the der die das den dem"),
        (0, "on am"),
        (0, "etwa ungefaehr gut knapp rund ca circa"),
    ),
}
_ADJECTIVES = frozenset(f"{_LAST} vorletzt dies naechst kommend erst ein einig mehrer halb".split())
_ENDINGS = ("e", "en", "em", "er", "es")
# Words before a month, a season or a weekday: "may" and "fall" alone are no time.
MARKERS = frozenset(
    "of on during since last past this by over until from between before after vor at ab".split()
)

_TOLD = frozenset(
    "asked gefragt talked discussed spoke spoken chatted said told mentioned happened went gone done worked"
    " geredet redeten gesprochen sprachen besprochen besprachen gesagt sagte sagten gemacht machten passiert passierte"
    " geschehen geschah gelaufen lief unterhalten erzaehlt gearbeitet ging gegangen los".split()
)
# Verbs by which somebody asks what was said: "what did we say about verifying webhooks" is not about saying.
SPOKEN = frozenset(
    "say said saying tell told talk talked talking discuss discussed speak spoke spoken mention mentioned chat chatted"
    " remember recall remind"
    " gesagt sagte sagten geredet gesprochen sprachen besprochen besprachen erzählt erwähnt erinnerst erinnern".split()
)
_TELL = frozenset(
    "ask talk talking discuss discussing discussion discussions speak speaking chat chatting say saying tell mention"
    " happen happening go going do doing work working conversation conversations topic topics"
    " gespraech gespraeche thema themen".split()
)
_PAST = frozenset("did was were had been haben habe hast hatten hatte war waren wurde wurden".split())
_TALK = frozenset(
    "talk talked talking discuss discussed discussing spoke speaking spoken chatting chatted topic conversation where"
    " last zuletzt geredet gesprochen sprachen besprochen besprachen unterhalten thema gespraech wo".split()
)
_ASKING = frozenset("what how was wie".split())  # "how was yesterday?"
_WAS = frozenset("was were had war waren hatte hatten".split())
_TOGETHER = frozenset("we us our wir uns unser".split())
_WITHOUT_CONTENT = STOP_WORDS.union(
    GERMAN_STOP_WORDS,
    _PAST,
    "s everything anything something thing things stuff know remember remind exactly was wie wo woran worueber wovon"
    " worum womit hast denn alles etwas nochmal noch mal eigentlich gerade zuletzt last genau stehengeblieben stehen"
    " geblieben ueber".split(),
)
_ENDED = frozenset("leave left off stop stopped aufgehoert".split())  # "where did we leave off?"


# Words of a question that only asks what is planned for a day: "was steht an?", "anything on?", "am I free?".
_PLANS = frozenset(
    "anything nothing something planned plan plans plannings appointment appointments schedule scheduled calendar diary"
    " agenda event events date dates meeting meetings due coming come comes up free busy available time happening"
    " happens happen going go doing do on there everyone anyone we i hab habs haette welche welchen which"
    " steht stehen anstehen ansteht liegt anliegt an ab vor los termin termine termins kalender geplant plan plaene"
    " vorhaben verabredung verabredungen frei zeit passiert geht gibt gibts jemand etwas was irgendwas alles machen"
    " mach mache faellig kommt kommen geburtstag geburtstage birthday birthdays".split()
)
# At least one of these, or a question word: "see you tomorrow" asks for nothing.
_ASKS_PLANS = frozenset(
    "was what whats anything something etwas irgendwas termin termine appointment appointments plan plans geplant"
    " planned schedule calendar agenda kalender steht free frei busy birthday geburtstag events meetings".split()
)
_NEVER_PLANS = frozenset("day days date tag datum weekday wochentag".split())  # "what day is today?"
_ENGLISH_ASKING = frozenset(
    "what who where when how which there i it".split()
)  # beside them "was" is no "what"
_SIMPLE_PAST = frozenset("did were had went war waren hatte hatten wurde wurden said talked".split())


def asks_for_plans(text: str, question: bool) -> bool:
    """Return whether the words of a message beside its days ask only for what is planned then."""
    asked = [_folded(word) for word in text.replace("'", " ").split()]
    content = [word for word in asked if word not in _WITHOUT_CONTENT or word in _SIMPLE_PAST]
    if _NEVER_PLANS.intersection(asked):
        return False
    return _PLANS.issuperset(content) and (not _ASKS_PLANS.isdisjoint(asked) or (question and not content))


def tells_of_the_past(text: str) -> bool:
    """Return whether words tell what was, or ask for it."""
    asked = [_folded(word) for word in text.split()]
    past = "was" in asked and not _ENGLISH_ASKING.isdisjoint(asked)
    return past or not _SIMPLE_PAST.union(_TOLD - {"los", "lief"}).isdisjoint(asked)


def asks_what_was_said(text: str, past: bool, names: frozenset[str] = frozenset()) -> bool:
    """Return whether a question asks only what was said or done; `names` are the speakers.

    A question about today must be in the past tense: "what do we do today" asks for no conversation.
    """
    asked = [_folded(word) for word in text.split()]
    told = any(word in _TOLD for word in asked) or (
        _ASKING.issuperset(asked[:1]) and not _WAS.isdisjoint(asked[1:])
    )
    told = told or (any(word in _TELL for word in asked) and (past or any(word in _PAST for word in asked)))
    return told and all(word in _TOLD | _TELL | _WITHOUT_CONTENT | names for word in asked)


def asks_where_we_were(text: str) -> bool:
    """Return whether a question asks for the subject of the last talk and names no day: "what were we talking
    about?".
    """
    asked = {_folded(word) for word in text.split()}
    spoken = asked & _TALK and asked & _TOGETHER and asked & (_PAST | _TOLD)
    return bool(spoken) and asked <= _TOLD | _TELL | _TALK | _ENDED | _WITHOUT_CONTENT


def lexeme(text: str) -> Lexeme:
    """Return the meaning of a word, regardless of case and of ä or ae; a number stands for itself."""
    if text.isdecimal() and len(text) <= 4:
        return Lexeme("number", text, int(text))
    folded = _folded(text)
    return LEXICON.get(folded) or Lexeme("", folded)


def _folded(text: str) -> str:
    return text.casefold().replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")


def _lexicon() -> dict[str, Lexeme]:
    found: dict[str, Lexeme] = {}
    counted = (("month", _MONTHS, 1), ("weekday", _WEEKDAYS, 0))
    groups = [
        (kind, number, group)
        for kind, names, start in counted
        for number, group in enumerate(names.split(","), start)
    ]
    groups += [(kind, value, group) for kind, rows in _OTHERS.items() for value, group in rows]
    for kind, value, group in groups:
        words = group.split()
        for word in words:
            found[word] = Lexeme(kind, words[0], value)
            if word in _ADJECTIVES:
                found |= {word + ending: found[word] for ending in _ENDINGS}
    return found


def split_compound(text: str) -> list[int]:
    """Return where a word such as "Freitagabend" splits into two; empty for other words."""
    folded = _folded(text)
    if len(folded) < 10 or folded in LEXICON:
        return []
    return [
        cut
        for cut in range(6, len(text) - 3)
        if lexeme(text[:cut]).kind == "weekday" and lexeme(text[cut:]).kind == "part"
    ]


LEXICON = _lexicon()
