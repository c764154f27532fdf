"""`onehop schedule`: build, show, count and verify schedules, which are JSON files, without running them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from onehop.cli.common import LARGEST_INT, JsonOption, console, parse_numbers, write_json
from onehop.codec import CODECS
from onehop.error import BadInput
from onehop.output import write_file
from onehop.schedule import Schedule, Transfer, count, halo, verify
from onehop.text import counted

FileArgument = Annotated[str, typer.Argument(metavar="FILE|-", help="Schedule as JSON; - reads stdin.")]
RowsOption = Annotated[int, typer.Option(min=0, help="Maximum number of rows to show; 0 shows all.")]


# Wider ghosts would go around every lattice that fits in memory many times.
_LARGEST_WIDTH = 1 << 16


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


def parse_periodic(text: str) -> bool | list[bool]:
    """Parse periodic boundaries: yes, no, or one word per dimension (yesxno)."""
    words = {"yes": True, "no": False, "1": True, "0": False}
    parts = text.lower().split("x")
    if any(part not in words for part in parts):
        raise BadInput(f"expected --periodic yes, no, or one per dimension as in yesxnoxno, found {text!r}")
    return words[parts[0]] if len(parts) == 1 else [words[part] for part in parts]


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


# A schedule of a million transfers is shorter.
_LONGEST = 512 << 20


def _read(file: str) -> bytes:
    """Read the file, which may be a pipe, up to the maximum size of a schedule."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_LONGEST + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"cannot read the schedule {file}: {reason}; expected a file that `onehop schedule halo -o` or "
            "Schedule.save has written"
        ) from error
    if len(data) > _LONGEST:
        raise BadInput(f"{file} is not a schedule: expected at most {_LONGEST} bytes, found more")
    return data


def load_schedule(file: str) -> Schedule:
    """Read a schedule from a JSON file, or from stdin for `-`."""
    try:
        text = _read(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file} is not a schedule: expected text in UTF-8, found {error.reason} at byte {error.start}"
        ) from error
    try:
        return Schedule.from_json(text)
    except BadInput as error:
        raise BadInput(f"{file} is not a schedule: {error}") from error


def _array_name(schedule: Schedule, array: int) -> str:
    """Return the name of an array, or a placeholder if there is none, which `verify` reports."""
    return schedule.arrays[array].name if 0 <= array < len(schedule.arrays) else f"(no array {array})"


def _bytes(schedule: Schedule, transfer: Transfer) -> str:
    try:
        return str(schedule.bytes(transfer))
    except BadInput:
        return "?"


def make_halo(
    extents: Annotated[
        str, typer.Option(metavar="AxBxC", help="Shape of the global array, without ghost layers.")
    ],
    grid: Annotated[str, typer.Option(metavar="AxBxC", help="Number of ranks per dimension.")],
    width: Annotated[
        str,
        typer.Option(
            metavar="W",
            help="Number of ghost layers: 1, one per dimension (1x2x1), or below:above (1:0x2:2x1).",
        ),
    ] = "1",
    periodic: Annotated[
        str,
        typer.Option(
            metavar="YES|NO", help="Periodic boundaries: yes, no, or one word per dimension (yesxno)."
        ),
    ] = "yes",
    corners: Annotated[bool, typer.Option("--corners", help="Also exchange edges and corners.")] = False,
    dtype: Annotated[str, typer.Option(help="NumPy dtype of a site.")] = "float64",
    fields: Annotated[
        int, typer.Option(min=1, max=1024, help="Number of arrays that are exchanged together.")
    ] = 1,
    codec: Annotated[
        str, typer.Option(help=f"Encoding of the messages: {', '.join(CODECS[:-1])} or {CODECS[-1]}.")
    ] = "raw",
    out: Annotated[
        str,
        typer.Option(
            "-o", "--output", "--json", metavar="FILE|-", help="File for the schedule as JSON; - is stdout."
        ),
    ] = "-",
) -> None:
    """Build the schedule of a halo exchange."""
    shape = parse_numbers(extents, "--extents", "x")
    if min(shape) < 1:
        raise BadInput(f"expected --extents of at least 1 each, found {extents}, which has no sites")
    schedule = halo(
        extents=shape,
        grid=parse_numbers(grid, "--grid", "x"),
        width=parse_widths(width),
        periodic=parse_periodic(periodic),
        corners=corners,
        dtype=parse_dtype(dtype, "float64"),
        fields=fields,
        codec=codec,
    )
    if out == "-":
        print(schedule.to_json(1))
        return
    write_file(out, schedule.to_json(1) + "\n", "the schedule")
    console().print(f"{out}: {schedule!r}", markup=False)


