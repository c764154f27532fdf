"""Shared parts of the lattice commands: options with one number per direction, former names of options, checks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from onehop.cli.common import console, given, refuse_both, say_renamed
from onehop.error import BadInput
from onehop.lattice.phases import PHASES

NUMBERS = ("--extent", "--grid")
# Former names of options, by command; version 0.3 will remove them.
_RENAMED = {
    "info": {"--colours": ("--parities",)},
    "measure": {"--noises": ("--noise-vectors",)},
    "solve": {
        "--inner": ("--sloppy-precision",),
        "--half-faces": ("--half-halo",),
        "--two-rows": ("--recon", "12"),
    },
}
_given: set[str] = set()  # the options on the command line, by their long form

_EXTENT = typer.Option(
    "--extent", metavar="X Y Z T", help="Number of sites in each direction (1 to 4 directions)."
)
ExtentOption = Annotated[str, _EXTENT]
# `ExtentOption | None` would lose the help, since typer looks for the annotation at the top level only.
OptionalExtentOption = Annotated[str | None, _EXTENT]
GridOption = Annotated[
    str | None,
    typer.Option(
        "--grid",
        metavar="X Y Z T",
        help="Number of ranks in each direction. Default: the grid with the smallest surface.",
    ),
]
PhasesOption = Annotated[
    str,
    typer.Option(
        "--phases",
        metavar="|".join(PHASES),
        help="Order of directions in the staggered phases: x, y, z, t (standard) or t, x, y, z (MILC).",
    ),
]


def _current_names(command: str, args: list[str]) -> list[str]:
    """Replace former names of options by the current ones."""
    renamed = _RENAMED.get(command, {})
    words: list[str] = []
    for word in args:
        option, equals, value = word.partition("=")
        if option in renamed:
            new = renamed[option]
            if any(one.partition("=")[0] == new[0] for one in args):
                refuse_both(option, new[0])
            say_renamed(option, " ".join(new))
            words += [f"{new[0]}={value}"] if equals else new
        elif command == "solve" and (
            word == "--method=normal" or (word == "normal" and words[-1:] == ["--method"])
        ):
            say_renamed("--method normal", "--method cgnr")
            words.append(word.replace("normal", "cgnr"))
        else:
            words.append(word)
    return words


class NumbersCommand(TyperCommand):
    """A command whose options `--extent` and `--grid` take any number of numbers: 16 16 16 32, or 16x16x16x32."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the numbers that follow such an option with an x between them."""
        args = _current_names(str(ctx.info_name), args)
        joined: list[str] = []
        after_option = 0  # number of words since an option that takes numbers, including the option
        for word in args:
            if after_option > 1 and word.isdigit():
                joined[-1] += f"x{word}"
                continue
            after_option = 1 if word in NUMBERS else after_option + 1 if after_option == 1 else 0
            joined.append(word)
        rest = super().parse_args(ctx, joined)
        _given.clear()
        _given.update(given(ctx, [max(parameter.opts, key=len) for parameter in self.params]))
        return rest


class SmearCommand(NumbersCommand):
    """A command whose `--phases` may stand alone, which means the standard phases."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the default value after a `--phases` that has none."""
        full: list[str] = []
        for word, after in zip(args, [*args[1:], ""], strict=True):
            full.append(word)
            if word == "--phases" and after not in PHASES:
                full.append(PHASES[0])
        return super().parse_args(ctx, full)


def was_given(option: str) -> bool:
    """Whether the command line has this option, named by its long form."""
    return option in _given


def refuse_without_effect(options: Iterable[str], why: str) -> None:
    """Raise BadInput if the command line has one of these options, which would have no effect.

    The message is the name of the option, followed by `why`.
    """
    for option in options:
        if option in _given:
            raise BadInput(f"{option} {why}; leave it out")


def check_tolerance(value: float, option: str) -> None:
    """Raise BadInput unless a tolerance is finite and above 0."""
    if not (math.isfinite(value) and value > 0):
        raise BadInput(f"expected {option} above 0 and finite, found {value}")


def check_finite(values: dict[str, float | None]) -> None:
    """Raise BadInput for options whose numbers are not finite."""
    for option, value in values.items():
        if value is not None and not math.isfinite(value):
            raise BadInput(f"expected {option} as a finite number, found {value}")


def say_unverified(file: str, has_checksum: bool, json_target: str | None) -> None:
    """Print, on rank 0, that a file has no checksum, so that not every damage to it would be noticed."""
    if not has_checksum:
        console(json_target).print(
            f"{file}: the file has no checksum, so its numbers are not verified", markup=False, soft_wrap=True
        )


def numbers(text: str | None, option: str) -> tuple[int, ...] | None:
    """Parse the numbers of such an option, or return None for None.

    Raises
    ------
    BadInput
        The text is not a list of numbers above 0.
    """
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
        raise BadInput(
            f"expected {option} as numbers, for example 16 16 16 32 or 16x16x16x32, found {text!r}"
        )
    return tuple(int(part) for part in text.split("x"))
