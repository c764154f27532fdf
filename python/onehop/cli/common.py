"""Options, JSON output, error messages and progress bars shared by all commands. Only rank 0 writes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from onehop.error import BadInput, Error
from onehop.launch.environment import RESTARTED, current_launch
from onehop.output import check_file_target, check_name, write_file
from onehop.text import message_bytes


def _json_target(target: str | None) -> str | None:
    """Check the target of `--json` before the work starts, so that a long run does not fail at its end."""
    if target is None or target == "-":
        return target
    check_file_target(target, "--json")
    return target


JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write the result as JSON to FILE, or to stdout (- or no FILE).",
        callback=_json_target,
    ),
]
# The generators of random numbers take seeds of 64 bits.
LARGEST_SEED = 2**64 - 1
LARGEST_INT = 2**31 - 1  # of numbers that are an `int` in C++, such as ranks
LARGEST_SHOTS = 2**31  # of one circuit
LARGEST_SIZE = 2**62  # of elements and bytes
RanksOption = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--ranks",
        metavar="RANKS",
        help="Number of ranks to start. Inside a launch, the ranks of that launch are used.",
    ),
]
MpiOption = Annotated[
    str | None,
    typer.Option(
        "--mpi",
        metavar="openmpi|mpich|PATH|none",
        help="MPI implementation to start under and to compare with. none: use the built-in launcher.",
    ),
]


def say_renamed(old: str, new: str) -> None:
    """Print on stderr, on rank 0, that a command or an option has a new name."""
    # A command that has started itself again as ranks has printed it before.
    if own_rank() == 0 and RESTARTED not in os.environ:
        print(f"onehop: `{old}` is now `{new}`; version 0.3 will remove the old name", file=sys.stderr)


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Let warnings of Python be one line each, without the place in the source, which is not the user's."""
    saved = warnings.formatwarning
    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = saved


def refuse_both(old: str, new: str) -> NoReturn:
    """Raise BadInput for a command line that has an option by its present name and by its former one."""
    raise BadInput(f"expected {new} or its former name {old}, found both; leave {old} out")


def _parameters(context: typer.Context) -> dict[str, str]:
    """Return the parameter of each option of a command."""
    return {option: str(one.name) for one in context.command.params for option in one.opts}


def given(context: typer.Context, options: Iterable[str]) -> list[str]:
    """Return those of these options, such as "--per-host", that the command line has."""
    parameters = _parameters(context)
    sources = {option: context.get_parameter_source(parameters[option]) for option in options}
    return [option for option, source in sources.items() if getattr(source, "name", "") == "COMMANDLINE"]


def renamed_option(old: str, **limits: Any) -> Any:
    """Return a hidden option that keeps the former name of an option. Its value is read by `current_value`."""
    return typer.Option(old, hidden=True, **limits)


def current_value(context: typer.Context, old: str, new: str) -> Any:
    """Return the value of an option, which the command line may give by its former name.

    Parameters
    ----------
    context : typer.Context
        The command's context.
    old, new : str
        The former name, made by `renamed_option`, and the present name.

    Raises
    ------
    BadInput
        The command line has both.
    """
    found = given(context, (old, new))
    if len(found) == 2:
        refuse_both(old, new)
    if old in found:
        say_renamed(old, new)
    return context.params[_parameters(context)[old if old in found else new]]


def own_rank() -> int:
    """Return the rank of this process according to its launcher; 0 outside a launch."""
    launched = current_launch()
    return 0 if launched is None else launched.rank


def _console(**options: Any) -> Console:
    # Older versions of rich do not read this variable.
    no_terminal = os.environ.get("TTY_COMPATIBLE") == "0"
    return Console(highlight=False, force_terminal=False if no_terminal else None, **options)


def console(json_target: str | None = None) -> Console:
    """Return the console for tables: stdout, or stderr if the JSON goes to stdout. Only rank 0 prints."""
    return _console(stderr=json_target == "-", quiet=own_rank() != 0)


def stderr_console() -> Console:
    """Return the console for progress messages: stderr."""
    return _console(stderr=True)


