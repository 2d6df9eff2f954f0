"""Commands on the knowledge graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nanoclaw_memory.errors import InvalidValue
from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller
from nanoclaw_memory.text import one_line, plural
from nanoclaw_memory.types import Fact, GraphHit, Upserted, tier


@group("graph")
def graph() -> None:
    """Facts about entities, relations between them, and how they change."""


@graph.command("search")
@click.argument("query")
@click.option(
    "-k", "top_k", type=click.IntRange(1, 100), default=6, show_default=True, help="Most hits, up to 100."
)
@click.option("--as-of", metavar="DATE", help="What was believed on that day (or YYYY-MM).")
@click.option("--no-bump", is_flag=True, help="Leave activation and links as they are.")
@pass_caller
def search(caller: Caller, query: str, top_k: int, as_of: str | None, no_bump: bool) -> None:
    """Ask the graph.

    \b
    ncm graph search "When is Partner's birthday?"
    ncm graph search "Where does Alice work?" --as-of 2026-03
    """
    with caller.memory() as memory:
        answer = memory.graph.search(query, top_k, as_of)
        note = "" if no_bump else memory.graph.reinforce(answer.hits)
    result = {
        "hits": [_hit(hit) for hit in answer.hits],
        "entities": answer.entities,
        "ambiguous": answer.ambiguous,
        "took_ms": round(answer.took_ms, 2),
        "note": note,
        "degraded": answer.degraded,
    }
    caller.show(result, "\n".join(map(_line, answer.hits)) or "Nothing is known about that.")
    if not caller.json:
        for name in answer.ambiguous:
            click.echo(f"note: {name} may mean several: {', '.join(answer.entities)}", err=True)
        for said in (note, *answer.degraded):
            if said:
                click.echo(f"note: {said}", err=True)


def _hit(hit: GraphHit) -> dict[str, Any]:
    item = hit.item
    own = (
        {"entity": item.entity, "key": item.key, "value": item.value, "category": item.category}
        if isinstance(item, Fact)
        else {"subject": item.subject, "predicate": item.predicate, "object": item.object}
    )
    return {
        "kind": hit.kind,
        "id": item.id,
        **own,
        "score": hit.score,
        "combined": round(hit.combined, 4),
        "phase": hit.phase,
        "activation": round(item.activation, 4),
        "tier": hit.tier,
        "linked": hit.linked,
        "context": hit.context,
        "why": hit.why,
        "source": item.source,
        "valid_from": item.valid_from,
        "valid_to": item.valid_to or None,
    }


def _line(hit: GraphHit) -> str:
    mark = " [linked]" if hit.linked else ""
    return f"{one_line(hit.text)}{mark}  ({hit.score}, {hit.tier}: {hit.why})"


@graph.command("add")
@click.argument("entity")
@click.argument("key")
@click.argument("value")
@click.option("--category", "-c", default="", help="person, project, tool, decision, …")
@click.option("--importance", "-i", type=float, default=0.5, show_default=True, help="0 to 1.")
@click.option("--permanent", is_flag=True, help="Never cools.")
@click.option("--add", "several", is_flag=True, help="Keep the key's other values.")
@click.option("--valid-from", metavar="DATE", default="", help="Since when it holds; default now.")
@pass_caller
def add(
    caller: Caller,
    entity: str,
    key: str,
    value: str,
    category: str,
    importance: float,
    permanent: bool,
    several: bool,
    valid_from: str,
) -> None:
    """Say a fact; the key's old value is retired and kept as history.

    \b
    ncm graph add "Partner Boyd" birthday "July 7, 1976" --category person
    ncm graph add Alice employer Acme --valid-from 2026-03-01
    ncm graph add Alice hobby chess --add
    """
    with caller.memory(new=True) as memory:
        done = memory.graph.upsert(
            entity, key, value, category, importance, permanent=permanent, add=several, valid_from=valid_from
        )
    kept = f" = {one_line(done.value)}" if done.redacted else ""
    caller.show(done, f"{entity}.{key}{kept} {_done(done)}")


@graph.command("relate")
@click.argument("subject")
@click.argument("predicate")
@click.argument("object")
@click.option("--replace", is_flag=True, help="Retire the subject's other objects of this predicate.")
@click.option("--valid-from", metavar="DATE", default="", help="Since when it holds; default now.")
@pass_caller
def relate(caller: Caller, subject: str, predicate: str, object: str, replace: bool, valid_from: str) -> None:
    """Say how two entities are related.

    \b
    ncm graph relate Alice owns Keystone
    """
    with caller.memory(new=True) as memory:
        done = memory.graph.relate(subject, predicate, object, replace=replace, valid_from=valid_from)
    caller.show(done, f"{subject} → {predicate} → {one_line(done.value)} {_done(done)}")


def _done(done: Upserted) -> str:
    parts = ["stored" if done.created else "was known"]
    if done.retired:
        parts.append(f"{plural(len(done.retired), 'old value')} retired")
    if done.redacted:
        parts.append(f"{plural(done.redacted, 'credential')} masked")
    return f"({', '.join(parts)})"


@graph.command("alias")
@click.argument("alias")
@click.argument("entity")
@pass_caller
def alias(caller: Caller, alias: str, entity: str) -> None:
    """Give an entity another name.

    \b
    ncm graph alias Mama Heidi
    """
    with caller.memory(new=True) as memory:
        created = memory.graph.alias(alias, entity)
    result = {"id": f"{alias} → {entity}", "alias": alias, "entity": entity, "created": created}
    caller.show(result, f"{alias} means {entity}{'' if created else ' (was known)'}")


@graph.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="ENTITY [KEY [VALUE]]")
@click.option("--relation", is_flag=True, help="The three words are subject, predicate, object.")
@click.option("--alias", "is_alias", is_flag=True, help="The words are an alias and, if wanted, its entity.")
@click.option("--purge", is_flag=True, help="Erase it from history too.")
@pass_caller
def remove(caller: Caller, names: tuple[str, ...], relation: bool, is_alias: bool, purge: bool) -> None:
    """Say that a fact, relation or alias holds no longer; history keeps it unless --purge.

    \b
    ncm graph remove Keystone port
    ncm graph remove --relation Alice owns Keystone
    ncm graph remove --alias Mama
    """
    with caller.memory() as memory:
        if relation:
            if len(names) != 3:
                raise InvalidValue(
                    "a relation has three words", "graph remove --relation Alice owns Keystone"
                )
            removed: Any = memory.graph.unrelate(*names, purge=purge)
        elif is_alias:
            removed = memory.graph.unalias(names[0], "".join(names[1:2]))
        else:
            if len(names) > 3:
                raise InvalidValue("too many words", 'quote names with spaces: "Partner Boyd" birthday')
            entity, key, value = (*names, "", "")[:3]
            removed = memory.graph.remove(entity, key, value, purge)
    count = removed if isinstance(removed, int) else len(removed)
    caller.show({"removed": removed}, f"{plural(count, 'row')} {'erased' if purge else 'removed'}")


@graph.command("reject")
@click.argument("entity")
@click.argument("key")
@click.argument("value")
@click.option("--reason", default="", help="Why it is wrong.")
@click.option("--undo", is_flag=True, help="It was right after all; it may come back.")
@pass_caller
def reject(caller: Caller, entity: str, key: str, value: str, reason: str, undo: bool) -> None:
    """A value is wrong: erase it, restore the one before, and never ingest it again.

    \b
    ncm graph reject Keystone port 3001 --reason "typo in the log"
    """
    with caller.memory() as memory:
        if undo:
            done = memory.graph.unreject(entity, key, value)
            caller.show({"undone": done}, "It may come back." if done else "It was not rejected.")
            return
        gone = memory.graph.reject(entity, key, value, reason)
    caller.show({"removed": gone, "rejected": True}, f"{plural(len(gone), 'fact')} erased; it stays away")


@graph.command("history")
@click.argument("entity")
@click.argument("key", default="")
@pass_caller
def history(caller: Caller, entity: str, key: str) -> None:
    """Every value that an entity's keys, or one of them, ever had.

    \b
    ncm graph history Alice employer
    """
    with caller.memory() as memory:
        facts = memory.graph.history(entity, key)
    rows = [{**_fact(fact), "current": not fact.valid_to} for fact in facts]
    shown = [
        f"{fact.valid_from[:10] or 'always':<10} – {fact.valid_to[:10] or 'now':<10}  {one_line(fact.text)}"
        f"  [{fact.source}]"
        for fact in facts
    ]
    caller.show({"facts": rows}, "\n".join(shown) or "Nothing is known about that.")


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "entity": fact.entity,
        "key": fact.key,
        "value": fact.value,
        "category": fact.category,
        "valid_from": fact.valid_from,
        "valid_to": fact.valid_to or None,
        "superseded_by": fact.superseded_by,
        "source": fact.source,
        "activation": round(fact.activation, 4),
        "tier": tier(fact.activation),
        "access_count": fact.access_count,
        "importance": fact.importance,
        "permanent": fact.permanent,
    }


@graph.command("cool")
@pass_caller
def cool(caller: Caller) -> None:
    """Cool activation for every day since the last time; twice on one day changes nothing.

    \b
    ncm graph cool
    """
    with caller.memory() as memory:
        changed, days = memory.graph.cool()
    text = f"{plural(changed, 'fact')} cooled for {plural(days, 'day')}" if days else "Cooled today already."
    caller.show({"changed": changed, "days": days}, text)


@graph.command("top")
@click.option("--tier", "wanted", default="", help="hot, warm or cool.")
@click.option("-n", "limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@pass_caller
def top(caller: Caller, wanted: str, limit: int) -> None:
    """The facts that are used most.

    \b
    ncm graph top --tier hot
    """
    with caller.memory() as memory:
        facts = memory.graph.top(wanted, limit)
    shown = [f"{fact.activation:6.2f} {tier(fact.activation):<4}  {one_line(fact.text)}" for fact in facts]
    caller.show({"facts": [_fact(fact) for fact in facts]}, "\n".join(shown) or "No facts.")


@graph.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@pass_caller
def import_(caller: Caller, file: Path) -> None:
    """Bring in facts, relations and aliases: JSONL, CSV, an MCP memory.jsonl, or another facts.db.

    \b
    ncm graph import contacts.csv
    ncm graph import ~/.openclaw/memory/facts.db
    """
    with caller.memory(new=True) as memory:
        done = memory.graph.import_file(file.expanduser())
    counts = [plural(done.facts, "fact"), plural(done.relations, "relation"), f"{done.aliases:,} aliases"]
    caller.show(done, f"{', '.join(counts)} came in; {done.known:,} were known, {done.skipped:,} skipped")
    if not caller.json:
        for problem in done.problems:
            click.echo(f"skipped: {problem}", err=True)


@graph.command("export")
@click.option("--format", "form", default="jsonl", show_default=True, help="jsonl, csv or mcp.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="A file; default standard output.")
@pass_caller
def export(caller: Caller, form: str, output: Path | None) -> None:
    """Write the whole graph, history included; `mcp` is the official memory server's format.

    \b
    ncm graph export > graph.jsonl
    ncm graph export --format csv -o graph.csv
    """
    with caller.memory() as memory:
        lines = list(memory.graph.export(form))
    text = "\n".join(lines)
    if output is not None:
        output.write_text(text + "\n" if lines else "", encoding="utf-8")
        caller.show({"path": output, "rows": len(lines)}, f"{plural(len(lines), 'line')} in {output}")
    else:
        caller.show({"format": form, "rows": len(lines), "text": text}, text)


@graph.command("seed")
@pass_caller
def seed(caller: Caller) -> None:
    """Read facts out of USER.md, IDENTITY.md, MEMORY.md, TOOLS.md, project and tool files; twice changes nothing.

    \b
    ncm graph seed
    """
    with caller.memory() as memory:
        files = memory.graph.seed(memory.home)
    shown = [
        f"{file.path}: {file.added:,} new, {file.kept:,} kept, {file.retired:,} retired" for file in files
    ]
    total = {name: sum(getattr(file, name) for file in files) for name in ("added", "kept", "retired")}
    caller.show({**total, "files": files}, "\n".join(shown) or "There are no files to read.")


@graph.command("show")
@click.argument("entity")
@click.option("--depth", type=int, default=1, show_default=True, help="How many relations far.")
@click.option("--format", "form", default="tree", show_default=True, help="tree, mermaid, dot or json.")
@pass_caller
def show(caller: Caller, entity: str, depth: int, form: str) -> None:
    """Draw what surrounds an entity.

    \b
    ncm graph show Keystone --depth 2
    ncm graph show Keystone --format mermaid
    """
    with caller.memory() as memory:
        result = memory.graph.drawn(entity, depth, form)
    caller.show(result, result["text"])
