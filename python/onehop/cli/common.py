"""Options, JSON output, error messages and progress bars shared by all commands. Only rank 0 writes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onehop.cli.screen import Screen, coloured, progress_bar
from onehop.error import BadInput, Error
from onehop.launch.environment import RESTARTED, current_launch
from onehop.options import LARGEST_INT, Options, fields_of, option
from onehop.output import check_file_target, check_name, write_file
from onehop.text import bytes_text, message_bytes


@dataclass(kw_only=True)
class JsonOptions(Options):
    """The option of every command whose result can be read by programs."""

    title = "Output"
    json: str | None = option(
        None,
        "Write the result as JSON to FILE, or to stdout (- or no FILE).",
        metavar="FILE|-",
        alone="-",
        writes="the result",
    )


@dataclass(kw_only=True)
class RanksOptions(Options):
    """The number of ranks of a command that starts them."""

    title = "Ranks"
    ranks: int | None = option(
        None,
        "Number of ranks to start. Inside a launch, the ranks of that launch are used.",
        *("-n", "--ranks"),
        metavar="RANKS",
    )


@dataclass(kw_only=True)
class MpiOptions(RanksOptions):
    """The ranks of a command that compares with MPI."""

    mpi: str | None = option(
        None,
        "MPI implementation to start under and to compare with. none: use the built-in launcher.",
        metavar="openmpi|mpich|PATH|none",
    )


@dataclass(kw_only=True)
class GridOptions(Options):
    """The grid of ranks."""

    title = "Ranks"
    grid: tuple[int, ...] | None = option(
        None,
        "Number of ranks in each direction. Default: the grid with the smallest surface.",
        high=LARGEST_INT,
    )


@dataclass(kw_only=True)
class RowsOptions(Options):
    """The length of tables."""

    title = "Output"
    rows: int = option(20, "Maximum number of rows to show; 0 shows all.", low=0)


def own_rank() -> int:
    """Return the rank of this process according to its launcher; 0 outside a launch."""
    launched = current_launch()
    return 0 if launched is None else launched.rank


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Let warnings of Python be one line each, without the place in the source, which is not the user's."""
    saved = warnings.formatwarning
    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"
    try:
        yield
    finally:
        warnings.formatwarning = saved


def console(json_target: str | None = None) -> Screen:
    """Return where tables are printed: stdout, or stderr if the JSON goes to stdout. Only rank 0 prints."""
    return Screen(sys.stderr if json_target == "-" else sys.stdout, quiet=own_rank() != 0)


def check_plot(file: str) -> None:
    """Check before the work starts that the plot of `--plot` can be drawn and written. Raises Error or BadInput."""
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
    found = [path for key, part in parts for path in _not_finite(part, f"{name}.{key}" if name else str(key))]
    return found[:5]


def write_json(target: str | None, result: Any) -> None:
    """Write `result` to the target of `--json`, atomically and on rank 0 only. Without `--json` do nothing.

    Raises BadInput if the file cannot be written, and Error for numbers that are not finite.
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


def say_written(options: Options) -> None:
    """Print which files a command has written, and what is in them."""
    targets = [(field.option.writes, getattr(options, field.name)) for field in fields_of(type(options))]
    targets = [(what, target) for what, target in targets if what not in ("", "checkpoint")]
    screen = console("-" if "-" in dict(targets).values() else None)
    for what, target in targets:
        if isinstance(target, str) and (file := Path(target)).exists():
            size = f" ({bytes_text(file.stat().st_size)})" if file.is_file() else ""
            what = "files" if file.is_dir() else what
            screen.print(f"wrote {what} to {target}{size}")


def print_error(error: BaseException) -> None:
    """Print an error as one line on stderr, without a traceback. Ranks that find the same error print it once."""
    try:
        launched = current_launch()
    except BadInput:  # the error is that the launcher's variables are not numbers
        launched = None
    rank = 0 if launched is None else launched.rank
    text = message_bytes(str(error)).decode()

    def say() -> None:
        who = f"rank {rank}: " if rank != 0 else ""
        print(f"{who}{coloured('error:', 'bold red', sys.stderr)} {text}", file=sys.stderr, flush=True)

    # If the command has started itself again, its launcher already shows the output of one rank only.
    if launched is None or launched.ranks == 1 or RESTARTED in os.environ:
        say()
    else:
        from onehop.launch.agreement import say_once  # sockets and digests, which only this needs

        say_once(launched, text, say)


def progress(description: str, total: float | None = None) -> AbstractContextManager[Callable[[float], None]]:
    """Show a progress bar on stderr, on rank 0 and in a terminal only.

    Yields a function that advances the bar by an amount, in the units of `total`.
    """
    return progress_bar(description, total, quiet=own_rank() != 0)


def since_last(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function of all that is done, which advances by what was added; less than before begins anew."""
    done = 0.0

    def tell(now: float) -> None:
        nonlocal done
        advance(now - (done if now >= done else 0.0))
        done = now

    return tell
