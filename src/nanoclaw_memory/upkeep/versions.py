"""Earlier versions of a page that upkeep changed, kept outside the workspace so that nobody searches them."""

from __future__ import annotations

from pathlib import Path

from nanoclaw_memory.text import fingerprint
from nanoclaw_memory.workspace.files import make_folder, replace_text

KEPT = 20


def keep(data: Path, relative: str, text: str, moment: str) -> Path:
    """Keep a version; the same text is kept once, and only the newest ones of a page stay."""
    folder = data / "versions" / relative.replace("/", "_").removesuffix(".md")
    make_folder(folder)
    mark = fingerprint(text)[:12]
    known = sorted(folder.glob("*.md"))
    same = [path for path in known if path.stem.endswith(mark)]
    if same:
        return same[-1]
    path = folder / f"{moment.replace(':', '')}-{mark}.md"
    replace_text(path, text)
    for old in known[: max(len(known) + 1 - KEPT, 0)]:
        old.unlink(missing_ok=True)
    return path
