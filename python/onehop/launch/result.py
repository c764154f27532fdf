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
        Which one.
    exit_code : int or None
        What it ended with; None if a signal ended it.
    signal : str or None
        The signal that ended it, for example "SIGKILL".
    stopped : bool
        Whether the launcher told it to end, because another rank had failed or the launch was interrupted.
    seconds : float
        From its start to its end.
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
        What every rank ran.
    exit_code : int
        Of the launch: 0, that of the rank that failed, or 128 plus a signal's number.
    failed : int or None
        The rank that the exit code is of; None if none failed or the launch was interrupted.
    seconds : float
        From the start of the first rank to the end of the last one.
    ranks : list of RankResult
        Each rank's own end.
    """

    command: list[str]
    exit_code: int
    failed: int | None
    seconds: float
    ranks: list[RankResult]

    def to_dict(self) -> dict[str, Any]:
        """The object for JSON."""
        return asdict(self)


def signal_name(number: int) -> str:
    """For example "SIGKILL"; the number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
