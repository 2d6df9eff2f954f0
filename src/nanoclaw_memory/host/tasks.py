"""Scheduled tasks of the groups: stored, run once when due, their outcome logged."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Literal

from msgspec.structs import replace

from nanoclaw_memory import private
from nanoclaw_memory.clock import Clock, stamp
from nanoclaw_memory.errors import InvalidValue, NotFound, PathRefused
from nanoclaw_memory.host import schedule
from nanoclaw_memory.intake.intake import Intake
from nanoclaw_memory.store.tasks import TaskTable
from nanoclaw_memory.text import encodable
from nanoclaw_memory.types import MAIN_GROUP, Task, TaskRun
from nanoclaw_memory.types.arguments import ContextMode, ScheduleKind
from nanoclaw_memory.workspace.paths import check_group

MAX_PROMPT = 20_000
MAX_RESULT = 64_000
MAX_TASKS = 200  # per group
KEPT_RUNS = 500  # per task
SUMMARY = 200
WORKERS = 4  # tasks that run at a time

# Runs a task in the session to resume (empty for none), returns its output, raises when it failed.
Runner = Callable[[Task, str], str]


class TaskFailed(Exception):
    """Raised by a runner whose task failed, with the output until then."""

    def __init__(self, message: str, result: str = "") -> None:
        super().__init__(message)
        self.result = result


class Tasks:
    """The tasks that one group may see and change: its own; the main group sees all."""

    def __init__(
        self,
        rows: TaskTable,
        clock: Clock,
        actor: str,
        locks: Path,
        session_of: Callable[[str], str],
        intake: Callable[[str], Intake],
    ) -> None:
        self.rows = rows
        self.clock = clock
        self.actor = check_group(actor)
        self._locks = locks
        self._session_of = session_of
        self._intake = intake

    # ---- schedule ----

    def add(
        self,
        prompt: str,
        kind: ScheduleKind,
        value: str,
        group: str = "",
        context_mode: ContextMode = "isolated",
        chat_jid: str = "",
        identity: str = "",
    ) -> Task:
        """Schedule a prompt; kind is cron, interval or once. Repeating the same `identity` changes nothing."""
        owner = check_group(group or self.actor)
        self._allow(owner)
        text = self._checked_prompt(prompt, owner)
        _check_mode(context_mode)
        now = self.clock.now()
        stored = schedule.checked_value(kind, value, now)
        first = schedule.first_run(kind, stored, now)
        name = identity or f"task-{uuid.uuid4().hex[:12]}"
        task = Task(
            id=name,
            group=owner,
            chat_jid=chat_jid,
            prompt=text,
            schedule_type=kind,
            schedule_value=stored,
            context_mode=context_mode,
            next_run=first,
            created_at=stamp(now),
        )
        with self.rows.db.transaction():
            if self.rows.get(name) is not None:
                return self.get(name)
            if len(self.rows.all(owner)) >= MAX_TASKS:
                raise InvalidValue(f"{owner} has {MAX_TASKS} tasks already", "remove some: ncm tasks list")
            self.rows.add(task)
        return task

    def all(self) -> list[Task]:
        """Return the tasks that this group may see, oldest first."""
        return self.rows.all(None if self.actor == MAIN_GROUP else self.actor)

    def get(self, task_id: str) -> Task:
        """Return one task; another group's task does not exist for this one."""
        task = self.rows.get(task_id)
        if task is None or self.actor not in (MAIN_GROUP, task.group):
            raise NotFound(f"there is no task {task_id[:80]!r}", "see: nanoclaw-memory tasks list")
        return task

    def update(
        self,
        task_id: str,
        prompt: str = "",
        kind: ScheduleKind | Literal[""] = "",
        schedule_value: str = "",
        context_mode: ContextMode | Literal[""] = "",
    ) -> Task:
        """Change a task's prompt, schedule or context; empty arguments change nothing."""
        task = self.get(task_id)
        values: dict[str, str] = {}
        if prompt:
            values["prompt"] = self._checked_prompt(prompt, task.group)
        if context_mode:
            _check_mode(context_mode)
            values["context_mode"] = context_mode
        if kind or schedule_value:
            now, wanted = self.clock.now(), kind or task.schedule_type
            stored = schedule.checked_value(wanted, schedule_value or task.schedule_value, now)
            values |= {"schedule_type": wanted, "schedule_value": stored}
            values["next_run"] = schedule.first_run(wanted, stored, now)
            values |= {"status": "active"} if task.status == "completed" else {}
        if not values:
            raise InvalidValue("nothing is to change", "give a prompt, a schedule or a context")
        return self._change(task_id, **values)

    def pause(self, task_id: str) -> Task:
        """Pause a task until it is resumed."""
        return self._change(task_id, status="paused")

    def resume(self, task_id: str) -> Task:
        """Resume a task: at its next time; a single one that is overdue runs at once."""
        task = self.get(task_id)
        now = self.clock.now()
        again = schedule.first_run(task.schedule_type, task.schedule_value, now)
        return self._change(task_id, status="active", next_run=again)

    def remove(self, task_id: str) -> Task:
        """Delete a task and the log of its runs."""
        task = self.get(task_id)
        with self.rows.db.transaction():
            self.rows.remove(task_id)
        return task

    def logs(self, task_id: str, limit: int = 20) -> list[TaskRun]:
        """Return the newest runs of a task, newest first."""
        return self.rows.runs(self.get(task_id).id, limit)

    def _change(self, task_id: str, **values: str) -> Task:
        self.get(task_id)
        with self.rows.db.transaction():
            self.rows.change(task_id, values)
        return self.get(task_id)

    def _checked_prompt(self, prompt: str, owner: str) -> str:
        text = encodable(prompt).strip()
        if not text or len(text) > MAX_PROMPT:
            raise InvalidValue(
                f"a prompt of {len(text):,} characters is refused", f"give 1 to {MAX_PROMPT:,} characters"
            )
        self._intake(owner).refuse(text)
        return text

    def _allow(self, owner: str) -> None:
        if self.actor not in (MAIN_GROUP, owner):
            raise PathRefused(
                f"{self.actor} may not schedule tasks of {owner}", "only the main group works for others"
            )

    # ---- run ----

    def run_due(self, runner: Runner) -> list[TaskRun]:
        """Run every due task once, however often it was missed; return the runs.

        A group's tasks run one after the other, groups run in parallel: the runner is called in threads.
        """
        self.recover()
        group = None if self.actor == MAIN_GROUP else self.actor
        waiting = self.rows.due(stamp(self.clock.now()), group)
        ended: list[TaskRun] = []
        if not waiting:
            return ended
        pool = ThreadPoolExecutor(max_workers=WORKERS)
        running: dict[Future[TaskRun], Task] = {}
        try:
            with self._owned() as owner:
                while waiting or running:
                    for task in _startable(waiting, running.values()):
                        waiting.remove(task)
                        if run := self._start(task, owner):
                            session = self._session_of(task.group) if task.context_mode == "group" else ""
                            running[pool.submit(_run, task, run, session, runner)] = task
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    ended += [self._finish(running.pop(future), future.result()) for future in done]
        finally:
            pool.shutdown(wait=False)  # after an interruption nobody waits for a run to end
        return ended

    def recover(self) -> list[str]:
        """Mark runs whose process has died as interrupted; return their tasks."""
        found = []
        for task_id, run_id, owner, _ in self.rows.leases():
            if self._alive(owner):
                continue
            task = self.rows.get(task_id)
            run = TaskRun(run_id, task_id, "", 0, "interrupted", error="the process ended before the run did")
            with self.rows.db.transaction():
                if self.rows.finish(run) and task:
                    self._note_interrupted(task)
                    found.append(task_id)
            (self._locks / f"{owner}.lock").unlink(missing_ok=True)
        return found

    def _note_interrupted(self, task: Task) -> None:
        values = {"last_result": "interrupted: the process ended before the run did"}
        if task.schedule_type == "once":
            # Half done is not done, but running it twice may be worse: a person decides.
            values["status"] = "paused"
        self.rows.change(task.id, values)

    def _start(self, task: Task, owner: str) -> TaskRun | None:
        """Claim a due run: lease, log row and next time in one transaction; return None when another was faster."""
        now = self.clock.now()
        try:
            following = schedule.next_run(task.schedule_type, task.schedule_value, task.next_run, now)
        except InvalidValue as error:  # written by an older host that knew other schedules
            self._change(task.id, status="paused", last_result=f"Error: {error.message}")
            return None
        with self.rows.db.transaction():
            current = self.rows.get(task.id)
            if current is None or current.status != "active" or current.next_run != task.next_run:
                return None
            run_id = self.rows.start(task.id, owner, stamp(now))
            if run_id is None:
                return None
            values = {"next_run": following or None, "last_run": stamp(now)}
            self.rows.change(task.id, {**values, **({} if following else {"status": "completed"})})
        return TaskRun(run_id, task.id, stamp(now), 0, "running")

    def _finish(self, task: Task, ended: TaskRun) -> TaskRun:
        intake = self._intake(task.group)
        result, error = (intake.talk(text, "task").text for text in (ended.result, ended.error))
        ended = replace(ended, result=result, error=error)
        with self.rows.db.transaction():
            if self.rows.finish(ended):
                self.rows.change(task.id, {"last_result": _summary(ended)})
                self.rows.trim_runs(task.id, KEPT_RUNS)
        return ended

    # ---- locks ----

    @contextmanager
    def _owned(self) -> Iterator[str]:
        """Yield a name whose lock this process owns; the operating system releases it even after kill -9."""
        private.make_folder(self._locks)
        owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        path = self._locks / f"{owner}.lock"
        with private.locked(path):
            try:
                yield owner
            finally:
                path.unlink(missing_ok=True)

    def _alive(self, owner: str) -> bool:
        with suppress(OSError, ValueError), private.tried_lock(self._locks / f"{owner}.lock") as free:
            return not free
        return False


