"""The options of a Poisson solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from onehop.options import LARGEST_SEED, Options, option


class PoissonKeywords(TypedDict, total=False):
    """The keyword arguments of `Poisson`; see `PoissonOptions`."""

    local: tuple[int, int]
    grid: tuple[int, int] | None
    mass: float
    seed: int
    source: Any
    buffers: int
    enlargement: int
    transport: str


@dataclass(kw_only=True)
class PoissonOptions(Options):
    """The options of `Poisson`, which documents them."""

    local: tuple[int, int] = option((60, 60), "Sites of the block of each rank.", metavar="LxM", length=2)
    grid: tuple[int, int] | None = option(None, "Number of ranks per dimension.", metavar="PxQ", length=2)
    mass: float = option(0.5, "Mass term, above 0. A larger mass converges faster.")
    seed: int = option(1, "Seed of the random right-hand side.", low=0, high=LARGEST_SEED)
    buffers: int = option(2, "Number of message buffers: 1 (single) or 2 (double buffering).", choices=(1, 2))
    enlargement: int = option(
        1,
        "Lengthen each message to N times the face that it carries.",
        "--enlarge",
        low=1,
        high=1 << 20,
    )
    transport: str = option("auto", "Transport of the messages.", metavar="auto|shared_memory|mpi")
    source: Any = None
