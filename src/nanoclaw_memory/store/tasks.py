"""Rows of scheduled tasks, their runs, and the lease that keeps a run from happening twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from nanoclaw_memory.store.database import Database, Row
from nanoclaw_memory.types import Task, TaskRun

_TASK = (
    "id, group_folder, chat_jid, prompt, schedule_type, schedule_value, context_mode, next_run, last_run, "
    "last_result, status, created_at"
)
_RUN = "id, task_id, run_at, duration_ms, status, result, error"


class TaskTable:
    """The rows of scheduled_tasks, task_run_logs and task_leases."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # ---- tasks ----

    def add(self, task: Task) -> None:
        self.database.execute(
            f"""INSERT INTO scheduled_tasks ({_TASK}) VALUES (:id, :group, :chat_jid, :prompt, :schedule_type,
                :schedule_value, :context_mode, :next_run, NULL, NULL, :status, :created_at)""",  # noqa: S608
            asdict(task),
        )

    def get(self, task_id: str) -> Task | None:
        rows = self.database.query(
            f"SELECT {_TASK} FROM scheduled_tasks WHERE id = :id",  # noqa: S608
            {"id": task_id},
        )
        return _task(rows[0]) if rows else None

    def all(self, group: str | None = None) -> list[Task]:
        where = "" if group is None else "WHERE group_folder = :group"
        rows = self.database.query(
            f"SELECT {_TASK} FROM scheduled_tasks {where} ORDER BY created_at, id",  # noqa: S608
            {"group": group},
        )
        return [_task(row) for row in rows]

    def due(self, now: str, group: str | None = None) -> list[Task]:
        """Active tasks whose time has come and that nobody runs, the longest waiting first."""
        mine = "" if group is None else "AND group_folder = :group"
        rows = self.database.query(
            f"""SELECT {_TASK} FROM scheduled_tasks
                WHERE status = 'active' AND next_run IS NOT NULL AND next_run <= :now {mine}
                  AND NOT EXISTS (SELECT 1 FROM task_leases WHERE task_leases.task_id = scheduled_tasks.id)
                ORDER BY next_run, id""",  # noqa: S608
            {"now": now, "group": group},
        )
        return [_task(row) for row in rows]

    def change(self, task_id: str, values: Mapping[str, Any]) -> None:
        """Set columns of a task; the names come from our own code, never from a caller."""
        columns = ", ".join(f"{name} = :{name}" for name in values)
        self.database.execute(
            f"UPDATE scheduled_tasks SET {columns} WHERE id = :id",  # noqa: S608
            {**values, "id": task_id},
        )

    def remove(self, task_id: str) -> None:
        for sql in (
            "DELETE FROM task_leases WHERE task_id = :id",
            "DELETE FROM task_run_logs WHERE task_id = :id",
            "DELETE FROM scheduled_tasks WHERE id = :id",
        ):
            self.database.execute(sql, {"id": task_id})

    # ---- runs ----

    def start(self, task_id: str, owner: str, now: str) -> int | None:
        """Take a task's lease and store the run; None when another process has the lease."""
        taken = self.database.update(
            "INSERT INTO task_leases (task_id, run_id, owner, started_at) VALUES (:task, 0, :owner, :now) "
            "ON CONFLICT (task_id) DO NOTHING",
            {"task": task_id, "owner": owner, "now": now},
        )
        if not taken:
            return None
        run_id = self.database.insert(
            "INSERT INTO task_run_logs (task_id, run_at, duration_ms, status) "
            "VALUES (:task, :now, 0, 'running')",
            {"task": task_id, "now": now},
        )
        self.database.execute(
            "UPDATE task_leases SET run_id = :run WHERE task_id = :task", {"run": run_id, "task": task_id}
        )
        return run_id

    def finish(self, run: TaskRun) -> bool:
        """Store how a run ended and release the lease; False when the run was already marked as interrupted."""
        ended = self.database.update(
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
        self.database.execute("DELETE FROM task_leases WHERE run_id = :id", {"id": run.id})
        return bool(ended)

    def leases(self) -> list[tuple[str, int, str, str]]:
        """Runs in progress: task, run, owner, when it started."""
        rows = self.database.query("SELECT task_id, run_id, owner, started_at FROM task_leases")
        return [(str(task), int(run), str(owner), str(at)) for task, run, owner, at in rows]

    def runs(self, task_id: str, limit: int) -> list[TaskRun]:
        """The newest runs of a task, newest first."""
        rows = self.database.query(
            f"SELECT {_RUN} FROM task_run_logs WHERE task_id = :id ORDER BY id DESC LIMIT :limit",  # noqa: S608
            {"id": task_id, "limit": limit},
        )
        return [
            TaskRun(
                id=identity,
                task_id=task,
                run_at=at,
                duration_ms=ms,
                status=status,
                result=result or "",
                error=error or "",
            )
            for identity, task, at, ms, status, result, error in rows
        ]

    def trim_runs(self, task_id: str, keep: int) -> None:
        """Delete all but the newest runs of a task."""
        self.database.execute(
            """DELETE FROM task_run_logs WHERE task_id = :id AND id NOT IN
               (SELECT id FROM task_run_logs WHERE task_id = :id ORDER BY id DESC LIMIT :keep)""",
            {"id": task_id, "keep": keep},
        )


def _task(row: Row) -> Task:
    return Task(*(value or "" for value in row))
