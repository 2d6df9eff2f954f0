"""Teach the scorer of credentials: generated lines of many shapes and ordinary text to `secret_scorer.bin`.

    python training/credentials.py [--leave-out ROUND…] [--out FILE] [--show]

Lines with credentials come out of the patterns in `secrets/` (alternatives in round brackets, places in curly ones; `{s:…}`
is a credential of a kind) and the rounds of lines that others wrote (bench/data/secret_lines.jsonl, but those that nobody
may read). Ordinary lines are those of the training texts and lives, of Python, of installed packages and their pages, and
the patterns in `secrets/harmless.txt`. What the rules find already is not taught.
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import base64
import json
import random
import re
import string
import subprocess
import sysconfig
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from common import LIVES, TEXTS

from nanoclaw_memory.intake import secret_scorer as scorer

HERE = Path(__file__).parent
LINES = HERE.parent / "bench" / "data" / "secret_lines.jsonl"
UNREAD = (14, 16)
DRAW = random.Random(5)  # noqa: S311
Line = tuple[str, list[tuple[int, int]]]  # a text, and where its credentials stand

VOCABULARY = [
    word
    for word in (HERE.parent / "src/nanoclaw_memory/providers/judge_model/vocab.txt").read_text().splitlines()
    if re.fullmatch("[a-z]{4,10}", word)
]
GERMAN = """eichhörnchen sauerteig birke herbst lampe kartoffel nebel drachen käse schrank wolke fenster garten apfel ofen zwiebel
vogel hafen brücke mühle tanne pilz besen kessel laterne murmel socke teppich zaun dachs""".split()
OTHERS = """calabaza maracuja zaffiro patito fromage lumiere papillon tortuga naranja gatto stella cachorro praia kaas fiets
truskawka kocur skridsko blomma kelebek deniz loutre sardine girasol lupo""".split()
NAMES = """Anna Bert Maria Jonas Petra Kowalski Abernethy Scarborough Hastings Datsun Rosalind Whitby Tuttle Bramble Okafor Nguyen
Lindner Fiesta Rex Biscuit Pepper Luna Torquay Lisbon Adler Weber Moreau Ibarra Poole Ferreira Novak Beetle Polo""".split()
NUMBERS = "zero one two three four five six seven eight nine null eins zwei drei vier fünf sechs sieben acht neun double".split()
SITES = """netflix spotify github gitlab jira bank paypal amazon ebay dropbox icloud gmail outlook router fritzbox nas plex steam zoom
vpn printer payroll intranet portal wordpress mysql postgres redis server laptop tablet phone alarm camera thermostat heating gym library
school church council insurance hospital clinic payslip tax elster wiki slack discord teams notion figma adobe dhl ups landlord solar car
staging prod jenkins grafana kibana vault backup archive zip cluster mailbox mailserver forum shop webshop ftp sftp database dashboard
crm erp pos till kiosk chromecast xbox playstation nintendo ring doorbell synology pihole homeassistant mastodon bitwarden""".split()
PERSONS = "Anna Bert Maria Jonas Petra Kim Rosa Tom Eve Lena Paul Sara Ahmed Yuki Ines Omar Greta Nils Mila Ravi Zoe Hugo".split()
FUNCTIONS = """login connect authenticate signIn auth open_session unlock_vault dial attach register createUser bind checkin start_session
Connect openDatabase getConnection makeClient init_client decrypt unlock mountShare setCredentials loginAs""".split()
OBJECTS = "client conn session smtp ftp api db user page browser ssh driver config account app".split()
KEYS = """password passwd pwd pass secret token api_key apikey access_key auth_token client_secret pin passphrase db_password smtp_pass
private_key license_key webhook_secret session_key credential otp passcode encryption_key master_key wifi_password""".split()
TOOLS = "dbtool backupctl mailer deploy syncer vpnctl ftpput netcli mycli agentd winrmcp ipcam mountd curl psql scanner".split()
LEADS = (
    """hi, |ok so |also: |- |* |> |hey |for the record, |und |1. |Hallo, |TODO: |[fact|i=0.5] |hey can you note that |Hi Petra, |Liebe Kollegen, |well, |remember, |so |
