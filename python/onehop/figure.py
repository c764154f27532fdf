"""Make and save matplotlib figures, with an error that says what to install if matplotlib is missing."""

from __future__ import annotations

import io
import re
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
_METADATA = {
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    "pdf": {"CreationDate": None},
    "ps": {"CreationDate": None},
}

# An SVG has no ground, and its ink follows that of the page. White may remain between bars.
_SHEET = re.compile(r"<style[^>]*>\*\{.*?</style>")
_STYLE = (
    ".onehop-figure{color:#1a1a1a;fill:currentColor;stroke-linejoin:round;stroke-linecap:butt}"
    ".onehop-figure .paper{fill:#fff}"
)
_DARK = "@media(prefers-color-scheme:dark){.onehop-figure{color:#d8d8d8}.onehop-figure .paper{fill:#1b1c1e}}"
_INKS = (
    ('style="fill: #ffffff"', 'style="fill: none"'),  # the ground of the figure and its axes
    ('style="fill: #ffffff; opacity: 0.8;', 'class="paper" style="opacity: 0.8;'),  # that of a legend
    ("#000000", "currentColor"),
    ("stroke: #b0b0b0; stroke-width", "stroke: currentColor; stroke-opacity: 0.25; stroke-width"),  # grids
    ("stroke: #b0b0b0; stroke-opacity: 0.3", "stroke: currentColor; stroke-opacity: 0.15"),
)

# Parts of an SVG by matplotlib that `compact_svg` shortens.
_COORDINATES = re.compile(r'\b(?:d|x|y|width|height|transform)="[^"]*"')
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NUMBERED_ID = re.compile(r' id="[\w.]+_\d+"')
_GROUP_OF_ONE = re.compile(r"<g>\n *(<(?:path|text|use)\b.*)\n *</g>")


def empty_figure(width: float, height: float) -> Any:
    """Make an empty `matplotlib.figure.Figure` of a size in inches, which needs no display. Notebooks show it.

    Raises Error if matplotlib is not installed, or finds no folder for its cache.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error(f"plots need matplotlib ({error}): `pip install matplotlib`") from error
    except OSError as error:
        raise Error(f"matplotlib does not start: {error}") from error

    class ShownFigure(Figure):
        def _repr_svg_(self) -> str:
            # A notebook may be dark where the browser is not: ink on white can be read in both.
            text = drawn(self, "svg").decode().replace(_DARK, "")
            return text.replace("<svg ", '<svg style="background: #fff" ', 1)

    return ShownFigure(figsize=(width, height), layout="constrained")


def drawn(figure: Any, form: str, *, dpi: float | str = "figure") -> bytes:
    """Return a figure as a file of a format. The same figure gives the same bytes."""
    from matplotlib import rc_context

    picture = io.BytesIO()
    with rc_context(_SETTINGS):
        figure.savefig(picture, dpi=dpi, format=form, metadata=_METADATA.get(form))
    content = picture.getvalue()
    return themed_svg(compact_svg(content.decode())).encode() if form == "svg" else content


def save_figure(figure: Any, file: str, *, dpi: float | str = "figure") -> None:
    """Write a figure to a file, whose suffix selects the format; without one it is PNG. Raises BadInput.

    If writing fails, an existing file stays as it was. The same figure gives the same bytes: the file contains no date
    and no random names.
    """
    form = Path(file).suffix[1:].lower() or "png"
    try:
        content = drawn(figure, form, dpi=dpi)
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot write the plot to {file}: {error}") from error
    write_file(file, content, "the plot")


def compact_svg(text: str) -> str:
    """Shorten an SVG by matplotlib: a line for each path, hundredths of a point, and no group of one element."""

    def shorter(attribute: re.Match[str]) -> str:
        rounded = _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}", attribute[0])
        return " ".join(rounded.split()).replace(' "', '"')

    text = _NUMBERED_ID.sub("", _COORDINATES.sub(shorter, text))
    while (simpler := _GROUP_OF_ONE.sub(r"\1", text)) != text:
        text = simpler
    return text


def themed_svg(text: str) -> str:
    """Make an SVG by matplotlib readable on dark pages, too: black becomes the ink of the page, white its paper."""
    for old, new in _INKS:
        text = text.replace(old, new)
    text = _SHEET.sub(f"<style>{_STYLE}{_DARK}</style>", text)
    return text.replace("<svg ", '<svg class="onehop-figure" ', 1)
