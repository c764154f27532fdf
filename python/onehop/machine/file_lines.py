"""On which lines of a TOML file its keys and tables stand, for messages."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from onehop.error import BadInput

# Names and dotted names of keys, strings, and comments in TOML.
_NAME = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_STRINGS = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)


def _without_lines(found: re.Match[str]) -> str:
    """Return a string of one line as it is, one of several lines as its line ends, and a comment as nothing."""
    text = found[0]
    if text[0] == "#":
        return ""
    return '""' + "\n" * text.count("\n") if text[:3] in ('"""', "'''") else text


def _parts(path: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(_NAME, path)]


@dataclass
class FileLines:
    """The lines on which keys and tables of a file begin.

    `file` is its name in messages. `tables` names the tables, and the keys outside of any; tables of a list are named
    as in `level[2]`. `found` has the line of every table and key: ("level[2]", "") and ("level[2]", "latency").
    """

    file: str
    tables: Collection[str]
    found: dict[tuple[str, str], int] = field(default_factory=dict)

    def read(self, text: str) -> FileLines:
        """Find the lines in the text of the file, and return this object."""
        path: list[str] = []
        counts: dict[str, int] = {}
        depth = 0  # of brackets that earlier lines have opened
        for number, line in enumerate(_STRINGS.sub(_without_lines, text).split("\n"), 1):
            header = re.match(rf"\s*(\[\[?)\s*({_PATH})\s*\]", line) if depth == 0 else None
            if header:
                path = _parts(header[2])
                if header[1] == "[[" and len(path) == 1:
                    counts[path[0]] = counts.get(path[0], -1) + 1
                self.place(path, counts, number)
            elif depth == 0 and (key := re.match(rf"\s*({_PATH})\s*=", line)):
                self.place(path + _parts(key[1]), counts, number)
            bare = re.sub(_STRINGS, "", line)
            depth = max(0, depth + bare.count("[") - bare.count("]"))
        return self

    def place(self, path: list[str], counts: dict[str, int], number: int) -> None:
        """Note the line of a table, and of a key in it: `[memory.size]` is a line of both."""
        if path[0] in self.tables and (len(path) > 1 or path[0] not in ("title", "device")):
            table = f"{path[0]}[{counts[path[0]]}]" if path[0] in counts else path[0]
            self.found.setdefault((table, ""), number)
            if len(path) > 1:
                self.found.setdefault((table, path[1]), number)
        else:
            self.found.setdefault(("", path[0]), number)

    def fail(self, table: str, key: str, expected: str, found: str) -> BadInput:
        """Return the error that names file, line and key, what was expected and what was found."""
        line = self.found.get((table, key)) or self.found.get((table, "")) or 1
        what = ".".join(part for part in (table, key) if part)
        return BadInput(f"{self.file}, line {line}: {what or 'the file'}: expected {expected}, found {found}")