Hi both, |btw |I think |Sorry, |Morning! |Subject: access - |update: |fwd: |### |// |# |<p>|yes, |no, |Guten Morgen, |salut, |hola, """.replace(
        "i=0.5] |", "i=0.5] "
    )
    .replace("[fact|i", "[fact i")
    .replace("\n", "")
    .split("|")
)
TAILS = """.|!| thanks|, thanks|, please remember| lol| (don't share)|, ok?|. Danke!| ;)|. I'll be back on Monday.|, merci|, hurry| with a capital letter|, all lowercase|
 and it fails| but the form rejects it| times out from the worker|, bitte ändern Sie es beim ersten Login|, deuxième étage à gauche| then star|, they ask for the 2nd letter| i think| on every machine|
, remind me if I forget| and restart nginx| and download the report|. Agenda follows.|. Regards, IT| - please change it|, dann Raute| y no me deja entrar| e l'utente è lo stesso|?|, right?| </p>|\";|'|`|), |
 since yesterday| until Friday|, got it?| (old)| (new)| because she keeps asking|, it does not expire|. Don't tell anyone.| #private| // fixme""".replace(
    "\n", ""
).split("|")
QUESTIONS = ["first pet", "first car", "city of birth", "favourite teacher", "mother's maiden name", "street you grew up in", "first school", "favourite film", "erstes Haustier", "Geburtsort"]  # fmt: skip


def word() -> str:
    return DRAW.choice(DRAW.choice([VOCABULARY, VOCABULARY, VOCABULARY, GERMAN, OTHERS]))


def digits(size: int) -> str:
    return "".join(DRAW.choices(string.digits, k=size))


def letters(alphabet: str, size: int) -> str:
    return "".join(DRAW.choices(alphabet, k=size))


def chosen() -> str:
    """A password as people choose them."""
    one, two, sign = word(), word(), DRAW.choice("!@#$%&*_-.+?")
    if DRAW.random() < 0.15:
        one = one.translate(str.maketrans("aeios", "43105"))
    styles = [
        lambda: one.title() + digits(DRAW.choice([1, 2, 2, 4])) + DRAW.choice(["", "", sign]),
        lambda: one + digits(DRAW.choice([1, 2, 3, 4])),
        lambda: one.title() + sign + digits(DRAW.choice([1, 2, 2, 4])),
        lambda: one.title() + sign + two.title() + DRAW.choice(["", sign + digits(1), digits(2)]),
        lambda: one + DRAW.choice("-_.") + two + DRAW.choice(["", DRAW.choice("-_.") + digits(1), digits(2)]),
        lambda: one.title() + two.title() + DRAW.choice([digits(2), sign, digits(1)]),
        lambda: one.title() + sign,
        lambda: digits(4) + letters(string.ascii_uppercase, 3),
        lambda: letters(string.ascii_letters + string.digits, 2) + digits(1) + sign + one + DRAW.choice("-_.") + two.title(),
        lambda: DRAW.choice(["let", "open", "i", "my", "go"]) + one + DRAW.choice(["!", "", "-" + two, digits(2)]),
        lambda: one[:5].upper() + "-" + digits(4),
    ]  # fmt: skip
    return DRAW.choice(styles)()


def generated() -> str:
    alnum = string.ascii_letters + string.digits
    styles = [
        lambda: letters(alnum, DRAW.randrange(8, 14)),
        lambda: letters(alnum + "!@#%^*-_+?", DRAW.randrange(9, 18)),
        lambda: letters(alnum, DRAW.choice([20, 24, 32, 40])),
        lambda: letters("0123456789abcdef", DRAW.choice([16, 32, 40])),
        lambda: letters(string.ascii_lowercase + string.digits, DRAW.choice([12, 16, 26, 40])),
        lambda: word()[:3] + "_" + letters(alnum, DRAW.choice([16, 24, 36])),
        lambda: "-".join(letters(string.ascii_lowercase + string.digits, 4) for _ in range(4)),
        lambda: letters(alnum + "_-", 43),
    ]
    return DRAW.choice(styles)()


def joined() -> str:
    return DRAW.choice("-_. ").join(word() for _ in range(DRAW.choice([2, 3, 3, 4]))).replace(" ", "")


def phrase() -> str:
    words = [word() for _ in range(DRAW.choice([2, 3, 3, 4, 5]))]
    return " ".join(map(str.title, words)) if DRAW.random() < 0.2 else " ".join(words)


