"""Find the programs that onehop itself starts by name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def search_path() -> list[Path]:
    """Return the folders of PATH without those that begin in the current folder, which may be another user's."""
    return [folder for folder in map(Path, os.get_exec_path()) if folder.is_absolute()]


def find_program(name: str) -> str | None:
    """Return the path of a program in the folders of `search_path`; None if none of them has it."""
    return shutil.which(name, path=os.pathsep.join(map(str, search_path())) or os.devnull)
