"""The options of `launch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onehop.launch.result import LaunchResult
from onehop.options import Options, file_option, option


@dataclass(kw_only=True)
class LaunchOptions(Options):
    """The options of `launch`, which documents them."""

    bind: bool = option(
        True, "Bind each rank to its own cores if there are enough.", "--bind", off="--no-bind"
    )
    cores_each: int = option(1, "Number of cores that each rank is bound to.", "--cores", metavar="CORES")
    grace: float | None = option(
        None,
        "Time that ranks have to end: by themselves after one has failed, before SIGTERM; then before SIGKILL.",
        metavar="SECONDS",
        low=0,
        default="0, and 2 before SIGKILL",
    )
    output_dir: str | None = option(
        None,
        "Write the output of each rank to FOLDER/rank-0.txt and so on, and nothing to the terminal.",
        metavar="FOLDER",
    )
    trace: str | None = file_option(
        "Write a time line of all ranks to FILE, which `onehop trace`, chrome://tracing and Perfetto read.",
        "the trace",
    )
    output: str = "prefix"
    report: bool = True
    environment: Mapping[str, str] | None = None
    stdout: int = 1
    on_result: Callable[[LaunchResult], None] | None = None
    quiet: bool = False