def number() -> str:
    kind = DRAW.random()
    if kind < 0.65:
        return digits(DRAW.choice([4, 4, 4, 5, 6, 6, 8]))
    if kind < 0.8:
        return digits(DRAW.choice([4, 5])) + DRAW.choice("#*")
    if kind < 0.9:
        return digits(2) + letters("ABCDEF", 1) + digits(2)
    return "-".join(digits(2) for _ in range(3))


def any_of(**shares: float) -> str:
    return KINDS[DRAW.choices(list(shares), list(shares.values()))[0]]()


KINDS: dict[str, Callable[[], str]] = {
    "w": word, "W": lambda: word().title(), "c": chosen, "r": generated, "j": joined, "p": phrase, "n": number,
    "n3": lambda: digits(3), "n4": lambda: digits(4), "n6": lambda: DRAW.choice([digits(6), digits(5), digits(7), f"{digits(3)} {digits(3)}"]),
    "n8": lambda: digits(8), "g": lambda: "-".join(letters(string.ascii_uppercase + string.digits if DRAW.random() < 0.5 else "0123456789abcdef", 5) for _ in range(DRAW.choice([2, 2, 4, 5]))),
    "name": lambda: DRAW.choice([lambda: DRAW.choice(NAMES), lambda: f"{DRAW.choice(NAMES)}-{DRAW.choice(NAMES)}", lambda: f"{word()} {DRAW.choice(NAMES)}", lambda: word().title()])(),
    "word": lambda: any_of(W=0.5, w=0.4, p=0.1), "seed": lambda: " ".join(word() for _ in range(12)),
    "nx": lambda: DRAW.choice([lambda: " ".join(digits(DRAW.choice([4, 5]))), lambda: f"{digits(3)} {digits(3)}", lambda: " ".join(digits(2) for _ in range(3)), number])(),
    "b32": lambda: DRAW.choice([lambda: letters(string.ascii_uppercase + "234567", DRAW.choice([16, 32])), lambda: " ".join(letters(string.ascii_lowercase + "234567", 4) for _ in range(4))])(),
    "rk": lambda: "-".join(digits(6) for _ in range(8)),
    "nw": lambda: " ".join(DRAW.choices(NUMBERS, k=DRAW.choice([4, 4, 5, 6]))),
    "pw": lambda: any_of(c=0.6, r=0.2, j=0.15, W=0.05), "any": lambda: any_of(c=0.45, r=0.1, j=0.12, W=0.13, w=0.13, p=0.07),
}  # fmt: skip


def sized(size: int) -> str:
    return DRAW.choice("123456789") + digits(size - 1)


def identifier() -> str:
    upper = string.ascii_uppercase
    return DRAW.choice(
        [digits(8), digits(11), f"{letters(upper, 2)}{digits(8)}", f"{letters(upper, 3)}-{digits(5)}", f"{letters(upper, 2)}-{digits(4)}-{digits(4)}", f"s{digits(7)}", f"DE{digits(20)}", f"{digits(3)}-{digits(7)}-{digits(7)}", f"R{digits(2)}/{digits(4)}"]
    )  # fmt: skip


def model() -> str:
    return DRAW.choice([f"{letters(string.ascii_uppercase, 2)}{digits(3)}", f"{word().title()}-{digits(3)}", f"{word().title()} {digits(1)}", f"{letters(string.ascii_uppercase, 1)}{digits(1)}", f"{word()}{digits(1)}", f"{word()}-{digits(1)}b", f"RTX {digits(4)}", f"{word().title()}{digits(2)}"])  # fmt: skip


FIELDS = """id name title user username handle order invoice thread sku model version host hostname server machine node database region zone
ticket issue case branch image container pod cluster plate "license plate" "licence plate" "phone model" laptop phone car bike camera lens
printer router monitor flight train seat room gate locker batch lot serial "part number" "order number" "tracking number" reference
"customer id" "user id" "student id" "member number" "build number" label tag file sheet document content text note status product device
chip board firmware kernel distro package dependency font theme colour size weight address postcode city project codename team channel
account "account name" nickname gamertag domain subnet vlan port queue topic bucket table column index""".replace(
    '"', "|"
)
FIELDS_OF = [one.strip() for part in FIELDS.split("|")[1::2] for one in [part]] + [
    one for part in FIELDS.split("|")[::2] for one in part.split()
]
FIELDS_DE = "Kennzeichen Modell Gerät Bestellnummer Kundennummer Aktenzeichen Zimmer Sitzplatz Gleis Server Benutzername Rechner Auftrag Version Drucker Seriennummer Artikelnummer Vorgang Handy Auto".split()


