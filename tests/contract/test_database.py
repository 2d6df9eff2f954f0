"""What the Database protocol promises, tested over SQLite and PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nanoclaw_memory.errors import CorruptDatabase, NewerSchema, StoreError
from nanoclaw_memory.store.database import Database
from nanoclaw_memory.store.migrate import Step
from nanoclaw_memory.store.sqlite import SqliteDatabase
from postgres import fresh_database

STEPS = (
    Step(1, "notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE);"),
    Step(
        2,
        "tags",
        """CREATE TABLE tags (id INTEGER PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes(id));
        CREATE VIRTUAL TABLE notes_fts USING fts5(body, content=notes, content_rowid=id, tokenize=porter);
        CREATE TRIGGER notes_ai AFTER INSERT ON notes BEGIN
          INSERT INTO notes_fts(rowid, body) VALUES (new.id, new.body);
        END;""",
    ),
)
Open = Callable[..., Database]

# A process of its own, with the same tables: what it does comes as Python lines.
PROCESS = """
import os, signal, sys
from pathlib import Path
from nanoclaw_memory.store.migrate import Step
steps = [Step(*step) for step in {steps!r}]
if sys.argv[2]:
    from nanoclaw_memory.store.postgres import PostgresDatabase
    db = PostgresDatabase(sys.argv[2], Path(sys.argv[1]).parent, Path(sys.argv[1]), "notes", steps)
else:
    from nanoclaw_memory.store.sqlite import SqliteDatabase
    db = SqliteDatabase(Path(sys.argv[1]), "notes", steps=steps)
def add(body):
    with db.transaction():
        db.insert("INSERT INTO notes (body) VALUES (:body)", {{"body": body}})
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "notes.db"


@pytest.fixture
def url() -> str:
    """SQLite, unless a class asks for PostgreSQL."""
    return ""


@pytest.fixture
def open_database(path: Path, url: str) -> Iterator[Open]:
    opened: list[Database] = []

    def open_(at: Path = path, steps: tuple[Step, ...] = STEPS) -> Database:
        if url and at == path:
            from nanoclaw_memory.store.postgres import PostgresDatabase

            opened.append(PostgresDatabase(url, at.parent, at, "notes", steps))
        else:
            opened.append(SqliteDatabase(at, "notes", steps=steps))
        return opened[-1]

    yield open_
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database: Open) -> Database:
    return open_database()


