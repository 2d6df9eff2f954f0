"""Which statements bind somebody and which requests they bear on, by the heads of `retrieval/constraints.json`.

    python bench/constraints.py [--models DIR] [--list]

`bench/data/constraints/` has the half of our sentences that nothing is learnt from: statements of constraints by
subject, look-alikes that bind nobody, and requests; `newcomer_*` is what a person wrote who did not know the code. Each
statement is read alone and beside a look-alike. `--list` prints what was missed and what was taken wrongly.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from measure import table
from nanoclaw_memory.providers.local import LocalEmbedder
from nanoclaw_memory.providers.models import embedder
from nanoclaw_memory.retrieval import constraints

DATA = Path(__file__).parent / "data" / "constraints"
MODELS = Path(__file__).parent.parent / ".venv" / "models"
SUBJECTS = {
    "f": "food",
    "a": "access, travel",
    "t": "times",
    "s": "senses",
    "p": "animals, plants",
    "m": "medicine",
}


def rows(name: str) -> list[tuple[str, str]]:
    read = (row.rpartition("\t") for row in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines())
    return [(subjects, text) for subjects, _, text in read]


def states(embed: LocalEmbedder, subject: str, text: str) -> bool:
    vectors = (embed.embed_query(clause) for clause in constraints.read_clauses(text))
    return constraints.stated_constraint(subject, vectors) >= constraints.STATED


def share(found: list[bool]) -> str:
    return f"{sum(found)}/{len(found)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    embed = LocalEmbedder(*embedder(options.models))
    stated, others, asked = rows("stated"), [text for _, text in rows("other_stated")], rows("asked")
    wishes = {text: constraints.asked_subjects(embed.embed_query(text)) for _, text in asked}
    lines = []
    for subject, name in SUBJECTS.items():
        of = [text for subjects, text in stated if subject in subjects]
        beside = [f"{others[place % len(others)].rstrip('.')}. {text}" for place, text in enumerate(of)]
        found = [states(embed, subject, text) for text in of]
        false = [states(embed, subject, text) for text in others]
        wanted = [subject in wishes[text] for subjects, text in asked if subject in subjects]
        wrongly = [subject in wishes[text] for subjects, text in asked if not subjects]
        together = share([states(embed, subject, text) for text in beside])
        lines.append((name, share(found), together, share(false), share(wanted), share(wrongly)))
        if options.list:
            missed = [text for text, right in zip(of, found, strict=True) if not right]
            taken = [text for text, wrong in zip(others, false, strict=True) if wrong]
            unheard = [text for subjects, text in asked if (subject in subjects) != (subject in wishes[text])]
            print(f"{name}\n  missed: {missed}\n  taken: {taken}\n  requests: {unheard}")
    heads = (
        "subject",
        "statements found",
        "beside others",
        "look-alikes taken",
        "requests found",
        "others taken",
    )
    table(heads, lines)
    told = [(text, states(embed, "f", text)) for _, text in rows("newcomer_stated")]
    meant = [
        (text, "f" in constraints.asked_subjects(embed.embed_query(text)))
        for _, text in rows("newcomer_asked")
    ]
    for label, read in (("statements", told), ("requests", meant)):
        missed = [text for text, right in read if not right]
        print(f"a newcomer's {label}: {share([right for _, right in read])}; missed: {missed}")


if __name__ == "__main__":
    main()