def plain_value() -> str:
    """A value of an ordinary key that looks like no word: an id, a model, a machine, a user, a plate."""
    lower, upper = string.ascii_lowercase + string.digits, string.ascii_uppercase
    styles = [
        identifier, model, FILLERS["host"], FILLERS["user"], FILLERS["version"], FILLERS["plate"], FILLERS["sha"],
        lambda: f"{letters(upper, DRAW.choice([2, 3, 4]))}-{digits(DRAW.choice([2, 3, 4, 5]))}",
        lambda: f"{letters(upper, 2)}{digits(2)}-{letters(upper, 2)}{digits(1)}",
        lambda: f"{word()[:3]}_{letters(lower, 6)}", lambda: letters(lower, DRAW.choice([6, 8, 10])),
        lambda: f"{word()}{digits(DRAW.choice([1, 2]))}", lambda: f"{word()}-{digits(DRAW.choice([1, 2]))}",
        lambda: f"{word()}{digits(1)}x{digits(1)}q", lambda: f"{word()}-{digits(1)}.{digits(1)}", lambda: f"{letters(upper, 2)}-{digits(4)}{letters(upper, 2)}{digits(1)}",
        lambda: f"{word().title()}-{letters(upper, 1)}{digits(2)}", lambda: f"{word()}_{word()}{digits(2)}", lambda: f"{letters(upper, 1)}{digits(3)}{word()[:3]}",
        lambda: f"{word()[:2]}-{word()[:4]}-{digits(1)}", lambda: digits(DRAW.choice([4, 5, 6])), lambda: word(), lambda: f"{word()}-{word()}",
    ]  # fmt: skip
    return DRAW.choice(styles)()


