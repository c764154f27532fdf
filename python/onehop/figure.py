"""A matplotlib figure and its file, or the error that says what is missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from onehop.error import BadInput, Error
from onehop.output import write_file

__all__ = ["empty_figure", "save_figure"]


def empty_figure(width: float, height: float) -> Any:
    """A `matplotlib.figure.Figure` without anything in it, which needs no display.

    Parameters
    ----------
    width, height : float
        In inches.

    Raises
    ------
    Error
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error(f"--plot needs matplotlib ({error}): `pip install matplotlib`") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, file: str, *, dpi: float | str = "figure") -> None:
    """Write a figure, in the format that the file's name ends with (PNG if it has no ending), whole or not at all.

    Raises
    ------
    BadInput
        Another format than matplotlib has; the file cannot be written.
    """
    picture = io.BytesIO()
    try:
        figure.savefig(picture, dpi=dpi, format=Path(file).suffix[1:] or "png")
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write the plot to {file}: {error}") from error
    write_file(file, picture.getvalue(), "the plot")
