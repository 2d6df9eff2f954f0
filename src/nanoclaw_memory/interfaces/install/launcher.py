"""The launcher: a small shell script in the home that finds this program even after it was moved or reinstalled."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from nanoclaw_memory import private
from nanoclaw_memory.interfaces.install.calls import LAUNCHER

# The interpreter and the shim answer fastest. After an upgrade of Python the shim has another path; after a move or a
# reinstallation another program may be there. A hook that finds none is silent: its client continues without memory.
_SCRIPT = """\
#!/bin/sh
# Starts nanoclaw-memory for the clients it is installed in. Written by `ncm install`, which also renews it.
python={python}
for shim in {shims}; do
  [ -x "$python" ] && [ -f "$shim" ] && exec "$python" -I -S "$shim" "$@"
done
for program in "${{python%/*}}/nanoclaw-memory" "$(command -v nanoclaw-memory)" "$HOME/.local/bin/nanoclaw-memory"; do
  [ -x "$program" ] && exec "$program" "$@"
done
{cached}case " $* " in *" hook "*) exit 0 ;; esac
echo "nanoclaw-memory is not installed any more; install it, then run: ncm install" >&2
exit 127
"""
# A hook never waits for the network; the MCP server, which clients start in the background, may fetch the package.
_CACHED = """\
case " $* " in *" hook "*) offline=--offline ;; *) offline= ;; esac
[ -x {uv} ] && exec {uv} tool run $offline --from {package} nanoclaw-memory "$@"
"""


def path_in(home: Path) -> Path:
    """Return the path of a home's launcher."""
    return home.resolve() / "bin" / LAUNCHER


def write(home: Path) -> None:
    """Write the launcher of this installation, or renew it."""
    path = path_in(home)
    private.replace_file(path, script())
    path.chmod(0o700)


def remove_unused(home: Path) -> None:
    """Remove the launcher once no client and no service uses it; other files beside it stay."""
    if any((home / "installed").glob("*.json")):
        return
    path_in(home).unlink(missing_ok=True)
    folder = path_in(home).parent
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def works(home: Path) -> bool:
    """Return whether the launcher finds a program that runs."""
    import subprocess

    try:
        done = subprocess.run([path_in(home), "--version"], capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def script() -> str:
    """Return the launcher for the running interpreter."""
    from nanoclaw_memory.interfaces import shim

    place = str(Path(shim.__file__).resolve())
    shims = [shlex.quote(place)]
    if found := re.search(r"/python3\.\d+/", place):
        shims.append(f"{shlex.quote(place[: found.start()])}/python3*/{shlex.quote(place[found.end() :])}")
    return _SCRIPT.format(python=shlex.quote(sys.executable), shims=" ".join(shims), cached=_from_cache())


def is_cached() -> bool:
    """Return whether this program runs from a cache (uvx, pipx run), which may be emptied at any time."""
    folders = Path(sys.prefix).resolve().parents
    return any((folder / "CACHEDIR.TAG").exists() or folder.name == ".cache" for folder in folders)


def _from_cache() -> str:
    """Return how to run a program in uv's cache after that is emptied."""
    uv = os.environ.get("UV") or shutil.which("uv")
    if not uv or not is_cached():
        return ""
    return _CACHED.format(uv=shlex.quote(uv), package=shlex.quote(_package()))


def _package() -> str:
    """Return what uv installs: the package, or the place from which this one was installed."""
    import json
    from importlib.metadata import distribution

    origin = json.loads(distribution("nanoclaw-memory").read_text("direct_url.json") or "{}")
    return str(origin.get("url") or "nanoclaw-memory")