def _check_mode(context_mode: str) -> None:
    if context_mode not in ("group", "isolated"):
        raise InvalidValue(f"there is no context mode {context_mode[:40]!r}", "use group or isolated")


def _startable(waiting: list[Task], running: Iterable[Task]) -> list[Task]:
    """Return the next tasks that may start: at most one of a group at a time, at most WORKERS in all."""
    busy = [task.group for task in running]
    chosen: list[Task] = []
    for task in waiting:
        if len(busy) < WORKERS and task.group not in busy:
            chosen.append(task)
            busy.append(task.group)
    return chosen


def _run(task: Task, run: TaskRun, session: str, runner: Runner) -> TaskRun:
    began = monotonic()
    try:
        ended = replace(run, status="success", result=_fit(runner(task, session)))
    except TaskFailed as failure:
        ended = replace(run, status="error", error=_fit(str(failure)), result=_fit(failure.result))
    except Exception as error:  # noqa: BLE001
        # The runner is the caller's code: its failure belongs in the log, and the next task still runs.
        ended = replace(run, status="error", error=_fit(f"{type(error).__name__}: {error}"))
    return replace(ended, duration_ms=int((monotonic() - began) * 1000))


def _fit(text: str) -> str:
    """Return a result of bounded length."""
    plain = encodable(str(text))
    cut = f"{plain[:MAX_RESULT]}\n[cut: {MAX_RESULT:,} of {len(plain):,} characters]"
    return cut if len(plain) > MAX_RESULT else plain


def _summary(run: TaskRun) -> str:
    text = f"Error: {run.error}" if run.status == "error" else run.result or "Completed"
    return text if len(text) <= SUMMARY else text[: SUMMARY - 1] + "…"
