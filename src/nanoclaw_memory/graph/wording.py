"""English and German vocabulary for reading sentences: verbs of lasting states, relatives, doubt, denial, past."""

from __future__ import annotations

import re

from nanoclaw_memory.patterns import regex

# Verbs that state something lasting: forms, predicate or key, and what follows them; `=`: the verb itself. `names`
# relations to a named entity; `port`, `money`, `date`, `size`, `time` a typed value; `phrase` a short value; `alias`
# another name; `habit` what a person or thing does regularly, read only on pages: in a log it is an event.
_VERBS = """
lives in, live in, lives at, resides in | = | names
has lived in, have lived in | lives in | names
wohnt in, lebt in, wohne in, lebe in, wohnen in | = | names
moved to, relocated to, has moved to | = | names
zog nach | = | names
works at, works for, work at, work for, is employed at, is employed by | = | names
has worked at, has worked for, have worked at, has been with, has been working at | works at | names
arbeitet bei, arbeitet für, arbeite bei, arbeite für, ist angestellt bei | = | names
works as, work as | role | phrase
arbeitet als, arbeite als | beruf | phrase
reports to, report to | = | names
berichtet an | = | names
manages, manage | = | names
leads, lead, heads | = | names
leitet, führt | = | names
owns, own | = | names
besitzt | = | names
maintains, maintain, looks after | = | names
betreut, wartet, verwaltet, kümmert sich um | = | names
belongs to, belong to | = | names
gehört zu, gehört | = | names
depends on, depend on, relies on, rely on | = | names
hängt ab von, basiert auf | = | names
uses, use | = | names
nutzt, benutzt, verwendet | = | names
runs on, run on, is hosted on, is deployed on, is deployed to | = | host
is on, are on, lives on, live on, sits on | runs on | machine
ist auf, sind auf | läuft auf | machine
läuft auf, liegt auf | = | host
is with, is kept with, is kept in, is kept at | = | names
liegt bei, ist bei, steht bei, liegt beim, steht beim | = | names
goes to, go to, gehen an, geht an | email | contact
listens on, listens at, listen on, serves on, lauscht auf, horcht auf | port | listens
is on port, is on | port | port
hört auf | port | answers
lives at, live at, is at, sits at, liegt unter, steht unter, ist unter | url | url
costs, cost | costs | money
goes up to, rises to, goes down to, drops to, increases to, steigt auf, sinkt auf | is | money
kostet, kosten | kosten | money
speaks, speak | languages | list
spricht, sprechen | sprachen | list
prefers | preference | phrase
bevorzugt | vorliebe | phrase
teaches | = | names
unterrichtet | = | names
drives | = | habit
fährt | = | habit
attends, goes to, go to, studies at | = | names
besucht, geht auf, geht in, studiert an, studiert in | = | names
knows | = | names
hosts | = | names
replaces | = | names
ersetzt | = | names
connects to, talks to, points to | = | names
is responsible for, is in charge of, are responsible for | responsible for | names
handles, handle | = | names
takes care of, take care of | = | names
deals with, deal with | = | names
ist zuständig für, sind zuständig für, ist verantwortlich für | zuständig für | names
zeigt auf, verweist auf | = | names
is married to | = | names
ist verheiratet mit | = | names
is part of | = | names
ist Teil von | = | names
is based in, is located in, based in, sits in | location | places
sitzt in, liegt in | ort | places
is allergic to, are allergic to, allergic to | allergic to | list
ist allergisch gegen, bin allergisch gegen, allergisch gegen, ist allergisch auf, allergisch auf | allergie | list
was born on, was born in, was born, born on, born in, born | birthday | date
wurde geboren am, ist geboren am, geboren am, geb. | geburtstag | date
expires on, expires, ends on, ends | ends | date
läuft ab am, endet am | ende | date
starts on, begins on | starts | date
beginnt am, startet am | beginn | date
is due on, is due by, is due | due | date
opens at | opens | time
weighs, wiegt | weight | size
wears size, takes size | size | size
trägt Größe, hat Größe | größe | size
answers to | port | answers
goes by, is known as, is also known as, is called, is nicknamed, nicknamed, also known as, aka | | alias
heißt auch, genannt, wird genannt, hört auf den Namen, rufname | | alias
stands for, means, steht für, bedeutet | | means
is short for, is the codename for, is the code name for, is codename for | | stands
is our name for, is what we call, is our word for, is shorthand for, is the nickname for | | stands
ist kurz für, ist die Abkürzung für, ist der Codename für, ist unser Name für | | stands
plays, sings, practises, practices | = | habit
spielt, singt | = | habit
buys, orders, gets | = | habit
kauft, bezieht, bestellt | = | habit
sells, offers, provides | = | habit
verkauft, bietet | = | habit
charges, earns, pays | = | habit
verdient, zahlt, verlangt | = | habit
drinks, eats, smokes | = | habit
trinkt, isst | = | habit
takes | = | habit
nimmt | = | habit
keeps, holds, stores, contains, includes | = | habit
enthält, speichert | = | habit
wears | = | habit
trägt | = | habit
likes, loves, enjoys | = | habit
mag, liebt | = | habit
hates, dislikes | = | habit
hasst | = | habit
studies | = | habit
studiert, lernt | = | habit
supports, sponsors, funds | = | names
unterstützt | = | names
mentors, coaches, supervises | = | names
reads from, writes to, sends to, feeds, exports to, imports from, publishes to, subscribes to | = | names
requires, needs | = | names
braucht, benötigt | = | names
runs until, is valid until, valid until, lasts until, gilt bis, läuft bis, geht bis, kündbar bis | until | date
renews on, launches on, ships on, opens on | date | date
closes at, shuts at | closes | time
schließt um | schließt | time
öffnet um | öffnet | time
starts at, begins at, leaves at, departs at, beginnt um, fährt um, startet um | starts | time
ends at, finishes at, endet um | ends | time
meets, meet, takes place, happens, rehearses, trifft sich, probt, findet statt, tagt | when | schedule
runs at, läuft um | runs at | time
runs, run, läuft, laufen | runs | schedule
runs | = | names
amounts to, comes to | is | amount
beträgt, liegt bei, beläuft sich auf | ist | amount
has, have | has | has
hat, haben | hat | has
changed to, is changed to, has changed to | is | copula
is set to, is pinned to, is fixed at, is limited to, steht auf, ist eingestellt auf | is | copula
is, are, 's | is | copula
ist, sind, lautet, bin | ist | copula
is named, are called, are named, heißt, heißen | name | named
"""
# "is maintained by the guild", "ist in Go geschrieben": a participle, a preposition and a name.
PASSIVE = regex(
    r"(?P<verb>\w{2,}ed|\w{2,}en|built|made|run|led|kept|held|sold|taught|paid|bought|set up|backed up) "
    r"(?P<by>by|in|on|at|with|to|under|from|for|via|through|after) (?P<who>.+)"
)
PASSIVE_GERMAN = regex(
    r"(?P<by>von|vom|durch|bei|beim|in|mit|auf|unter) (?P<who>.+?) "
    r"(?P<verb>\w*ge\w{3,}(?:t|en)|be\w{3,}(?:t|en)|ver\w{3,}t|\w+iert)$"
)
# Perfects with "sein": who "ist von dort gekommen" moved, and nobody did it to them.
MOVED = regex(
    r"(?:\w*(?:gekommen|gegangen|gefahren|geflogen|gezogen|gereist|gelaufen|gerannt|gestiegen|gefallen|gesunken|gewachsen|"
    r"gestorben|geblieben|gewesen|geworden|gewandert|gesprungen|gelandet|gestartet|gerutscht|gekehrt|getreten|gewichen|"
    r"gestürzt|geplatzt|gebrochen|gewechselt|gelungen|gescheitert|geflohen|geflüchtet|gerückt|geraten|gestoßen|gestiegen)"
    r"|\w*(?:schwunden|gangen|standen)|passiert|emigriert|migriert)$",
    re.I,
)
_CONTRACTIONS = (
    (
        regex(
            r"\b([Ss]he|[Hh]e|[Ii]t|[Tt]hat|[Ww]ho|[Hh]ere|[Tt]here|[Ww]hat)['’]s (?!name|phone|birthday|number)"
        ),
        r"\1 is ",
    ),
    (regex(r"\b([Mm]y|[Oo]ur) (\w+)['’]s (?=(?:the )?\d|[A-Z]\w+ \d)"), r"\1 \2 is "),
    (regex(r"\bI(?:['’]m| am)\b"), "I are"),  # German has another "am"
    (regex(r"\b([Ww]e|[Tt]hey)['’]re\b"), r"\1 are"),
)

