"""Reads the description of a machine from a TOML file. Every error names the file and the line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onehop._core import Machine
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.machine.file_lines import FileLines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILES = Path(__file__).with_name("files")
_LONGEST = 1 << 20
# Times, rates and sizes beyond these are slips of the pen, and times computed from them overflow.
_LEAST, _MOST = 1e-30, 1e30
_PROCESSOR = "processor"
_ROOT = {"title": True, "device": False, "sources": True, "memory": True, "arithmetic": False, "level": True}
_PROCESSOR_FIGURES = ("packed_piece", "copied_piece", "used_line")
_PROCESSOR_TABLES = ("copies", "updates", "shared_updates", "packed_pieces")
_MEMORY = {
    "bandwidth": True,
    "size": True,
    **dict.fromkeys(_PROCESSOR_TABLES + _PROCESSOR_FIGURES, False),
}
_ARITHMETIC = {"double": False, "single": False}
_TOPOLOGY = {"basis": True, "source": True, "note": False}
_BASES = ("published", "measured", "guessed")
_TABLES = ("one_way", "both_ways", "in_collective")
_FIGURES = (
    "latency",
    "hop_latency",
    "overhead",
    "gap",
    "bandwidth",
    "injection",
    "local_bandwidth",
    "group_bandwidth",
)


def machine_names() -> list[str]:
    """Return the names of the machines that are installed with onehop."""
    return sorted(file.stem for file in _FILES.glob("*.toml"))


def machine_path(name: str | Path) -> Path:
    """Return the file of a machine: one of `machine_names`, or a path that ends in .toml.

    Raises
    ------
    BadInput
        There is no machine of this name.
    """
    if isinstance(name, Path):
        return name
    if isinstance(name, str) and (name.endswith(".toml") or "/" in name):
        return Path(name)
    if not isinstance(name, str) or name not in machine_names():
        raise BadInput(
            f"expected a machine ({', '.join(machine_names())}) or a file that ends in .toml, found {name!r}"
        )
    return _FILES / f"{name}.toml"


def machine_of(machine: Machine | str | Path) -> Machine:
    """Return a machine, read from its file unless it is one already. Errors are those of `load_machine`."""
    return machine if isinstance(machine, Machine) else load_machine(machine)


def load_machine(name: str | Path) -> Machine:
    """Read a machine that is installed with onehop, or the user's own file.

    Parameters
    ----------
    name : str or path
        A name of `machine_names()`, or the path of a TOML file (docs/reference/machine.md describes it).

    Raises
    ------
    BadInput
        There is no such machine, or the file describes none; the message names file and line.
    """
    path = machine_path(name)
    text = read_text(path, "machine", _LONGEST, "; `onehop machines` lists the names")
    return parse_machine(text, path.stem, str(path))


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Reader:
    """Translates the parsed file to the JSON of `Machine.from_json`, which checks what is not checked here."""

    def __init__(self, lines: FileLines, root: dict[str, Any]) -> None:
        self.lines = lines
        self.root = root
        self.sources: dict[str, str] = {}

    def keys(self, table: str, key: str, value: Any, known: dict[str, bool]) -> dict[str, Any]:
        """Check that a value is a table with the known keys, of which those marked true are required."""
        if not isinstance(value, dict):
            raise self.lines.fail(table, key, f"a table with the keys {', '.join(known)}", _shown(value))
        for name in value:
            if name not in known:
                inner = (table, key) if key else (table, name)
                raise self.lines.fail(*inner, f"only the keys {', '.join(known)}", f'"{name}"')
        for name, required in known.items():
            if required and name not in value:
                raise self.lines.fail(table, key, f'the key "{name}"', "none")
        return value

    def text(self, table: str, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.lines.fail(table, key, "a text", _shown(value))
        return value

    def source(self, table: str, key: str, value: dict[str, Any]) -> str:
        """Return the source, which is a key of [sources]; a note may say more."""
        name = self.text(table, key, value["source"])
        if name not in self.sources:
            raise self.lines.fail(
                table, key, f"a key of [sources] ({', '.join(self.sources)}) as source", f'"{name}"'
            )
        note = f"; {self.text(table, key, value['note'])}" if "note" in value else ""
        return self.sources[name] + note

    def number_fits(self, table: str, key: str, value: Any) -> None:
        """Check all numbers in a value or in lists of them."""
        for one in value if isinstance(value, list) else ():
            self.number_fits(table, key, one)
        if isinstance(value, (int, float)):
            if not abs(value) <= sys.float_info.max:
                raise self.lines.fail(table, key, "a finite number", _shown(value))
            if value != 0 and not _LEAST <= abs(value) <= _MOST:
                expected = f"0 or a number from {_LEAST:g} to {_MOST:g}, in seconds, bytes or per second"
                raise self.lines.fail(table, key, expected, _shown(value))

    def figure(self, table: str, key: str, value: Any) -> Any:
        """Return a figure or a table of times with its source in words."""
        if not isinstance(value, dict):
            return value
        found = {name: one for name, one in value.items() if name != "note"}
        for name in ("value", "points"):
            self.number_fits(table, key, found.get(name))
        return found | {"source": self.source(table, key, value)} if "source" in found else found

    def level(self, table: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.lines.fail(table, "", "a table", _shown(value))
        for name in ("name", "of", "topology"):
            if name not in value:
                raise self.lines.fail(table, "", f'the key "{name}"', "none")
        topology = self.keys(table, "topology", value["topology"], _TOPOLOGY)
        if topology["basis"] not in _BASES:
            raise self.lines.fail(
                table, "topology", f"a basis ({', '.join(_BASES)})", _shown(topology["basis"])
            )
        source = self.source(table, "topology", topology)
        level = {key: self.figure(table, key, one) for key, one in value.items() if key != "of"}
        level |= {
            "topology": f"{topology['basis']}: {source}",
            "name": self.text(table, "name", value["name"]),
        }
        for key in ("links", "interfaces"):
            # A level that has none leaves the key out.
            if key in value and (type(value[key]) is not int or value[key] < 1):
                expected = f"a whole number of {key} of at least 1, or no key"
                raise self.lines.fail(table, key, expected, _shown(value[key]))
        for key in ("extents", "taper"):
            self.number_fits(table, key, value.get(key))
        return level

    def chain(self, tables: list[dict[str, Any]]) -> list[int]:
        """Return the levels from the innermost on: each says with `of` what its members are."""
        names: dict[str, int] = {}
        for number, one in enumerate(tables):
            name = one["name"]
            if name in names or name == _PROCESSOR:
                raise self.lines.fail(
                    f"level[{number}]", "name", "a name of its own for every level", f'"{name}" twice'
                )
            names[name] = number
        above: dict[str, int] = {}
        for number, one in enumerate(tables):
            of = self.text(f"level[{number}]", "of", one["of"])
            if of != _PROCESSOR and of not in names:
                expected = f"{_PROCESSOR} or the name of another level ({', '.join(names)})"
                raise self.lines.fail(f"level[{number}]", "of", expected, f'"{of}"')
            if of in above:
                found = f'"{tables[above[of]]["name"]}" and "{one["name"]}"'
                raise self.lines.fail(f"level[{number}]", "of", f"one level whose members are {of}", found)
            above[of] = number
        order: list[int] = []
        name = _PROCESSOR
        while name in above:
            order.append(above[name])
            name = tables[above[name]]["name"]
        if len(order) < len(tables):
            lost = next(number for number in range(len(tables)) if number not in order)
            loop = [tables[lost]["name"]]
            while len(loop) < 2 or loop[-1] not in loop[:-1]:
                loop.append(tables[names[loop[-1]]]["of"])
            expected = f"levels that lead from {_PROCESSOR} outwards"
            raise self.lines.fail(f"level[{lost}]", "of", expected, f"a loop: {' of '.join(loop)}")
        return order

    def machine(self, name: str) -> Machine:
        self.keys("", "", self.root, _ROOT)
        sources = self.root["sources"]
        if not isinstance(sources, dict) or not sources:
            raise self.lines.fail("sources", "", "a table of sources", _shown(sources))
        self.sources = {key: self.text("sources", key, value) for key, value in sources.items()}
        memory = self.keys("memory", "", self.root["memory"], _MEMORY)
        tables = self.root["level"]
        if not isinstance(tables, list) or not tables:
            raise self.lines.fail("level", "", "one table [[level]] or more", _shown(tables))
        levels = [self.level(f"level[{number}]", one) for number, one in enumerate(tables)]
        order = self.chain(tables)
        description = {
            "onehop_machine": 1,
            "name": name,
            "title": self.text("", "title", self.root["title"]),
            "levels": [levels[number] for number in order],
            "device": self.root.get("device", False),
        }
        arithmetic = self.keys("arithmetic", "", self.root.get("arithmetic", {}), _ARITHMETIC)
        for table, values in (("memory", memory), ("arithmetic", arithmetic)):
            for key, value in values.items():
                description[_IN_MACHINE.get(key, key)] = self.figure(table, key, value)
        # JSON has no NaN and no infinity: as texts they are refused where they stand.
        plain = json.loads(json.dumps(description, default=str), parse_constant=str)
        try:
            return Machine.from_json(json.dumps(plain))
        except BadInput as error:
            raise self.translated(str(error), order) from None

    def translated(self, message: str, order: list[int]) -> BadInput:
        """Replace the path of an error, as in `levels[1].taper: ...`, by file and line."""
        place, _, what = message.partition(": ")
        match = re.match(r"(?:levels\[(\d+)\]\.?)?(\w*)(.*)", place)
        assert match is not None
        key, rest = match[2], match[3]
        if match[1]:
            table = f"level[{order[int(match[1])]}]"
        else:
            key = next((ours for ours, theirs in _IN_MACHINE.items() if theirs == key), key)
            table = "arithmetic" if key in _ARITHMETIC else "memory" if key in _MEMORY else ""
        unknown = re.search(r'only the keys .* found "(.*)"$', what)
        line_key = unknown[1] if unknown and not key else key
        line = self.lines.found.get((table, line_key)) or self.lines.found.get((table, "")) or 1
        name = ".".join(part for part in (table, key) if part) + rest
        what = what.replace("an object", "a table").replace(
            "basis, source, found", "basis, source, note, found"
        )
        what = what.replace("only the keys name, ", "only the keys name, of, ")
        return BadInput(f"{self.lines.file}, line {line}: {name}: {what}")


# The names in a `Machine` of figures that have shorter ones in their tables.
_IN_MACHINE = {
    "bandwidth": "memory_bandwidth",
    "size": "memory",
    "double": "multiply_adds_double",
    "single": "multiply_adds_single",
}


def parse_machine(text: str, name: str, file: str = "the machine") -> Machine:
    """Read a machine from the text of a TOML file.

    Parameters
    ----------
    text : str
        The contents.
    name : str
        The name of the machine.
    file : str
        The name of the file in messages.

    Raises
    ------
    BadInput
        The text describes no machine; the message names file and line.
    """
    if not isinstance(text, str):
        raise BadInput(f"{file}: expected the text of a machine, found {text!r}")
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"line (\d+)", str(error))
        line = where[1] if where else str(text.count("\n") + 1)
        raise BadInput(f"{file}, line {line}: expected TOML, found an error: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{file}, line 1: expected TOML, found brackets nested too deeply") from error
    return _Reader(FileLines(file, _ROOT).read(text), root).machine(name)


def figures_of(machine: Machine) -> Iterator[tuple[str, str, Any]]:
    """Yield level, name and `Figure` of every number of a machine that is given."""
    for level in machine.levels:
        for key in _FIGURES:
            if (figure := getattr(level, key)).source:
                yield level.name, key, figure
    yield _PROCESSOR, "memory_bandwidth", machine.memory_bandwidth
    yield _PROCESSOR, "memory", machine.memory
    for key in (*_PROCESSOR_FIGURES, "multiply_adds_double", "multiply_adds_single"):
        if (figure := getattr(machine, key)).source:
            yield _PROCESSOR, key, figure


def time_tables_of(machine: Machine) -> Iterator[tuple[str, str, Any]]:
    """Yield level, name and `TimeTable` of every table of times that a machine has."""
    for level in machine.levels:
        for key in _TABLES:
            if (table := getattr(level, key)).points:
                yield level.name, key, table
    for key in _PROCESSOR_TABLES:
        if (table := getattr(machine, key)).points:
            yield _PROCESSOR, key, table