def show(file: FileArgument, rows: RowsOption = 20, json_target: JsonOption = None) -> None:
    """Show the arrays and transfers of a schedule."""
    schedule = load_schedule(file)
    screen = console(json_target)
    screen.print(repr(schedule), markup=False)
    arrays = Table("array", "name", "type", "bytes of an element", "elements", title="Arrays")
    for number, array in enumerate(schedule.arrays):
        per_rank = sorted(set(array.elements))
        elements = f"{per_rank[0]}" if len(per_rank) == 1 else f"{per_rank[0]} to {per_rank[-1]}"
        arrays.add_row(str(number), array.name, array.type, str(array.element_bytes), elements)
    screen.print(arrays)
    table = Table(
        "round", "transfer", "from", "to", "elements", "pieces", "bytes", "combine", title="Transfers"
    )
    total = 0
    for number, one in enumerate(schedule.rounds):
        for index, transfer in enumerate(one.transfers):
            total += 1
            if rows and total > rows:
                continue
            table.add_row(
                str(number),
                str(index),
                f"{transfer.from_.rank} {_array_name(schedule, transfer.from_.array)}",
                f"{transfer.to.rank} {_array_name(schedule, transfer.to.array)}",
                str(transfer.from_.slice.elements),
                f"{transfer.from_.slice.pieces} to {transfer.to.slice.pieces}",
                _bytes(schedule, transfer),
                transfer.combine,
            )
    screen.print(table)
    if rows and total > rows:
        screen.print(f"... and {total - rows} more (--rows 0 shows all)")
    write_json(json_target, json.loads(schedule.to_json()))


def count_schedule(file: FileArgument, rows: RowsOption = 20, json_target: JsonOption = None) -> None:
    """Count the messages and bytes of a schedule, per rank and per pair of ranks."""
    result = count(load_schedule(file))
    screen = console(json_target)
    ranks = Table(
        "rank",
        "messages sent",
        "received",
        "bytes sent",
        "received",
        "inside",
        "pieces sent",
        "received",
        title="Ranks",
    )
    for rank, one in enumerate(result.ranks):
        if rows and rank >= rows:
            break
        ranks.add_row(
            *map(
                str,
                (
                    rank,
                    one.messages_sent,
                    one.messages_received,
                    one.bytes_sent,
                    one.bytes_received,
                    one.bytes_local,
                    one.pieces_sent,
                    one.pieces_received,
                ),
            )
        )
    screen.print(ranks)
    pairs = Table("from", "to", "messages", "bytes", "pieces sent", "received", title="Pairs of ranks")
    for pair in result.pairs[: rows or None]:
        pairs.add_row(
            *map(str, (pair.from_, pair.to, pair.messages, pair.bytes, pair.pieces, pair.pieces_received))
        )
    screen.print(pairs)
    hidden = max(len(result.ranks), len(result.pairs)) - rows
    if rows and hidden > 0:
        screen.print(
            f"... and more: {counted(len(result.ranks), 'rank')}, {counted(len(result.pairs), 'pair')} "
            "(--rows 0 shows all)"
        )
    screen.print(
        f"{counted(result.rounds, 'round')}, {counted(result.messages, 'message')}, "
        f"{counted(result.bytes, 'byte')} between ranks, "
        f"{result.bytes_local} inside"
    )
    write_json(json_target, json.loads(result.to_json()))


def verify_schedule(
    file: FileArgument,
    limit: Annotated[int, typer.Option(max=LARGEST_INT, help="Maximum number of violations to name.")] = 10,
    json_target: JsonOption = None,
) -> None:
    """Verify that a schedule loses and overwrites no data, and name the transfers that do.

    The exit code is 1 if there are any.
    """
    schedule = load_schedule(file)
    violations = verify(schedule, limit)
    screen = console(json_target)
    for violation in violations:
        screen.print(f"[red]{violation.rule}[/]: ", end="")
        screen.print(violation.message.removeprefix(f"{violation.rule}: "), markup=False, soft_wrap=True)
    if not violations:
        screen.print(
            f"[green]ok[/]: nothing is lost, overwritten or left out ({counted(schedule.ranks, 'rank')})"
        )
    write_json(
        json_target,
        {
            "ok": not violations,
            "violations": [
                {name: getattr(one, name) for name in ("rule", "round", "transfer", "other", "message")}
                for one in violations
            ],
        },
    )
    if violations:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    schedule = typer.Typer(
        no_args_is_help=True, help="Build, show, count and verify schedules without running them."
    )
    schedule.command("halo")(make_halo)
    schedule.command("show")(show)
    schedule.command("count")(count_schedule)
    schedule.command("verify")(verify_schedule)
    app.add_typer(schedule, name="schedule")
