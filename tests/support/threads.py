"""Ranks that are threads of this process: quick to start, and they use the same channels as processes do."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onehop


def run_threads(size: int, function: Callable[[onehop.Group], Any], seconds: float = 60) -> list[Any]:
    """Call `function(group)` on every rank and return what they return; raise the first error that is no lost peer."""
    barrier = threading.Barrier(size)
    given = [b""] * size
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        def allgather(mine: bytes) -> list[bytes]:
            given[rank] = mine
            barrier.wait(seconds)
            everybody = list(given)
            barrier.wait(seconds)
            return everybody

        try:
            group = onehop.Group.from_allgather(rank, size, allgather)
            group.timeout = seconds
            results[rank] = function(group)
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise min(
            errors, key=lambda error: isinstance(error, (onehop.PeerLost, threading.BrokenBarrierError))
        )
    return results


def same_on(ranks: int, function: Callable[[onehop.Group], Any]) -> Any:
    """Run `function` on several ranks and return its result, which must be equal bit for bit on every rank."""
    results = run_threads(ranks, function)
    first = results[0]
    for other in results[1:]:
        if isinstance(first, np.ndarray):
            assert first.tobytes() == other.tobytes()
        else:
            assert first == other
    return first


def refused_on(ranks: int, match: str, function: Callable[[onehop.Group], Any]) -> str:
    """Run `function` on several ranks, each of which must refuse it in the same words; return these."""

    def one_rank(group: onehop.Group) -> str:
        with pytest.raises(onehop.BadInput, match=match) as caught:
            function(group)
        return str(caught.value)

    return same_on(ranks, one_rank)
