"""The options of `launch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onehop.launch.environment import SIGKILL_AFTER
from onehop.launch.result import LaunchResult
from onehop.options import Options, option


@dataclass(kw_only=True)
class LaunchOptions(Options):
    """The options of `launch`, which documents them."""

    bind: bool = option(
        True, "Bind each rank to its own cores if there are enough.", "--bind", off="--no-bind"
    )
    cores_each: int = option(1, "Number of cores that each rank is bound to.", "--cores", metavar="CORES")
    kill_after: float = option(
        0.0,
        "Time that the other ranks have to exit by themselves after one has failed.",
        metavar="SECONDS",
        low=0,
    )
    output: str = "prefix"
    report: bool = True
    environment: Mapping[str, str] | None = None
    stdout: int = 1
    on_result: Callable[[LaunchResult], None] | None = None
    sigkill_after: float = SIGKILL_AFTER
    quiet: bool = False
