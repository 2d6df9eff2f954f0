"""Commands on the knowledge graph: search, add, relate, alias, remove, reject, history, import, export, …"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import (
    Output,
    caller_of,
    clock_of,
    fields,
    group,
    limit_option,
    noted,
)
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.rendering import inert_line, visible_line
from nanoclaw_memory.text import plural
from nanoclaw_memory.types import Fact, GraphHit, Upserted, stated_by, tier


@group("graph")
def graph() -> None:
    """Facts about entities, relations between them, and how they change."""


@graph.command("search")
@click.argument("query")
@limit_option("-k", most=100, default=6, help="Most hits, up to 100.")
@click.option("--as-of", metavar="DATE", help="What was believed on that day (or YYYY-MM).")
@click.option("--no-bump", is_flag=True, help="Leave activation and links as they are.")
def search(memory: Memory, query: str, limit: int, as_of: str | None, no_bump: bool) -> Output:
    """Ask the graph.

    \b
    ncm graph search "When is Partner's birthday?"
    ncm graph search "Where does Alice work?" --as-of 2026-03
    """
    answer = memory.graph.search(query, limit, as_of)
    note = "" if no_bump else memory.graph.reinforce(answer.hits)
    result = {
        "hits": [_hit(hit) for hit in answer.hits],
        **fields(answer, "entities", "ambiguous"),
        "took_ms": round(answer.took_ms, 2),
        "note": note,
        "degraded": answer.degraded,
    }
    notes = [f"{name} may mean several: {', '.join(answer.entities)}" for name in answer.ambiguous]
    notes = noted([*notes, note, *answer.degraded])
    return Output(result, map(_hit_line, answer.hits), "Nothing is known about that.", notes)


def _hit(hit: GraphHit) -> dict[str, Any]:
    own = ("entity", "key", "value", "category") if hit.kind == "fact" else ("subject", "predicate", "object")
    return {
        "kind": hit.kind,
        **fields(hit.item, "id", *own),
        "score": hit.score,
        "combined": round(hit.combined, 4),
        "phase": hit.phase,
        "activation": round(hit.item.activation, 4),
        **fields(hit, "tier", "linked", "context", "why", "mark", "newer", "shared", "untrusted"),
        **fields(hit.item, "source", "origin", "valid_from"),
        "valid_to": hit.item.valid_to or None,
    }


def _hit_line(hit: GraphHit) -> str:
    mark = " [linked]" if hit.linked else ""
    return f"{inert_line(hit.text)}{mark}  ({hit.score}, {hit.tier}: {inert_line(hit.why)})  {visible_line(hit.when)}"


@graph.command("query")
@click.argument("query")
@limit_option("-n", most=1000, default=100, help="Most rows, up to 1000.")
@click.option("--as-of", metavar="DATE", help="What was believed on that day (or YYYY-MM).")
def query(memory: Memory, query: str, limit: int, as_of: str | None) -> Output:
    """Ask the graph in openCypher; it only reads. Entities are nodes, facts their properties.

    \b
    ncm graph query "MATCH (p)-[:OWNS]->(x) RETURN p.name, x.name, x.port"
    ncm graph query "MATCH (a {name: 'Keystone'})-[:DEPENDS_ON*1..3]->(b) RETURN b"
    ncm graph query "MATCH ()-[r]->() RETURN type(r), count(*) ORDER BY count(*) DESC"
    ncm graph query "MATCH (a {name: 'Alice'}) RETURN a.employer" --as-of 2026-03
    """
    table = memory.graph.query(query, as_of, limit)
    notes = noted([*table.notes, *table.degraded, *(["there are more rows; see -n"] * table.truncated)])
    result = {
        **fields(table, "columns", "rows", "truncated", "notes", "degraded"),
        "took_ms": round(table.took_ms, 2),
    }
    return Output(result, map(visible_line, table.lines), "Nothing matches.", notes)


@graph.command("add", new=True)
@click.argument("entity")
@click.argument("key")
@click.argument("value")
@click.option("--category", "-c", default="", help="person, project, tool, decision, …")
@click.option("--importance", "-i", type=float, default=0.5, show_default=True, help="0 to 1.")
@click.option("--permanent", is_flag=True, help="Never cools.")
@click.option("--add", is_flag=True, help="Keep the key's other values.")
@click.option("--valid-from", metavar="DATE", default="", help="Since when it holds; default now.")
def add(memory: Memory, entity: str, key: str, value: str, **options: Any) -> Output:
    """Add a fact; the key's old value is retired and kept as history.

    \b
    ncm graph add "Partner Boyd" birthday "July 7, 1976" --category person
    ncm graph add Alice employer Acme --valid-from 2026-03-01
    ncm graph add Alice hobby chess --add
    """
    named = caller_of(click.get_current_context()).project
    done = memory.graph.upsert(entity, key, value, **options, project=named)
    kept = f" = {visible_line(done.value)}" if done.redacted else ""
    return Output(done, f"{entity}.{key}{kept} {_outcome(done)}")


@graph.command("relate", new=True)
@click.argument("subject")
@click.argument("predicate")
@click.argument("object")
@click.option("--replace", is_flag=True, help="Retire the subject's other objects of this predicate.")
@click.option("--valid-from", metavar="DATE", default="", help="Since when it holds; default now.")
def relate(
    memory: Memory, subject: str, predicate: str, object: str, replace: bool, valid_from: str
) -> Output:
    """Add a relation between two entities.

    \b
    ncm graph relate Alice owns Keystone
    """
    named = caller_of(click.get_current_context()).project
    done = memory.graph.relate(
        subject, predicate, object, replace=replace, valid_from=valid_from, project=named
    )
    return Output(done, f"{subject} → {predicate} → {visible_line(done.value)} {_outcome(done)}")


def _outcome(done: Upserted) -> str:
    parts = ["stored" if done.created else "was known"]
    if done.retired:
        parts.append(f"{plural(len(done.retired), 'old value')} retired")
    if done.redacted:
        parts.append(f"{plural(done.redacted, 'credential')} masked")
    return f"({', '.join(parts)})"


@graph.command("alias", new=True)
@click.argument("alias")
@click.argument("entity")
def alias(memory: Memory, alias: str, entity: str) -> Output:
    """Give an entity another name.

    \b
    ncm graph alias Mama Heidi
    """
    created = memory.graph.alias(alias, entity)
    result = {"id": f"{alias} → {entity}", "alias": alias, "entity": entity, "created": created}
    return Output(result, f"{alias} means {entity}{'' if created else ' (was known)'}")


@graph.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="ENTITY [KEY [VALUE]]")
@click.option("--relation", is_flag=True, help="The three words are subject, predicate, object.")
@click.option("--alias", "is_alias", is_flag=True, help="The words are an alias and, if wanted, its entity.")
@click.option("--purge", is_flag=True, help="Erase it from history too.")
def remove(memory: Memory, names: tuple[str, ...], relation: bool, is_alias: bool, purge: bool) -> Output:
    """Retire a fact, relation or alias; history keeps it unless --purge.

    \b
    ncm graph remove Keystone port
    ncm graph remove --relation Alice owns Keystone
    ncm graph remove --alias Mama
    """
    if relation:
        if len(names) != 3:
            raise InvalidValue("a relation has three words", "graph remove --relation Alice owns Keystone")
        removed: Any = memory.graph.unrelate(*names, purge=purge)
    elif is_alias:
        removed = memory.graph.unalias(names[0], "".join(names[1:2]))
    else:
        if len(names) > 3:
            raise InvalidValue("too many words", 'quote names with spaces: "Partner Boyd" birthday')
        entity, key, value = (*names, "", "")[:3]
        removed = memory.graph.remove(entity, key, value, purge)
    count = removed if isinstance(removed, int) else len(removed)
    return Output({"removed": removed}, f"{plural(count, 'row')} {'erased' if purge else 'removed'}")


@graph.command("reject")
@click.argument("entity")
@click.argument("key")
@click.argument("value")
@click.option("--reason", default="", help="Why it is wrong.")
@click.option("--undo", is_flag=True, help="It was right after all; it may come back.")
def reject(memory: Memory, entity: str, key: str, value: str, reason: str, undo: bool) -> Output:
    """Erase a wrong value, restore the one before, and never ingest it again.

    \b
    ncm graph reject Keystone port 3001 --reason "typo in the log"
    """
    if undo:
        done = memory.graph.unreject(entity, key, value)
        return Output({"undone": done}, "It may come back." if done else "It was not rejected.")
    gone = memory.graph.reject(entity, key, value, reason)
    return Output({"removed": gone, "rejected": True}, f"{plural(len(gone), 'fact')} erased; it stays away")


@graph.command("history")
@click.argument("entity")
@click.argument("key", default="")
def history(memory: Memory, entity: str, key: str) -> Output:
    """Every value that an entity's keys, or one of them, ever had.

    \b
    ncm graph history Alice employer
    """
    facts, clock = memory.graph.history(entity, key), clock_of(memory)
    rows = [{**_fact(fact), "current": not fact.valid_to} for fact in facts]
    shown = [
        f"{clock(fact.valid_from)[:10] or 'always':<10} – {clock(fact.valid_to)[:10] or 'now':<10}"
        f"  {visible_line(fact.text)}"
        f"  [{'; '.join(filter(None, (visible_line(fact.source), stated_by(fact.origin))))}]"
        for fact in facts
    ]
    return Output({"facts": rows}, shown, "Nothing is known about that.")


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        **fields(fact, "id", "entity", "key", "value", "category", "valid_from"),
        "valid_to": fact.valid_to or None,
        **fields(fact, "superseded_by", "source", "origin"),
        "activation": round(fact.activation, 4),
        "tier": tier(fact.activation),
        **fields(fact, "access_count", "importance", "permanent"),
    }


@graph.command("cool")
def cool(memory: Memory) -> Output:
    """Cool activation for every day since the last time; twice on one day changes nothing.

    \b
    ncm graph cool
    """
    changed, days = memory.graph.cool()
    text = f"{plural(changed, 'fact')} cooled for {plural(days, 'day')}" if days else "Cooled today already."
    return Output({"changed": changed, "days": days}, text)


@graph.command("list")
@limit_option("-n", most=1000, default=50, help="How many.")
@click.option("--start", type=click.IntRange(0), default=0, help="How many to leave out before them.")
def list_(memory: Memory, limit: int, start: int) -> Output:
    """The entities with the number of their facts and relations, those with the most first.

    \b
    ncm graph list
    ncm graph list -n 20 --start 20
    """
    found = memory.graph.entities(limit, start)
    shown = [
        f"{plural(count.facts, 'fact'):>10}  {plural(count.relations, 'relation'):>13}  {visible_line(count.entity)}"
        for count in found
    ]
    if len(found) == limit:
        shown.append(f"more: ncm graph list --start {start + limit}")
    return Output({"entities": found, "start": start}, shown, "No facts.")


@graph.command("top")
@click.option("--tier", "wanted", default="", help="hot, warm or cool.")
@limit_option("-n", most=1000, default=20, help="How many.")
def top(memory: Memory, wanted: str, limit: int) -> Output:
    """The facts that are used most.

    \b
    ncm graph top --tier hot
    """
    facts = memory.graph.top(wanted, limit)
    shown = [
        " ".join(
            (f"{fact.activation:6.2f} {tier(fact.activation):<4} ", visible_line(fact.text), said)
        ).rstrip()
        for fact in facts
        for said in [stated_by(fact.origin)]
    ]
    return Output({"facts": [_fact(fact) for fact in facts]}, shown, "No facts.")


@graph.command("import", new=True)
@click.argument("file", type=click.Path(path_type=Path))
def import_(memory: Memory, file: Path) -> Output:
    """Bring in facts, relations and aliases: JSONL, CSV, an MCP memory.jsonl, another facts.db, Neo4j, Graphiti.

    \b
    ncm graph import contacts.csv
    ncm graph import ~/.openclaw/memory/facts.db
    ncm graph import neo4j-all.json
    """
    done = memory.graph.import_file(file.expanduser())
    counts = [plural(done.facts, "fact"), plural(done.relations, "relation"), f"{done.aliases:,} aliases"]
    text = f"{', '.join(counts)} came in; {done.known:,} were known, {done.skipped:,} skipped"
    return Output(done, text, notes=[f"skipped: {problem}" for problem in done.problems])


@graph.command("export")
@click.option(
    "--format",
    "form",
    default="jsonl",
    show_default=True,
    help="jsonl, csv, mcp, cypher, neo4j-nodes, neo4j-relations or graphiti.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file; default standard output.")
def export(memory: Memory, form: str, output: Path | None) -> Output:
    """Write the whole graph, history included; `mcp` is the official memory server's format, `cypher` Neo4j's.

    \b
    ncm graph export > graph.jsonl
    ncm graph export --format csv -o graph.csv
    ncm graph export --format cypher -o graph.cypher
    ncm graph export --format graphiti -o episodes.jsonl
    """
    lines = list(memory.graph.export(form))
    text = "\n".join(lines)
    if output is not None:
        output.write_text(text + "\n" if lines else "", encoding="utf-8")
        return Output({"path": output, "rows": len(lines)}, f"{plural(len(lines), 'line')} in {output}")
    return Output({"format": form, "rows": len(lines), "text": text}, text, exact=True)


@graph.command("seed")
@click.option("--again", is_flag=True, help="Read logs too, and retire what only an older version read.")
def seed(memory: Memory, again: bool) -> Output:
    """Read facts out of USER.md, IDENTITY.md, MEMORY.md, TOOLS.md and pages below memory/; twice changes nothing.

    \b
    ncm graph seed
    ncm graph seed --again
    """
    files = memory.graph.seed(memory.home, again)
    shown = [
        f"{file.path}: {file.problem or f'{file.added:,} new, {file.kept:,} kept, {file.retired:,} retired'}"
        for file in files
    ]
    total = {name: sum(getattr(file, name) for file in files) for name in ("added", "kept", "retired")}
    return Output({**total, "files": files}, shown, "There are no files to read.")


@graph.command("show")
@click.argument("entity")
@click.option("--depth", type=int, default=1, show_default=True, help="How many relations far.")
@click.option("--format", "form", default="tree", show_default=True, help="tree, mermaid, dot or json.")
def show(memory: Memory, entity: str, depth: int, form: str) -> Output:
    """Draw what surrounds an entity.

    \b
    ncm graph show Keystone --depth 2
    ncm graph show Keystone --format mermaid
    """
    result = memory.graph.drawn(entity, depth, form)
    return Output(result, result["text"])
