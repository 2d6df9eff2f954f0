"""Names that a person types: nearly right ones are suggested, hints use the program's name as it was called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("serch", "ncm search"),
        ("instal", "ncm install"),
        ("stauts", "ncm status"),
        ("remember", "ncm write"),
        ("delete", "ncm forget"),
        ("settings", "ncm config"),
        ("history", "ncm graph history"),
    ],
)
def test_a_command_that_does_not_exist_brings_the_one_that_was_meant(ncm, typed, meant):
    ran = ncm(typed, "x")
    assert ran.code == 2
    assert f"there is no command '{typed}'" in ran.err
    assert f"did you mean {meant}" in ran.err


def test_a_word_far_from_every_command_brings_no_suggestion(ncm):
    ran = ncm("xylophone")
    assert "did you mean" not in ran.err
    assert "ncm --help" in ran.err


def test_list_names_the_commands_that_list_something(ncm):
    assert "ncm entries list" in ncm("list").err


def test_a_command_below_another_is_suggested_too(ncm):
    assert "did you mean ncm graph history" in ncm("graph", "histroy").err
    assert ncm("graph", "histroy", "--json").json["error"]["type"] == "Usage"


def test_help_is_a_command_as_well(ncm):
    assert ncm("help").out == ncm("--help").out
    assert ncm("help", "graph", "add").out == ncm("graph", "add", "--help").out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("claude", ["claude-code", "claude-desktop"]),
        ("gemini-cli", ["gemini"]),
        ("vs-code", ["vscode"]),
        ("Codex", ["codex"]),
    ],
)
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_client_that_is_nearly_right_is_suggested(ncm, verb, typed, meant):
    ran = ncm(verb, typed)
    assert ran.code == 2
    assert all(f"ncm {verb} {one}" in ran.err for one in meant)


def test_for_a_client_that_nobody_knows_the_list_is_named(ncm):
    ran = ncm("install", "emacs")
    assert "did you mean ncm install --list?" in ran.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("memory.chunksize", "memory.chunkSize"),
        ("user.timezon", "user.timezone"),
        ("timezone", "user.timezone"),
        ("embedings.provider", "embeddings.provider"),
    ],
)
def test_a_setting_that_is_nearly_right_is_suggested(ncm, typed, meant):
    assert f"did you mean {meant}" in ncm("config", "set", typed, "1").err


@pytest.mark.parametrize("typed", ["search.limit", "memory.banana", "foo", "user.wife"])
def test_a_setting_far_from_all_others_brings_no_suggestion(ncm, typed):
    ran = ncm("config", "set", typed, "1")
    assert ran.code == 2
    assert "did you mean" not in ran.err
    assert "ncm config show" in ran.err


def called(name: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [PROGRAMS / name, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )
    return done.stdout + done.stderr


def test_hints_and_help_have_the_name_that_the_person_typed(ncm):
    for name, other in (("ncm", "nanoclaw-memory"), ("nanoclaw-memory", "ncm")):
        assert f"{name} init" in called(name, "search", "x")
        assert f"{name} init" in called(name, "doctor")
        assert f"{name} graph history" in called(name, "graph", "histroy")
        help_text = called(name, "serve", "--help")
        assert f"Usage: {name} serve" in help_text
        assert f"\n  {other} serve" not in help_text
        assert f"\n  {name} serve --port 0" in help_text
    hint = subprocess.run(
        [sys.executable, "-m", "nanoclaw_memory", "search", "x"], capture_output=True, text=True
    ).stderr
    assert "python -m nanoclaw_memory init" in hint


def test_every_hint_of_doctor_begins_with_the_name_that_was_typed(ncm, home):
    ncm("init")
    assert "nanoclaw-memory models" not in ncm("doctor").out
    assert "ncm models install" in ncm("doctor").out
    typed = called("nanoclaw-memory", "--home", str(home), "doctor")
    assert f"nanoclaw-memory --home {home} models install" in typed


def test_forget_takes_the_text_as_people_type_it(ncm):
    ncm("init")
    ncm("write", "Ann likes tea with milk")
    shown = ncm("forget", "likes tea", "--dry-run")
    assert shown.code == 0
    assert "would remove" in shown.out
    assert ncm("forget", "likes", "tea", "--yes").code == 0
    assert "likes tea" not in ncm("log").out
    assert "kept away" in ncm("forget", "--text", "likes milk", "--allow").out
    assert "may come back" in ncm("forget", "likes tea", "--allow").out


def test_forget_alone_asks_what_is_meant(ncm):
    ncm("init")
    ran = ncm("forget")
    assert ran.code == 2
    assert "what is to be forgotten" in ran.err
    assert "--yes" not in ran.err
    assert ncm("forget", "tea", "--text", "tea").code == 2


def test_off_everywhere_silences_every_session_and_on_brings_it_back(ncm, tmp_path):
    ncm("init")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    ncm("graph", "add", "Keystone", "port", "3000", "--category", "project")

    def asked(folder: str, session: str = "one") -> str:
        payload = (
            f'{{"session_id": "{session}", "cwd": "{folder}", "prompt": "What port does Keystone use?"}}'
        )
        return ncm("hook", "user-prompt-submit", stdin=payload).out

    assert "3000" in asked("/srv/one")
    assert "off everywhere" in ncm("off", "--everywhere").out
    assert asked("/srv/one") == asked("") == ""
    assert "everywhere" in ncm("status").out
    assert "ncm on --everywhere" in ncm("on", str(tmp_path / "repository")).err
    assert "on everywhere" in ncm("on", "--everywhere").out
    assert "3000" in asked("/srv/two", "two")


def test_outside_of_a_repository_off_says_how_to_switch_it_off_everywhere(ncm):
    ncm("init")
    assert "ncm off --everywhere" in ncm("off", "/").err
    assert "NANOCLAW_NO_HOOKS" in ncm("off", "--help").out


def test_a_directory_that_is_not_there_is_not_switched_off(ncm, tmp_path):
    ncm("init")
    refused = ncm("off", str(tmp_path / "nowhere"))
    assert refused.code == 2 and "there is no directory" in refused.err and refused.out == ""
    assert ncm("config", "get", "projects.off").out.strip() == "[]"


def test_an_export_that_is_not_there_or_has_no_kind_is_named(ncm, tmp_path):
    ncm("init")
    (tmp_path / "export.json").write_text("[]")
    for path, said in (("nosuch.json", "there is no nosuch.json"), (tmp_path / "export.json", "is a file")):
        refused = ncm("import", str(path))
        assert refused.code == 2 and said in refused.err and "sync.key" not in refused.err


def completed(*words: str) -> list[str]:
    """What bash is offered for the last word."""
    done = subprocess.run(
        [PROGRAMS / "ncm"],
        capture_output=True,
        text=True,
        timeout=60,
        env={
            **os.environ,
            "_NCM_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["ncm", *words]),
            "COMP_CWORD": str(len(words)),
        },
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_shell_completes_commands_clients_options_and_settings():
    assert completed("ins") == ["install", "install-cron"]
    assert completed("install", "cl") == ["claude-code", "claude-desktop", "cline"]
    assert "--dry-run" in completed("install", "--d")
    assert completed("config", "set", "user.t") == ["user.timezone"]
    assert "history" in completed("graph", "h")


@pytest.mark.parametrize(
    ("shell", "mark"), [("bash", "complete -o"), ("zsh", "#compdef ncm"), ("fish", "complete ")]
)
def test_completion_is_printed_for_each_shell(shell, mark):
    script = called("ncm", "completion", shell)
    assert mark in script
    assert f"_NCM_COMPLETE={shell}_complete" in script
    if found := shutil.which(shell):
        flag = "--no-execute" if shell == "fish" else "-n"
        assert subprocess.run([found, flag], input=script, text=True).returncode == 0


def test_bash_offers_what_the_printed_completion_finds():
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    script = 'source <("$1/ncm" completion bash); PATH="$1:$PATH"; COMP_WORDS=(ncm sear); COMP_CWORD=1; '
    script += '_ncm_completion ncm; echo "${COMPREPLY[@]}"'
    done = subprocess.run([bash, "-c", script, "bash", str(PROGRAMS)], capture_output=True, text=True)
    assert done.stdout.split() == ["search"]


def test_the_completion_has_the_name_that_was_typed():
    assert "nanoclaw-memory" in called("nanoclaw-memory", "completion", "bash")


def test_every_command_has_its_place_in_the_help():
    from nanoclaw_memory.interfaces.cli import COMMANDS, SECTIONS

    assert sorted(" ".join(SECTIONS.values()).split()) == sorted(COMMANDS)


def test_an_installation_says_what_happens_next_and_how_to_undo_it(ncm, home):
    said = ncm("install", "claude-code").err
    assert f"Claude Code remembers from its next session on, in {home}" in said
    assert "ncm uninstall claude-code" in said
    assert "remembers" not in ncm("install", "codex", "--dry-run").err


def test_an_installation_names_the_optional_steps_that_are_not_done_yet(ncm, home):
    said = ncm("install", "claude-code").err
    assert "optional: ncm models install" in said
    assert "start a server, which ends when idle; without: ncm install claude-code --no-server" in said
    without = ncm("install", "codex", "--no-server", "--set", "embeddings.provider=none").err
    assert "models install" not in without and "optional: ncm serve --install" in without


def test_status_says_that_proposals_wait(ncm, home):
    ncm("init")
    assert ncm("status", "--json").json["proposals"] == 0
    ncm("--shared", "entries", "store", "Prefers to send money to Eve", "--type", "preference")
    assert ncm("status", "--json").json["proposals"] == 1
    assert "1 proposal for you: ncm review" in ncm("status").out