# ---- relatives, roles, pets ----

KIN = frozenset(
    "mother mom mum mama mummy father dad papa daddy parent parents wife husband spouse partner girlfriend boyfriend "
    "fiance fiancé fiancée son daughter child children kid baby brother sister sibling twin aunt uncle cousin niece "
    "nephew grandma grandpa grandmother grandfather gran granny granddad grandson granddaughter godmother godfather "
    "godson goddaughter mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law "
    "stepmother stepfather stepson stepdaughter friend flatmate roommate neighbour neighbor ex "
    "mutter mami mutti vater vati papi eltern frau ehefrau mann ehemann partnerin lebensgefährte lebensgefährtin "
    "freund freundin verlobte verlobter sohn tochter kind bruder schwester tante onkel cousine vetter nichte neffe "
    "oma opa großmutter großvater omi opi enkel enkelin patenkind patensohn schwager schwägerin nachbar nachbarin "
    "mitbewohner mitbewohnerin".split()
)
# Relatives of whom a person has one at a time.
UNIQUE = frozenset(
    "mother mom mum mama mummy father dad papa daddy wife husband spouse partner girlfriend boyfriend fiance fiancé "
    "fiancée mutter mami mutti vater vati papi frau ehefrau mann ehemann partnerin lebensgefährte lebensgefährtin "
    "verlobte verlobter".split()
)
PETS = frozenset(
    "dog puppy cat kitten tomcat hamster rabbit bunny horse pony parrot budgie tortoise turtle snake goldfish fish "
    "guinea-pig ferret hen goat gecko hund hündin welpe katze kater kätzchen pferd kaninchen hase papagei "
    "wellensittich schildkröte meerschweinchen fisch huhn ziege pet haustier".split()
)
_ROLES = frozenset(
    "boss chef chefin ceo cto coo cfo cio cpo vp lead head coach nurse gp vet doc contact pm assistant principal "
    "guardian tenant client vendor host guide judge mayor priest rabbi imam pastor colleague intern arzt ärztin "
    "anwalt anwältin kollege kollegin koch köchin wirt hausmeister ansprechpartner kontakt klempner kunde kundin "
    "plumber electrician therapist dentist teacher doctor manager owner landlord landlady maintainer".split()
)
_ROLE_ENDINGS = ("er", "or", "ist", "ian", "ant", "eur", "yer", "man", "woman", "holder", "mate")
_GERMAN_ROLE_ENDINGS = (
    "lehrer",
    "trainer",
    "leiter",
    "meister",
    "berater",
    "betreuer",
    "händler",
    "führer",
    "pfleger",
    "leitung",
    "erin",
    "istin",
    "ärztin",
    "arzt",
    "wältin",
    "walt",
    "leiterin",
    "orin",
    "ärztin",
)
# Words with the ending of a role that are none.
_NO_ROLES = frozenset(
    "number numbers computer server router printer order paper letter folder color colour power water dinner summer "
    "winter answer after other never matter offer error mirror motor monitor sensor floor door author's restaurant "
    "list wishlist playlist checklist plan weather cover layer header footer trailer charger tower shower nummer "
    "alter computer drucker wetter fenster zimmer wasser kalender ordner rechner fehler sommer winter messer "
    "hunger ärger keller koffer teller zucker zähler schalter fernseher wecker lautsprecher container docker "
    "cluster adapter timer center partner's river flower disaster killer monster bummer loser winner plant "
    "restaurant elephant giant merchant tent".split()
)