@pytest.fixture
def start(path: Path, url: str) -> Callable[[str], subprocess.Popen[str]]:
    steps = [(step.number, step.name, step.sql) for step in STEPS]

    def start_(lines: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS.format(steps=steps) + lines, str(path), url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start_


def refused(url: str) -> type[Exception]:
    """What the engine raises where a row breaks a rule of its table."""
    if url:
        import psycopg

        return psycopg.IntegrityError
    import apsw

    return apsw.ConstraintError


def add(database: Database, body: str) -> int:
    return database.insert("INSERT INTO notes (body) VALUES (:body)", {"body": body})


def bodies(database: Database) -> list[str]:
    return [body for (body,) in database.query("SELECT body FROM notes ORDER BY id")]


Start = Callable[[str], subprocess.Popen[str]]


class TestDatabase:
    """The contract."""

    def test_a_transaction_is_all_or_nothing(self, database: Database):
        with database.transaction():
            add(database, "kept")
        with pytest.raises(KeyError), database.transaction():
            add(database, "lost")
            raise KeyError
        assert bodies(database) == ["kept"]

    def test_a_statement_that_fails_takes_the_whole_transaction_back(self, database: Database, url: str):
        with pytest.raises(refused(url)), database.transaction():
            add(database, "same")
            add(database, "same")
        assert bodies(database) == []

    def test_nested_transactions_are_one(self, database: Database, open_database: Open):
        with pytest.raises(KeyError), database.transaction():
            with database.transaction():
                add(database, "inner")
            assert bodies(open_database()) == []
            raise KeyError
        assert bodies(database) == []

    def test_an_inner_failure_caught_outside_leaves_the_outer_writes(self, database: Database):
        with database.transaction():
            add(database, "outer")
            with pytest.raises(KeyError), database.transaction():
                add(database, "inner")
                raise KeyError
            add(database, "after")
        assert bodies(database) == ["outer", "after"]

    def test_a_statement_that_fails_in_an_inner_transaction_fails_there(self, database: Database, url: str):
        insert = "INSERT INTO notes (body) VALUES (:body)"
        with database.transaction():
            database.execute(insert, {"body": "outer"})
            with pytest.raises(refused(url)), database.transaction():
                database.execute(insert, {"body": "inner"})
                database.execute_many(insert, [{"body": "outer"}])
            with database.transaction():
                database.execute(insert, {"body": "after"})
        assert bodies(database) == ["outer", "after"]

    def test_a_process_that_forks_leaves_its_connections_to_itself(self, database: Database):
        with database.transaction():
            add(database, "parent")
        child = os.fork()
        if not child:
            with database.transaction():
                add(database, "child")
            os._exit(0 if bodies(database) == ["parent", "child"] else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert bodies(database) == ["parent", "child"]

    def test_what_holds_the_writers_can_copy_and_load(self, database: Database, tmp_path: Path):
        with database.transaction():
            add(database, "then")
        with database.held():
            database.copy_to(tmp_path / "saved.db")
            with database.transaction():
                add(database, "later")
            database.load_from(tmp_path / "saved.db")
        assert bodies(database) == ["then"]

    def test_a_copy_is_loaded_where_there_is_no_database_yet(self, open_database: Open, tmp_path: Path):
        with (other := open_database(tmp_path / "other.db")).transaction():
            add(other, "then")
        other.copy_to(tmp_path / "saved.db")
        database = open_database()
        database.load_from(tmp_path / "saved.db")
        assert bodies(database) == ["then"]

    def test_to_hold_the_writers_makes_no_database(self, database: Database):
        with database.held():
            assert not database.exists()

    def test_a_write_outside_a_transaction_is_refused(self, database: Database):
        with pytest.raises(StoreError, match="outside of a transaction"):
            add(database, "x")

    def test_references_to_missing_rows_are_refused(self, database: Database, url: str):
        with pytest.raises(refused(url)), database.transaction():
            database.execute("INSERT INTO tags (note) VALUES (404)")

    def test_results_come_as_tuples_ids_and_counts(self, database: Database):
        with database.transaction():
            first = add(database, "a")
            database.execute_many("INSERT INTO notes (body) VALUES (:b)", [{"b": "b"}, {"b": "c"}])
            assert database.update("UPDATE notes SET body = body || '!' WHERE id > :id", {"id": first}) == 2
        assert list(database.rows("SELECT id, body FROM notes")) == [(1, "a"), (2, "b!"), (3, "c!")]

    def test_the_version_changes_when_another_connection_writes(
        self, database: Database, open_database: Open
    ):
        before = database.version()
        assert database.version() == before
        other = open_database()
        with other.transaction():
            add(other, "x")
        assert database.version() != before

    def test_a_thread_gets_its_own_connection(self, database: Database, start: Start):
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for turn in range(20):
                    with database.transaction():
                        add(database, f"{number}/{turn}")
            except BaseException as error:  # noqa: BLE001  the assertion below shows it
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(bodies(database)) == 80

    # ---- several processes ----

    def test_processes_that_write_at_once_lose_nothing_and_meet_no_lock(
        self, database: Database, start: Start
    ):
        lines = "for n in range(150): add(f'{os.getpid()}/{n}')"
        writers = [start(lines) for _ in range(4)]
        failed = [error for writer in writers if (error := writer.communicate(timeout=120)[1])]
        assert failed == []
        found = bodies(database)
        assert len(found) == 600
        for writer in writers:
            mine = [int(body.split("/")[1]) for body in found if body.startswith(f"{writer.pid}/")]
            assert mine == list(range(150))

    def test_processes_that_create_the_file_at_once_migrate_it_once(self, open_database: Open, start: Start):
        writers = [start("add(f'{os.getpid()}')") for _ in range(4)]
        assert [writer.communicate(timeout=60)[1] for writer in writers] == [""] * 4
        assert len(bodies(open_database())) == 4

    def test_a_reader_never_waits_for_a_writer(self, database: Database, start: Start):
        with database.transaction():
            add(database, "committed")
        writer = start(
            "with db.transaction():\n"
            "    db.insert('INSERT INTO notes (body) VALUES (:b)', {'b': 'open'})\n"
            "    print('writing', flush=True)\n"
            "    sys.stdin.readline()\n",
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        # A new process has to open the file too, while the transaction is open.
        reader = start("print(db.query('SELECT body FROM notes'))")
        assert reader.communicate(timeout=60)[0] == "[('committed',)]\n"
        assert bodies(database) == ["committed"]
        assert writer.poll() is None
        writer.communicate("go\n", timeout=60)
        assert bodies(database) == ["committed", "open"]

    def test_kill_9_keeps_every_acknowledged_commit(self, open_database: Open, start: Start):
        acknowledged: list[str] = []
        for _ in range(8):
            writer = start(
                "n = 0\nwhile True:\n    add(f'{os.getpid()}/{n}'); print(n, flush=True); n += 1\n"
            )
            assert writer.stdout is not None
            for _ in range(25):
                acknowledged.append(f"{writer.pid}/{writer.stdout.readline().strip()}")
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged += [f"{writer.pid}/{line.strip()}" for line in writer.stdout if line.endswith("\n")]
            writer.communicate()
        database = open_database()
        assert set(acknowledged) <= set(bodies(database))
        assert database.check() == []

    # ---- schema ----

    def test_steps_run_in_order_and_only_once(self, open_database: Open):
        old = open_database(steps=STEPS[:1])
        with old.transaction():
            add(old, "from the older release")
        old.close()
        for _ in range(2):
            new = open_database()
            assert bodies(new) == ["from the older release"]
            assert new.query("SELECT count(*) FROM tags") == [(0,)]
            new.close()

    def test_a_step_that_fails_leaves_the_old_schema(self, open_database: Open):
        import apsw

        open_database(steps=STEPS[:1]).query("SELECT 1 FROM notes")
        broken = Step(2, "broken", "CREATE TABLE half (id INTEGER); CREATE TABLE notes (id INTEGER);")
        with pytest.raises(apsw.SQLError):
            open_database(steps=(STEPS[0], broken)).query("SELECT 1")
        again = open_database(steps=STEPS[:1])
        assert sorted(again.tables()) == ["notes"]

    def test_a_copy_taken_while_another_writes_is_whole(
        self, path: Path, database: Database, open_database: Open, start: Start
    ):
        with database.transaction():
            database.execute_many(
                "INSERT INTO notes (body) VALUES (:b)", ({"b": f"old {n}"} for n in range(500))
            )
        writer = start(
            "for n in range(400):\n    with db.transaction():\n"
            "        [db.insert('INSERT INTO notes (body) VALUES (:b)', dict(b=f'{n}/{i}')) for i in 'ab']\n",
        )
        for number in range(5):
            target = path.parent / f"copy{number}.db"
            database.copy_to(target)
            copy = open_database(target)
            assert copy.check() == []
            assert len(bodies(copy)) % 2 == 0
        assert writer.communicate(timeout=60)[1] == ""

    def test_loading_reaches_connections_of_other_processes(
        self, database: Database, tmp_path: Path, start: Start
    ):
        with database.transaction():
            add(database, "then")
        database.copy_to(tmp_path / "saved.db")
        with database.transaction():
            add(database, "later")
        other = start(
            "def show(): print([b for (b,) in db.query('SELECT body FROM notes ORDER BY id')], flush=True)\n"
            "show(); sys.stdin.readline(); show(); add('after'); show()\n",
        )
        assert other.stdout is not None
        assert other.stdout.readline() == "['then', 'later']\n"
        database.load_from(tmp_path / "saved.db")
        assert other.communicate("go\n", timeout=60) == ("['then']\n['then', 'after']\n", "")
        assert bodies(database) == ["then", "after"]
        assert database.check() == []

    # ---- keywords ----

    def test_keywords_match_any_term_best_first(self, database: Database):
        with database.transaction():
            for body in (
                "deploying the gateway",
                "the gateway",
                "gateway deploys gateway deployment",
                "lunch",
            ):
                add(database, body)
        found = database.match("notes_fts", ["deploy", "gateway"], 10)
        assert {rowid for rowid, _ in found} == {1, 2, 3}
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True) and found[0][0] == 3
        assert len(database.match("notes_fts", ["gateway"], 1)) == 1
        assert database.match("notes_fts", [], 10) == []

    def test_of_the_newest_only_those_with_all_terms_are_ranked(self, database: Database):
        with database.transaction():
            for body in (
                "gateway deploys",
                "gateway deploys gateway",
                "the gateway",
                "a gateway that deploys",
            ):
                add(database, body)
        assert [rowid for rowid, _ in database.match("notes_fts", ["deploy", "gateway"], 10, newest=2)] == [
            2,
            4,
        ]
        every = database.match("notes_fts", ["deploy", "gateway"], 10, newest=9)
        assert {rowid for rowid, _ in every} == {1, 2, 4} and every[0][0] == 2
        assert len(database.match("notes_fts", ["deploy", "gateway"], 1, newest=9)) == 1

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(
            st.one_of(
                st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
                st.sampled_from(
                    ['"', "a OR b", "NEAR(a b)", "body:x", "a*", "^a", "-a", "(", "{a b}:c", "a\x00b", "NOT"]
                ),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_no_term_is_ever_syntax(self, database: Database, terms: list[str]):
        for rowid, score in database.match("notes_fts", terms, 5):
            assert isinstance(rowid, int) and isinstance(score, float)


class TestPostgres(TestDatabase):
    """The same contract over PostgreSQL."""

    @pytest.fixture
    def url(self) -> Iterator[str]:
        with fresh_database() as made:
            yield made


class TestFile:
    """What concerns SQLite's files."""

    def test_a_newer_schema_is_refused_with_both_versions_and_left_as_it_is(
        self, path: Path, open_database: Open
    ):
        import apsw

        path.parent.mkdir(parents=True)
        newer = apsw.Connection(str(path))
        newer.execute("CREATE TABLE future (x); PRAGMA user_version = 9")
        newer.close()
        before = path.read_bytes()
        with pytest.raises(NewerSchema, match=r"notes\.db has schema 9, this release knows 2"):
            open_database().query("SELECT 1")
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == ["notes.db"]

    def test_a_file_that_is_no_database_is_named_as_damaged(self, path: Path, open_database: Open):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"this is not a database, but long enough to look at" * 50)
        with pytest.raises(CorruptDatabase, match=r"notes\.db is damaged") as caught:
            open_database().query("SELECT 1")
        assert "db reset notes" in caught.value.hint
        assert path.read_bytes().startswith(b"this is not")

    def test_a_damaged_page_is_found_by_the_check(
        self, path: Path, database: SqliteDatabase, open_database: Open
    ):
        with database.transaction():
            database.execute_many(
                "INSERT INTO notes (body) VALUES (:b)", ({"b": f"{n}" * 50} for n in range(2000))
            )
        assert database.check() == []
        database.close()
        raw = bytearray(path.read_bytes())
        middle = len(raw) // 2 // 4096 * 4096
        raw[middle : middle + 4096] = b"\xa5" * 4096
        path.write_bytes(raw)
        damaged = open_database()
        try:
            assert damaged.check() != []
        except CorruptDatabase as error:
            assert "notes.db" in error.message

    def test_a_row_that_points_nowhere_is_found_by_the_check(self, path: Path, database: SqliteDatabase):
        import apsw

        database.query("SELECT 1 FROM notes")
        careless = apsw.Connection(str(path))
        careless.execute("INSERT INTO tags (note) VALUES (7)")
        careless.close()
        assert database.check() == ["tags: row 1 points to a missing notes"]

    def test_a_check_makes_no_file(self, path: Path, database: SqliteDatabase):
        assert database.check() == []
        assert not path.exists()

    def test_a_check_leaves_an_older_file_as_it_is(self, path: Path, open_database: Open):
        import apsw

        path.parent.mkdir()
        older = apsw.Connection(str(path))
        older.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        older.close()
        before = path.read_bytes()
        assert open_database().check() == []
        assert path.read_bytes() == before
