"""Options that the benchmarks have in common."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["PlotOption", "QuickOption", "SecondsOption", "ThreadsOption"]

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
