"""Options that the benchmarks have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from onehop.error import BadInput

__all__ = ["PlotOption", "PrecisionsOption", "QuickOption", "SecondsOption", "ThreadsOption", "precisions_of"]

SecondsOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", help="How long to measure, all cases together; everything runs once at least."
    ),
]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="As short as can be: shows that it works; the figures mean little.")
]
PlotOption = Annotated[str | None, typer.Option("--plot", metavar="FILE.png", help="Also draw a picture.")]
ThreadsOption = Annotated[
    int, typer.Option("--threads", min=0, max=1024, help="Of a rank; 0: as many as it has cores.")
]
PrecisionsOption = Annotated[
    str, typer.Option("--precisions", metavar="single,double", help="Of the arithmetic.")
]


def precisions_of(text: str) -> list[str]:
    """What `--precisions` was given.

    Raises
    ------
    BadInput
        Others than single and double.
    """
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in ("single", "double")]
    if unknown:
        raise BadInput(f"expected --precisions among single and double, found {unknown[0]!r}")
    return chosen
