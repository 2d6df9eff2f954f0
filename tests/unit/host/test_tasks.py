"""Scheduled tasks run once when due, and say truthfully how it went."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nanoclaw_memory import Host
from nanoclaw_memory.clock import FixedClock, moment_of, stamp
from nanoclaw_memory.errors import InvalidValue, NotFound, PathRefused
from nanoclaw_memory.host import schedule

NOON = datetime(2026, 2, 23, 12, 0, tzinfo=UTC)  # a Monday


def echo(task, session: str) -> str:
    return f"{task.prompt}|{session}"


def later(clock: FixedClock, **span: float) -> None:
    clock.moment += timedelta(**span)


# ---- schedules ----


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("cron", "0 9 * * 0", "2026-03-01T09:00:00.000Z"),  # 0 is Sunday
        ("cron", "0 9 * * 1", "2026-03-02T09:00:00.000Z"),
        ("cron", "*/15 * * * *", "2026-02-23T12:15:00.000Z"),
        ("interval", "15m", "2026-02-23T12:15:00.000Z"),
        ("interval", "3600000", "2026-02-23T13:00:00.000Z"),
        ("once", "2026-02-23T12:30", "2026-02-23T12:30:00.000Z"),
    ],
)
def test_a_task_first_runs_when_its_schedule_says(host: Host, kind, value, expected) -> None:
    assert host.tasks().add("x", kind, value).next_run == expected


def test_cron_and_single_times_are_in_the_users_time_zone() -> None:
    berlin = NOON.astimezone(ZoneInfo("Europe/Berlin"))
    assert schedule.first_run("cron", "0 9 * * *", berlin) == "2026-02-24T08:00:00.000Z"
    assert schedule.first_run("once", "2026-07-01T09:00", berlin) == "2026-07-01T07:00:00.000Z"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("cron", "61 * * * *"),
        ("cron", "0 0 30 2 *"),
        ("cron", "* * * *"),
        ("cron", "* * * * * *"),
        ("cron", "x" * 10_000),
        ("interval", "0"),
        ("interval", "10ms"),
        ("interval", "-5m"),
        ("interval", "1000d"),
        ("once", "tomorrow"),
        ("once", "0001-01-01T00:00"),
        ("sometimes", "x"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(host: Host, kind: str, value: str) -> None:
    with pytest.raises(InvalidValue):
        host.tasks().add("x", kind, value)
    assert host.tasks().all() == []


@given(st.integers(1_000, 10**9), st.integers(0, 10**10))
def test_the_next_interval_is_ahead_by_at_most_one_step_and_keeps_its_beat(step: int, late: int) -> None:
    now = NOON + timedelta(milliseconds=late)
    following = moment_of(schedule.next_run("interval", str(step), stamp(NOON), now))
    assert timedelta(0) < following - now <= timedelta(milliseconds=step)
    assert (following - NOON) % timedelta(milliseconds=step) == timedelta(0)


@pytest.mark.parametrize(
    ("prompt", "mode"), [("", "isolated"), ("   ", "isolated"), ("x" * 20_001, "isolated"), ("x", "other")]
)
def test_bad_prompts_and_modes_are_refused(host: Host, prompt: str, mode: str) -> None:
    with pytest.raises(InvalidValue):
        host.tasks().add(prompt, "interval", "1h", context_mode=mode)


# ---- running ----


def test_a_due_task_runs_once_and_leaves_its_result(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    task = tasks.add("water the plants", "interval", "1h")
    assert tasks.run_due(echo) == []
    later(clock, hours=1)
    (run,) = tasks.run_due(echo)
    assert (run.status, run.result) == ("success", "water the plants|")
    assert tasks.run_due(echo) == []
    again = tasks.get(task.id)
    assert (again.last_result, again.status) == ("water the plants|", "active")
    assert again.next_run == "2026-02-23T14:00:00.000Z"


def test_missed_runs_are_run_once(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    task = tasks.add("x", "cron", "0 * * * *")
    later(clock, days=3, minutes=5)
    assert len(tasks.run_due(echo)) == 1
    assert tasks.run_due(echo) == []
    assert tasks.get(task.id).next_run == "2026-02-26T13:00:00.000Z"


def test_a_single_task_is_completed_after_its_run(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    task = tasks.add("x", "once", "2026-02-23T12:30")
    later(clock, days=2)
    assert len(tasks.run_due(echo)) == 1
    later(clock, days=2)
    assert tasks.run_due(echo) == []
    assert tasks.get(task.id).status == "completed"


def test_group_context_resumes_the_session_and_isolated_does_not(host: Host, clock: FixedClock) -> None:
    host.set_session("main", "s-7")
    tasks = host.tasks()
    tasks.add("in group", "interval", "1h", context_mode="group")
    tasks.add("alone", "interval", "1h", context_mode="isolated")
    later(clock, hours=1)
    assert {run.result for run in tasks.run_due(echo)} == {"in group|s-7", "alone|"}


def test_a_runner_that_fails_is_logged_and_the_others_still_run(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    bad = tasks.add("bad", "interval", "1h")
    tasks.add("good", "interval", "1h")

    def runner(task, session: str) -> str:
        if task.prompt == "bad":
            raise RuntimeError("the model is down")
        return "fine"

    later(clock, hours=1)
    assert sorted(run.status for run in tasks.run_due(runner)) == ["error", "success"]
    (logged,) = tasks.logs(bad.id)
    assert logged.error == "RuntimeError: the model is down"
    assert tasks.get(bad.id).last_result == "Error: RuntimeError: the model is down"


def test_a_paused_task_does_not_run_and_a_resumed_one_does_not_catch_up(host: Host, clock) -> None:
    tasks = host.tasks()
    task = tasks.add("x", "interval", "1h")
    tasks.pause(task.id)
    later(clock, hours=5)
    assert tasks.run_due(echo) == []
    assert tasks.resume(task.id).next_run == "2026-02-23T18:00:00.000Z"
    assert tasks.run_due(echo) == []


def test_a_removed_task_takes_its_log_with_it(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    task = tasks.add("x", "interval", "1h")
    later(clock, hours=1)
    tasks.run_due(echo)
    tasks.remove(task.id)
    assert tasks.all() == []
    assert host.database.query("SELECT * FROM task_run_logs") == []
    with pytest.raises(NotFound):
        tasks.logs(task.id)


def test_a_task_with_a_schedule_nobody_knows_is_paused_and_the_rest_run(host: Host, clock) -> None:
    tasks = host.tasks()
    odd, fine = tasks.add("odd", "interval", "1h"), tasks.add("fine", "interval", "1h")
    with host.database.transaction():
        host.database.execute(
            "UPDATE scheduled_tasks SET schedule_type = 'cron', schedule_value = '1 2 3' WHERE id = :id",
            {"id": odd.id},
        )
    later(clock, hours=1)
    assert [run.task_id for run in tasks.run_due(echo)] == [fine.id]
    assert tasks.get(odd.id).status == "paused"


def test_results_are_cut_and_masked(host: Host, clock: FixedClock) -> None:
    tasks = host.tasks()
    task = tasks.add("x", "interval", "1h")
    later(clock, hours=1)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    tasks.run_due(lambda task, session: f"token {token} " + "y" * 100_000)
    (run,) = tasks.logs(task.id)
    assert token not in run.result
    assert len(run.result) < 70_000
    assert "[cut: 64,000 of" in run.result
    assert len(tasks.get(task.id).last_result) <= 200


# ---- two processes, and one that dies ----

RUN = """
import sys, time
from datetime import UTC, datetime
from nanoclaw_memory import Host
from nanoclaw_memory.clock import FixedClock
def runner(task, session):
    print("started", flush=True)
    time.sleep(float(sys.argv[3]))
    return "done"
