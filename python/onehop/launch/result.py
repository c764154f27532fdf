"""The result of a launch, rank by rank."""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class RankResult:
    """How one rank ended.

    Attributes
    ----------
    rank : int
        Number of the rank.
    exit_code : int or None
        Its exit code; None if a signal ended it.
    signal : str or None
        The signal that ended it, for example "SIGKILL".
    stopped : bool
        Whether the launcher told it to end, because another rank had failed or the launch was interrupted.
    seconds : float
        Time from its start to its end.
    """

    rank: int
    exit_code: int | None
    signal: str | None
    stopped: bool
    seconds: float


@dataclass(frozen=True)
class LaunchResult:
    """How a launch ended.

    Attributes
    ----------
    command : list of str
        The command line of every rank.
    exit_code : int
        Exit code of the launch: 0, that of the rank that failed, or 128 plus a signal's number.
    failed : int or None
        The rank whose failure the exit code reports; None if none failed or the launch was interrupted.
    seconds : float
        Time from the start of the first rank to the end of the last one.
    ranks : list of RankResult
        The results of the ranks.
    """

    command: list[str]
    exit_code: int
    failed: int | None
    seconds: float
    ranks: list[RankResult]

    def to_dict(self) -> dict[str, Any]:
        """Return the launch's object in the JSON report."""
        return asdict(self)


def signal_name(number: int) -> str:
    """Return the name of a signal, for example "SIGKILL", or its number if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
