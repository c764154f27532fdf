"""What the lattice commands have in common: options that take a number per direction."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from onehop.error import BadInput

NUMBERS = ("--extent", "--grid")

ExtentOption = Annotated[
    str, typer.Option("--extent", metavar="X Y Z T", help="Sites per direction, 1 to 4 of them.")
]
GridOption = Annotated[
    str | None,
    typer.Option("--grid", metavar="X Y Z T", help="Ranks per direction; by default what cuts shortest."),
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
        return super().parse_args(ctx, joined)


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