def is_kin(word: str) -> bool:
    """Return whether a noun names a relative or close person; compounds too: `Patentante`, `Schwiegermutter`."""
    low = word.casefold().split(" ")[-1]
    return low in KIN or (word[:1].isupper() and len(low) > 6 and low.endswith(_GERMAN_KIN))


def is_pet(word: str) -> bool:
    low = word.casefold().split(" ")[-1]
    return low in PETS


def is_role(word: str) -> bool:
    """Return whether a noun names a person's function for somebody: boss, dentist, Klassenlehrerin."""
    low = word.casefold().split(" ")[-1].strip(".")
    if low in _NO_ROLES or len(low) < 2:
        return False
    if low in _ROLES:
        return True
    if len(low) <= 4:
        return False
    # A capital is a German noun's, or a surname's: Klassenlehrerin is a role, Okafor and Müller are none.
    return low.endswith(_GERMAN_ROLE_ENDINGS if word.split(" ")[-1][:1].isupper() else _ROLE_ENDINGS)


def is_known_role(word: str) -> bool:
    """Return whether a noun certainly names a person or animal: a listed word, or a German one with a role's ending."""
    low = word.casefold().split(" ")[-1].strip(".")
    return low in _ROLES or is_kin(word) or is_pet(word) or (word[:1].isupper() and is_role(word))


