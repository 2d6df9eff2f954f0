"""The tables of scheduled tasks, their runs, and the lease that prevents a run from happening twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from nanoclaw_memory.store.database import Row
from nanoclaw_memory.store.table import Table, assignments, insertion
from nanoclaw_memory.types import Task, TaskRun

_OF_GROUP = "(:group IS NULL OR group_folder = :group)"


class TaskTable(Table[Task]):
    """The rows of scheduled_tasks, task_run_logs and task_leases."""

    table = "scheduled_tasks"
    columns = ", ".join(Task.__struct_fields__).replace("group", "group_folder")

    def read(self, row: Row) -> Task:
        return Task(*(value or "" for value in row))

    # ---- tasks ----

    def add(self, task: Task) -> None:
        row = asdict(task)
        row |= {"group_folder": row.pop("group"), "last_run": None, "last_result": None}
        self.db.execute(insertion("scheduled_tasks", row), row)

    def get(self, task_id: str) -> Task | None:
        return self.first("WHERE id = :id", {"id": task_id})

    def all(self, group: str | None = None) -> list[Task]:
        return self.select(f"WHERE {_OF_GROUP} ORDER BY created_at, id", {"group": group})

    def due(self, now: str, group: str | None = None) -> list[Task]:
        """Return active tasks that are due and not running, the longest waiting first."""
        rest = (
            f"WHERE status = 'active' AND next_run IS NOT NULL AND next_run <= :now AND {_OF_GROUP}"  # noqa: S608
            " AND NOT EXISTS (SELECT 1 FROM task_leases WHERE task_leases.task_id = scheduled_tasks.id)"
            " ORDER BY next_run, id"
        )
        return self.select(rest, {"now": now, "group": group})

    def change(self, task_id: str, values: Mapping[str, Any]) -> None:
        """Set columns of a task; the names come from our own code, never from a caller."""
        sql = f"UPDATE scheduled_tasks SET {assignments(values)} WHERE id = :id"  # noqa: S608
        self.db.execute(sql, {**values, "id": task_id})

    def remove(self, task_id: str) -> None:
        for sql in (
            "DELETE FROM task_leases WHERE task_id = :id",
            "DELETE FROM task_run_logs WHERE task_id = :id",
            "DELETE FROM scheduled_tasks WHERE id = :id",
        ):
            self.db.execute(sql, {"id": task_id})

    # ---- runs ----

    def start(self, task_id: str, owner: str, now: str) -> int | None:
        """Take a task's lease and store the run; return None when another process has the lease."""
        lease = {"task_id": task_id, "run_id": 0, "owner": owner, "started_at": now}
        if not self.db.update(f"{insertion('task_leases', lease)} ON CONFLICT (task_id) DO NOTHING", lease):
            return None
        run = {"task_id": task_id, "run_at": now, "duration_ms": 0, "status": "running"}
        run_id = self.db.insert(insertion("task_run_logs", run), run)
        self.db.execute(
            "UPDATE task_leases SET run_id = :run WHERE task_id = :task", {"run": run_id, "task": task_id}
        )
        return run_id

    def finish(self, run: TaskRun) -> bool:
        """Store how a run ended and release the lease; return False if it was already marked as interrupted."""
        ended = self.db.update(
            """UPDATE task_run_logs SET duration_ms = :ms, status = :status, result = :result, error = :error
               WHERE id = :id AND status = 'running'""",
            {
                "id": run.id,
                "ms": run.duration_ms,
                "status": run.status,
                "result": run.result or None,
                "error": run.error or None,
            },
        )
        self.db.execute("DELETE FROM task_leases WHERE run_id = :id", {"id": run.id})
        return bool(ended)

    def leases(self) -> list[tuple[str, int, str, str]]:
        """Return runs in progress: task, run, owner, start."""
        rows = self.db.query("SELECT task_id, run_id, owner, started_at FROM task_leases")
        return [(str(task), int(run), str(owner), str(at)) for task, run, owner, at in rows]

    def runs(self, task_id: str, limit: int) -> list[TaskRun]:
        """Return the newest runs of a task, newest first."""
        rest = "WHERE task_id = :id ORDER BY id DESC LIMIT :limit"
        return _RunTable(self.db).select(rest, {"id": task_id, "limit": limit})

    def trim_runs(self, task_id: str, keep: int) -> None:
        """Delete all but the newest runs of a task."""
        self.db.execute(
            """DELETE FROM task_run_logs WHERE task_id = :id AND id NOT IN
               (SELECT id FROM task_run_logs WHERE task_id = :id ORDER BY id DESC LIMIT :keep)""",
            {"id": task_id, "keep": keep},
        )


class _RunTable(Table[TaskRun]):
    table = "task_run_logs"
    columns = ", ".join(TaskRun.__struct_fields__)
    value = TaskRun
