"""The text of an OpenQASM program: places in it, comments, included files, and the statement that cannot be read."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from onehop.error import BadInput

_SKIPPED = re.compile(r"\"[^\"\n]*\"|//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_INCLUDE = re.compile(r'\binclude\s*"([^"]+)"\s*;')
_NESTING = re.compile(r"\"[^\"\n]*\"|[][(){};]")
# Maximum characters of all included files together, and their number.
_MAX_CHARACTERS, _MAX_FILES = 16 << 20, 1000
_SEARCH_SECONDS, _SEARCH_CHARACTERS = 10, 1 << 20


class Expanded(str):
    """A text made of pieces of files.

    Of each piece: its start in this text, its file, the text of that file, and the start of the piece in it.
    """

    __slots__ = ("pieces",)

    pieces: list[tuple[int, str, str, int]]

    def origin(self, start: int) -> str:
        """Return file, line and column of a character."""
        begin, file, text, offset = self.pieces[bisect_right([one[0] for one in self.pieces], start) - 1]
        return f"{file}:{place(text, offset + start - begin)}"


def place(text: str, start: int) -> str:
    """Return line and column of a character as `line:column`, both from 1."""
    return f"{text.count(chr(10), 0, start) + 1}:{start - text.rfind(chr(10), 0, start)}"


def where(text: str, name: str, start: int) -> str:
    """Return file, line and column of a character of a text with this name."""
    return text.origin(start) if isinstance(text, Expanded) else f"{name}:{place(text, start)}"


def without_comments(text: str, name: str) -> str:
    """Replace comments by blanks, so that lines and columns stay the same."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith('"'):
            return found
        if found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
            raise BadInput(
                f"{name}:{place(text, match.start())}: the comment that begins here has no end; expected */"
            )
        return re.sub(r"[^\n]", " ", found)

    return _SKIPPED.sub(blank, text)


class Includes:
    """Expands `include` statements; each file becomes one line, so that the other lines keep their numbers.

    Qiskit's own includes cannot be used, because its parser fails on angles in included files. Statements whose file
    does not exist are kept, so that the parser reports them. `read` returns the text of a file.
    """

    def __init__(self, folder: Path, read: Callable[[Path], str]) -> None:
        self.folder, self.read = folder, read
        self.characters = self.files = 0

    def expanded(self, text: str, name: str) -> Expanded:
        """Return a text with its includes expanded."""
        parts: list[tuple[str, str, str, int]] = []
        self._add(parts, text, name, ())
        found, length = Expanded("".join(one[0] for one in parts)), 0
        found.pieces = []
        for part, file, source, offset in parts:
            found.pieces.append((length, file, source, offset))
            length += len(part)
        return found

    def _add(
        self, parts: list[tuple[str, str, str, int]], text: str, name: str, inside: tuple[Path, ...]
    ) -> None:
        """Append the pieces of a text. `inside` lists the files that are being included."""
        done = 0
        for match in _INCLUDE.finditer(text):
            path = self.folder / match[1]
            try:
                if match[1] == "qelib1.inc" or not path.is_file():
                    continue
                real = path.resolve()
            except (OSError, ValueError):
                continue
            here = f"{name}:{place(text, match.start())}"
            if real in inside:
                raise BadInput(f"{here}: {match[1]} includes itself")
            found = self.read(path)
            self.files += 1
            self.characters += len(found)
            if self.files > _MAX_FILES or self.characters > _MAX_CHARACTERS:
                raise BadInput(
                    f"{here}: expected at most {_MAX_FILES} included files of {_MAX_CHARACTERS} characters "
                    "together, found more"
                )
            parts.append((_line_of(text[done : match.start()], inside), name, text, done))
            self._add(parts, without_comments(found, str(path)), str(path), (*inside, real))
            done = match.end()
        parts.append((_line_of(text[done:], inside), name, text, done))


def _line_of(text: str, inside: tuple[Path, ...]) -> str:
    return text.replace("\n", " ") if inside else text


def _ends(plain: str) -> list[int]:
    """Return the ends of the statements that are in no braces."""
    ends, depth = [], 0
    for found in _NESTING.finditer(plain):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth == 0 and found[0] in ";}":
            ends.append(found.end())
    return ends


def first_failing(plain: str, fails: Callable[[str], bool]) -> int | None:
    """Return the start of the first statement with which the beginning of a program fails; None if it is not found."""
    ends = _ends(plain)
    if not ends or len(plain) > _SEARCH_CHARACTERS:
        return None
    until = time.monotonic() + _SEARCH_SECONDS
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(plain[: ends[middle]]) else (middle + 1, high)
        if time.monotonic() > until:
            return None
    start = ends[low - 1] if low else 0
    return start + len(plain[start:]) - len(plain[start:].lstrip())
