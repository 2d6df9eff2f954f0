"""The graph at 3k, 100k and 1M facts: CPU of each phase, cold start, disk; against the documents' SQL.

Repeat: .venv/bin/python bench/graph.py [--sizes 3000,100000,1000000] [--no-histories]

Relations and aliases come in the proportions 1,009 and 275 to 3,108 facts. The naive side is the plain schema and
queries on the standard library's sqlite3: NOCASE look-ups, `key LIKE '%…%'`, every alias tried by word boundary.
Times are CPU (process_time) in one run, p50 / p95 of 200 different questions.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.store.facts import digest
from nanoclaw_memory.store.names import fold
from nanoclaw_memory.types import Scope

NOON = datetime(2026, 2, 23, 12, tzinfo=UTC)
KEYS = [
    "birthday",
    "phone",
    "email",
    "employer",
    "role",
    "city",
    "port",
    "stack",
    "status",
    "deadline",
    "owner",
    "car",
]
FIRST = "Ada Ben Cleo Dan Eva Finn Gus Hana Ivo Jana Kai Lea Max Nora Olaf Pia Quinn Rosa Sam Tess Uma Vera".split()
SYLLABLES = (
    "ba be bo da de do fa fe ka ke ko la le lo ma me mo na ne no ra re ro sa se so ta te to va ve vo".split()
)
QUESTIONS = 200


def names(count: int, dice: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        surname = "".join(dice.choice(SYLLABLES) for _ in range(dice.randint(3, 5))).capitalize()
        found[f"{dice.choice(FIRST)} {surname}"] = None
    return list(found)


class World:
    """Facts, relations and aliases of one size, the same for both sides."""

    def __init__(self, facts: int) -> None:
        dice = random.Random(facts)
        self.entities = names(max(facts // 8, 10), dice)
        words = ["".join(dice.choice(SYLLABLES) for _ in range(3)) for _ in range(5000)]
        self.facts = [
            (
                self.entities[n % len(self.entities)],
                KEYS[(n // len(self.entities)) % len(KEYS)],
                " ".join(dice.choices(words, k=6)),
            )
            for n in range(facts)
        ]
        pick = self.entities
        verbs = ["owns", "manages", "works_at", "knows", "uses", "part_of"]
        self.relations = list(
            {
                (dice.choice(pick), dice.choice(verbs), dice.choice(pick)): None
                for _ in range(facts * 1009 // 3108)
            }
        )
        nicks = dice.sample(range(10**7), facts * 275 // 3108)
        self.aliases = [(f"nick{number}", dice.choice(pick)) for number in nicks]
        self.words = words
        self.dice = dice

    def questions(self) -> dict[str, list[str]]:
        dice, some = self.dice, self.dice.choices(self.entities, k=QUESTIONS)
        nick = self.dice.choices(self.aliases, k=QUESTIONS)
        return {
            "1 entity + intent": [f"What is the {dice.choice(KEYS[:8])} of {name}?" for name in some],
            "1 by alias": [f"when is {alias}'s birthday?" for alias, _ in nick],
            "2 entity": [f"Tell me about {name}" for name in some],
            "3 keywords": [
                f"something with {' and '.join(dice.choices(self.words, k=2))} in it" for _ in some
            ],
            "4 nothing known": [f"zyxq{n} wvut{n}" for n in range(QUESTIONS)],
            "typo in a name": [f"What is the phone of {_misspelt(name, dice)}?" for name in some],
        }


def _misspelt(name: str, dice: random.Random) -> str:
    place = dice.randint(len(name) // 2, len(name) - 2)
    return name[:place] + name[place + 1] + name[place] + name[place + 2 :]


# ---- ours ----


def build(memory: Memory, world: World) -> None:
    """Fill the tables in bulk; the triggers index the texts."""
    db = memory.group.database("facts")
    known = {fold(name): name for name in world.entities}
    known |= {fold(alias): alias for alias, _ in world.aliases}
    moment = "2026-02-01T00:00:00.000Z"
    with db.transaction():
        db.execute_many(
            "INSERT INTO names VALUES (:name, :label, :mirror) ON CONFLICT DO NOTHING",
            ({"name": name, "label": label, "mirror": name[::-1]} for name, label in known.items()),
        )
        db.execute_many(
            "INSERT INTO facts (entity, key, value, created_at, valid_from, name, slot, digest)"
            " VALUES (:entity, :key, :value, :moment, :moment, :name, :key, :digest) ON CONFLICT DO NOTHING",
            (
                {"entity": e, "key": k, "value": v, "moment": moment, "name": fold(e), "digest": digest(v)}
                for e, k, v in world.facts
            ),
        )
        db.execute_many(
            "INSERT INTO relations (subject, predicate, object, created_at, valid_from, subject_name, slot,"
            " object_name) VALUES (:s, :p, :o, :moment, :moment, :sn, :slot, :on) ON CONFLICT DO NOTHING",
            (
                {
                    "s": s,
                    "p": p,
                    "o": o,
                    "moment": moment,
                    "sn": fold(s),
                    "slot": p.replace("_", " "),
                    "on": fold(o),
                }
                for s, p, o in world.relations
            ),
        )
        db.execute_many(
            "INSERT INTO aliases (alias, entity, name, target) VALUES (:a, :e, :n, :t) ON CONFLICT DO NOTHING",
            ({"a": a, "e": e, "n": fold(a), "t": fold(e)} for a, e in world.aliases),
        )


# ---- plain SQL on the standard library ----

NAIVE = """
CREATE TABLE facts (id INTEGER PRIMARY KEY AUTOINCREMENT, entity TEXT NOT NULL,
  key TEXT NOT NULL, value TEXT NOT NULL, category TEXT NOT NULL, activation REAL DEFAULT 1.0);
