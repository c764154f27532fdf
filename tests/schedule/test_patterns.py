"""Collective operations as schedules: what plans of them do is what NumPy does."""

from typing import Any

import numpy as np
import pytest

import onehop
from onehop import patterns
from threads import run_threads


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_plans_of_patterns_have_the_results_of_numpy(ranks: int) -> None:
    rng = np.random.default_rng(ranks)
    long = rng.integers(-9, 9, (ranks, 4 * ranks))
    short = rng.integers(-9, 9, (ranks, 4))

    def one_rank(group: onehop.Group) -> None:
        rank = group.rank

        def run(schedule: onehop.Schedule, source: np.ndarray, length: int) -> np.ndarray:
            onehop.verify_or_throw(schedule)
            result = np.full(length, 99)
            onehop.Plan(schedule, group, [source.copy(), result]).run()
            return result

        block = slice(4 * rank, 4 * rank + 4)
        assert (run(patterns.allreduce(ranks, 4, "int64", "max"), short[rank], 4) == short.max(0)).all()
        assert (run(patterns.reduce_scatter(ranks, 4, "int64"), long[rank], 4) == long.sum(0)[block]).all()
        assert (
            run(patterns.scan(ranks, 4, "int64", "prod"), short[rank], 4) == short[: rank + 1].prod(0)
        ).all()
        assert (run(patterns.alltoall(ranks, 4), long[rank], 4 * ranks) == long[:, block].reshape(-1)).all()
        array = short[rank].copy()
        onehop.Plan(patterns.broadcast(ranks, 4, root=ranks - 1), group, [array]).run()
        assert (array == short[-1]).all()
        array = long[rank].copy()
        onehop.Plan(patterns.allgather(ranks, 4, 8), group, [array]).run()
        assert (array == np.concatenate([long[r, 4 * r : 4 * r + 4] for r in range(ranks)])).all()

    run_threads(ranks, one_rank)


def test_bytes() -> None:
    assert onehop.count(patterns.alltoall(5, 3)).bytes == 5 * 4 * 3 * 8
    assert onehop.count(patterns.scan(4, 3, "float32")).bytes == (1 + 2 + 3) * 3 * 4
    assert onehop.count(patterns.broadcast(4, 3, 2)).bytes == 3 * 3 * 2
    assert patterns.halo is onehop.halo


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: patterns.broadcast(3, 4, root=3), "root"),
        (lambda: patterns.scan(0, 4), "ranks"),
        (lambda: patterns.scan(2, 4, "int8"), "float32, float64, int32 or int64"),
        (lambda: patterns.reduce_scatter(2, 4, op="mean"), "expected the operator sum"),
    ],
)
def test_refused(call: Any, told: str) -> None:
    with pytest.raises(onehop.BadInput, match=told):
        call()