FILLERS: dict[str, Callable[[], str]] = {
    "field": lambda: DRAW.choice(FIELDS_OF), "field_de": lambda: DRAW.choice(FIELDS_DE), "plain": lambda: plain_value(),
    "site": lambda: DRAW.choice(SITES) if DRAW.random() < 0.6 else DRAW.choice([DRAW.choice(SITES).title(), word(), f"{word()} {DRAW.choice(SITES)}", f"{DRAW.choice(PERSONS)}'s {DRAW.choice(SITES)}"]),
    "site_de": lambda: DRAW.choice(["Router", "Fritzbox", "Bank", "Kita-Portal", "Elster", "Server", "NAS", "Drucker", "Steuerportal", "Mailkonto", "Zip", "Laptop", "Kasse", "Kundenportal", "Krankenkasse", "Stadtwerke", *SITES]),
    "site_fr": lambda: DRAW.choice(["box", "banque", "serveur", "messagerie", "imprimante", "wifi", *SITES]),
    "site_es": lambda: DRAW.choice(["banco", "router", "server", "wifi", "mail", "portal", "gestionale", "servidor", *SITES]),
    "who": lambda: DRAW.choice(PERSONS), "surname": lambda: DRAW.choice(NAMES), "name": lambda: DRAW.choice(NAMES),
    "user": lambda: DRAW.choice([DRAW.choice(PERSONS).lower(), f"{word()[:1]}{DRAW.choice(NAMES).lower()}", "admin", "root", "svc_" + word(), word() + digits(1), f"{DRAW.choice(PERSONS).lower()}.{DRAW.choice(NAMES).lower()}"]),
    "mail": lambda: f"{DRAW.choice(PERSONS).lower()}@{word()}.example", "host": lambda: DRAW.choice([f"{word()}.example.org", f"10.0.{digits(1)}.{sized(2)}", f"{word()}-{digits(1)}", f"{word()}.internal", f"{word()}{sized(2)}"]),
    "ip": lambda: f"192.168.{digits(1)}.{sized(2)}", "word": word, "thing": word, "date": lambda: DRAW.choice([f"2026-0{sized(1)}-1{digits(1)}", f"1{digits(1)}.0{sized(1)}.2026", f"March {sized(1)}", f"{sized(1)}. Mai"]),
    "year": lambda: DRAW.choice(["1987", "2003", "2019", "2026"]), "time": lambda: DRAW.choice([f"1{digits(1)}:30", f"{sized(1)}pm", f"{sized(1)} Uhr"]), "weekday": lambda: DRAW.choice("Monday Tuesday Friday Sonntag Mittwoch".split()),
    "phone": lambda: DRAW.choice([f"+49 17{digits(1)} {digits(7)}", f"0{sized(3)} {digits(6)}", f"555-0{digits(3)}", f"+44 20 {digits(4)} {digits(4)}", f"0{sized(3)}{digits(7)}"]), "place": lambda: DRAW.choice("Bonn Oslo Leeds Porto Lyon Gdansk Graz Utrecht Cork Bergen".split()), "street": lambda: f"{word().title()}{DRAW.choice(['straße', ' Road', 'weg', ' Lane'])}",
    "id": identifier, "model": model, "plate": lambda: f"{letters(string.ascii_uppercase, 2)}-{letters(string.ascii_uppercase, 2)} {digits(3)}", "car": lambda: DRAW.choice(["the Golf", "my Polo", "the van", "a Fiesta"]),
    "network": lambda: DRAW.choice([f"{word().title()}", f"{word()}-guest", f"{word().title()}_{digits(2)}", "FRITZ!Box 7590", f"{word()} {word()}"]), "question": lambda: DRAW.choice(QUESTIONS), "card": lambda: f"4{digits(3)} {digits(4)} {digits(4)} {digits(4)}",
    "func": lambda: DRAW.choice(FUNCTIONS), "obj": lambda: DRAW.choice(OBJECTS), "key": lambda: DRAW.choice(KEYS), "KEY": lambda: f"{word().upper()}_{DRAW.choice(KEYS).upper()}", "Key": lambda: "".join(map(str.title, DRAW.choice(KEYS).split("_"))), "tool": lambda: DRAW.choice(TOOLS), "proto": lambda: DRAW.choice("postgres mysql redis amqp ftp smtp mongodb https sftp".split()),
    "sha": lambda: letters("0123456789abcdef", DRAW.choice([7, 8, 12, 40])), "sha64": lambda: letters("0123456789abcdef", 64), "uuid": lambda: str(uuid.UUID(int=DRAW.getrandbits(128))), "b64": lambda: base64.b64encode(DRAW.randbytes(48)).decode(), "version": lambda: DRAW.choice([f"{sized(1)}.{sized(1)}.{digits(1)}", f"v{sized(1)}.{sized(1)}", f"3.1{digits(1)}", f"{sized(1)}.0rc{sized(1)}"]),
    **{f"n{size}": (lambda size=size: sized(size)) for size in range(1, 7)},
}  # fmt: skip


def filled(pattern: str) -> Line:
    """A pattern with its alternatives chosen and its places filled, and where the credentials are."""
    while found := re.search(r"\(([^()]*)\)", pattern):
        if "|" not in found[1]:
            pattern = f"{pattern[: found.start()]}\x01{found[1]}\x02{pattern[found.end() :]}"
            continue
        pattern = pattern[: found.start()] + DRAW.choice(found[1].split("|")) + pattern[found.end() :]
    pattern = re.sub(
        r" {2,}", " ", pattern.replace("\x01", "(").replace("\x02", ")").replace("\\n", "\n")
    ).strip()
    text, spans, at = "", [], 0
    for slot in re.finditer(r"\{(s:)?(\w+)\}", pattern):
        text += pattern[at : slot.start()]
        value = KINDS[slot[2]]() if slot[1] else FILLERS[slot[2]]()
        if slot[1]:
            spans.append((len(text), len(text) + len(value)))
        text += value
        at = slot.end()
    return text + pattern[at:], spans


def varied(line: Line) -> Line:
    """The same line as others type it: in small letters, with a capital, after a greeting, with more behind it."""
    text, spans = line
    if DRAW.random() < 0.15 and not spans:
        text = text.lower()
    if DRAW.random() < 0.15:
        text = text[:1].upper() + text[1:] if not spans or spans[0][0] > 0 else text
    lead = DRAW.choice(LEADS) if DRAW.random() < 0.3 else ""
    tail = DRAW.choice(TAILS) if DRAW.random() < 0.4 and "\n" not in text and "{" not in text else ""  # fmt: skip
    below = varied((filled(DRAW.choice(HARMLESS))[0], []))[0] if DRAW.random() < 0.15 else ""
    tail += "\n" + below if below else ""
    if DRAW.random() < 0.05:
        lead = varied((filled(DRAW.choice(HARMLESS))[0], []))[0] + "\n"
    return lead + text + tail, [(start + len(lead), end + len(lead)) for start, end in spans]


