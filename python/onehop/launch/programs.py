"""What each rank of a launch runs: several programs, variables of single ranks, and files of ranks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from onehop.cores import usable_processors
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.launch.environment import OWN
from onehop.launch.local import MAX_RANKS, RankStart, check_ranks, command_of

LONGEST_FILE = 4 << 20
LARGEST_CORE = 1 << 16
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Program:
    """A program and the number of ranks that run it, or None for as many as a file of ranks has.

    `words` may be empty, if a file of ranks has the programs.
    """

    ranks: int | None
    words: Sequence[str] = ()
    module: bool = False
    variables: Sequence[str] = ()


@dataclass
class _Line:
    """One line of a file of ranks."""

    ranks: list[int]
    cores: set[int] | None = None
    variables: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)


def number_set(text: str, what: str, largest: int) -> list[int]:
    """Read numbers such as "0-3,8" in their order. Raises BadInput, which says `what` was expected."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = (first, last if dash else first)
        if not all(re.fullmatch("[0-9]{1,9}", end) for end in ends) or not (
            int(ends[0]) <= int(ends[1]) <= largest
        ):
            raise BadInput(f"expected {what} such as 0-3,8, at most {largest}, found {text!r}")
        found += range(int(ends[0]), int(ends[1]) + 1)
    return found


def read_variables(texts: Sequence[str], rank: int, where: str = "--env") -> dict[str, str]:
    """Return the variables NAME=VALUE of one rank; `{rank}` in a value becomes its number. Raises BadInput."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or "\0" in value:
            raise BadInput(f"{where}: expected NAME=VALUE, found {text!r}")
        if name in OWN:
            raise BadInput(
                f"{where}: expected variables other than those of the launcher itself, found {name}; leave it out"
            )
        found[name] = value.replace("{rank}", str(rank))
    return found


def starts_of(programs: Sequence[Program], ranks_file: str | None = None) -> list[RankStart]:
    """Return what each rank runs, in the order of the programs; the lines of a file of ranks change single ranks.

    Raises
    ------
    BadInput
        A rank has no program, a program does not exist, or the file is wrong.
    """
    numbers = [program.ranks for program in programs if program.ranks is not None]
    for number in (*numbers, sum(numbers)) if numbers else ():
        check_ranks(number)
    lines = [] if ranks_file is None else _read(ranks_file, sum(numbers) if numbers else None)
    in_file = 1 + max((rank for _, line in lines for rank in line.ranks), default=-1)
    starts: list[RankStart] = []
    for program in programs:
        command = (
            command_of(program.words[0], program.words[1:], module=program.module) if program.words else []
        )
        for _ in range(in_file if program.ranks is None else program.ranks):
            starts.append(RankStart(command, read_variables(program.variables, len(starts))))
    for where, line in lines:
        command = _command(line.command, where)
        for rank in line.ranks:
            old = starts[rank]
            variables = {**old.environment, **read_variables(line.variables, rank, where)}
            starts[rank] = RankStart(command or old.command, variables, line.cores)
    for rank, start in enumerate(starts):
        if not start.command:
            where = "" if ranks_file is None else f"in {ranks_file} or "
            raise BadInput(f"expected a program for rank {rank} {where}on the command line, found none")
    return starts


def _command(words: Sequence[str], where: str) -> list[str]:
    if not words:
        return []
    module = words[0] == "-m"
    try:
        if module and len(words) == 1:
            raise BadInput("expected a module after -m, found none")
        return command_of(words[module], words[1 + module :], module=module)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None


def _read(file: str, ranks: int | None) -> list[tuple[str, _Line]]:
    """Read a file of ranks, of which there are `ranks` (None: as many as the file has). Returns places and lines."""
    found: list[tuple[str, _Line]] = []
    seen: dict[int, str] = {}
    largest = (MAX_RANKS if ranks is None else ranks) - 1
    for number, text in enumerate(read_text(file, "file of ranks", LONGEST_FILE).splitlines(), 1):
        where = f"{file}, line {number}"
        try:
            words = shlex.split(text, comments=True)
            if not words:
                continue
            line = _line(words, largest)
        except (BadInput, ValueError) as error:
            raise BadInput(f"{where}: {error}") from None
        for rank in line.ranks:
            if rank in seen:
                raise BadInput(f"{where}: expected each rank once, found rank {rank} in {seen[rank]} as well")
            seen[rank] = where
        found.append((where, line))
    if not seen:
        raise BadInput(f"{file}: expected lines RANKS [NAME=VALUE ...] [PROGRAM ARGS...], found none")
    return found


def _line(words: Sequence[str], largest: int) -> _Line:
    line = _Line(number_set(words[0], "ranks", largest))
    for place, word in enumerate(words[1:], 1):
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            line.command = list(words[place:])
            break
        if name != "cores":
            line.variables.append(word)
            continue
        line.cores = set(number_set(value, "cores", LARGEST_CORE))
        if not line.cores <= (usable := set(usable_processors())):
            raise BadInput(
                f"expected cores that this process may use ({', '.join(map(str, sorted(usable)))}), found {value}"
            )
    return line
