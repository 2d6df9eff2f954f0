"""Secrets: how many of each kind are caught, how often ordinary lines are hit, and what looking costs.

Credentials are generated from a fixed seed; nothing here is or was a real one. Templates came in rounds. Those of
rounds 1 to 3 were written here; those of rounds 4 to 8 (data/secret_forms.json) are lines as others write them: forms in
the tests of scanners of secrets, and in public code and pages, with our names and values. Rounds 9 and later
(data/secret_lines.jsonl) are whole lines, written without sight of the rules. Nobody reads rounds 14 and 16, and nothing
learns from them. Each round was run once before the rules had seen it, for the figures in docs/measurements.md, and then used to mend the rules; so the figures
printed here are those after mending. Ordinary lines are those of Python, of installed packages, of npm packages (where
there are any: --npm) and of our own pages, less those that show how a credential is masked.

(The file is not called secrets.py: beside other scripts it would hide the standard library's module.)

Run: .venv/bin/python bench/masking.py [--misses]
"""

# ruff: noqa: E501
from __future__ import annotations

import argparse
import base64
import json
import random
import string
import sysconfig
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from nanoclaw_memory.intake import secrets

ALNUM = string.ascii_letters + string.digits
HERE = Path(__file__).parent
NAMES = {
    "password": ["password", "db_password", "DB_PASSWORD", "dbPassword", "userPasswd", "smtp.password", "admin-password"],
    "token": ["xToken", "acme_token", "X_TOKEN", "ACME_API_KEY", "apiKey", "client_secret", "acme-secret-key", "AccessToken"],
}  # fmt: skip
DRAW = random.Random(11)
SHOWN_AS_EXAMPLES = ("blue-Falcon-9", "swordfish", "s3cr3t@cache")  # on our own pages


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--misses", action="store_true", help="print what was missed and what was hit wrongly"
    )
    parser.add_argument("--npm", type=Path, help="a node_modules whose Markdown counts as ordinary lines")
    arguments = parser.parse_args()
    show = arguments.misses
    print("| kind | caught, templates of rounds 1 and 2 | caught, templates of round 3 |\n|---|---:|---:|")
    totals = [[0, 0], [0, 0]]
    for kind, make in MAKERS.items():
        cells = []
        for held, templates in enumerate(
            (templates_for(kind, FIRST) + templates_for(kind, SECOND), templates_for(kind, THIRD))
        ):
            caught, tried = rate(make, templates, show)
            totals[held][0] += caught
            totals[held][1] += tried
            cells.append(f"{caught}/{tried}")
        print(f"| {kind} | {' | '.join(cells)} |")
    print(f"| **all** | {' | '.join(f'{100 * caught / tried:.1f} %' for caught, tried in totals)} |\n")
    for name, lines in (
        ("rounds 1 and 2", benign(BENIGN + BENIGN_SECOND)),
        ("round 3", benign(BENIGN_THIRD)),
    ):
        wrong = [line for line in lines if secrets.find(line)]
        print(
            f"false hits, benign lines of {name}: {1000 * len(wrong) / len(lines):.2f} per 1,000 ({len(lines):,} lines)"
        )
        if show:
            print(*sorted({f"  wrong: {secrets.mask(line)[0]}  <-  {line}" for line in wrong})[:40], sep="\n")
    as_others_write(show)
    whole_lines(show)
    in_ordinary_lines(show, arguments.npm)
    costs()


