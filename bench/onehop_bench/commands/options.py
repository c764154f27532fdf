"""Options that the benchmarks share."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.error import BadInput

__all__ = ["PlotOption", "PrecisionsOption", "QuickOption", "SecondsOption", "ThreadsOption", "precisions_of"]

SecondsOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", help="Time to measure all cases together. Every case runs at least once."
    ),
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Measure as briefly as possible. The figures then mean little.")
]
PlotOption = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE.png", help="Draw the results and write the plot to FILE."),
]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, max=1024, help="Threads per rank. 0 uses all cores of the rank.")
]
PrecisionsOption = Annotated[
    str,
    typer.Option(
        "--precisions", metavar="single,double", help="Precisions of the arithmetic, separated by commas."
    ),
]


def precisions_of(text: str) -> list[str]:
    """Parse the value of `--precisions`.

    Raises
    ------
    BadInput
        A name is neither single nor double.
    """
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in ("single", "double")]
    if unknown:
        raise BadInput(f"expected --precisions among single and double, found {unknown[0]!r}")
    return chosen
