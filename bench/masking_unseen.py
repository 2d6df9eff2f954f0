"""Secrets in forms that were written before the rules were read: what is masked, and how many ordinary lines are hit.

The templates (data/credential_templates.txt, data/ordinary_templates.txt) have places for random parts, which are
filled from a seed, so that no file contains anything that looks like a real credential. A template belongs to the half
`open`, whose misses may be looked at to mend the rules, or to the half `closed`, whose misses nobody prints. Their
author had read docs/secrets.md and bench/masking.py, but no rule, and has written both halves.

Run: .venv/bin/python bench/masking_unseen.py [--misses]
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import string
import uuid
import zlib
from pathlib import Path

from nanoclaw_memory.intake import secrets

DATA = Path(__file__).parent / "data"
VALUES_A_TEMPLATE = 5
ORDINARY_A_TEMPLATE = 12
ALPHABETS = {
    "h": "0123456789abcdef",
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_letters + string.digits + "-_",
    "d": string.digits,
    "B": string.ascii_uppercase + "234567",
    "p": string.ascii_letters + string.digits + "!@#%^&*(-_=+)",
}
WORDS = "Harbour Falcon kettle Winter marble tiger Juniper copper Lantern meadow Violet anchor".split()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--misses", action="store_true", help="print misses of the open half, and false hits in it"
    )
    show = parser.parse_args().misses
    draw = random.Random(16)
    print(
        "| half | templates | values masked | ordinary lines | hit | per 1,000 |\n|---|---:|---:|---:|---:|---:|"
    )
    for half in ("open", "closed"):
        credentials = templates("credential_templates.txt", half)
        ordinary = templates("ordinary_templates.txt", half)
        missed, tried = masked_values(credentials, draw)
        lines = [filled(line, draw)[0] for line in ordinary for _ in range(ORDINARY_A_TEMPLATE)]
        hit = [line for line in lines if secrets.find(line)]
        print(
            f"| {half} | {len(credentials)} | {tried - len(missed)}/{tried} = {100 * (1 - len(missed) / tried):.1f} % "
            f"| {len(lines):,} | {len(hit)} | {1000 * len(hit) / len(lines):.2f} |"
        )
        if show and half == "open":
            print(*(f"  missed: {line!r}" for line in missed), sep="\n")
            print(*(f"  hit: {secrets.mask(line)[0]!r}" for line in hit), sep="\n")


def templates(name: str, half: str) -> list[str]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [
        line.replace("\\n", "\n")
        for line in lines
        if not line.startswith("#") and zlib.crc32(line.encode()) % 2 == (half == "closed")
    ]


def masked_values(lines: list[str], draw: random.Random) -> tuple[list[str], int]:
    """The masked lines in which eight characters of a secret, or a shorter one, can be read; how many were tried."""
    missed = []
    tried = 0
    for line in lines:
        for _ in range(VALUES_A_TEMPLATE):
            text, hidden = filled(line, draw)
            masked = secrets.mask(text)[0]
            for secret in hidden:
                tried += 1
                if any(secret[at : at + 8] in masked for at in range(max(1, len(secret) - 7))):
                    missed.append(masked)
    return missed, tried


def filled(line: str, draw: random.Random) -> tuple[str, list[str]]:
    """The line with its random parts filled in, and the secrets in it."""
    text = re.sub(
        r"\{([a-zA-Z]\d+|pw0?|uuid|basic|b64pw|jwt)\}", lambda found: random_part(found[1], draw), line
    )
    return re.sub("[⟦⟧]", "", text), re.findall("⟦(.*?)⟧", text)


def random_part(kind: str, draw: random.Random) -> str:
    if kind == "uuid":
        return str(uuid.UUID(int=draw.getrandbits(128), version=4))
    if kind == "basic":
        return base64.b64encode(f"anna:{chosen(draw)}".encode()).decode()
    if kind == "b64pw":
        return base64.b64encode(chosen(draw).encode()).decode()
    if kind == "jwt":
        parts = (json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": str(draw.randrange(10**9))}))
        head = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
        return f"{head}.{random_part('u43', draw)}"
    if kind.startswith("pw"):
        return chosen(draw, signs="" if kind == "pw0" else "!#%*+")
    return "".join(draw.choices(ALPHABETS[kind[0]], k=int(kind[1:])))


def chosen(draw: random.Random, signs: str = "!#%*+") -> str:
    """A password as people choose it: words with a number and mostly a sign, or random characters."""
    word, other = draw.sample(WORDS, 2)
    sign = draw.choice([*signs, ""])
    forms: list[str] = [
        f"{word}{draw.randrange(10, 9999)}{sign}",
        f"{word}-{other}-{draw.randrange(10, 99)}",
        f"{word}{sign}{other}{draw.randrange(1, 9)}",
        random_part("a12", draw) + sign,
    ]
    return draw.choice(forms)


if __name__ == "__main__":
    main()