def is_somebody(word: str) -> bool:
    """Return whether a noun names a person or animal by its relation to somebody."""
    return is_kin(word) or is_pet(word) or is_role(word)


_GERMAN_KIN = tuple(
    "mutter vater tante onkel schwester bruder kind sohn tochter freund freundin oma opa cousine".split()
)

# ---- sentences that state no present fact ----

SUBORDINATE = regex(
    r"(?:when|whenever|once|as soon as|after|before|while|until|because|since when|sobald|während|nachdem|bevor|als|"
    r"solange|dream\w*|nicht|not|kein|keine|bitte|please|never|niemals|always|immer|ask|frag)\b",
    re.I,
)
QUESTION = regex(r"\?(?:\s|$|[)\"'”])")
HEARSAY = regex(
    r"\b(?:said|says|say|told|tells|heard|hears|apparently|allegedly|supposedly|reportedly|rumou?rs?|rumou?red|claims?|"
    r"claimed|claiming|according to|thinks?|thought|believes?|believed|guess(?:es|ed)?|assum(?:e|es|ed|ing)|suspects?|"
    r"suspected|swears?|insists?|seems?|sounds like|looks like|"
    r"laut|angeblich|anscheinend|offenbar|wohl|soll|sollen|meint|meinte|meinen|sagt|sagte|sagen|erzählt|erzählte|"
    r"glaub\w*|denk\w*|vermut\w*|behauptet\w*|hieß es|gerücht\w*|munkelt|scheint|so heißt es)\b",
    re.I,
)
DOUBT = regex(
    r"\b(?:if|unless|maybe|perhaps|might|could|would|should|shall|probably|possibly|likely|considering|"
    r"thinking (?:of|about)|thinks? (?:of|about)|plan(?:s|ned|ning)? (?:to|on)|hopes?|hoping|hopefully|"
    r"wants?|wanted|wish(?:es|ed)?|"
    r"going to|suppose|imagine|in case|someday|pretend\w*|dream\w*|as though|as if|would-be|wannabe|unconfirmed|"
    r"tbc|as far as|afaik|iirc|to my knowledge|soweit|meines wissens|"
    r"or so (?:it|i|he|she|they|we)|not sure|unsure|unclear|for example|for instance|joke\w*|kidding|"
    r"wenn|falls|vielleicht|evtl|eventuell|könnte\w*|würde\w*|sollte\w*|möglicherweise|wahrscheinlich|hoffentlich|"
    r"überleg\w*|möchte\w*|wollen|wollte\w*|ob|als ob|geplant|planen|unsicher|unklar|zum beispiel|beispiel|"
    r"träum\w*|theoretisch|spaß|witz)\b|\b(?:may(?! \d)|will|'ll|wird(?! (?:von|vom|durch) )|werden|plant|mal sehen)\b|"
    r"\be\.g\.|\b[zZ]\. ?[bB]\.",
)
DENIAL = regex(
    r"(?<![.@/])\b(?:not|never|no longer|no|none|nobody|neither|nor|without|cannot|nicht|kein\w*|nie|niemals|weder|"
    r"ohne|niemand|statt|instead)\b|n['’]t\b",
    re.I,
)
PAST = regex(
    r"\b(?:was|were|used to|had|did|formerly|former|previously|back then|last (?:year|month|week|summer|winter)|"
    r"years ago|ex-\w+|in those days|as a (?:child|kid)|(?<!@)once|"
    r"war|waren|hatte\w*|früher\w*|damals|ehemals|ehemalig\w*|bis vor|letzte[snmr]? (?:jahr|monat|woche)|vorher|einst|"
    r"wurde|wurden|als kind)\b",
    re.I,
)
BORN = regex(r"\b(?:born|geboren)\b", re.I)  # past tense, but it still holds
# "15 March, not 14 March": the denied part does not belong to the value.
_CUT = regex(
    r"(?<=\S)(?:\s*[,;—–]\s*|\s+-\s+|\s+\()(?:and |but |und )?"
    r"(?:not|nicht|instead of|rather than|no longer|statt)\s[^;()]{1,60}\)?$"
)
_BARE_CUT = regex(r"(?<=\S)\s+(?:not|nicht|instead of|statt)\s+(?=\d|[A-ZÀ-Þ])[^.;,]{1,40}$")
ADVERBS = regex(
    r"\b(?:now|currently|presently|also|still|officially|actually|basically|nowadays|"
    r"jetzt|derzeit|aktuell|auch|momentan|inzwischen|mittlerweile|eigentlich|zurzeit|offiziell|neuerdings)\b ?"
)
NOW = regex(
    r"\b(?:now|nowadays|as of today|from now on|jetzt|nun|inzwischen|mittlerweile|neuerdings|ab sofort)\b"
)
BESIDE = regex(r"\b(?:also|too|as well|additionally|auch|außerdem|zusätzlich)\b", re.I)
# Relations of which a thing or person has one at a time: a statement that this changed ends the one before.
ONE_AT_A_TIME = frozenset(
    {
        "runs on",
        "läuft auf",
        "liegt auf",
        "lives in",
        "wohnt in",
        "works at",
        "arbeitet bei",
        "reports to",
        "berichtet an",
        "belongs to",
        "gehört",
    }
)
MODALS = frozenset(
    "has have had been wird wurde must can cannot may might shall should could would muss "
    "müssen kann können darf soll sollen".split()
)
# Words with which no entity's name and no value begins.
NO_NOUN = regex(
    r"(?:in|im|am|an|auf|bei|beim|zu|zum|zur|vom|aus|seit|für|mit|ohne|at|on|for|from|with|by|to|as|every|each|all|"
    r"both|some|any|no|none|most|jede[rsn]?|alle[rsn]?|beide|manche|keine?r?|kaum|always|never|immer|nie|often|oft) \w",
    re.I,
)
NO_VALUE = regex(
    r"(?:always|never|immer|nie|alles|alle|everything|anything|pro|per|as|als|if|when|wenn|because|weil) \w",
    re.I,
)
# Traits that last: "Joaquín is vegan".
TRAITS = frozenset(
    "vegan vegetarian pescatarian diabetic coeliac celiac kosher halal left-handed right-handed lactose-intolerant "
    "gluten-free colour-blind color-blind deaf blind dyslexic asthmatic epileptic teetotal bilingual married single "
    "divorced widowed retired vegetarisch vegetarier vegetarierin veganer veganerin diabetiker diabetikerin "
    "linkshänder linkshänderin laktoseintolerant verheiratet geschieden verwitwet pensioniert "
    "farbenblind taub".split()
)
NO_ENTITY = frozenset(
    "mine ours yours theirs "
    "i me we us you he she it they them this that these those there here who what which someone somebody everyone "
    "everybody nobody nothing something anything everything one ones both all each some many few others other rest "
    "thing things stuff guy today tomorrow yesterday tonight now then note reminder ps nb todo fyi update ok okay "
    "yes no please thanks also but and or so because if when while where why how "
    "ich wir du ihr er sie es man das dies dieser diese dieses jemand niemand alle alles beide beides nichts etwas "
    "heute morgen gestern jetzt dann hier da dort bitte danke ja nein aber und oder also weil wenn wer was wie wo "
    "selbst selber angeblich laut nicht vielleicht leider endlich gerade noch schon nur sonst "
    "only even just almost nearly nur sogar fast any such first second third next previous last same main best worst "
    "answer problem reason question issue point trick difference result idea truth news favourite favorite "
    "grund problem frage antwort ergebnis unterschied idee wahrheit erste zweite beste schlimmste "
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar "
    "märz mai juni juli oktober dezember weather call meeting".split()
)


