"""Boot: the right files in the right order, within the caps, and nothing private in a shared scope."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from nanoclaw_memory.clock import FixedClock
from nanoclaw_memory.errors import InvalidValue, NotFound
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.tokens import estimate
from nanoclaw_memory.types import Boot

MAIN = ["SOUL.md", "USER.md", "IDENTITY.md", "memory/active-context.md", "MEMORY.md"]


def paths(boot: Boot) -> list[str]:
    return [file.path for file in boot.files]


def test_the_main_agent_reads_its_files_in_order(memory: Memory, home: Path):
    for name in MAIN[1:]:
        (home / "workspace" / name).write_text("own words\n")
    memory.write("a line of today")
    boot = memory.boot()
    assert paths(boot) == [*MAIN, "memory/2026-02-22.md", "memory/2026-02-23.md"]
    shown = [boot.text.index(f"## {path}") for path in [*MAIN, "memory/2026-02-23.md"]]
    assert shown == sorted(shown)
    assert boot.mode == "both"


def test_what_somebody_wrote_into_agents_tools_heartbeat_and_boot_is_read_and_our_own_lines_are_not(
    memory: Memory, home: Path
):
    for name in ("AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md"):
        with (home / "workspace" / name).open("a") as page:
            page.write(f"- own rule of {name}\n")
    text = memory.boot().text
    order = [
        text.index(f"own rule of {name}") for name in ("AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md")
    ]
    assert order == sorted(order) and text.index("# Soul") < order[0]
    assert "Prune MEMORY.md" not in text and "search memory" not in text


def test_a_groups_claude_md_and_the_shared_one_are_read_searched_and_shown(
    open_memory: Callable[..., Memory], memory: Memory, home: Path
):
    open_memory("family").init()
    with (home / "groups/family/CLAUDE.md").open("a") as page:
        page.write("Oma's cake needs 300 g of flour.\n")
    with (home / "shared/CLAUDE.md").open("a") as page:
        page.write("The house number is 14.\n")
    for private in (True, False):
        family = open_memory("family", private=private)
        assert "300 g" in family.boot().text and "number is 14" in family.boot().text
        assert "300 g" in family.get("CLAUDE.md").text
        assert family.search("flour for the cake", fast=True).hits[0].path == "CLAUDE.md"
    other = open_memory("work")
    other.init()
    assert "300 g" not in other.boot().text and not other.search("flour for the cake", fast=True).hits
    assert "number is 14" in memory.boot().text and "300 g" not in memory.boot().text


def test_a_link_in_place_of_a_groups_claude_md_is_not_followed(
    open_memory: Callable[..., Memory], memory: Memory, home: Path
):
    family = open_memory("family")
    family.init()
    (home / "workspace/MEMORY.md").write_text("the secret of main\n")
    page = home / "groups/family/CLAUDE.md"
    page.unlink()
    page.symlink_to(home / "workspace/MEMORY.md")
    assert "secret" not in family.boot().text and not family.get("CLAUDE.md").exists
    assert not family.search("secret of main", fast=True).hits


def test_a_missing_file_is_one_marker_line(memory: Memory, home: Path):
    (home / "workspace" / "USER.md").unlink()
    boot = memory.boot()
    assert boot.text.splitlines().count("[missing: USER.md]") == 1
    assert next(file for file in boot.files if file.path == "USER.md").missing


def test_an_empty_home_boots_with_markers_only(open_memory: Callable[..., Memory]):
    boot = open_memory().boot()
    assert all(file.missing for file in boot.files)
    assert boot.text.count("[missing:") == len(MAIN)  # most days have no log


def test_an_empty_memory_costs_at_most_sixty_tokens(memory: Memory):
    assert memory.boot().tokens <= 60
    assert estimate(memory.session_start(10_000).text) <= 60
    assert "<!--" not in memory.boot().text
    assert "MEMORY.md" not in memory.boot().text


OLD_PAGE = """# User

Whom this agent helps. Keep it under 3 KB. Facts written as `- key: value` are found by `graph seed`.

- name:
- timezone:

## Family

