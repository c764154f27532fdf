"""A gauge field and its operators give the same numbers whichever rank has which block."""

import numpy as np

from onehop import Group
from onehop.lattice import Gauge, Staggered, Wilson
from threads import run_threads


def test_the_numbers_do_not_depend_on_the_map() -> None:
    extents, grid = (4, 4, 8, 8), (1, 1, 2, 2)
    source = np.random.default_rng(5).normal(size=(8, 8, 4, 4, 4, 3)) + 0j

    def numbers(group: Group, rank_at: list[int] | None) -> list[np.ndarray]:
        gauge = Gauge(group, extents, grid, map=rank_at)
        gauge.set_random(3)
        gauge.heat_bath(5.7, 3, 0)
        block = gauge.geometry.block_slices(group.rank)
        found = [np.array(gauge.gather()), np.array(list(gauge.plaquettes()), float)]
        for part, field in ((Staggered(gauge), source[..., 0, :]), (Wilson(gauge, 0.12, csw=1.0), source)):
            result = part.dslash(np.ascontiguousarray(field[block]))
            whole = np.zeros(field.shape, complex)
            for rank, data in enumerate(group.allgather(result.tobytes())):
                one = np.frombuffer(data, complex).reshape(result.shape)
                whole[gauge.geometry.block_slices(rank)] = one
            found.append(whole)
        return found

    def one_rank(group: Group) -> None:
        for plain, mapped in zip(numbers(group, None), numbers(group, [2, 0, 3, 1]), strict=True):
            assert np.array_equal(plain, mapped)
        assert Gauge(group, extents, grid, map="auto").geometry.rank_at == (0, 1, 2, 3)

    run_threads(4, one_rank)