# Words before a statement: "ok so", "by the way,", "remember that".
_OPENING = regex(
    r"^(?:(?:(?:ok(?:ay)?|so|well|oh|ah|hey|hi|hello|yes|yeah|yep|no|nope|right|and|also|actually|btw|fyi|ps|sure|"
    r"by the way|just so you know|for the record|one more thing|quick note|heads up|in case you need it|"
    r"(?:please |just )?(?:remember|note|keep in mind|don['’]t forget|bear in mind)(?: that)?|"
    r"ja|nein|doch|ach ja|ach|also|übrigens|nebenbei|und|hallo|(?:bitte )?merk(?:e)? dir|(?:bitte )?denk dran|"
    r"nur dass du(?:'s| es) weißt|zur info|dass)\b[,:!.]?\s+))+(?=\S)",
    re.I,
)


def without_opening(text: str) -> str:
    """Return a message without the words that only introduce it."""
    return _OPENING.sub("", text)


def expanded(text: str) -> str:
    """Return `she's` as `she is`; a possessive of a name stays."""
    for pattern, whole in _CONTRACTIONS:
        text = pattern.sub(whole, text)
    return text


def without_denial(text: str) -> str:
    """Cut off a trailing denial: `Rex, not Luna` becomes `Rex`; `not ready` stays."""
    return _BARE_CUT.sub("", _CUT.sub("", text))


