"""What we create is for its owner alone: folders 0700, files 0600; what a person made keeps its modes."""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600


def make_folder(folder: Path) -> None:
    """Create a folder and those above it that are missing; one that exists is fine."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise


def opener(path: str, flags: int) -> int:
    """For `open(path, mode, opener=opener)`: a file that is new is its owner's alone."""
    return os.open(path, flags, FILE_MODE)
