"""Commands on the home as a whole: status, doctor, db, models, config, completion."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
from msgspec.structs import asdict, replace

from nanoclaw_memory.errors import InvalidValue, NanoClawError
from nanoclaw_memory.interfaces.cli import as_called, called
from nanoclaw_memory.interfaces.cli.common import (
    Caller,
    Command,
    Output,
    command,
    group,
    noted,
)
from nanoclaw_memory.interfaces.cli.server_state import check_server, server_of, server_text
from nanoclaw_memory.memory import Memory
from nanoclaw_memory.project import EVERYWHERE_OFF, place_of, project_of
from nanoclaw_memory.settings import leaves
from nanoclaw_memory.text import plural

SIGNS = {"problem": "✗", "warning": "!", "note": "·", "ok": "✓"}


@command("status")
def status(memory: Memory) -> Output:
    """Show an overview, and which database is lost or cannot be opened.

    \b
    ncm status
    """
    found, waiting = memory.status(), 0
    if found.databases and memory.scope.private:
        with suppress(NanoClawError):  # reported among the problems, or by doctor
            waiting = memory.upkeep.count_open()
    own = "" if found.group == "main" else f" --group {found.group}"
    state = "" if found.exists else f" (not created yet: {called()} init{own})"
    others = f" of {', '.join(found.groups)}" if len(found.groups) > 1 else ""
    lines = [f"home      {found.home}{state}", f"group     {found.group}{others}"]
    lines.append(f"memory    {plural(found.files, 'file')}")
    if found.exchanges:
        talk = f"{plural(found.exchanges, 'exchange')} in {plural(found.conversations, 'conversation')}"
        lines.append(f"talk      {talk}")
    lines += [f"database  {name}.db, {_size(size)}" for name, size in found.databases.items()]
    lines += [f"PROBLEM   {problem}; for what helps: {called()} doctor{own}" for problem in found.problems]
    lines.append(f"embedder  {found.embedder}")
    server = server_of(memory)
    lines += [f"server    {server_text(server, memory)}"] if server else []
    lines += [f"cache     {cache.name}, at most {_size(cache.most)} in memory" for cache in found.caches]
    lines += [f"project   {found.project}"] if found.project else []
    lines += [f"off       {'everywhere' if place == EVERYWHERE_OFF else place}" for place in found.off]
    for spent in found.usage:
        who = f"{spent['provider']} {spent['model']}"
        sums = f"{spent['calls']:,} calls, {spent['tokens']:,} tokens, ${spent['cost']:.4f}"
        lines.append(f"spent     {who}: {sums}")
    lines += [f"review    {plural(waiting, 'proposal')} for you: {called()} review{own}"] if waiting else []
    return Output({**asdict(found), "proposals": waiting, "server": server}, lines)


def _size(count: float) -> str:
    """Return a number of bytes as people read it: `256 bytes`, `3.4 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


DIRECTORY = click.argument("directory", default=".", type=click.Path(path_type=Path))
EVERYWHERE = click.option("--everywhere", is_flag=True, help="In all directories.")


@command("off")
@DIRECTORY
@EVERYWHERE
def off(memory: Memory, directory: Path, everywhere: bool) -> Output:
    """Switch memory off in a repository: agents there get nothing, and nothing they do is kept.

    Without DIRECTORY the one you are in. It is listed in nanoclaw.json (projects.off); your repository is not touched.
    For one run of an agent set NANOCLAW_NO_HOOKS=1 instead.

    \b
    ncm off
    ncm off ~/code/secret
    ncm off --everywhere
    """
    return _switch(memory, directory, everywhere, off=True)


@command("on")
@DIRECTORY
@EVERYWHERE
def on(memory: Memory, directory: Path, everywhere: bool) -> Output:
    """Switch memory on again in a repository; with --everywhere, where it was switched off so.

    \b
    ncm on
    ncm on --everywhere
    """
    return _switch(memory, directory, everywhere, off=False)


def _switch(memory: Memory, directory: Path, everywhere: bool, off: bool) -> Output:
    if off and not everywhere and not directory.expanduser().is_dir():
        raise InvalidValue(f"there is no directory {directory}", "name a repository: ncm off DIR")
    place = EVERYWHERE_OFF if everywhere else place_of(str(directory.expanduser().absolute()))
    if not place:
        verb = "off" if off else "on"
        raise InvalidValue(
            f"{directory} is no project", f"name a repository: ncm {verb} DIR; or: ncm {verb} --everywhere"
        )
    listed = [one for one in memory.settings.projects.off if one != place]
    memory.admin.config_set("projects.off", json.dumps([*listed, place] if off else listed))
    still = memory.group.is_off(place)
    where = f"{'off' if still else 'on'} {'everywhere' if everywhere else f'in {place}'}"
    hint = "it is inside another one that is off: ncm status" if still and not off else ""
    if hint and EVERYWHERE_OFF in listed:
        hint = "it is off everywhere: ncm on --everywhere"
    if everywhere and not off and listed:
        hint = f"still off in {', '.join(listed)}"
    return Output(
        {"directory": place, "project": project_of(place), "off": still}, f"memory is {where}", notes=[hint]
    )


@command("doctor", new=True)
@click.option("--fix", is_flag=True, help="Remove old temporary files, mend and date rows, accept losses.")
def doctor(memory: Memory, fix: bool) -> Output:
    """Check files, databases, settings, models, clients and server; every finding ends with what helps.

    Exit 1 when a problem was found. With --fix: temporary files of killed writers that are over an hour old go, texts
    that cannot be decoded get � in their place, rows that a clock in the future dated are dated anew, a damaged list of
    forgotten texts is built from its copy, and the loss of writes counts as known.

    \b
    ncm doctor
    ncm doctor --json
    ncm doctor --fix
    """
    from nanoclaw_memory.interfaces.install.survey import check_clients

    root, levels = memory.home.root, list(SIGNS)
    findings = memory.doctor(fix)
    if memory.scope.private and memory.home.exists():
        findings += check_clients(root, memory.scope.group)
    server = server_of(memory)
    findings += check_server(memory, server) if server else []
    findings.sort(key=lambda found: levels.index(found.level))
    lines = [f"{SIGNS[found.level]} {found.message}\n    {as_called(found.next)}" for found in findings]
    failed = any(found.level == "problem" for found in findings)
    return Output({"ok": not failed, "findings": findings, "server": server}, lines, failed=failed)


@group("db")
def db() -> None:
    """Check, move and reset the databases."""


@db.command("check")
@click.option("--all", "all_groups", is_flag=True, help="Check the databases of every group.")
def check_databases(memory: Memory, all_groups: bool) -> Output:
    """Check the integrity of every existing database; exit 1 when one is damaged.

    \b
    ncm db check
    ncm db check --all --json
    """
    checks = memory.admin.check_databases(all_groups)
    lines = []
    for check in checks:
        lines.append(f"{check.path}: {'sound' if not check.problems else 'DAMAGED'}")
        lines += [f"  {problem}" for problem in check.problems] + (
            [f"  next: {check.next}"] if check.next else []
        )
    failed = any(check.problems for check in checks)
    return Output({"ok": not failed, "databases": checks}, lines, "No databases yet.", failed=failed)


@command("migrate-store")
@click.option("--to", required=True, metavar="URL", help="postgresql://…, or `files`.")
@click.option("--replace", is_flag=True, help="Set aside what the target has of its own.")
def migrate_store(memory: Memory, to: str, replace: bool) -> Output:
    """Move the whole home, with all groups, to a PostgreSQL server, or back to files.

    Every row is compared afterwards. The source stays as it was: change store.url when all is well. Killed, the same
    command goes on; run again, it moves what has changed since. The search index is built anew by the next search.

    \b
    ncm migrate-store --to "postgresql://ncm:$PGPASSWORD@db/ncm"
    ncm migrate-store --to files
    """
    done = memory.admin.migrate_store(to, replace)
    lines = [
        f"{database.name}: {plural(database.rows, 'row')}{'' if database.moved else ', there already'}"
        for database in done.databases
    ]
    lines += [f"pages: {done.pages}"] if done.pages else []
    notes = [*(f"left out: {problem}" for problem in done.problems), f"next: {done.next}"]
    return Output(done, lines, notes=notes)


@db.command("role")
@click.argument("name")
@click.option("--drop", is_flag=True, help="End the role, and its connections.")
def role(memory: Memory, name: str, drop: bool) -> Output:
    """Make a login role of PostgreSQL for an agent of this group: it reads and writes this group's schemas only.

    With --shared it reaches what the group's shared chats said and nothing private. What it writes in the owner's
    name becomes the agent's. Published entries of other groups are readable by `ncm share grant` only. See
    docs/team.md.

    \b
    ncm db role gandalf --group research
    ncm db role chat --group family --shared
    ncm db role gandalf --drop
    """
    if drop:
        memory.admin.drop_role(name)
        return Output({"role": name, "dropped": True}, f"the role {name} is gone")
    url = memory.admin.make_role(name)
    return Output(
        {"role": name, "url": url}, f"role {name} of {memory.scope.group}; it is shown once:\n{url}"
    )


@db.command("reset")
@click.argument("name")
def reset_database(memory: Memory, name: str) -> Output:
    """Begin a damaged or lost database anew: the file is moved to `damaged/`, the next use makes an empty one.

    A sound one is refused. Doctor says when to use this, and what can be rebuilt afterwards.

    \b
    ncm db reset continuity
    """
    folder = memory.admin.reset_database(name)
    return Output(
        {"database": name, "kept": str(folder)}, f"{name}.db begins anew; what was left is in {folder}"
    )


@group("models")
def models() -> None:
    """Fetch and check the models that run on this machine."""


@models.command("install", new=True)
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="The reranker too.")
@click.option("--force", is_flag=True, help="Fetch again even when the files are right.")
def install_models(memory: Memory, names: tuple[str, ...], every: bool, force: bool) -> Output:
    """Fetch a model once and verify it; afterwards it works offline. Without a name: the embedder.

    \b
    ncm models install
    ncm models install --all
    """
    return _models(memory.admin.install_models(names, every, force, partial(click.echo, err=True)))


@models.command("list", new=True)
def list_models(memory: Memory) -> Output:
    """List the models and whether they are installed (by name and size).

    \b
    ncm models list
    """
    return _models(memory.admin.models())


@models.command("verify", new=True)
def verify_models(memory: Memory) -> Output:
    """Read every byte of the installed models; exit 1 when a file is not the one we know.

    \b
    ncm models verify
    """
    found = memory.admin.models(check=True)
    failed = any(model["state"] in ("tampered", "incomplete") for model in found)
    return replace(_models(found), failed=failed)


def _models(found: list[dict[str, str]]) -> Output:
    lines = []
    for model in found:
        lines.append(f"{model['name']:<26} {model['state']:<11} {model['purpose']:<22} {model['path']}")
        lines += [f"  {model['detail']}"] if model["detail"] else []
    return Output({"models": found}, lines)


@group("config")
def config() -> None:
    """Show, read and change settings (nanoclaw.json)."""


@config.command("show", new=True)
@click.argument("prefix", default="")
def show_settings(memory: Memory, prefix: str) -> Output:
    """List settings with their values and where each comes from.

    \b
    ncm config show
    ncm config show embeddings
    """
    rows = memory.admin.config_rows(prefix)
    problems = memory.group.configuration.problems
    lines = [f"{row['key']:<48} {_as_json(row['value']):<28} {row['from']}" for row in rows]
    return Output({"settings": rows, "problems": problems}, lines, notes=noted(problems))


def _complete_key(context: click.Context, option: click.Parameter, begun: str) -> list[str]:
    return [leaf.path for leaf in leaves() if leaf.path.startswith(begun)]


@config.command("get", new=True)
@click.argument("key", shell_complete=_complete_key)
def get_setting(memory: Memory, key: str) -> Output:
    """Print one setting.

    \b
    ncm config get memory.chunkSize
    """
    value, origin = memory.admin.config_get(key)
    text = value if isinstance(value, str) else _as_json(value)
    return Output({"key": key, "value": value, "from": origin}, text)


@config.command("set", new=True)
@click.argument("key", shell_complete=_complete_key)
@click.argument("value")
def set_setting(memory: Memory, key: str, value: str) -> Output:
    """Change one setting in nanoclaw.json; the file is checked before it is replaced.

    \b
    ncm config set user.timezone Europe/Berlin
    ncm config set embeddings.provider azure-openai
    """
    stored = memory.admin.config_set(key, value)
    return Output({"key": key, "value": stored}, f"{key} = {_as_json(stored)}")


@config.command("unset", new=True)
@click.argument("key")
def unset_setting(memory: Memory, key: str) -> Output:
    """Remove one key from nanoclaw.json, even one that is no setting.

    \b
    ncm config unset user.timezone
    """
    memory.admin.config_unset(key)
    return Output({"key": key}, f"{key} is not set any more")


@command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(caller: Caller, shell: str) -> None:
    """Print what makes a shell complete commands, options, clients and settings; put it where the shell reads it.

    \b
    ncm completion bash > ~/.local/share/bash-completion/completions/ncm
    ncm completion zsh > ~/.zfunc/_ncm
    ncm completion fish > ~/.config/fish/completions/ncm.fish
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root()
    name = root.info_name or "ncm"
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    click.echo(made(root.command, {}, name, variable).source())


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
