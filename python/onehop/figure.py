"""A matplotlib figure, or the error that says what is missing."""

from __future__ import annotations

from typing import Any

from onehop.error import Error

__all__ = ["empty_figure"]


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
