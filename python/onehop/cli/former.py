"""Former spellings of commands and options, which version 0.3 removes: the one table of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from onehop.launch.environment import RESTARTED, current_launch

# Former names of commands.
COMMANDS = {"circuit": "quantum circuit", "hamlib": "quantum hamlib", "qedc": "quantum qedc"}

# Former options of commands that are ignored.
WITHOUT_EFFECT = {"map": ("--scotch", "--no-scotch")}


class Former(NamedTuple):
    """A former spelling of an option: a former name, or a former form of its values.

    `values` has the present form of former values; others stay as they are, and are no former spelling if the name
    stays as well. A former option without a value stands for `flag`. The former meaning holds beside the option
    `beside` with this value only, without the option `without` only, and for values that contain `like` only.
    """

    old: str
    new: str
    values: Mapping[str, str] = {}
    flag: str | None = None
    beside: tuple[str, str] | None = None
    without: str = ""
    like: str = ""

    def applies(self, text: str, others: Mapping[str, str]) -> bool:
        """Whether an option of the former name with this value, among others, is the former spelling."""
        if self.beside is not None and others.get(self.beside[0]) != self.beside[1]:
            return False
        return self.like in text and self.without not in others

    @property
    def is_conditional(self) -> bool:
        """Whether the former name has a present meaning as well."""
        return self.beside is not None or bool(self.like or self.without)


_BITS = {"32": "single", "64": "double"}
_YES_OR_NO = {"yes": "1", "no": "0"}
_FILES = (Former("--precision", "--precision", _BITS),)
_BOUNDARY = Former("--periodic", "--boundary", flag="periodic")
_PERIODIC = Former("--periodic", "--periodic", _YES_OR_NO)
_EXTENTS = Former("--extents", "--extent")

# By the command's path.
OPTIONS: dict[str, tuple[Former, ...]] = {
    "bench wilson": (Former("--ways", "--variants"),),
    "launch": (
        Former("--kill-after", "--grace"),
        Former("--output", "--prefix", {"prefix": "rank"}),
    ),
    "lattice info": (Former("--colours", "--parities"),),
    "lattice measure": (Former("--noises", "--noise-vectors"),),
    "lattice convert": _FILES,
    "lattice smear": (
        *_FILES,
        _BOUNDARY,
        Former("--weight", "--alpha", beside=("--kind", "ape")),
        Former("--weight", "--rho"),
    ),
    "lattice solve": (
        Former("--inner", "--sloppy-precision"),
        Former("--half-faces", "--half-halo"),
        Former("--two-rows", "--recon", flag="12"),
        Former("--method", "--method", {"normal": "cgnr"}),
        Former("--output-bits", "--output-precision", _BITS),
        _BOUNDARY,
    ),
    "lattice thermalize": (
        *_FILES,
        Former("--every", "--save-every", without="--keep"),
        Former("--sweeps", "--trajectories", beside=("--algorithm", "hmc")),
    ),
    "poisson": (Former("--global", "--extent"),),
    "quantum circuit heisenberg": (_EXTENTS, Former("--open", "--periodic", flag="0")),
    "quantum circuit tfim": (_EXTENTS, Former("--open", "--periodic", flag="0")),
    "quantum plan": (Former("--here", "--per-host"), Former("--ranks-per-node", "--per-host")),
    "quantum run": (Former("--every", "--save-every"),),
    "rails": (Former("--ranks", "--grid", like="x"),),
    "schedule halo": (_EXTENTS, _PERIODIC),
    "simulate": (_EXTENTS, _PERIODIC),
}


def former_options(path: str) -> tuple[Former, ...]:
    """Return the former spellings of the options of a command."""
    return OPTIONS.get(f"quantum {path}" if path in ("run", "plan") else path, ())


def say_renamed(old: str, new: str | None) -> None:
    """Print on stderr, on rank 0, that a command or an option has a new name, or no effect any more."""
    # A command that has started itself again as ranks has printed it before.
    launched = current_launch()
    if (launched is None or launched.rank == 0) and RESTARTED not in os.environ:
        what = "has no effect" if new is None else f"is now `{new}`"
        print(f"onehop: `{old}` {what}; version 0.3 will remove the old name", file=sys.stderr)