CREATE INDEX idx_facts_entity ON facts(entity);
CREATE INDEX idx_facts_entity_key ON facts(entity, key);
CREATE VIRTUAL TABLE facts_fts USING fts5(entity, key, value, content=facts, content_rowid=id);
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
  INSERT INTO facts_fts(rowid, entity, key, value) VALUES (new.id, new.entity, new.key, new.value); END;
CREATE TABLE relations (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT, predicate TEXT, object TEXT);
CREATE INDEX idx_relations_subject ON relations(subject);
CREATE VIRTUAL TABLE relations_fts USING fts5(subject, predicate, object, content=relations, content_rowid=id);
CREATE TABLE aliases (alias TEXT NOT NULL COLLATE NOCASE, entity TEXT NOT NULL COLLATE NOCASE,
  PRIMARY KEY (alias, entity));
"""
STOP = set("what is the of when tell me about something with and in it".split())


class Naive:
    """Four phases as the document writes them."""

    def __init__(self, path: Path, world: World) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(NAIVE)
        self.db.executemany(
            "INSERT INTO facts (entity, key, value, category) VALUES (?, ?, ?, 'fact')", world.facts
        )
        self.db.executemany(
            "INSERT INTO relations (subject, predicate, object) VALUES (?, ?, ?)", world.relations
        )
        self.db.execute("INSERT INTO relations_fts(relations_fts) VALUES ('rebuild')")
        self.db.executemany("INSERT INTO aliases VALUES (?, ?)", world.aliases)
        self.db.commit()

    def search(self, query: str) -> list[Any]:
        names = re.findall(r"[A-Z]\w+(?: [A-Z]\w+){0,2}", query)
        for alias, entity in self.db.execute("SELECT alias, entity FROM aliases"):
            if alias.lower() in query.lower() and re.search(rf"\b{re.escape(alias)}\b", query, re.I):
                names.append(entity)
        intent = next((key for key in KEYS if key in query), "")
        found: list[Any] = []
        for name in names:
            found += (
                self.db.execute(
                    "SELECT * FROM facts WHERE entity = ? COLLATE NOCASE AND key LIKE ?",
                    (name, f"%{intent}%"),
                ).fetchall()
                if intent
                else []
            )
        if not found:
            for name in names:
                found += self.db.execute(
                    "SELECT * FROM facts WHERE entity = ? COLLATE NOCASE", (name,)
                ).fetchall()
                found += self.db.execute(
                    "SELECT * FROM relations WHERE subject = ? COLLATE NOCASE", (name,)
                ).fetchall()
        words = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP]
        terms = " OR ".join(f'"{word}"' for word in words)
        if not found and terms:
            sql = "SELECT rowid FROM facts_fts WHERE facts_fts MATCH ? ORDER BY rank LIMIT 6"
            found += self.db.execute(sql, (terms,)).fetchall()
        if len(found) < 6 and terms:
            sql = "SELECT rowid FROM relations_fts WHERE relations_fts MATCH ? ORDER BY rank LIMIT 6"
            found += self.db.execute(sql, (terms,)).fetchall()
        return found


# ---- measuring ----


def spread(search: Callable[[str], object], questions: list[str]) -> str:
    times = []
    for question in questions:
        start = time.process_time()
        search(question)
        times.append((time.process_time() - start) * 1000)
    times.sort()
    return f"{statistics.median(times):.2f} / {times[int(len(times) * 0.95)]:.2f}"


COLD = """
import sys, time
start = time.process_time()
from nanoclaw_memory.memory import Memory
memory = Memory.open(sys.argv[1])
loaded = time.process_time()
answer = memory.graph.search(sys.argv[2])
print((loaded - start) * 1000, (time.process_time() - loaded) * 1000, len(answer.hits))
"""


def cold(home: Path, question: str) -> str:
    """CPU of the first question of a new process, its imports included; median of five."""
    runs = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", COLD, str(home), question], capture_output=True, text=True, check=True
        )
        runs.append(float(done.stdout.split()[1]))
    return f"{statistics.median(runs):.1f}"


def size_of(folder: Path, name: str) -> str:
    return f"{sum(path.stat().st_size for path in folder.glob(name + '*')) / 1e6:,.0f} MB"


def automaton(world: World) -> str:
    """What the other way would cost: one Aho-Corasick automaton over all names, built in every process."""
    import ahocorasick

    start = time.process_time()
    machine = ahocorasick.Automaton()
    for name in [*world.entities, *(alias for alias, _ in world.aliases)]:
        machine.add_word(name.casefold(), name)
    machine.make_automaton()
    return f"{(time.process_time() - start) * 1000:,.0f}"


def measure(facts: int) -> Iterator[list[object]]:
    world = World(facts)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        memory = Memory.open(root / "home", Scope(), clock=FixedClock(NOON))
        memory.init()
        start = time.process_time()
        build(memory, world)
        built = time.process_time() - start
        start = time.process_time()
        naive = Naive(root / "naive.db", world)
        naive_built = time.process_time() - start
        memory.graph.search("warm up")
        for phase, questions in world.questions().items():
            ours = spread(memory.graph.search, questions)
            theirs = spread(naive.search, questions[: QUESTIONS if facts <= 100_000 else 20])
            yield [f"{facts:,}", phase, ours, theirs]
        hits = memory.graph.search(f"Tell me about {world.entities[0]}").hits
        yield [f"{facts:,}", "reinforce", spread(lambda _: memory.graph.reinforce(hits), ["x"] * 50), "–"]
        start = time.process_time()
        memory.graph.cool()
        yield [f"{facts:,}", "cool all", f"{(time.process_time() - start) * 1000:,.0f}", "–"]
        yield [
            f"{facts:,}",
            "first question, new process",
            cold(root / "home", world.questions()["1 entity + intent"][0]),
            "–",
        ]
        yield [f"{facts:,}", "automaton over all names instead", automaton(world), "–"]
        yield [f"{facts:,}", "build, s", f"{built:.1f}", f"{naive_built:.1f}"]
        memory.group.database("facts").query("PRAGMA wal_checkpoint(TRUNCATE)")
        yield [f"{facts:,}", "disk", size_of(root / "home" / "data", "facts.db"), size_of(root, "naive.db")]
        memory.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield [f"{facts:,}", "peak memory of this process (holds the test data too)", f"{peak:,.0f} MB", "–"]


def histories(count: int = 200) -> list[list[object]]:
    """Facts that change two to six times: is the first answer the current value, is any answer a past one?"""
    dice = random.Random(7)
    clock = FixedClock(NOON)
    right = stale = past = 0
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "home", clock=clock) as memory:
        memory.init()
        told: list[tuple[str, str, list[str], list[str]]] = []
        for name in names(count, dice):
            key = dice.choice(["employer", "city", "phone", "role", "car"])
            values = [f"{key} value {n}{dice.choice(SYLLABLES)}" for n in range(dice.randint(2, 6))]
            days = []
            for value in values:
                clock.moment += timedelta(hours=dice.randint(1, 60))
                memory.graph.upsert(name, key, value)
                days.append(clock.moment.isoformat())
            told.append((name, key, values, days))
        for name, key, values, days in told:
            answer = memory.graph.search(f"What is {name}'s {key}?")
            shown = [
                getattr(hit.item, "value", "")
                for hit in answer.hits
                if getattr(hit.item, "entity", "") == name
            ]
            right += bool(shown) and shown[0] == values[-1]
            stale += any(value in values[:-1] for value in shown)
            before = memory.graph.search(f"What is {name}'s {key}?", as_of=days[0]).hits
            past += bool(before) and getattr(before[0].item, "value", "") == values[0]
    return [
        ["first answer is the current value", f"{100 * right / count:.1f} %"],
        ["any past value returned as current", f"{100 * stale / count:.1f} %"],
        ["as of the first day, the first value", f"{100 * past / count:.1f} %"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="3000,100000,1000000")
    parser.add_argument("--no-histories", action="store_true")
    given = parser.parse_args()
    rows = [row for size in given.sizes.split(",") for row in measure(int(size))]
    table(["facts", "what", "ours, CPU ms p50 / p95", "plain SQL"], rows)
    if not given.no_histories:
        print("\n200 facts that changed 2 to 6 times\n")
        table(["question", "share"], histories())


if __name__ == "__main__":
    main()