def as_others_write(show: bool) -> None:
    """Forms of assignments with several names, and the rounds of lines that others wrote."""
    data = json.loads((HERE / "data" / "secret_forms.json").read_text(encoding="utf-8"))
    make = {"password": chosen, "token": unknown_token}
    named = {
        kind: [form.replace("{n}", name) for form in data["forms"] for name in names]
        for kind, names in NAMES.items()
    }
    print("\n| lines of others | caught | harmless lines about credentials that are hit |\n|---|---:|---:|")
    for title, found in {"forms of assignments": named, **data["rounds"]}.items():
        rates = [rate(make[kind], found[kind], show) for kind in make]
        caught, tried = (sum(numbers) for numbers in zip(*rates, strict=True))
        harmless = found.get("harmless", [])
        wrong = [line for line in harmless if secrets.find(line)]
        print(
            f"| {title} | {caught:,}/{tried:,} = {100 * caught / tried:.1f} % | {len(wrong)}/{len(harmless)} |"
        )
        if show:
            print(*(f"  wrong: {secrets.mask(line)[0]}" for line in wrong), sep="\n")


def whole_lines(show: bool) -> None:
    """The rounds of whole lines; the secrets are stored backwards, so that no scanner takes them for real ones."""
    lines = (HERE / "data" / "secret_lines.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for number in sorted({row["round"] for row in rows}):
        found = [row for row in rows if row["round"] == number]
        real = [row for row in found if row["secret"]]
        wrong = [row["text"] for row in found if not row["secret"] and secrets.find(row["text"])]
        missed = [masked for row in real if (masked := left_by_masking(row["text"], row["secret"][::-1]))]
        caught = len(real) - len(missed)
        print(
            f"| {number} | {caught}/{len(real)} = {100 * caught / len(real):.1f} % | {len(wrong)}/{len(found) - len(real)} |"
        )
        if show:
            print(
                *(f"  missed: {masked!r}" for masked in missed),
                *(f"  wrong: {line!r}" for line in wrong),
                sep="\n",
            )


def left_by_masking(template: str, secret: str) -> str:
    """The masked line where eight characters of the secret, or a shorter one, are still to be read; else nothing."""
    masked = secrets.mask(template.replace("{s}", secret))[0]
    left = any(secret[at : at + 8] in masked for at in range(max(1, len(secret) - 7)))
    return masked if left else ""


def in_ordinary_lines(show: bool, npm: Path | None) -> None:
    """How often lines that contain no credential are hit: Python's library, installed packages, our pages."""
    paths = sysconfig.get_paths()
    places = {
        "Python's library": [
            path for path in Path(paths["stdlib"]).rglob("*.py") if "site-packages" not in str(path)
        ],
        "installed packages": list(Path(paths["purelib"]).rglob("*.py")),
        "texts of packages": [
            path for kind in ("rst", "md", "txt") for path in Path(paths["purelib"]).rglob(f"*.{kind}")
        ],
        "npm packages' pages": list(npm.rglob("*.md")) if npm else [],
        "our pages": [*HERE.parent.glob("*.md"), *HERE.parent.glob("docs/*.md")],
    }
    print("\n| ordinary lines | lines | hit | per 1,000 |\n|---|---:|---:|---:|")
    for name, files in places.items():
        texts = (path.read_text(encoding="utf-8", errors="ignore") for path in files)
        lines = sorted(
            {line.strip() for text in texts for line in text.split("\n") if 0 < len(line.strip()) < 400}
        )
        lines = [line for line in lines if not any(shown in line for shown in SHOWN_AS_EXAMPLES)]
        if not lines:
            continue
        lines = DRAW.sample(lines, min(len(lines), 40_000))
        wrong = [line for line in lines if secrets.find(line)]
        print(f"| {name} | {len(lines):,} | {len(wrong)} | {1000 * len(wrong) / len(lines):.2f} |")
        if show:
            print(*(f"  wrong: {secrets.mask(line)[0]}" for line in wrong), sep="\n")


def letters(alphabet: str, size: int) -> str:
    return "".join(DRAW.choices(alphabet, k=size))


def hexes(size: int) -> str:
    return letters("0123456789abcdef", size)


def part(size: int) -> str:
    return base64.urlsafe_b64encode(DRAW.randbytes(size)).decode().rstrip("=")


def jwt() -> str:
    head, body = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": letters(ALNUM, 8), "exp": DRAW.randrange(10**9, 2 * 10**9)},
    )
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(x).encode()).decode().rstrip("=") for x in (head, body))
        + "."
        + part(32)
    )


