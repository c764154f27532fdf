"""What the lattice commands have in common: options that take a number per direction, options without effect."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from onehop.error import BadInput
from onehop.lattice.phases import PHASES

NUMBERS = ("--extent", "--grid")
_given: set[str] = set()  # the options on the command line, by their long names

ExtentOption = Annotated[
    str, typer.Option("--extent", metavar="X Y Z T", help="Sites per direction, 1 to 4 of them.")
]
GridOption = Annotated[
    str | None,
    typer.Option("--grid", metavar="X Y Z T", help="Ranks per direction; by default what cuts shortest."),
]
PhasesOption = Annotated[
    str,
    typer.Option(
        "--phases",
        metavar="|".join(PHASES),
        help="Order of directions in staggered phases: x, y, z, t (standard), or t, x, y, z as MILC has them.",
    ),
]


class NumbersCommand(TyperCommand):
    """A command whose options `--extent` and `--grid` take any number of numbers: 16 16 16 32, or 16x16x16x32."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the numbers that follow such an option with an x between them."""
        joined: list[str] = []
        after_option = 0  # how many words since an option that takes numbers, itself included
        for word in args:
            if after_option > 1 and word.isdigit():
                joined[-1] += f"x{word}"
                continue
            after_option = 1 if word in NUMBERS else after_option + 1 if after_option == 1 else 0
            joined.append(word)
        rest = super().parse_args(ctx, joined)
        _given.clear()
        _given.update(
            max(parameter.opts, key=len)
            for parameter in self.params
            if parameter.name
            and getattr(ctx.get_parameter_source(parameter.name), "name", "") == "COMMANDLINE"
        )
        return rest


class SmearCommand(NumbersCommand):
    """Of which `--phases` may stand alone, for the standard ones."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--phases` the word that it takes elsewhere."""
        full: list[str] = []
        for word, after in zip(args, [*args[1:], ""], strict=True):
            full.append(word)
            if word == "--phases" and after not in PHASES:
                full.append(PHASES[0])
        return super().parse_args(ctx, full)


def refuse_without_effect(options: Iterable[str], why: str) -> None:
    """Raise BadInput if the command line has one of the options, which would have no effect; `why` goes on after it."""
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


def numbers(text: str | None, option: str) -> tuple[int, ...] | None:
    """What such an option was given.

    Raises
    ------
    BadInput
        No numbers above 0.
    """
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
        raise BadInput(
            f"expected {option} as numbers, for example 16 16 16 32 or 16x16x16x32, found {text!r}"
        )
    return tuple(int(part) for part in text.split("x"))
