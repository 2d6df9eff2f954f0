"""Vector search inside PostgreSQL with pgvector: a column computed from the stored codes, and an index on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import errors

from nanoclaw_memory.store.postgres_connections import Connection

if TYPE_CHECKING:
    from nanoclaw_memory.store.vector_block import Floats

Only = tuple[str, str]  # the condition that includes passages, and the whole one

EXTENSION = "vector"
EXACT_ROWS = 20_000  # up to so many are compared one by one
MOST_LISTS = 2_000  # k-means of more takes gigabytes of the server's memory
PER_LIST = 100
# The share of lists that are searched, with maxima of lists and vectors: bench/team_search.py.
PROBED, MOST_PROBED, MOST_COMPARED = 8, 125, 50_000
BUILDING = "SET maintenance_work_mem = '1GB'"  # k-means of so many lists needs nearly that
LONGEST = 4_000  # numbers of a vector that pgvector can index
_COLUMN = """
CREATE OR REPLACE FUNCTION ncm.embedding(codes bytea, scale double precision) RETURNS halfvec
LANGUAGE sql IMMUTABLE PARALLEL SAFE BEGIN ATOMIC
  SELECT array_agg((((get_byte(codes, n) # 128) - 128) * scale)::real ORDER BY n)::halfvec
  FROM generate_series(0, length(codes) - 1) n;
END;
ALTER TABLE vectors ADD COLUMN IF NOT EXISTS embedding halfvec
  GENERATED ALWAYS AS (ncm.embedding(codes, scale)) STORED"""
_INDEXES = """
SELECT relname, indisvalid, coalesce(substring(reloptions::text FROM 'lists=(\\d+)')::int, 0) FROM pg_class
JOIN pg_index ON indexrelid = oid WHERE relnamespace = current_schema()::regnamespace
AND starts_with(relname, %(start)s)"""
# An index that another process has built meanwhile is searched with as many lists as it needs.
_PROBES = """
SELECT set_config('work_mem', '64MB', true),
  set_config('ivfflat.iterative_scan', 'relaxed_order', true), set_config('ivfflat.probes', (SELECT
  greatest(least(lists / {probed}, {most}, {compared} * lists / greatest(reltuples, 1)), 1)::int::text
  FROM (SELECT reltuples, substring(reloptions::text FROM 'lists=(\\d+)')::int AS lists FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND starts_with(relname, '{start}')
  ORDER BY lists DESC LIMIT 1) x), true)"""
_NEAREST = """
SELECT p.id, -(v.embedding{cast} <#> {vector}) FROM (SELECT id, fingerprint FROM passages{where}) p
JOIN vectors v ON v.fingerprint = p.fingerprint WHERE v.identity_id = {owner}
ORDER BY v.embedding{cast} <#> {vector} LIMIT {limit}"""


def add_column(connection: Connection) -> bool:
    """Let the database search the schema's vectors; return False without pgvector, or the right to add a column."""
    try:
        with connection.transaction():
            connection.execute(f"CREATE EXTENSION IF NOT EXISTS {EXTENSION} SCHEMA ncm")
            connection.execute(_COLUMN)
    except (errors.FeatureNotSupported, errors.UndefinedFile, errors.InsufficientPrivilege):
        return False
    return True


def has_column(connection: Connection, schema: str) -> bool:
    sql = "SELECT 1 FROM pg_attribute WHERE attrelid = 'vectors'::regclass AND attname = 'embedding'"
    return bool(connection.run(schema, sql).fetchall())


def build_index(connection: Connection, schema: str, owner: int, dimensions: int) -> None:
    """Build the index for vectors of an identity, if they are many and have outgrown the last one."""
    start = _index_of(owner)
    of_owner = "SELECT count(*) FROM vectors WHERE identity_id = %(owner)s"
    ((count,),) = connection.run(schema, of_owner, {"owner": owner})
    lists = min(count // PER_LIST, MOST_LISTS)
    found = connection.run(schema, _INDEXES, {"start": start}).fetchall()
    kept = [name for name, valid, own in found if valid and own * 2 > lists]
    if count > EXACT_ROWS and not kept and dimensions <= LONGEST:
        name = f"{start}{lists}"
        connection.execute(f"DROP INDEX IF EXISTS {name}")
        connection.execute(BUILDING)
        connection.execute(
            f"CREATE INDEX CONCURRENTLY {name} ON vectors USING ivfflat"
            f" ((embedding::halfvec({dimensions})) halfvec_ip_ops) WITH (lists = {lists})"
            f" WHERE identity_id = {int(owner)}"
        )
        connection.execute("RESET maintenance_work_mem; ANALYZE vectors")
        kept = [name]
    for name, _, _ in found:
        if name not in kept:
            connection.execute(f"DROP INDEX IF EXISTS {name}")


def nearest(
    connection: Connection, schema: str, owner: int, vector: Floats, limit: int, only: Only, params: Any
) -> list[tuple[int, float]]:
    """Return passages with their cosines, best first; a small selection is compared one by one."""
    within, whole = only
    where = f" WHERE {whole}" if whole else ""
    few = within and _count(connection, schema, within, params) <= EXACT_ROWS
    kind = "halfvec" if few else f"halfvec({len(vector)})"
    asked = f"'[{','.join(f'{number:.6g}' for number in vector.tolist())}]'::{kind}"
    sql = _NEAREST.format(
        cast="" if few else f"::{kind}", vector=asked, where=where, owner=int(owner), limit=int(limit)
    )
    limits = {"probed": PROBED, "most": MOST_PROBED, "compared": MOST_COMPARED}
    connection.deferred.append(_PROBES.format(**limits, start=_index_of(owner)))
    rows = connection.run(schema, sql, params).fetchall()
    return sorted(((int(number), float(score)) for number, score in rows), key=lambda one: (-one[1], one[0]))


def _count(connection: Connection, schema: str, within: str, params: Any) -> int:
    sql = f"SELECT count(*) FROM (SELECT 1 FROM passages WHERE {within} LIMIT {EXACT_ROWS + 1}) x"  # noqa: S608
    return int(connection.run(schema, sql, params).fetchall()[0][0])


def _index_of(owner: int) -> str:
    return f"vectors_near_{int(owner)}_"
