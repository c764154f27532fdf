"""Whether a codec takes less time than raw on the links between the hosts of a group."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from onehop import _core
from onehop._core import Collectives
from onehop.codec import tuned_rate
from onehop.group import Group

# Longer than the burst that an idle link may let pass at once.
_MEASURED_BYTES = 4 << 20
_PASSES = 5


class Links:
    """What is known of the links of one group."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._pays: dict[str, bool] = {}

    def pays(self, group: Group, collectives: Collectives, codec: str) -> bool:
        """Whether a codec pays between the hosts of a group; true inside one host, where the length decides alone.

        A codec pays on links that are slower than the rate of `onehop tune` (measured now if there is none). The first
        call for each codec is collective between hosts, and all ranks return the same: the rate of the slowest link
        counts, and the tuning of rank 0.
        """
        if codec == "raw" or len(group.local_ranks) == group.size:
            return True
        if codec not in self._pays:
            if self._rate is None:
                self._rate = _measure(group, collectives)
            mine = np.array([self._rate, tuned_rate(codec)])
            rows = [np.frombuffer(row) for row in group.allgather(mine.tobytes())]
            self._pays[codec] = bool(min(row[0] for row in rows) < rows[0][1])
        return self._pays[codec]


def _measure(group: Group, collectives: Collectives) -> float:
    lengths = [_block_bytes(group.size)] * group.size
    operation = collectives.all_to_all(lengths, lengths)

    def exchange(source: np.ndarray, result: np.ndarray) -> None:
        operation.run(_core.Memory(source), _core.Memory(result, True))

    return link_rate(group, collectives.barrier, exchange)


def link_rate(
    group: Group, barrier: Callable[[], object], exchange: Callable[[np.ndarray, np.ndarray], object]
) -> float:
    """Return the rate at which this rank sends to ranks of other hosts, in Gbit/s: the best of some. Collective.

    If all ranks share one host, it is the rate to all others. `barrier` waits for all ranks: a rank that waited for a
    late one in the exchange would measure that. `exchange` sends one of `group.size` equal blocks of its first
    argument, an array of bytes, to each rank, and receives as many into its second.
    """
    others = group.size - len(group.local_ranks) or group.size - 1
    if others == 0:
        return float("inf")
    each = _block_bytes(group.size)
    source, result = (np.zeros(each * group.size, np.uint8) for _ in range(2))
    best = float("inf")
    for _ in range(_PASSES):
        barrier()
        begin = perf_counter()
        exchange(source, result)
        best = min(best, perf_counter() - begin)
    return 8e-9 * each * others / best


def _block_bytes(size: int) -> int:
    return _MEASURED_BYTES // size
