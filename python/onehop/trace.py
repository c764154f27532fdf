"""Time lines of runs (`onehop launch --trace`, ONEHOP_TRACE): who waited for whom, and bytes by link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop import _core
from onehop.error import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.input_file import read_json

_EXPECTED = "a trace of onehop, as `onehop launch --trace FILE` writes it"


@dataclass
class RankTime:
    """What one rank did.

    Attributes
    ----------
    rank : int
        The rank.
    seconds : float
        From its first event to its last one.
    waited_s : float
        Seconds in which it waited for other ranks.
    computed_s : float
        The other seconds.
    bytes : int
        Bytes that it sent.
    """

    rank: int
    seconds: float = 0.0
    waited_s: float = 0.0
    computed_s: float = 0.0
    bytes: int = 0


@dataclass
class LinkUse:
    """The traffic from one rank to another one, `from_rank` to `to_rank`.

    Attributes
    ----------
    bytes : int
        Bytes sent. Those of collective operations count in equal parts for all ranks.
    waited_s : float
        Seconds in which `to_rank` waited for `from_rank`.
    waits : int
        How often.
    """

    from_rank: int
    to_rank: int
    bytes: int = 0
    waited_s: float = 0.0
    waits: int = 0


@dataclass
class Operation:
    """All events of one name: plans, collective operations, passes of circuits, iterations of solvers."""

    name: str
    category: str
    count: int = 0
    seconds: float = 0.0
    bytes: int = 0


@dataclass
class TraceSummary:
    """The sums of a trace: ranks, links and operations, and channels by the seconds for which ranks waited in them."""

    ranks: list[RankTime]
    links: list[LinkUse]
    operations: list[Operation] = field(default_factory=list)
    channels: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `onehop trace --json`."""
        return asdict(self)


def summarize(file: str) -> TraceSummary:
    """Sum up the trace of a run.

    The files of single ranks, which stay if not all of them have ended in order, are made into one trace first.

    Parameters
    ----------
    file : str
        The file that `onehop launch --trace` or ONEHOP_TRACE names.

    Returns
    -------
    TraceSummary
        The sums.

    Raises
    ------
    BadInput
        The file does not exist or is no trace.
    """
    if not Path(file).exists():
        _core.merge_trace(str(file), False)
    read = read_json(file, _EXPECTED)
    events = read.get("traceEvents") if isinstance(read, dict) else None
    if not isinstance(events, list):
        raise BadInput(f'{file}: expected {_EXPECTED}, found no list "traceEvents"')
    try:
        return _summary(events)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"{file}: expected {_EXPECTED}, found an event without {error}") from error


def _summary(events: Sequence[dict[str, Any]]) -> TraceSummary:
    ranks: dict[int, RankTime] = {}
    links: dict[tuple[int, int], LinkUse] = {}
    operations: dict[tuple[str, str], Operation] = {}
    channels: defaultdict[str, float] = defaultdict(float)
    ends: dict[int, tuple[float, float]] = {}

    def link(one: int, other: int) -> LinkUse:
        return links.setdefault((one, other), LinkUse(one, other))

    for event in events:
        rank = int(event["pid"])
        if event["ph"] == "M" and event["name"] == "onehop_sent":
            own = ranks.setdefault(rank, RankTime(rank))
            for peer, count in enumerate(event["args"]["bytes"]):
                if count:
                    link(rank, peer).bytes += int(count)
                    own.bytes += int(count)
        if event["ph"] != "X":
            continue
        own = ranks.setdefault(rank, RankTime(rank))
        begin, seconds = event["ts"] * 1e-6, event["dur"] * 1e-6
        first, last = ends.get(rank, (begin, begin))
        ends[rank] = min(first, begin), max(last, begin + seconds)
        if event["cat"] == "wait":
            own.waited_s += seconds
            waited = link(int(event["args"]["rank"]), rank)
            waited.waited_s += seconds
            waited.waits += 1
            channels[event["name"]] += seconds
        else:
            name = (event["name"], event["cat"])
            operation = operations.setdefault(name, Operation(*name))
            operation.count += 1
            operation.seconds += seconds
            operation.bytes += int(event["args"].get("bytes", 0))
    for rank, own in ranks.items():
        first, last = ends.get(rank, (0.0, 0.0))
        own.seconds = last - first
        own.computed_s = max(0.0, own.seconds - own.waited_s)
    return TraceSummary(
        [ranks[rank] for rank in sorted(ranks)],
        [links[pair] for pair in sorted(links)],
        sorted(operations.values(), key=lambda one: -one.seconds),
        dict(sorted(channels.items(), key=lambda one: -one[1])),
    )


def save_trace_plot(summary: TraceSummary, file: str) -> None:
    """Draw the seconds of each rank, and who waited for whom. Raises BadInput, and Error without matplotlib."""
    import numpy as np

    count = 1 + max((one.rank for one in summary.ranks), default=0)
    figure = empty_figure(10, max(3.0, 0.3 * min(count, 40)))
    bars, matrix = figure.subplots(1, 2)
    ranks = [one.rank for one in summary.ranks]
    computed = [one.computed_s for one in summary.ranks]
    bars.barh(ranks, computed, label="computed")
    bars.barh(ranks, [one.waited_s for one in summary.ranks], left=computed, hatch="//", label="waited")
    bars.set(xlabel="s", ylabel="rank")
    bars.invert_yaxis()
    bars.legend()
    waited = np.zeros((count, count))
    for one in summary.links:
        if max(one.to_rank, one.from_rank) < count:
            waited[one.to_rank, one.from_rank] = one.waited_s
    image = matrix.imshow(waited, cmap="viridis")
    matrix.set(xlabel="for rank", ylabel="rank", title="waited, s")
    figure.colorbar(image, ax=matrix)
    save_figure(figure, file)