def _verbs() -> dict[str, list[tuple[str, str]]]:
    table: dict[str, list[tuple[str, str]]] = {}
    for line in _VERBS.strip().splitlines():
        forms, predicate, kind = (part.strip() for part in line.split("|"))
        listed = forms.split(", ")
        for form in listed:
            own = _third_person(form, listed).removeprefix("is ")
            table.setdefault(form, []).append((own if predicate == "=" else predicate, kind))
    return table


def _third_person(form: str, forms: list[str]) -> str:
    """Return `live in` as `lives in`, `wohne in` as `wohnt in`: first-person statements are stored like those about
    others.
    """
    verb, space, rest = form.partition(" ")
    german = [f"{verb}t", f"{verb[:-1]}t"] if verb.endswith("e") else [f"{verb[:-2]}t"] * verb.endswith("en")
    others = (f"{one}{space}{rest}" for one in (f"{verb}s", *german))
    return next((other for other in others if other in forms), form)


VERBS = _verbs()
SECRETS = regex(
    r"(?:password|passwort|passwörter|pin|code|secret|token|login|credential|creds|key|zugang)s?$", re.I
)
FORMS = sorted(VERBS, key=len, reverse=True)
VERB = regex(
    r"(?<![\w'’-])(?:"
    + "|".join(sorted((re.escape(form) for form in VERBS if form != "'s"), key=len, reverse=True))
    + r")(?![\w'’-])"
)
