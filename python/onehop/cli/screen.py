"""Text for people: tables, colours, and a line of progress that changes in a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import TextIO

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}
_ESCAPES = re.compile(r"\033\[[\d;]*m")
_ASCII = str.maketrans(
    {**dict.fromkeys("┏┳┓┡╇┩┌┬┐├┼┤└┴┘", "+"), **dict.fromkeys("┃│", "|"), **dict.fromkeys("━─", "-")}
)
_LEAST = 6  # columns become no narrower
_LONGEST_WORD = 16  # longer ones are broken like text


def is_terminal(stream: TextIO) -> bool:
    """Whether lines on a stream can be coloured and changed."""
    return os.environ.get("TTY_COMPATIBLE") != "0" and os.environ.get("TERM") != "dumb" and stream.isatty()


def coloured(text: str, styles: str, stream: TextIO | None = None) -> str:
    """Return text in styles such as "bold red", if the stream, by default standard output, is a terminal."""
    if "NO_COLOR" in os.environ or not is_terminal(sys.stdout if stream is None else stream):
        return text
    return f"\033[{';'.join(str(_CODES[style]) for style in styles.split())}m{text}\033[0m"


def _width(text: str) -> int:
    return len(_ESCAPES.sub("", text))


class Column:
    """A column of a table, whose heading may have several lines; > before it puts the text at the right."""

    def __init__(self, header: str) -> None:
        self.header = header.removeprefix(">")
        self.justify = "right" if header.startswith(">") else "left"

    def padded(self, text: str, width: int) -> str:
        """Return a line of a cell with blanks on both sides."""
        blanks = " " * (width - _width(text))
        return f" {blanks}{text} " if self.justify == "right" else f" {text}{blanks} "


class Table:
    """A table that fits the terminal: the text of its widest columns is broken into lines.

    `headers` are those of the first columns, `title` and `caption` the text above and below; `show_lines` draws a line
    between all rows.
    """

    def __init__(
        self,
        *headers: str,
        title: str | None = None,
        caption: str | None = None,
        show_header: bool = True,
        show_lines: bool = False,
    ) -> None:
        self.columns = [Column(header) for header in headers]
        self.title = title
        self.caption = caption
        self._show_header = show_header
        self._show_lines = show_lines
        self._rows: list[tuple[list[str], bool]] = []
        self._sections: set[int] = set()

    def add_row(self, *cells: object, bold: bool = False) -> None:
        """Add a row; missing cells are empty."""
        self._rows.append(([*map(str, cells), *[""] * (len(self.columns) - len(cells))], bold))

    def add_section(self) -> None:
        """Draw a line below the last row."""
        self._sections.add(len(self._rows) - 1)

    def render(self, width: int) -> str:
        """Return the table as text of at most `width` columns, if that is possible."""
        widths = self._widths(width)
        lines: list[str] = []
        if self._show_header:
            lines.append(_border("┏━┳┓", widths))
            lines += self._lines([column.header for column in self.columns], widths, "┃", bold=True)
            lines.append(_border("┡━╇┩", widths))
        else:
            lines.append(_border("┌─┬┐", widths))
        for number, (cells, bold) in enumerate(self._rows):
            lines += self._lines(cells, widths, "│", bold=bold)
            if number + 1 < len(self._rows) and (self._show_lines or number in self._sections):
                lines.append(_border("├─┼┤", widths))
        lines.append(_border("└─┴┘", widths))
        above = [line.rstrip() for line in (self.title or "").splitlines()]
        below = [part for line in (self.caption or "").splitlines() for part in textwrap.wrap(line, width)]
        return "\n".join([*above, *lines, *below])

    def _lines(self, cells: list[str], widths: list[int], bar: str, *, bold: bool) -> list[str]:
        """Return the lines of a row."""
        wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
        found = []
        for number in range(max(map(len, wrapped), default=1)):
            parts = []
            for column, lines, width in zip(self.columns, wrapped, widths, strict=True):
                text = lines[number] if number < len(lines) else ""
                padded = column.padded(text, width)
                parts.append(coloured(padded, "bold") if bold else padded)
            found.append(bar + bar.join(parts) + bar)
        return found

    def _widths(self, most: int) -> list[int]:
        """Return the widths of the columns without their borders."""
        rows = [cells for cells, _ in self._rows]
        if self._show_header:
            rows.append([column.header for column in self.columns])
        widths = [
            max((_width(line) for cells in rows for line in cells[i].splitlines()), default=0)
            for i in range(len(self.columns))
        ]
        # Numbers and words stay whole as long as there is text to break between words.
        floors = [self._floor(i) for i in range(len(self.columns))]
        least = [_LEAST] * len(floors)
        for breakable, limits in (("left", floors), ("right", floors), ("left", least), ("right", least)):
            while sum(widths) + 3 * len(widths) + 1 > most:
                wide = [
                    i
                    for i, column in enumerate(self.columns)
                    if column.justify == breakable and widths[i] > limits[i]
                ]
                if not wide:
                    break
                widths[max(wide, key=widths.__getitem__)] -= 1
        return widths

    def _floor(self, i: int) -> int:
        """Return the width of the longest word of a column, or of the longest number; less for words such as URLs."""
        words = self.columns[i].header.split() if self._show_header else []
        for cells, _ in self._rows:
            words += cells[i].splitlines() if self.columns[i].justify == "right" else cells[i].split()
        return min(max(_LEAST, *map(_width, words), 0), _LONGEST_WORD)


def _border(parts: str, widths: list[int]) -> str:
    left, line, middle, right = parts
    return left + middle.join(line * (width + 2) for width in widths) + right


def _wrapped(cell: str, width: int) -> list[str]:
    lines = []
    for line in cell.splitlines() or [""]:
        lines += [line] if _width(line) <= width else textwrap.wrap(_ESCAPES.sub("", line), width)
    return lines


class Screen:
    """Where a command prints: a stream, or nowhere on ranks other than 0."""

    def __init__(self, stream: TextIO, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet

    def print(self, content: str | Table = "") -> None:
        """Print a line, or a table as wide as the terminal."""
        if self._quiet:
            return
        text = content.render(shutil.get_terminal_size().columns) if isinstance(content, Table) else content
        if "utf" not in (self._stream.encoding or "utf").lower():
            text = text.translate(_ASCII)
        print(text, file=self._stream)


@contextlib.contextmanager
def changing_line(*, quiet: bool = False) -> Iterator[Callable[[str], None] | None]:
    """Yield a function that shows a text in place of the one before, on stderr; None if that is no terminal."""
    if quiet or not is_terminal(sys.stderr):
        yield None
        return
    shown = 0.0

    def show(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= 0.1:
            shown = now
            print(
                f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}",
                end="",
                file=sys.stderr,
                flush=True,
            )

    try:
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress_bar(
    description: str, total: float | None, *, quiet: bool = False
) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, if that is a terminal; yield a function that advances it by an amount."""
    done, begin = 0.0, time.monotonic()
    with changing_line(quiet=quiet) as show:

        def advance(amount: float) -> None:
            nonlocal done
            done += amount
            if show is None:
                return
            seconds = time.monotonic() - begin
            line = f"{description} {seconds:.0f} s"
            if total:
                share = min(done / total, 1)
                line = f"{description} {'━' * round(40 * share):40} {share:4.0%} {seconds:.0f} s"
            show(line)

        yield advance
