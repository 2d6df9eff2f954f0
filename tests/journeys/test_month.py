"""One month of a developer with two repositories: today's values, silence where nothing is needed, and what it cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.interfaces.mcp.server import build_server
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.types import Scope

FIRST = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
PREFERENCE = "Pull request descriptions are written as three bullet points, never as prose"
# Day, project, how it came in, text (a talk also has the answer).
MONTH = (
    (1, "tideline", "log", "Tideline runs on port 8410 behind Caddy"),
    (1, "tideline", "log", "Tideline's queue is RabbitMQ"),
    (1, "mosaic", "log", "Mosaic is built with webpack"),
    (2, "mosaic", "page", "Mosaic's design review is with Odile Brandt every Tuesday"),
    (
        3,
        "tideline",
        "talk",
        "The staging database of tideline is called tide_stage_2",
        "Noted: tide_stage_2.",
    ),
    (4, "mosaic", "log", "Mosaic's bundle budget is 240 KB"),
    (5, "tideline", "log", "On-call for tideline this quarter: Ruben"),
    (6, "mosaic", "talk", "Feature flags in mosaic come from Unleash", "Understood, Unleash."),
    (7, "tideline", "log", "Tideline's backups are kept for 14 days"),
    (8, "mosaic", "log", "The accessibility audit of mosaic is planned for 20 June"),
    (9, "tideline", "log", "Tideline's rate limit is 50 requests per second"),
    (11, "tideline", "log", "Tideline moved from port 8410 to port 9020"),
    (13, "mosaic", "log", "Mosaic moved from webpack to Vite"),
    (14, "tideline", "log", "Tideline's queue moved from RabbitMQ to NATS"),
    (15, "mosaic", "log", "Mosaic's bundle budget was raised from 240 KB to 300 KB"),
    (17, "tideline", "log", "On-call for tideline changed from Ruben to Marit"),
    (18, "mosaic", "log", "Feature flags in mosaic switched from Unleash to GrowthBook"),
    (20, "tideline", "log", "Tideline's backups are kept for 30 days, changed from 14 to 30 days"),
    (22, "mosaic", "log", "The accessibility audit of mosaic was moved from 20 June to 4 July"),
    (24, "tideline", "log", "Tideline's rate limit was raised from 50 to 120 requests per second"),
)
# Project, question, today's value, the value before.
QUESTIONS = (
    ("tideline", "What port does tideline run on?", "9020", "8410"),
    ("mosaic", "What is mosaic built with?", "Vite", "webpack"),
    ("tideline", "What is the queue of tideline now?", "NATS", "RabbitMQ"),
    ("mosaic", "What is the bundle budget of mosaic?", "300 KB", "240 KB"),
    ("tideline", "Who is on call for tideline?", "Marit", "Ruben"),
    ("mosaic", "Where do feature flags in mosaic come from?", "GrowthBook", "Unleash"),
    ("tideline", "How long are backups of tideline kept?", "30 days", "14 days"),
    ("mosaic", "When is the accessibility audit of mosaic?", "4 July", "20 June"),
    ("tideline", "What is tideline's rate limit?", "120 requests", "50 requests"),
    ("mosaic", "With whom is mosaic's design review?", "Odile Brandt", ""),
)
IDLE = (
    "thanks!",
    "continue",
    "ok, looks good",
    "What is 12 % of 1,450?",
    "write a regex that matches an ISO date",
    "Translate to French: good morning everyone",
    "how do I exit vim",
    "explain the difference between TCP and UDP",
    "yes please",
    "def f(x): return x+1  # add a docstring to this function",
)


ONE_HOME = True


# A month is about what is told, however slow the machine is.
PLUGINS = ("graph-memory", "policies", "recall", "continuity", "stability", "growth-vectors")
PATIENT = {"plugins.timeoutMs": "60000"} | {f"plugins.entries.{name}.timeoutMs": "60000" for name in PLUGINS}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("month") / "home"


class Month:
    """The developer's home, opened as a session on a day in a repository."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = FixedClock(FIRST)
        self.sessions = 0
        self.tokens = 0

    def open(self, day: int, project: str, origin: str = "owner") -> Memory:
        self.clock.moment = FIRST + timedelta(days=day - 1)
        self.sessions += 1
        scope = Scope(session_id=f"s{self.sessions}", project=project, origin=origin)
        return Memory.open(self.home, scope, clock=self.clock, overrides=PATIENT)

    def told(self, day: int, project: str, message: str) -> str:
        with self.open(day, project) as memory:
            turn = memory.before_turn(message)
        self.tokens += sum(block.tokens for block in turn.blocks)
        return turn.text

    def happen(self, day: int, project: str, way: str, *said: str) -> None:
        with self.open(day, project) as memory:
            if way == "log":
                memory.write(said[0])
            elif way == "talk":
                memory.after_turn(*said)
            else:
                with (memory.home.workspace("main") / "MEMORY.md").open("a") as page:
                    page.write(f"- {said[0]}\n")


@pytest.fixture(scope="module")
def month(home: Path) -> Month:
    lived = Month(home)
    with lived.open(1, "") as memory:
        memory.init()
    for event in MONTH:
        lived.happen(*event)
    return lived


@pytest.mark.anyio
async def test_a_preference_stored_over_mcp_is_in_the_last_days_session_and_turn(month: Month):
    from mcp.client import Client

    with month.open(2, "mosaic", "agent") as agent:
        async with Client(build_server(agent)) as client:
            await client.call_tool("memory_store", {"content": PREFERENCE, "type": "preference"})
    with month.open(30, "mosaic") as memory:
        assert "three bullet points" in memory.session_start().text + memory.boot().text
    told = month.told(30, "mosaic", "Write the pull request description for the Vite change")
    assert "three bullet points" in told


@pytest.mark.parametrize(("project", "question", "today", "before"), QUESTIONS)
def test_a_question_on_the_last_day_gets_todays_value_and_no_outdated_one_unmarked(
    month: Month, project: str, question: str, today: str, before: str
):
    told = month.told(30, project, question)
    assert today in told
    outdated = [line for line in told.split("\n") if before and before in line and today not in line]
    assert all("earlier" in line or "superseded" in line for line in outdated)


@pytest.mark.parametrize("message", IDLE)
def test_an_idle_prompt_on_the_last_day_gets_silence(month: Month, message: str):
    assert month.told(30, "tideline", message) == ""


def test_the_month_costs_fewer_tokens_than_one_page_a_day(month: Month):
    for project, question, *_ in QUESTIONS:
        month.told(30, project, question)
    spent = month.tokens / max(month.sessions, 1)
    assert spent < 200, f"{spent:.0f} tokens a prompt"