## Projects
"""


def test_what_an_earlier_release_wrote_and_nobody_changed_costs_nothing(memory: Memory, home: Path):
    page = home / "workspace" / "USER.md"
    page.write_text(OLD_PAGE)
    assert "USER.md" not in memory.boot().text
    page.write_text(OLD_PAGE.replace("## Family\n", "## Family\n- Ida is my daughter\n"))
    assert "## USER.md\n\n# User\n\n## Family\n- Ida is my daughter\n" in memory.boot().text
    assert "Projects" not in memory.boot().text


def test_comments_are_for_the_person_and_headings_of_the_person_stay(memory: Memory, home: Path):
    page = home / "workspace" / "MEMORY.md"
    code = "```html\n<!-- in code -->\n\n\n# Soul\n```"
    page.write_text(
        f"# No deploys on Friday\n\n<!-- ask Ann\nabout it -->\n\n## Never\n\n{code}\n\n## Preferences\n"
    )
    text = memory.boot().text
    assert f"# No deploys on Friday\n\n## Never\n\n{code}" in text
    assert "ask Ann" not in text
    assert "## Preferences" not in text


def test_a_project_agent_reads_the_project_first_and_no_personal_memory(memory: Memory, home: Path):
    memory.workspace.new_project("pay", "Payments")
    (home / "workspace" / "memory" / "project-pay.md").write_text("own notes")
    boot = memory.boot("pay")
    assert paths(boot) == [
        "memory/project-pay.md",
        "shared/project-pay.md",
        "SOUL.md",
        "IDENTITY.md",
        "memory/2026-02-23.md",
    ]
    assert boot.text.startswith("## memory/project-pay.md\n\nown notes")
    assert boot.mode == "project"


def test_an_unknown_project_is_a_marker_and_a_bad_slug_is_refused(memory: Memory):
    assert "[missing: memory/project-none.md]" in memory.boot("none").text
    with pytest.raises(InvalidValue):
        memory.boot("../x")


def test_a_shared_scope_gets_no_private_file(memory: Memory, home: Path, open_memory: Callable[..., Memory]):
    for path in home.joinpath("workspace").rglob("*.md"):
        path.write_text(f"secret of {path.name}")
    boot = open_memory(private=False).boot()
    assert paths(boot) == ["SOUL.md", "AGENTS.md", "IDENTITY.md"]
    for private in ("USER.md", "MEMORY.md", "active-context.md", "2026-02-23.md"):
        assert private not in boot.text


def test_a_long_file_is_cut_aloud_with_the_line_where_reading_goes_on(
    open_memory: Callable[..., Memory], home: Path
):
    memory = open_memory(memory__maxBootstrapCharsPerFile="100")
    memory.init()
    (home / "workspace" / "SOUL.md").write_text("".join(f"line {number:03}\n" for number in range(1, 31)))
    boot = memory.boot()
    soul = boot.files[0]
    assert soul.truncated and soul.chars <= 100
    assert "[truncated: 100 of 270 characters; memory_get SOUL.md continues at line 12]" in boot.text
    assert memory.get("SOUL.md", 12).text.startswith("line 012")


def test_all_files_together_keep_to_the_total(open_memory: Callable[..., Memory], home: Path):
    memory = open_memory(memory__maxBootstrapCharsTotal="150")
    memory.init()
    for name in MAIN:
        (home / "workspace" / name).write_text("x" * 100)
    boot = memory.boot()
    assert sum(file.chars for file in boot.files) == 150
    assert [file.truncated for file in boot.files[:3]] == [False, True, True]


def test_a_file_that_is_no_text_is_named_and_the_rest_loads(memory: Memory, home: Path):
    (home / "workspace" / "USER.md").write_bytes(b"\x00\x01")
    boot = memory.boot()
    assert "[not loaded: USER.md: " in boot.text
    assert "## SOUL.md" in boot.text


def test_a_file_of_fifty_megabytes_is_skipped_aloud(memory: Memory, home: Path):
    with (home / "workspace" / "USER.md").open("wb") as stream:
        stream.truncate(50_000_000)
    assert "[not loaded: USER.md: USER.md has 50,000,000 bytes" in memory.boot().text


def test_a_link_out_of_the_workspace_is_not_loaded(memory: Memory, home: Path, tmp_path: Path):
    (tmp_path / "outside.md").write_text("secret")
    (home / "workspace" / "SOUL.md").unlink()
    (home / "workspace" / "SOUL.md").symlink_to(tmp_path / "outside.md")
    boot = memory.boot()
    assert "secret" not in boot.text
    assert "[not loaded: SOUL.md:" in boot.text


def test_today_is_the_users_day_and_not_the_machines(open_memory: Callable[..., Memory], home: Path):
    late = datetime(2026, 2, 23, 23, 30, tzinfo=UTC)
    berlin = FixedClock(late.astimezone(tz=ZoneInfo("Europe/Berlin")))
    with Memory.open(home, clock=berlin) as memory:
        assert paths(memory.boot())[-1] == "memory/2026-02-24.md"
        assert memory.write("late").path == "memory/2026-02-24.md"


def test_yesterdays_log_comes_before_todays(memory: Memory, clock: FixedClock):
    memory.write("first day")
    clock.moment += timedelta(days=1)
    memory.write("second day")
    text = memory.boot().text
    assert text.index("first day") < text.index("second day")
    clock.moment += timedelta(days=1)
    assert "first day" not in memory.boot().text


def test_tokens_are_counted_per_file_and_in_all(memory: Memory):
    boot = memory.boot()
    assert all(file.tokens > 0 for file in boot.files if not file.missing and file.chars)
    assert boot.tokens >= sum(file.tokens for file in boot.files)


def test_one_line_too_many_costs_that_line_and_not_the_whole_memory(memory: Memory, home: Path):
    (home / "workspace" / "MEMORY.md").write_text("".join(f"- rule {n}\n" for n in range(1, 202)))
    boot = memory.boot()
    assert boot.mode == "both"
    assert "- rule 200\n" in boot.text
    assert "- rule 201" not in boot.text
    assert "memory_get MEMORY.md continues at line 201" in boot.text


def test_the_brief_comes_beneath_memory_which_is_loaded_up_to_8_kb(memory: Memory, home: Path):
    memory.store("Deploys happen on Friday", "decision")
    (home / "workspace" / "MEMORY.md").write_text("# Memory\n" + "words and words\n" * 1_000)
    boot = memory.boot()
    start = next(file for file in boot.files if file.path == "MEMORY.md")
    assert boot.text.index("# Memory\nwords") < boot.text.index("Deploys happen on Friday")
    assert start.truncated and start.chars <= 8_000


def test_what_an_agent_stored_is_known_at_the_next_session_start(
    memory: Memory, open_memory: Callable[..., Memory]
):
    memory.store("Prefers tabs in Makefiles and answers in metric units", "preference")
    assert "Prefers tabs in Makefiles" in open_memory(session="next").boot().text


def test_an_entry_that_stands_in_memory_too_is_given_once(memory: Memory, home: Path):
    memory.store("Deploys happen on Friday", "decision")
    memory.store("Backups run at night", "decision")
    (home / "workspace" / "MEMORY.md").write_text("# Memory\n\n- Deploys happen on Friday.\n")
    text = memory.boot().text
    assert text.count("Deploys happen on Friday") == 1 and text.count("Backups run at night") == 1


def test_a_brief_that_only_repeats_memory_is_left_out(memory: Memory, home: Path):
    memory.store("Deploys happen on Friday", "decision")
    (home / "workspace" / "MEMORY.md").write_text("- Deploys happen on Friday\n")
    assert "Memory Context" not in memory.boot().text


def test_a_brief_that_has_nothing_to_say_replaces_nothing(open_memory: Callable[..., Memory], home: Path):
    with open_memory(memory__boot="brief") as memory:
        memory.init()
        (home / "workspace" / "MEMORY.md").write_text("- a rule\n")
        assert "- a rule" in memory.boot().text
        memory.store("Deploys happen on Friday", "decision")
        assert "- a rule" not in memory.boot().text


def test_an_unknown_group_is_not_a_second_memory(open_memory: Callable[..., Memory]):
    with pytest.raises(NotFound, match="familly"):
        open_memory("familly").boot()
