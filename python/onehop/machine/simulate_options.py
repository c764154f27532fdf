"""The options of `simulate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from onehop._core import RailAssignment, RankMap
from onehop.options import LARGEST_INT, LARGEST_SIZE, Options, option


class SimulateKeywords(TypedDict, total=False):
    """The keyword arguments of `simulate`; see `SimulateOptions`."""

    ranks: Sequence[int] | RankMap | None
    rails: str | Sequence[Sequence[RailAssignment]] | None
    compute: float | Sequence[float] | None
    chunk_bytes: int
    slot_bytes: int
    slots: int
    contention: bool
    accuracy: float
    progress: Callable[[float], object] | None


@dataclass(kw_only=True)
class SimulateOptions(Options):
    """The options of a simulation; `simulate` documents them."""

    title = "Model"

    compute: float | Sequence[float] | None = option(
        None,
        "Time that every rank computes between start and finish of a round.",
        kind=float,
        metavar="SECONDS",
        low=0,
        high=1e6,
        default="0",
    )
    chunk_bytes: int = option(
        0,
        "Pack and unpack messages in chunks of this size; 0: do not model packing.",
        "--chunk",
        metavar="BYTES",
        low=0,
        high=LARGEST_SIZE,
    )
    slot_bytes: int = option(
        0,
        "Size of a slot, through which longer messages move; 0: no limit.",
        "--slot",
        metavar="BYTES",
        low=0,
        high=LARGEST_SIZE,
    )
    slots: int = option(2, "Number of slots of a channel.", low=1, high=LARGEST_INT)
    contention: bool = option(
        True,
        "Let messages share links, or let each flow by itself.",
        "--contention",
        off="--no-contention",
    )
    accuracy: float = option(
        0.01,
        "Largest relative time step between updates of the rates when thousands of messages are in flight; 0: update "
        "at every change.",
        low=0,
        high=0.5,
    )
    ranks: object = None
    rails: object = None
    progress: Callable[[float], object] | None = None
