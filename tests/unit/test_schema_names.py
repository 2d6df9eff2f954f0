"""Names of schemas: each database of a home has its own, whatever a group is called."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory.store.postgres import schema_of

FOLDERS = ("data", "groups", "store", "corpora", "main", "published", "team", "a")
GROUPS = st.sampled_from(FOLDERS[:4] + FOLDERS[5:])
NAMES = st.sampled_from(("facts", "entries", "continuity", "pages", "index", "corpora/facts", "corpora/data"))
OF_GROUPS = st.builds(lambda group, name: Path("groups", group, "data", f"{name}.db"), GROUPS, NAMES)
OF_MAIN = NAMES.map(lambda name: Path("data", f"{name}.db"))
OF_ALL = st.sampled_from(("messages", "common", "published/team")).map(
    lambda name: Path("store", f"{name}.db")
)


@given(OF_GROUPS | OF_MAIN | OF_ALL, OF_GROUPS | OF_MAIN | OF_ALL)
def test_two_databases_never_share_a_schema(one: Path, other: Path):
    assert (schema_of(one) == schema_of(other)) == (one == other)


def test_a_group_is_the_first_part_of_its_schemas():
    assert schema_of(Path("groups/data/data/facts.db")) == "data/facts"
    assert schema_of(Path("data/facts.db")) == "main/facts"
    assert schema_of(Path("store/messages.db")) == "store/messages"
