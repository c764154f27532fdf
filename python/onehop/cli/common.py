"""What the commands have in common: options, JSON, errors and progress, all on rank 0 only."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from onehop.error import BadInput, Error
from onehop.launch.environment import RESTARTED, current_launch
from onehop.output import check_file_target, write_file


def _json_target(target: str | None) -> str | None:
    """Looked at before the work, so that no long run ends in a result that has no place."""
    if target is None or target == "-":
        return target
    check_file_target(target, "--json")
    return target


JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON to FILE, or to stdout (-).",
        callback=_json_target,
    ),
]
# Of 64 bits, as the generators of random numbers take it.
LARGEST_SEED = 2**64 - 1
RanksOption = Annotated[
    int | None,
    typer.Option(
        "-n", "--ranks", metavar="RANKS", help="Ranks to start. Inside a launch, that launch is used."
    ),
]
MpiOption = Annotated[
    str | None,
    typer.Option(
        "--mpi",
        metavar="openmpi|mpich|PATH|none",
        help="The MPI to start under and to compare with; none: the built-in launcher.",
    ),
]


def say_renamed(old: str, new: str) -> None:
    """Say on stderr, on rank 0, that a command or an option has a new name."""
    # A command that starts itself again as ranks has said it before.
    if own_rank() == 0 and RESTARTED not in os.environ:
        print(f"onehop: `{old}` is now `{new}`; the old name will go in version 0.3", file=sys.stderr)


def renamed_option(old: str, new: str) -> Any:
    """The hidden option that keeps the old name of an option; its value is None unless it is used."""

    def say(value: Any) -> Any:
        if value is not None:
            say_renamed(old, new)
        return value

    return typer.Option(old, hidden=True, callback=say)


def own_rank() -> int:
    """The rank of this process as its launcher says; 0 without one."""
    launched = current_launch()
    return 0 if launched is None else launched.rank


def _console(**options: Any) -> Console:
    # Older versions of rich do not know the variable.
    no_terminal = os.environ.get("TTY_COMPATIBLE") == "0"
    return Console(highlight=False, force_terminal=False if no_terminal else None, **options)


def console(json_target: str | None = None) -> Console:
    """Where tables go: stdout, or stderr if the JSON goes to stdout. Quiet on all ranks but 0."""
    return _console(stderr=json_target == "-", quiet=own_rank() != 0)


def stderr_console() -> Console:
    """Where progress is shown."""
    return _console(stderr=True)


def parse_numbers(text: str, option: str, separator: str = ",") -> list[int]:
    """The numbers of an option such as "10,24", or with "x" for `separator` "128x64x64" (commas will do there too).

    Raises
    ------
    BadInput
        They are none.
    """
    try:
        return [int(number) for number in text.replace(",", separator).split(separator)]
    except ValueError:
        example = separator.join(("128", "64", "64"))
        raise BadInput(
            f"expected {option} as numbers with {separator!r} between them, for example {example}, found {text!r}"
        ) from None


def check_seconds(seconds: float) -> None:
    """Raise BadInput unless one can measure for so long."""
    if not 0 < seconds < float("inf"):
        raise BadInput(f"expected --seconds above 0, found {seconds:g}")


def check_plot(file: str | None) -> None:
    """Find out before the work that what `--plot` asks for cannot be drawn.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        There is no such folder, or it is no file.
    """
    if file is None:
        return
    if Path(file).is_dir():
        raise BadInput(
            f"cannot write the plot to {file}: it is a folder; name a file in it, such as plot.png"
        )
    if find_spec("matplotlib") is None:
        raise Error("--plot needs matplotlib, which is not installed: `pip install matplotlib`")
    check_file_target(file, "--plot")


def _not_finite(result: Any, name: str = "") -> list[str]:
    """The names of the numbers in a result that are not finite, the first few of them."""
    if isinstance(result, float):
        return [] if math.isfinite(result) else [name]
    parts = (
        result.items() if isinstance(result, dict) else enumerate(result) if isinstance(result, list) else ()
    )
    found = [one for key, part in parts for one in _not_finite(part, f"{name}.{key}" if name else str(key))]
    return found[:5]


def write_json(target: str | None, result: Any) -> None:
    """Write `result` where `--json` says, whole or not at all; rank 0 only. Nothing happens without `--json`.

    Raises
    ------
    BadInput
        The file cannot be written.
    Error
        Numbers of the result are not finite.
    """
    if target is None or own_rank() != 0:
        return
    try:
        text = json.dumps(result, indent=2, allow_nan=False) + "\n"
    except ValueError as error:
        raise Error(
            "expected a result of finite numbers, which JSON can hold, found numbers that are not finite: "
            f"{', '.join(_not_finite(result)) or error}"
        ) from error
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_file(target, text, "the result")


def print_error(error: BaseException) -> None:
    """One line on stderr, no traceback.

    Where all ranks find the same error, rank 0 says it: the others give it the time to end the launch first.
    """
    rank = own_rank()
    if rank != 0:
        time.sleep(0.5)
    who = f"rank {rank}: " if rank != 0 else ""
    _console(stderr=True, soft_wrap=True).print(f"{who}[bold red]error:[/] ", end="")
    print(error, file=sys.stderr)


@contextlib.contextmanager
def progress(description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr, on rank 0 and in a terminal only.

    Yields a function that moves it on by so much of `total`.
    """
    target = _console(stderr=True)
    if own_rank() != 0 or not target.is_terminal:
        yield lambda _amount: None
        return
    with Progress(console=target, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)
