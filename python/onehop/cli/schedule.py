"""`onehop schedule`: build, show, count and verify schedules, which are JSON files, without running them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehop.cli.common import JsonOptions, RowsOptions, console, write_json
from onehop.cli.screen import Table, coloured
from onehop.cli.waiting import waiting
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.options import LARGEST_INT, argument, option
from onehop.output import write_file
from onehop.schedule import HaloOptions, Schedule, Transfer, count, halo, verify
from onehop.text import bytes_text, count_text, counted

# Wider ghosts would go around every lattice that fits in memory many times.
_LARGEST_WIDTH = 1 << 16


@dataclass(kw_only=True)
class MakeHalo(HaloOptions):
    output: str = option(
        "-",
        "File for the schedule as JSON; - is stdout.",
        *("-o", "--output", "--json"),
        metavar="FILE|-",
        writes="the schedule",
        alone="-",
    )


@dataclass(kw_only=True)
class ReadOptions(JsonOptions):
    """The options of commands that read a schedule."""

    file: str = argument("FILE|-", "Schedule as JSON; - reads stdin.")


@dataclass(kw_only=True)
class Show(ReadOptions, RowsOptions):
    """The options of `onehop schedule show` and `count`."""


@dataclass(kw_only=True)
class Verify(ReadOptions):
    limit: int = option(10, "Maximum number of violations to name.", high=LARGEST_INT)


def parse_widths(text: str) -> int | list[int | tuple[int, int]]:
    """Parse the widths of ghost layers: 1, 1x2x1, or 1:2x1x1 with a pair below:above."""
    try:
        parts = [tuple(int(number) for number in part.split(":")) for part in text.split("x")]
    except ValueError:
        parts = [()]
    if any(len(part) not in (1, 2) for part in parts):
        raise BadInput(f"expected a width as 1, 1x2x1 or 1:0x2:2x1 (below:above), found {text!r}")
    if (widest := max(max(part) for part in parts)) > _LARGEST_WIDTH:
        raise BadInput(f"expected --width of at most {_LARGEST_WIDTH} layers, found {widest}")
    widths: list[Any] = [part if len(part) == 2 else part[0] for part in parts]
    return widths[0] if len(widths) == 1 and not isinstance(widths[0], tuple) else widths


def periodic_of(values: Any) -> bool | tuple[bool, ...]:
    """Return the value of --periodic for functions that take one value for all dimensions."""
    return values[0] if isinstance(values, tuple) and len(values) == 1 else values


def parse_dtype(text: str | None, default: str) -> str:
    """Check the NumPy type of --dtype, or return the default for None."""
    try:
        dtype = np.dtype(text or default)
        if dtype.hasobject or dtype.itemsize == 0:
            raise TypeError
    except (TypeError, ValueError, SyntaxError):  # NumPy evaluates parts of the text
        raise BadInput(
            f"expected --dtype as a NumPy type of numbers, such as {default}, found {text!r}"
        ) from None
    return text or default


def halo_keywords(options: HaloOptions, dtype: str) -> dict[str, Any]:
    """Return the arguments of `onehop.halo`; `dtype` is the default of --dtype."""
    return options.part(HaloOptions) | {
        "width": parse_widths(str(options.width)),
        "periodic": periodic_of(options.periodic),
        "dtype": parse_dtype(options.dtype, dtype),
    }


# A schedule of a million transfers is shorter.
_LONGEST = 512 << 20


def load_schedule(file: str) -> Schedule:
    """Read a schedule from a JSON file, or from stdin for `-`."""
    text = read_text(
        file,
        "schedule",
        _LONGEST,
        "; expected a file that `onehop schedule halo -o` or Schedule.save has written",
    )
    try:
        return Schedule.from_json(text)
    except BadInput as error:
        raise BadInput(f"{file} is not a schedule: {error}") from error


def _array_name(schedule: Schedule, array: int) -> str:
    """Return the name of an array, or a placeholder if there is none, which `verify` reports."""
    return schedule.arrays[array].name if 0 <= array < len(schedule.arrays) else f"(no array {array})"


def _bytes(schedule: Schedule, transfer: Transfer) -> str:
    try:
        return bytes_text(schedule.bytes(transfer))
    except BadInput:
        return "?"


def make_halo(options: MakeHalo) -> None:
    """Build the schedule of a halo exchange."""
    with waiting("building the schedule"):
        schedule = halo(**halo_keywords(options, "float64"))
        text = schedule.to_json(1)
    if options.output == "-":
        print(text)
        return
    write_file(options.output, text + "\n", "the schedule")
    console().print(repr(schedule))


def show(options: Show) -> None:
    """Show the arrays and transfers of a schedule."""
    schedule = load_schedule(options.file)
    screen, rows = console(options.json), options.rows
    screen.print(repr(schedule))
    arrays = Table("array", "name", "type", ">element", ">elements", title="Arrays")
    for number, array in enumerate(schedule.arrays):
        per_rank = sorted(set(array.elements))
        elements = " to ".join(map(count_text, dict.fromkeys((per_rank[0], per_rank[-1]))))
        arrays.add_row(number, array.name, array.type, bytes_text(array.element_bytes), elements)
    screen.print(arrays)
    headers = (">round", ">no.", "from", "to", ">elements", ">pieces", ">bytes", "combine")
    table = Table(*headers, title="Transfers")
    total = 0
    for number, one in enumerate(schedule.rounds):
        for index, transfer in enumerate(one.transfers):
            total += 1
            if rows and total > rows:
                continue
            table.add_row(
                number,
                index,
                f"{transfer.from_.rank} {_array_name(schedule, transfer.from_.array)}",
                f"{transfer.to.rank} {_array_name(schedule, transfer.to.array)}",
                count_text(transfer.from_.slice.elements),
                f"{count_text(transfer.from_.slice.pieces)} to {count_text(transfer.to.slice.pieces)}",
                _bytes(schedule, transfer),
                transfer.combine,
            )
    screen.print(table)
    if rows and total > rows:
        screen.print(f"... and {total - rows} more (--rows 0 shows all)")
    if options.json is not None:
        write_json(options.json, json.loads(schedule.to_json()))


def count_schedule(options: Show) -> None:
    """Count the messages and bytes of a schedule, per rank and per pair of ranks."""
    with waiting("counting"):
        result = count(load_schedule(options.file))
    screen, rows = console(options.json), options.rows
    headers = (
        ">rank",
        ">messages\nout",
        ">\nin",
        ">bytes\nout",
        ">\nin",
        ">\ninside",
        ">pieces\nout",
        ">\nin",
    )
    ranks = Table(*headers, title="Ranks: what goes out, comes in and stays inside")
    for rank, one in enumerate(result.ranks[: rows or None]):
        messages, pieces = (one.messages_sent, one.messages_received), (one.pieces_sent, one.pieces_received)
        moved = map(bytes_text, (one.bytes_sent, one.bytes_received, one.bytes_local))
        ranks.add_row(rank, *map(count_text, messages), *moved, *map(count_text, pieces))
    screen.print(ranks)
    headers = (">from", ">to", ">messages", ">bytes", ">pieces out", ">in")
    pairs = Table(*headers, title="Pairs of ranks")
    for pair in result.pairs[: rows or None]:
        pieces = map(count_text, (pair.pieces, pair.pieces_received))
        pairs.add_row(pair.from_, pair.to, count_text(pair.messages), bytes_text(pair.bytes), *pieces)
    screen.print(pairs)
    hidden = max(len(result.ranks), len(result.pairs)) - rows
    if rows and hidden > 0:
        screen.print(
            f"... and more: {counted(len(result.ranks), 'rank')}, {counted(len(result.pairs), 'pair')} "
            "(--rows 0 shows all)"
        )
    screen.print(
        f"{counted(result.rounds, 'round')}, {counted(result.messages, 'message')}, {bytes_text(result.bytes)} "
        f"between ranks, {bytes_text(result.bytes_local)} inside"
    )
    write_json(options.json, json.loads(result.to_json()))


def verify_schedule(options: Verify) -> int:
    """Verify that a schedule loses and overwrites no data, and name the transfers that do.

    The exit code is 1 if there are any.
    """
    with waiting("verifying"):
        schedule = load_schedule(options.file)
        violations = verify(schedule, options.limit)
    screen = console(options.json)
    for violation in violations:
        message = violation.message.removeprefix(f"{violation.rule}: ")
        screen.print(f"{coloured(violation.rule, 'red')}: {message}")
    if not violations:
        ok = coloured("ok", "green")
        screen.print(f"{ok}: nothing is lost, overwritten or left out ({counted(schedule.ranks, 'rank')})")
    write_json(
        options.json,
        {
            "ok": not violations,
            "violations": [
                {name: getattr(one, name) for name in ("rule", "round", "transfer", "other", "message")}
                for one in violations
            ],
        },
    )
    return int(bool(violations))
