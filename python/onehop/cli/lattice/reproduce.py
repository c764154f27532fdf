"""`onehop lattice reproduce`: the links of a file again, from the recipe in its header."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions, console, own_rank, progress, write_json
from onehop.group import Group
from onehop.lattice.ensemble import reproduce as make_again
from onehop.launch import ensure_ranks
from onehop.options import argument
from onehop.text import counted


@dataclass(kw_only=True)
class Reproduce(GridOptions, RanksOptions, JsonOptions):
    file: str = argument("FILE", "ILDG file of `onehop lattice thermalize`, with the recipe of its links.")


def reproduce(options: Reproduce) -> int:
    """Make the links of a file again from the recipe in its header, on any number of ranks, and compare the bits.

    The comparison is that of the SHA-256 of all links in lexicographic order. The exit status is 1 if they differ.
    """
    ensure_ranks(options.ranks)
    group = Group.world()
    with progress("updates") as advance:
        done = make_again(options.file, group, options.grid, advance)
    if own_rank() != 0:
        return int(not done.same)
    what = "the same bits" if done.same else "other bits than the file has"
    console(options.json).print(
        f"{options.file}: {counted(done.updates, 'update')} on {counted(group.size, 'rank')} made {what}; SHA-256 "
        f"{done.found}" + ("" if done.same else f" instead of {done.expected}")
    )
    report = {
        "file": options.file,
        "recipe": done.recipe,
        "updates": done.updates,
        "ranks": group.size,
        "sha256": done.expected,
        "reproduced_sha256": done.found,
        "same": done.same,
    }
    write_json(options.json, report)
    return int(not done.same)