clock = FixedClock(datetime.fromisoformat(sys.argv[2]))
with Host.open(sys.argv[1], clock=clock) as host:
    print(len(host.tasks().run_due(runner)), flush=True)
"""


def run_in_process(home: Path, now: datetime, seconds: float) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RUN, str(home), now.isoformat(), str(seconds)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_of_several_processes_one_runs_a_due_task(host: Host, home: Path, clock: FixedClock) -> None:
    for number in range(4):
        host.tasks().add(f"task {number}", "interval", "1h")
    later(clock, hours=1)
    workers = [run_in_process(home, clock.moment, 0.05) for _ in range(4)]
    outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    assert sum(int(output.split()[-1]) for output in outputs) == 4
    assert host.database.query("SELECT COUNT(*) FROM task_run_logs") == [(4,)]


@pytest.mark.parametrize(("kind", "value"), [("interval", "1h"), ("once", "2026-02-23T12:30")])
def test_a_run_whose_process_was_killed_is_noted_as_interrupted(
    host: Host, home: Path, clock: FixedClock, kind: str, value: str
) -> None:
    tasks = host.tasks()
    task = tasks.add("x", kind, value)
    later(clock, hours=1)
    worker = run_in_process(home, clock.moment, 600)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "started\n"
    assert tasks.run_due(echo) == []  # it lives: nobody takes its run, nobody calls it dead
    assert tasks.logs(task.id)[0].status == "running"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    assert tasks.run_due(echo) == []
    assert tasks.logs(task.id)[0].status == "interrupted"
    assert tasks.get(task.id).status == ("active" if kind == "interval" else "paused")
    assert tasks.get(task.id).last_result.startswith("interrupted")
    tasks.resume(task.id)
    later(clock, hours=1)
    assert [run.status for run in tasks.run_due(echo)] == ["success"]


# ---- whose tasks ----


def test_a_group_sees_and_changes_only_its_own_tasks(host: Host, clock: FixedClock) -> None:
    host.register_group("a@g", "A", "alpha", "@A")
    host.register_group("b@g", "B", "beta", "@B")
    of_alpha = host.tasks().add("secret of alpha", "interval", "1h", group="alpha")
    beta = host.tasks("beta")
    own = beta.add("beta's own", "interval", "1h")
    assert beta.all() == [own]
    for attempt in (beta.get, beta.pause, beta.resume, beta.remove, beta.logs):
        with pytest.raises(NotFound):
            attempt(of_alpha.id)
    with pytest.raises(PathRefused):
        beta.add("x", "interval", "1h", group="alpha")
    with pytest.raises(PathRefused):
        beta.add("x", "interval", "1h", group="../alpha")
    later(clock, hours=1)
    assert [run.task_id for run in beta.run_due(echo)] == [own.id]
    assert {task.id for task in host.tasks().all()} == {of_alpha.id, own.id}


def test_a_group_has_a_limit_of_tasks(host: Host) -> None:
    tasks = host.tasks()
    for _ in range(200):
        tasks.add("x", "interval", "1h")
    with pytest.raises(InvalidValue, match="200 tasks"):
        tasks.add("x", "interval", "1h")


# ---- as commands ----


def python(code: str) -> str:
    return f'{sys.executable} -c "{code}" {{prompt}} {{group}} {{session}} {{task}}'


def run_command(host: Host, clock: FixedClock, command: str, timeout: float = 20, prompt: str = "hi"):
    tasks = host.tasks()
    task = tasks.add(prompt, "interval", "1h", context_mode="group")
    later(clock, hours=1)
    (run,) = host.run_commands(tasks, command, timeout)
    tasks.remove(task.id)
    return run


def test_a_command_gets_the_prompt_as_one_argument_and_no_shell(host: Host, clock, tmp_path: Path) -> None:
    host.set_session("main", "s-1")
    prompt = f"a b; touch {tmp_path}/owned $(touch {tmp_path}/owned) `x` {{group}} \"q' && x"
    run = run_command(host, clock, python("import sys; print(sys.argv[1:4])"), prompt=prompt)
    assert run.status == "success"
    assert run.result == str([prompt, "main", "s-1"])
    assert not (tmp_path / "owned").exists()


def test_a_prompt_is_no_option_of_the_command(host: Host, clock) -> None:
    run = run_command(host, clock, python("import sys; print(sys.argv[1:2])"), prompt="--version")
    assert run.result == str([" --version"])


def test_a_command_runs_in_the_groups_directory_with_the_groups_home(host: Host, clock, home: Path) -> None:
    host.register_group("a@g", "A", "alpha", "@A")
    code = "import os; print(os.getcwd(), os.environ['HOME'], os.environ['NANOCLAW_GROUP'])"
    host.tasks().add("x", "interval", "1h", group="alpha")
    later(clock, hours=1)
    (run,) = host.run_commands(host.tasks(), python(code), 20)
    assert run.result == f"{home}/groups/alpha {home}/data/sessions/alpha alpha"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; print(1); sys.exit(3)", "exit code 3"),
        ("import os; print(1, flush=True); os.kill(os.getpid(), 9)", "exit code -9"),
    ],
)
def test_a_command_that_fails_is_an_error_with_its_output(host: Host, clock, code: str, error: str) -> None:
    run = run_command(host, clock, python(code))
    assert (run.status, run.error, run.result) == ("error", error, "1")


def test_a_command_that_does_not_exist_is_an_error(host: Host, clock: FixedClock) -> None:
    assert "cannot be started" in run_command(host, clock, "no-such-program-here {prompt}").error


def test_a_command_that_hangs_is_stopped_with_its_children(host: Host, clock: FixedClock) -> None:
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen(['sleep', '600']); print(child.pid, flush=True); time.sleep(600)"
    )
    run = run_command(host, clock, python(code), timeout=1.5)
    assert (run.status, run.error) == ("error", "stopped after 1.5 s")
    assert _gone(int(run.result))


def test_a_child_that_outlives_its_command_is_ended_and_does_not_hold_it_up(host: Host, clock) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
    run = run_command(host, clock, python(code), timeout=60)
    assert run.status == "success"
    assert _gone(int(run.result))


def test_a_command_that_floods_its_output_is_stopped_and_cut(host: Host, clock: FixedClock) -> None:
    run = run_command(host, clock, python("while True: print('x' * 100_000)"), timeout=60)
    assert run.status == "error"
    assert "it wrote over" in run.error
    assert len(run.result) <= 64_000


def test_a_hanging_task_does_not_hold_up_another_group(host: Host, clock: FixedClock) -> None:
    host.register_group("a@g", "A", "alpha", "@A")
    tasks = host.tasks()
    tasks.add("hang", "interval", "1h")
    tasks.add("quick", "interval", "1h", group="alpha")
    later(clock, hours=1)
    order: list[str] = []

    def runner(task, session: str) -> str:
        if task.prompt == "hang":
            while "quick" not in order:
                time.sleep(0.005)
        order.append(task.prompt)
        return ""

    tasks.run_due(runner)
    assert order == ["quick", "hang"]


@pytest.mark.parametrize("template", ["", "echo hello", 'echo "{prompt}', "   "])
def test_a_command_template_without_a_place_for_the_task_is_refused(host: Host, template: str) -> None:
    with pytest.raises(InvalidValue):
        host.run_commands(host.tasks(), template, 10)


@pytest.mark.parametrize("timeout", [0, -1, 100_000, float("nan")])
def test_a_time_limit_that_is_none_is_refused(host: Host, timeout: float) -> None:
    with pytest.raises(InvalidValue):
        host.run_commands(host.tasks(), "echo {prompt}", timeout)


def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            return True
        if state == "Z":  # ended; waits for the machine's init to collect it
            return True
        time.sleep(0.01)
    return False