def patterns(name: str) -> list[str]:
    lines = (HERE / "secrets" / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("# ")]


HARMLESS = patterns("harmless.txt")


def of_others(left_out: list[int]) -> Iterator[Line]:
    for row in map(json.loads, LINES.read_text(encoding="utf-8").splitlines()):
        if row["round"] in (*UNREAD, *left_out):
            continue
        value, at = row["secret"][::-1], row["text"].find("{s}")
        if not value:
            yield row["text"], []
        elif at >= 0:
            yield row["text"].replace("{s}", value, 1), [(at, at + len(value))]


def talk() -> Iterator[str]:
    """Lines of notes and talk that contain no credential."""
    for path in sorted(TEXTS.glob("*/*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            for value in row.values():
                yield from value.split("\n") if isinstance(value, str) else ()
    for life in LIVES:
        told = json.loads(life.read_text(encoding="utf-8"))
        yield from (line for given in told["logs"].values() for line in given)
        yield from (line for page in told["files"].values() for line in page.splitlines())
        yield from (one[who] for one in told["exchanges"] for who in ("user", "agent") if who in one)


def ordinary() -> Iterator[str]:
    """Lines of code, pages and histories that contain none."""
    paths = sysconfig.get_paths()
    history = subprocess.run(["git", "log", "--oneline", "--stat", "-300"], cwd=HERE, capture_output=True, text=True)  # fmt: skip
    yield from history.stdout.splitlines()
    code = [path for path in Path(paths["stdlib"]).rglob("*.py") if "site-packages" not in str(path)]
    pages = [path for kind in ("rst", "md", "txt", "json", "toml", "cfg") for path in Path(paths["purelib"]).rglob(f"*.{kind}")]  # fmt: skip
    pages += HERE.parent.glob("docs/*.md")
    for group in (code, list(Path(paths["purelib"]).rglob("*.py")), pages):
        # every other file: the rest is for measuring
        texts = [
            path.read_text(encoding="utf-8", errors="ignore") for path in sorted(group) if hash_of(path) % 2
        ]
        lines = [[line for line in text.split("\n") if len(line) < 400] for text in texts]
        several = {"\n".join(found[at : at + 3]).strip() for found in lines for at in range(0, len(found), 3)}
        for made in (sorted({line.strip() for found in lines for line in found}), sorted(several)):
            yield from DRAW.sample(made, min(30_000, len(made)))


def hash_of(path: Path) -> int:
    return scorer.place(path.name)


Example = tuple[np.ndarray, float]


def examples(line: Line, every_word: bool) -> Iterator[Example]:
    """The words of a line that are looked at, with their features and whether they are (part of) a credential."""
    text, spans = line
    words = scorer.words(text)
    starts = [match.start() for match in scorer._WORD.finditer(text)]
    inside = [any(first <= start < last for first, last in spans) for start in starts]
    looked_at = set(scorer.candidates(words))
    found: list[int] = []
    for at, word in enumerate(words):
        short = word.is_short and at - 1 not in found and not inside[at]
        if word.kind not in scorer.UNFIT and not short and (inside[at] or every_word or at in looked_at):
            yield places(words, at, found), float(inside[at])
        if inside[at]:
            found.append(at)


def places(words: list[scorer.ScoredWord], at: int, found: list[int]) -> np.ndarray:
    before, after, position = scorer.context(words, at, found)
    kind = words[at].kind
    given = scorer.own_features(words[at].text)
    given += [scorer.place(name) for one in position for name in (one, kind + one)]
    for side, others in (("w", before), ("v", after)):
        for other in others:
            given += scorer.near_features(side, other, kind)
    return np.array(given, dtype=np.int32)


def cues(positive: list[Line], *ordinary: list[str]) -> np.ndarray:
    """Words and parts of words that are far more frequent in lines with credentials than in any ordinary ones."""
    here = Counter[int]()
    for text, spans in positive:
        here.update(cue_places("".join(" " if any(a <= i < b for a, b in spans) else char for i, char in enumerate(text))))  # fmt: skip
    there = [Counter(at for text in texts for at in cue_places(text)) for texts in ordinary]
    bits = np.zeros(scorer.CUES, dtype=bool)
    for place, count in here.items():
        rarer = (3 * (found[place] + 2) / len(texts) for found, texts in zip(there, ordinary, strict=True))
        bits[place] = count / len(positive) > max(rarer)
    return bits


def cue_places(text: str) -> set[int]:
    return {
        at for word in scorer.words(text) if word.kind for at in scorer.cue_places(word.text.lower()[:24])
    }


def learn(given: list[Example], rounds: int, shrink: float) -> tuple[np.ndarray, float]:
    """Weights and shift by Adagrad on the logistic loss, in batches."""
    weights, sums, shift = np.zeros(scorer.SIZE), np.full(scorer.SIZE, 1e-2), -2.0
    order = np.arange(len(given))
    wanted = np.array([label for _, label in given])
    draw = np.random.default_rng(3)
    for turn in range(rounds):
        draw.shuffle(order)
        loss = 0.0
        for at in range(0, len(order), 256):
            batch = order[at : at + 256]
            rows = [given[i][0] for i in batch]
            flat = np.concatenate(rows)
            owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            logits = np.bincount(owner, weights[flat], len(rows)) + shift
            chance = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
            error = chance - wanted[batch]
            loss -= np.log(np.where(wanted[batch] > 0, chance, 1 - chance) + 1e-9).sum()
            step = np.bincount(flat, error[owner], scorer.SIZE)
            touched = np.unique(flat)
            step = step[touched] + shrink * len(rows) * weights[touched]
            sums[touched] += step * step
            weights[touched] -= 0.15 * step / np.sqrt(sums[touched])
            shift -= 0.02 * error.mean()
        print(f"round {turn}: loss {loss / len(order):.4f}", flush=True)
    return weights, shift


def write(path: Path, weights: np.ndarray, shift: float, bits: np.ndarray) -> None:
    scale = float(np.quantile(np.abs(weights[weights != 0]), 0.9995) / 127)
    coded = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    packed = np.packbits(bits, bitorder="little").tobytes()
    path.write_bytes(scorer.HEADER.pack(scale, shift) + coded.tobytes() + packed)
    for cached in (scorer._model, scorer._word, scorer._sum_near, scorer._sum_position, scorer._sum_own):
        cached.cache_clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--leave-out", type=int, nargs="*", default=[], help="rounds of lines to measure by")
    parser.add_argument("--out", type=Path, default=scorer.FILE)
    parser.add_argument("--each", type=int, default=50, help="lines of each pattern")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--shrink", type=float, default=2e-4)
    parser.add_argument("--shift", type=float, default=0.0, help="added to the learnt shift: fewer are found")
    options = parser.parse_args()
    told = [varied(filled(one)) for name in ("told.txt", "told_other.txt") for one in patterns(name) for _ in range(options.each)]  # fmt: skip
    harmless = [varied(filled(one)) for one in patterns("harmless.txt") for _ in range(3 * options.each)]
    others = list(of_others(options.leave_out))
    spoken = sorted({line.strip() for line in talk() if 4 < len(line.strip()) <= 600})
    plain = sorted({line.strip() for line in ordinary() if 4 < len(line.strip()) <= 600})
    print(
        f"{len(told)} with credentials, {len(harmless)} harmless, {len(others)} of others, {len(plain)} ordinary, {len(spoken)} of notes and talk"
    )
    bits = cues(told + [one for one in others if one[1]], plain, spoken)
    print(f"{bits.sum()} cues")
    write(options.out, np.ones(scorer.SIZE) * 1e-3, -2.0, bits)
    scorer.FILE = options.out
    given = [one for line in told + harmless for one in examples(line, True)]
    given += [one for line in others for one in examples(line, True) for _ in range(10)]
    print(len(given), "words of patterns and others")
    given += [one for text in plain + spoken for one in examples((text, []), False)]
    given += [one for text in spoken for one in examples((text, []), False) for _ in range(2)]
    print(len(given), "words in all", flush=True)
    weights, shift = learn(given, options.rounds, options.shrink)
    write(options.out, weights, shift + options.shift, bits)


if __name__ == "__main__":
    main()
