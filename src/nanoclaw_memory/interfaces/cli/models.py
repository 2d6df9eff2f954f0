"""Commands on the local models: install, list, verify."""

from __future__ import annotations

import click

from nanoclaw_memory.interfaces.cli.common import Caller, group, pass_caller


@group("models")
def models() -> None:
    """Fetch and check the models that run on this machine."""


@models.command("install")
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="The reranker too.")
@click.option("--force", is_flag=True, help="Fetch again even when the files are right.")
@pass_caller
def install(caller: Caller, names: tuple[str, ...], every: bool, force: bool) -> None:
    """Fetch a model once and verify it; afterwards it works offline. Without a name: the embedder.

    \b
    ncm models install
    ncm models install --all
    """
    with caller.memory(new=True) as memory:
        found = memory.admin.install_models(names, every, force, lambda line: click.echo(line, err=True))
    _show(caller, found)


@models.command("list")
@pass_caller
def list_(caller: Caller) -> None:
    """List the models and whether they are installed (by name and size).

    \b
    ncm models list
    """
    with caller.memory(new=True) as memory:
        _show(caller, memory.admin.models())


@models.command("verify")
@click.pass_context
@pass_caller
def verify(caller: Caller, context: click.Context) -> None:
    """Read every byte of the installed models; exit 1 when a file is not the one we know.

    \b
    ncm models verify
    """
    with caller.memory(new=True) as memory:
        found = memory.admin.models(check=True)
    _show(caller, found)
    if any(model["state"] in ("tampered", "incomplete") for model in found):
        context.exit(1)


def _show(caller: Caller, found: list[dict[str, str]]) -> None:
    lines = []
    for model in found:
        lines.append(f"{model['name']:<26} {model['state']:<11} {model['purpose']:<22} {model['path']}")
        if model["detail"]:
            lines.append(f"  {model['detail']}")
    caller.show({"models": found}, "\n".join(lines))
