"""Graph queries over 20,000 entities, 160,000 facts and 100,000 relations: CPU of each form, p50 / p95 of 200 queries.

Repeat: .venv/bin/python bench/graph_query.py [--relations 100000]

Every query has another text, so that parsing, translation, SQL and reading back are measured; the goal is a p95 of 5 ms
for queries that name an entity. The last rows read the whole graph: what a query without an anchor costs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from graph import KEYS, NOON, QUESTIONS, World, build, spread
from measure import table
from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

VERBS = ("owns", "manages", "works_at", "knows", "uses", "part_of")


def forms(world: World) -> Iterator[tuple[str, list[str]]]:
    """Queries of each form, all different."""
    some = world.dice.sample(world.entities, QUESTIONS)
    for title, query in (
        ("one hop", "MATCH (a {name: 'NAME'})-[:OWNS]->(b) RETURN b.name, b.city"),
        ("one hop, any direction", "MATCH (a {name: 'NAME'})-[r]-(b) RETURN type(r), b.name"),
        ("by alias", "MATCH (a {name: 'ALIAS'})-->(b) RETURN b"),
        (
            "two hops, filtered",
            "MATCH (a {name: 'NAME'})-->(b)-[:USES]->(c) WHERE c.port <> 'x' RETURN DISTINCT c.name",
        ),
        (
            "two hops, counted",
            "MATCH (a {name: 'NAME'})-->(b)-->(c) RETURN b.name, count(c) ORDER BY count(c) DESC",
        ),
        ("three hops", "MATCH (a)-->(b)-->(c)-->(d) WHERE a.name = 'NAME' RETURN DISTINCT d.name LIMIT 50"),
        ("up to three hops", "MATCH (a {name: 'NAME'})-[:MANAGES|OWNS*1..3]->(b) RETURN b.name"),
        ("ends", "MATCH (a)-[:MANAGES]->(b {name: 'NAME'}) WHERE NOT (a)-[:OWNS]->() RETURN a.name"),
        ("without a path", "MATCH (a {name: 'NAME'}) RETURN a"),
    ):
        aliases = [alias for alias, _ in world.dice.sample(world.aliases, QUESTIONS)]
        yield (
            title,
            [
                query.replace("NAME", name).replace("ALIAS", alias)
                for name, alias in zip(some, aliases, strict=True)
            ],
        )


def whole(world: World) -> Iterator[tuple[str, list[str]]]:
    """Queries that name no entity."""
    yield "relations by type", ["MATCH ()-[r]->() RETURN type(r), count(*) ORDER BY count(*) DESC"] * 3
    yield (
        "a value, unanchored",
        [f"MATCH (a {{city: '{value}'}}) RETURN a.name" for _, _, value in world.facts[:5]],
    )
    yield "all entities counted", ["MATCH (a) RETURN count(*)"] * 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relations", type=int, default=100_000)
    wanted = parser.parse_args().relations
    world = World(wanted * 8 // 5)
    dice, pick = world.dice, world.entities
    edges: dict[tuple[str, str, str], None] = {}
    while len(edges) < wanted:
        edges[dice.choice(pick), dice.choice(VERBS), dice.choice(pick)] = None
    world.relations = list(edges)
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory.open(Path(folder) / "home", Scope(), clock=FixedClock(NOON))
        memory.init()
        build(memory, world)
        memory.graph.query("MATCH (a {name: 'x'}) RETURN a")
        print(
            f"{len(pick):,} entities, {len(world.facts):,} facts of {len(KEYS)} keys, {len(edges):,} relations\n"
        )
        rows = []
        for title, queries in forms(world):
            found = sum(len(memory.graph.query(query, limit=1000).rows) for query in queries[:50]) / 50
            rows.append([title, spread(lambda text: memory.graph.query(text + " "), queries), f"{found:.1f}"])
        for title, queries in whole(world):
            rows.append([title, spread(memory.graph.query, queries), "–"])
        table(["query", "CPU ms, p50 / p95", "rows, mean"], rows)
        memory.close()


if __name__ == "__main__":
    main()
