"""`onehop lattice check`: the gauge fields of a folder, and what is wrong with them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop.cli.common import JsonOptions, RanksOptions, RowsOptions, console, own_rank, progress, write_json
from onehop.cli.lattice.common import ReadOptions, report_of
from onehop.cli.screen import Table
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.lattice import read_gauge
from onehop.lattice.files.read import require_memory_side_by_side
from onehop.launch import ensure_ranks
from onehop.options import argument, option
from onehop.text import counted

_FILES_OF_A_RANK = 16  # fewer are not worth starting another rank
_OTHERS = (
    ".json",
    ".jsonl",
    ".h5",
    ".log",
    ".txt",
    ".toml",
    ".info",
    ".png",
    ".svg",
    ".pdf",
)  # not read in a folder


@dataclass(kw_only=True)
class Check(ReadOptions, RanksOptions, RowsOptions, JsonOptions):
    folder: list[str] = argument(
        "DIR", "Folder whose files are read, with the folders in it; or several, or files."
    )
    tolerance: float = option(1e-4, "Largest allowed deviation of a link from SU(3).", above=0)


def _files(names: list[str]) -> list[str]:
    """Return all files in order, from folders without hidden ones, logs, measurements and plots."""
    found: list[str] = []
    for name in names:
        if not Path(name).is_dir():
            if not Path(name).exists():
                raise BadInput(f"cannot read {name}: there is no such file or folder")
            found.append(name)
            continue
        for folder, folders, files in os.walk(name):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            fields = [
                one for one in sorted(files) if not one.startswith(".") and Path(one).suffix not in _OTHERS
            ]
            found += [str(Path(folder) / one) for one in fields]
    if not found:
        raise BadInput(f"expected a folder with gauge fields, found no file in {', '.join(names)}")
    return found


def _checked(path: str, options: Check) -> dict[str, Any]:
    try:
        _, found = read_gauge(path, tolerance=options.tolerance, accept_open=True, **options.reading())
    except (Error, MemoryError) as error:  # BadInput is an Error, too
        text = str(error) or type(error).__name__
        return {"file": path, "wrong": text.removeprefix(path).removeprefix(":").strip()}
    return report_of(found) | {"has_checksum": found.has_checksum, "wrong": None}


def _table(files: list[dict[str, Any]], rows: int) -> Table:
    """Return a table of the files that could be read."""
    table = Table("file", "format", "extent", ">bits", ">plaquette", "checksum")
    for one in files[: rows or None]:
        checked = "verified" if one["has_checksum"] else "none"
        extent = "x".join(map(str, one["extent"]))
        checked = "accepted" if "accepted_checksums" in one else checked
        table.add_row(
            one["file"], one["format"], extent, one["precision"], f"{one['plaquette']:.9g}", checked
        )
    if rows and len(files) > rows:
        table.caption = f"{rows} of {len(files)} files; --rows 0 shows all"
    return table


def check(options: Check) -> int:
    """Read and verify all gauge fields of a folder side by side, one file on each rank at a time.

    The report has the format, extents, precision, averages, checksums and boundary of each file, and what is wrong
    with it. Files with the same links are found, too. The exit status is 1 if something is wrong.
    """
    names = _files(options.folder)
    ensure_ranks(
        options.ranks, default=max(1, min(len(os.sched_getaffinity(0)), len(names) // _FILES_OF_A_RANK))
    )
    group = Group.world()
    require_memory_side_by_side(group, names[group.rank :: group.size], 1, options.extent)
    mine = []
    with progress("files", total=len(names)) as advance:
        for path in names[group.rank :: group.size]:
            mine.append(_checked(path, options))
            advance(group.size)
    parts = [json.loads(part) for part in group.allgather(json.dumps(mine).encode())]
    if own_rank() != 0:
        return 0
    by_name = {one["file"]: one for part in parts for one in part}
    files = [by_name[name] for name in dict.fromkeys(names)]
    first: dict[str, str] = {}
    for one in files:
        same = first.setdefault(one["sha256"], one["file"]) if "sha256" in one else one["file"]
        if same != one["file"]:
            one["wrong"] = f"it has the same links as {same}"
    wrong = sum(one["wrong"] is not None for one in files)
    screen = console(options.json)
    screen.print(_table([one for one in files if "format" in one], options.rows))
    for one in files:
        if one["wrong"] is not None:
            screen.print(f"{one['file']}: {one['wrong']}")
    screen.print(f"{counted(len(files), 'file')}, {wrong or 'none'} with something wrong")
    write_json(options.json, {"files": files})
    return 1 if wrong else 0