def pem(kind: str, ended: bool) -> str:
    body = base64.b64encode(DRAW.randbytes(DRAW.randrange(300, 900))).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    begin, end = (f"-----{word} {kind}PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
    return "\n".join([begin, *(lines if ended else lines[: len(lines) // 2]), *([end] if ended else [])])


def chosen() -> str:
    """A password as people and generators choose it."""
    word = DRAW.choice("summer tiger falcon coffee dragon harbour winter orange violet rocket hunter".split())
    styles: list[Callable[[], str]] = [
        lambda: word + str(DRAW.randrange(2, 9999)),
        lambda: word.title() + DRAW.choice("!@#$%&*") + str(DRAW.randrange(10, 9999)),
        lambda: letters(ALNUM, DRAW.randrange(10, 24)) + "7",
        lambda: letters(ALNUM + "!@#%^*-_+", 16) + "4x",
        lambda: word + "-" + DRAW.choice(["lamp", "stone", "river"]) + "-" + str(DRAW.randrange(10, 99)),
    ]
    return DRAW.choice(styles)()


def unknown_token() -> str:
    """A token of a vendor that has no form of its own."""
    makers: list[Callable[[], str]] = [
        lambda: hexes(DRAW.choice([32, 40, 64])),
        lambda: letters(ALNUM, DRAW.choice([24, 32, 40])) + "7",
        lambda: letters(string.ascii_lowercase + string.digits, 32),
        lambda: letters(ALNUM + "_-", 42) + "3",
        lambda: letters(ALNUM + "+/", 43) + "=",
    ]
    return DRAW.choice(makers)()


MAKERS: dict[str, Callable[[], str]] = {
    "openai": lambda: "sk-" + DRAW.choice(["proj-" + part(60), letters(ALNUM, 47) + "3"]),
    "anthropic": lambda: "sk-ant-" + "api03-" + part(70),
    "azure": lambda: DRAW.choice([hexes(32), letters(ALNUM, 84)]),
    "aws-access-key-id": lambda: "AKIA" + letters(string.ascii_uppercase + "234567", 16),
    "aws-secret": lambda: letters(ALNUM + "/+", 40),
    "google": lambda: "AIza" + letters(ALNUM + "_-", 35),
    "github": lambda: DRAW.choice(["ghp_", "gho_", "ghs_"]) + letters(ALNUM, 36) if DRAW.random() < 0.7 else "github_pat_" + letters(ALNUM, 22) + "_" + letters(ALNUM, 59),
    "gitlab": lambda: "glpat-" + letters(ALNUM + "_-", 20),
    "slack": lambda: f"xoxb-{DRAW.randrange(10**11, 10**12)}-{DRAW.randrange(10**11, 10**12)}-{letters(ALNUM, 24)}",
    "slack-hook": lambda: f"https://hooks.slack.com/services/T{letters(ALNUM.upper(), 8)}/B{letters(ALNUM.upper(), 8)}/{letters(ALNUM, 24)}",
    "stripe": lambda: DRAW.choice(["sk_live_", "rk_live_", "sk_test_"]) + letters(ALNUM, 24),
    "telegram": lambda: f"{DRAW.randrange(10**8, 10**10)}:AA{letters(ALNUM + '_-', 33)}",
    "discord": lambda: f"M{letters(ALNUM, 25)}.{letters(ALNUM, 6)}.{letters(ALNUM + '_-', 38)}",
    "npm": lambda: "npm_" + letters(ALNUM, 36),
    "pypi": lambda: "pypi-" + "AgEIcHlwaS5vcmc" + part(90),
    "huggingface": lambda: "hf_" + letters(string.ascii_letters, 34),
    "sendgrid": lambda: f"SG.{letters(ALNUM + '_-', 22)}.{letters(ALNUM + '_-', 43)}",
    "twilio": lambda: "SK" + hexes(32),
    "jwt": jwt,
    "private-key": lambda: pem(DRAW.choice(["RSA ", "EC ", "", "OPENSSH "]), ended=True),
    "private-key, truncated": lambda: pem(DRAW.choice(["RSA ", "OPENSSH "]), ended=False),
    "age-key": lambda: "AGE-SECRET-KEY-" + "1" + letters("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "password": chosen,
    "url-password": chosen,
    "authorization": lambda: DRAW.choice([part(30) + "9", hexes(40)]),
    "authorization basic": lambda: base64.b64encode(f"user:{chosen()}".encode()).decode(),
}  # fmt: skip

FIRST: dict[str, list[str]] = {
    "": [
        "{s}", "Use {s} for the staging account.", "export SERVICE_KEY={s}", '{{"key": "{s}", "region": "eu"}}',
        "key: {s}", "- [decision|i=0.8] Rotated the old one, new is `{s}`.", "curl -H 'X-Key: {s}' https://api.example.org",
    ],
    "azure": ["AZURE_OPENAI_API_KEY={s}", 'azure_key = "{s}"', "api-key: {s}", '{{"apiKey": "{s}"}}'],
    "aws-secret": ["aws_secret_access_key = {s}", "AWS_SECRET_ACCESS_KEY={s}", '"SecretAccessKey": "{s}"'],
    "password": [
        "password={s}", "DB_PASSWORD={s}", 'password: "{s}"', '{{"user": "bob", "password": "{s}"}}', "passwd: {s}",
        "the password is {s}", "export PGPASSWORD='{s}'", "client_secret = \"{s}\"", "api_key: {s}", "token: {s}",
    ],
    "url-password": [
        "postgres://app:{s}@db.internal:5432/main", "DATABASE_URL=mysql://root:{s}@localhost/x",
        "mongodb+srv://svc:{s}@cluster0.example.net/db", "redis://:{s}@cache:6379/0", "amqp://bot:{s}@mq/vhost",
    ],
    "authorization": ["Authorization: Bearer {s}", "curl -H 'Authorization: Bearer {s}' https://x", '"authorization": "Bearer {s}"'],
    "authorization basic": ["Authorization: Basic {s}", "authorization: basic {s}"],
}  # fmt: skip
SECOND: dict[str, list[str]] = {
    "": [
        "Maria sent me this yesterday ({s}), please store it safely", "| prod | {s} | rotated in March |",
        "services:\n  worker:\n    environment:\n      - CREDENTIAL={s}", "const client = new Client('{s}', opts);",
        "he wrote: “{s}”, then deleted the message", "<add name=\"k\" value=\"{s}\" />", "https://api.example.org/v1?key={s}&limit=5",
        "# old\n#{s}\n", "{s}, which expires on Friday.",
    ],
    "azure": ["export AZURE_SPEECH_KEY='{s}'", "Ocp-Apim-Subscription-Key: {s}", "our Azure OpenAI key is {s}", "azure:\n  api_key: {s}"],
    "aws-secret": ["    secret_access_key: {s}", "const secretAccessKey = '{s}';", "AWS secret: {s}", "the aws secret access key is {s}"],
    "password": [
        "Wi-Fi at the office: network Kranich, password {s}", "login: anna / password: {s}", "**Password:** `{s}`",
        "spring.datasource.password={s}", "<password>{s}</password>", "set the admin password to {s} please",
        "my new password is: {s}", "| password | {s} |", "--password {s} --user bob", "DB_PASS = '{s}'",
        "MYSQL_ROOT_PASSWORD: {s}", "$env:API_TOKEN = \"{s}\"", "passwort: {s}",
    ],
    "url-password": [
        "git clone https://deploy:{s}@git.example.org/app.git", "proxy = http://anna:{s}@10.0.0.1:3128",
        '"dsn": "postgresql+asyncpg://app:{s}@127.0.0.1/app?ssl=1"', "sftp://backup:{s}@files.example.org/in",
    ],
    "authorization": ["headers = {{'Authorization': f'Bearer {s}'}}", "-H \"authorization: token {s}\"", "sent with bearer {s} and got 401"],
    "authorization basic": ['{{"Authorization": "Basic {s}"}}', "Proxy-Authorization: Basic {s}"],
}  # fmt: skip
THIRD: dict[str, list[str]] = {
    "": [
        "fwd from Jonas: here you go -> {s} <- don't share", "const KEY=`{s}`;", "[default]\nvalue = {s}\noutput = json",
        "Old: {s} / New: pending", "s={s};path=/", "   • {s}", 'tool_result: {{\\"value\\":\\"{s}\\"}}',
    ],
    "azure": ["$Env:AZURE_SEARCH_KEY=\"{s}\"", "azure openai api key: {s}", "AzureWebJobsKey: {s}", "azure_openai_key => '{s}'"],
    "aws-secret": ["aws configure set aws_secret_access_key {s}", "SECRET_ACCESS_KEY='{s}'", "AWS_SECRET_KEY: {s}"],
    "password": [
        "ftp user anna, pass: {s}", "root password = {s} (change after login)", "SMTP_PASSWORD=\"{s}\"",
        "credentials:\n  username: bob\n  password: {s}", "he told me his password was {s}", "pwd={s};Database=main",
        "'password' => '{s}',", "Password - {s}", "$password = '{s}';", "auth_token=\"{s}\"", "secret_key: '{s}'",
        "the wifi password: {s}", "requirepass {s}", '{{\\"password\\": \\"{s}\\"}}',
    ],
    "url-password": [
        "smtp://mailer:{s}@smtp.example.org:587", "SQLALCHEMY_URL = 'mysql+pymysql://u1:{s}@10.1.2.3/db'",
        "clickhouse://default:{s}@ch:9000", "see <https://anna:{s}@intra.example.org/wiki>",
    ],
    "authorization": ["Authorization:Bearer {s}", "--header 'Authorization: Bearer {s}'", "auth header was Bearer {s}."],
    "authorization basic": ["'Authorization' => 'Basic {s}'", "> Authorization: Basic {s}"],
}  # fmt: skip


def templates_for(kind: str, templates: dict[str, list[str]]) -> list[str]:
    return templates.get(kind, templates[""])


def rate(make: Callable[[], str], templates: list[str], show: bool) -> tuple[int, int]:
    """How many of 20 secrets a template leave no readable part of eight characters behind."""
    caught = tried = 0
    for template in templates:
        for _ in range(20):
            secret = make()
            masked, _count = secrets.mask(
                template.replace("{{", "{").replace("}}", "}").replace("{s}", secret)
            )
            core = secret.rsplit("/", 1)[-1] if "hooks.slack" in secret else secret
            left = any(core[at : at + 8] in masked for at in range(max(1, len(core) - 7)))
            tried += 1
            caught += not left
            if left and show:
                print(f"  missed: {masked[:160]!r}")
    return caught, tried


WORDS = """the report was moved to Thursday because Maria found an error in table four and we agreed to keep the older
version until the review is done she prefers short answers with a summary first""".split()


def prose() -> str:
    return " ".join(DRAW.choices(WORDS, k=DRAW.randrange(4, 14)))


BENIGN: list[Callable[[], str]] = [
    lambda: prose().capitalize() + ".",
    lambda: f"- [{DRAW.choice(['decision', 'fact', 'note'])}|i=0.{DRAW.randrange(1, 9)}] {prose()}",
    lambda: f"Fixed in commit {hexes(40)} ({hexes(7)}).",
    lambda: f"sha256: {hexes(64)}  dist/app-1.{DRAW.randrange(9)}.tar.gz",
    lambda: f"Request {uuid.UUID(int=DRAW.getrandbits(128))} took {DRAW.randrange(900)} ms",
    lambda: f"![logo](data:image/png;base64,{base64.b64encode(DRAW.randbytes(90)).decode()})",
    lambda: f"see /home/anna/{letters(string.ascii_lowercase, 8)}/secrets.py line {DRAW.randrange(300)}",
    lambda: DRAW.choice(["password=<your password>", "password=${DB_PASSWORD}", "password: changeme", "API_KEY=xxxxxxxxxxxx",
                         "token: ********", "password: [redacted:password]", "PASSWORD=", "secret: {{ vault_secret }}",
                         "password: see 1Password", "api_key = os.environ['API_KEY']", "OPENAI_API_KEY=sk-your-key-here"]),
    lambda: DRAW.choice(["tokens: 400", "max_tokens: 4096", "token = parser.next()", "The token is valid for 3600 seconds.",
                         "password: str", "def login(user, password=None):", "self.password = password", "secret: bool = False",
                         "The password is required.", "Tokens per second: 183", "budget: 1500 tokens", "token_count = 312"]),
    lambda: f"https://example.org/{letters(string.ascii_lowercase, 6)}?page={DRAW.randrange(99)}#{hexes(8)}",
]  # fmt: skip
BENIGN_SECOND: list[Callable[[], str]] = [
    lambda: f"{prose().capitalize()}; {prose()}!",
    lambda: f"index {hexes(7)}..{hexes(7)} 100644",
    lambda: f"| {prose()} | {hexes(12)} | {DRAW.randrange(10**6):,} |",
    lambda: f"FROM python@sha256:{hexes(64)}",
    lambda: f"integrity sha512-{base64.b64encode(DRAW.randbytes(64)).decode()}",
    lambda: f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letters(ALNUM, 43)} anna@laptop",
    lambda: f"ETag: \"{hexes(32)}\"",
    lambda: f"session s-{hexes(8)}: {prose()}",
    lambda: f"docs at http://localhost:8080/a@b/{letters(string.ascii_lowercase, 5)}",
    lambda: DRAW.choice(["Her secret is patience.", "I forgot my password again.", "We use JWT tokens and OAuth2 for login.",
                         "The API key is stored in the vault.", "Token: the smallest unit of text.", "password policy: 12 characters",
                         "The password was reset on 2026-03-04.", "secret-santa: Jonas draws Maria", "passcode is on the fridge",
                         "access token lifetime: 15m", "password_hash: bcrypt", "The token is base64-encoded.",
                         "api key: ask Jonas", "Set the password to something long.", "token: Optional[str] = None",
                         "const token = await getToken(user);", "password = input('Password: ')", "if password == confirm_password:",
                         "PASSWORD_FILE=/run/secrets/db", "type=\"password\" name=\"password\"", "secret: !vault db/prod",
                         "token=$(cat token.txt)", "the pin is on page 12", "login is at /users/login", "key: value",
                         "passwords: at least 8 characters", "primary_key: user_id", "foreign key = orders.id"]),
]  # fmt: skip


BENIGN_THIRD: list[Callable[[], str]] = [
    lambda: f"{prose()} (see {hexes(10)})",
    lambda: f"blob:{hexes(64)} {DRAW.randrange(10**5)} bytes",
    lambda: f"trace_id={hexes(32)} span_id={hexes(16)}",
    lambda: f"wget https://files.example.org/{part(20)}/{uuid.UUID(int=DRAW.getrandbits(128))}.zip",
    lambda: f"<img src='data:image/webp;base64,{base64.b64encode(DRAW.randbytes(60)).decode()}'>",
    lambda: f"mailto:anna@example.org?subject={prose().replace(' ', '%20')}",
    lambda: f"pip==25.{DRAW.randrange(9)} --hash=sha256:{hexes(64)}",
    lambda: DRAW.choice(["Reset your password at https://example.org/reset", "password reset flow v2", "The secret sauce: butter",
                         "token budget is 1500", "Tokens are counted with o200k_base", "passwordless login is planned for Q3",
                         "password manager: Bitwarden", "The password field was renamed in 1.4.2", "secret = secrets.token_hex(16)",
                         "assert token.kind == 'word'", "for token in tokens:", "token.value", "- password: string (required)",
                         "Ask Anna for the passphrase.", "the key is under the mat", "PASSWORD_MIN_LENGTH=12", "tokenizer: bert-base",
                         "SECRET_NAME=prod/db/main", "password: <%= ENV['PW'] %>", "api_key: $API_KEY", "secretName: db-credentials",
                         "pin to version 3.11", "login to staging01 first", "csrf_token: {% csrf %}", "My password is weak.",
                         "access_key: ~", "password: null", "passwords expire after 90 days", "token type: Bearer"]),
]  # fmt: skip


def benign(makers: list[Callable[[], str]]) -> list[str]:
    return [maker() for maker in makers for _ in range(500)]


def costs() -> None:
    """CPU a kilobyte on clean and on mixed text, and the ratio of 1 MB to 256 KB of hostile text."""
    clean = "\n".join(prose() for _ in range(4000))
    mixed = "\n".join(benign(BENIGN + BENIGN_SECOND))
    secrets.find(mixed)
    for name, text in (("clean prose", clean), ("benign mix of all the lines above", mixed)):
        spent = cpu(text)
        print(f"{name}: {1e6 * spent / (len(text) / 1024):.1f} µs of CPU a KB ({len(text) // 1024} KB)")
    lines = mixed.split("\n")[:2000]
    start = time.process_time()
    for line in lines:
        secrets.find(line)
    print(f"line by line: {1e6 * (time.process_time() - start) / len(lines):.1f} µs a line")
    worst = max(HOSTILE, key=lambda unit: cpu((unit * 262_144)[:262_144]))
    for unit in HOSTILE:
        small, large = cpu((unit * 262_144)[:262_144]), cpu((unit * 1_048_576)[:1_048_576])
        if unit == worst or large / small > 5.5:
            print(
                f"hostile {unit!r}: 256 KB {small:.2f} s, 1 MB {large:.2f} s, ratio {large / small:.1f} (linear is 4)"
            )


HOSTILE = [
    "a", "-eyJ", "eyJ", "eyJaaaaaaaa.", "sk-", "sk-ant-", "password", "password=", "password:", "password is ", "token=a", "://", "a://b:", "a://:c@",
    "-----BEGIN PRIVATE " + "KEY-----", "-----BEGIN PRIVATE " + "KEY-----\nAAAAAAAAAAAAAAAAAAAA\n", "xoxb-1", "AKIA", "ghp_", "bearer ", "authorization: bearer ",
    "aws secret ", "aws", "azure key", "curl -u ", "curl ", "SG.", "M" + "a" * 25 + ".", "12345678:AA", "mnemonic: abc ", "abc abc ", "password='", 'password="', "secret_access_key",
    "A_PASSWORD", " " * 50 + "PASSWORD", "[redacted:x]", "password=[redacted:x]", "password=hunter2 ", "key-0", "0123456789abcdef", "Private-Lines: 1\n", "pin to ", "login for a ",
    "key ", "api ", "it is ", "password a: ", "auth('", "auth('a',", "connect(\"", "mysql -p ", "curl -u a:", "docker login a ", "a:b@", "a/b@", "echo a|",
    "chpasswd <<<", "https://hook/", "login `a` and ", "user x: ", " -u a -p b", "密码是", "door code ", "password:\n", "user: a\npassword: b\n", "\"password\").",
]  # fmt: skip


def cpu(text: str) -> float:
    start = time.process_time()
    secrets.find(text)
    return time.process_time() - start


if __name__ == "__main__":
    main()
