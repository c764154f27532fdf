"""Make and save matplotlib figures, with an error that says what to install if matplotlib is missing."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from onehop.error import BadInput, Error
from onehop.output import write_file

# An SVG has the same bytes in every run, and its text is text, in the viewer's sans-serif font.
_SETTINGS = {
    "svg.hashsalt": "onehop",
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial", "Liberation Sans"],
}
_NO_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {"CreationDate": None}}

__all__ = ["empty_figure", "save_figure"]


def empty_figure(width: float, height: float) -> Any:
    """Make an empty `matplotlib.figure.Figure`, which needs no display.

    Parameters
    ----------
    width, height : float
        Size in inches.

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
    """Write a figure to a file. If writing fails, an existing file stays as it was.

    The same figure gives the same bytes: the file contains no date and no random names.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    file : str
        The file. Its suffix selects the format; without one the format is PNG.
    dpi : float or "figure"
        Resolution in dots per inch; "figure" is that of the figure.

    Raises
    ------
    BadInput
        matplotlib does not have this format, or the file cannot be written.
    """
    from matplotlib import rc_context

    picture = io.BytesIO()
    form = Path(file).suffix[1:].lower() or "png"
    try:
        with rc_context(_SETTINGS):
            figure.savefig(picture, dpi=dpi, format=form, metadata=_NO_DATE.get(form))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write the plot to {file}: {error}") from error
    write_file(file, picture.getvalue(), "the plot")
