"""Commands on lessons: list, show, add, retire, outcomes."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, Command, Output, group, listing
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Lesson, Outcome

LESSON_ID = click.argument("lesson_id", metavar="ID", type=int)


@group("lessons")
def lessons() -> None:
    """What the agent was corrected about, and whether it helps to remind it."""


@lessons.command("list")
@click.option("--state", default="", metavar="STATE", help="candidate, active, metabolized or retired.")
def list_(memory: Memory, state: str) -> Output:
    """List the lessons, oldest first.

    \b
    ncm lessons list
    ncm lessons list --state active
    """
    found = memory.lessons.lessons(state)
    shown = found if state else [lesson for lesson in found if not lesson.is_only_noted]
    lines = [_line(lesson) for lesson in shown]
    if rest := len(found) - len(shown):
        why = "noted only (a fact, an exception, something unsure)"
        lines.append(f"{rest} more {why}: ncm lessons list --state candidate")
    return Output({"lessons": found}, lines, "No lessons yet.")


@lessons.command("show")
@LESSON_ID
def show(memory: Memory, lesson_id: int) -> Output:
    """Print a lesson with what came of its injections.

    \b
    ncm lessons show 1
    """
    detail = memory.lessons.detail(lesson_id)
    lesson = detail.lesson
    head = [
        _line(lesson),
        f"      when: {lesson.trigger}",
        f"      since {lesson.created_at[:10]}, {lesson.maturity_days} days, corrected {lesson.seen} times"
        + (f", retired: {lesson.retired_because}" if lesson.retired_because else ""),
        f"      reach: {lesson.reach}" + _place(lesson) + (f"; {lesson.reason}" if lesson.reason else ""),
    ]
    return Output(detail, [*head, *map(_outcome, detail.outcomes)])


@lessons.command("add", new=True)
@click.argument("text")
@click.option("--when", "trigger", default="", metavar="TEXT", help="What is asked when it applies.")
@click.option("--principle", default="", help="The principle that it serves.")
@click.option("--general", is_flag=True, help="It applies to every answer.")
def add(memory: Memory, text: str, trigger: str, principle: str, general: bool) -> Output:
    """Teach a lesson; it is active at once.

    \b
    ncm lessons add "Ask before deleting a branch" --when "clean up branches"
    ncm lessons add "Answer in British English" --general
    """
    lesson = memory.lessons.add(text, trigger, principle, general)
    return Output(lesson, _line(lesson))


@lessons.command("retire")
@LESSON_ID
@click.option("--reason", default="", help="Why.")
def retire(memory: Memory, lesson_id: int, reason: str) -> Output:
    """No longer inject a lesson; it is kept, and wakes when the correction is made again.

    \b
    ncm lessons retire 1 --reason "no longer true"
    """
    lesson = memory.lessons.retire(lesson_id, reason)
    return Output(lesson, _line(lesson))


@lessons.command("outcomes", cls=Command)
@click.argument("lesson_id", metavar="[ID]", type=int, required=False)
@click.option("--good", "verdict", flag_value="good", help="The last injection of ID helped.")
@click.option("--bad", "verdict", flag_value="bad", help="The last injection of ID did not help.")
def outcomes(caller: Caller, lesson_id: int | None, verdict: str | None) -> None:
    """Print what came of injections, newest first; or judge the last one of a lesson.

    \b
    ncm lessons outcomes
    ncm lessons outcomes 1 --good
    """
    if verdict and lesson_id is None:
        raise click.UsageError("say which lesson you mean: ncm lessons outcomes ID --good")
    with caller.memory() as memory:
        part = memory.lessons
        if lesson_id is not None and verdict:
            part.feedback(lesson_id, verdict == "good")
        found = part.outcomes() if lesson_id is None else part.detail(lesson_id).outcomes
    caller.show(listing("outcomes", found, _outcome, "No lesson was injected yet."))


def _line(lesson: Lesson) -> str:
    proved = lesson.helped or lesson.effectiveness < 1
    effect = f"{lesson.effectiveness:.2f}" if proved else "  - "
    return (
        f"{lesson.id:>4}  {lesson.state:<11} {effect} after {lesson.injections:>3}  "
        f"{lesson.lesson} [{lesson.principle}]"
    )


def _place(lesson: Lesson) -> str:
    """Return the project of a lesson, for people; empty if it is of none."""
    where = "only in" if lesson.only_there else "learnt in"
    return f", {where} project {lesson.project}" if lesson.project else ""


def _outcome(outcome: Outcome) -> str:
    after = "awaited" if outcome.post_entropy is None else f"{outcome.post_entropy:.1f}"
    verdict = {None: "open", True: "helped", False: "did not help"}[outcome.helped]
    return (
        f"      {outcome.injected_at[:16]}  lesson {outcome.lesson_id}: {verdict} ({outcome.feedback or 'no'} feedback,"
        f" entropy {outcome.pre_entropy:.1f} to {after})  {outcome.query[:60]}"
    )
