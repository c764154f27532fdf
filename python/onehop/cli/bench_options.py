"""Options that the benchmarks have in common."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["PlotOption", "QuickOption", "SecondsOption"]

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