def parse_numbers(text: str, option: str, separator: str = ",", largest: int = LARGEST_SIZE) -> list[int]:
    """Parse an option such as "10,24", or with "x" as `separator` "128x64x64"; commas are accepted as well.

    Raises
    ------
    BadInput
        The text is not a list of integers, or one is above `largest` or below its negative.
    """
    try:
        numbers = [int(number) for number in text.replace(",", separator).split(separator)]
    except ValueError:
        example = separator.join(("128", "64", "64"))
        raise BadInput(
            f"expected {option} as numbers with {separator!r} between them, for example {example}, found {text!r}"
        ) from None
    for number in numbers:
        if abs(number) > largest:
            raise BadInput(f"expected {option} with numbers of at most {largest}, found {number}")
    return numbers


def check_seconds(seconds: float) -> None:
    """Raise BadInput unless the duration of a measurement is positive and finite."""
    if not 0 < seconds < float("inf"):
        raise BadInput(f"expected --seconds above 0 and finite, found {seconds:g}")


def check_plot(file: str | None) -> None:
    """Check before the work starts that the plot of `--plot` can be drawn and written.

    Raises
    ------
    Error
        matplotlib is not installed.
    BadInput
        The folder does not exist, the path is a folder, or the name does not end in the name of a format.
    """
    if file is None:
        return
    if check_name(file, "--plot").is_dir():
        raise BadInput(
            f"cannot write the plot to {file}: it is a folder; name a file in it, such as plot.png"
        )
    formats = ("eps", "jpeg", "jpg", "pdf", "png", "ps", "svg", "tif", "tiff", "webp")
    if Path(file).suffix[1:].lower() not in formats:
        raise BadInput(
            f"expected --plot with a name that ends in one of .{', .'.join(formats)}, found {file}"
        )
    if find_spec("matplotlib") is None:
        raise Error("--plot needs matplotlib, which is not installed: `pip install matplotlib`")
    check_file_target(file, "--plot")


def _not_finite(result: Any, name: str = "") -> list[str]:
    """Return the names of up to five numbers in a result that are not finite."""
    if isinstance(result, float):
        return [] if math.isfinite(result) else [name]
    parts = (
        result.items() if isinstance(result, dict) else enumerate(result) if isinstance(result, list) else ()
    )
    found = [one for key, part in parts for one in _not_finite(part, f"{name}.{key}" if name else str(key))]
    return found[:5]


def write_json(target: str | None, result: Any) -> None:
    """Write `result` to the target of `--json`, atomically and on rank 0 only. Without `--json` do nothing.

    Raises
    ------
    BadInput
        The file cannot be written.
    Error
        The result contains numbers that are not finite.
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
    """Print an error as one line on stderr, without a traceback. Ranks that find the same error print it once."""
    try:
        launched = current_launch()
    except BadInput:  # the error is that the launcher's variables are not numbers
        launched = None
    rank = 0 if launched is None else launched.rank
    text = message_bytes(" ".join(str(error).splitlines())).decode()

    def say() -> None:
        who = f"rank {rank}: " if rank != 0 else ""
        try:
            _console(stderr=True, soft_wrap=True).print(f"{who}[bold red]error:[/] ", end="")
        except (OSError, MemoryError, ImportError):  # no file or memory is left for a module of Rich
            print(f"{who}error: ", end="", file=sys.stderr)
        print(text, file=sys.stderr, flush=True)

    # If the command has started itself again, its launcher already shows the output of one rank only.
    if launched is None or launched.ranks == 1 or RESTARTED in os.environ:
        say()
    else:
        from onehop.launch.agreement import say_once  # sockets and digests, which only this needs

        say_once(launched, text, say)


@contextlib.contextmanager
def progress(description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on stderr, on rank 0 and in a terminal only.

    Yields a function that advances the bar by an amount, in the units of `total`.
    """
    target = _console(stderr=True)
    if own_rank() != 0 or not target.is_terminal:
        yield lambda _amount: None
        return
    from rich.progress import Progress  # here, because it takes a tenth of the time of `onehop --help`

    with Progress(console=target, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)
