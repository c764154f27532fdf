"""A gauge field and its operators give the same numbers whichever rank has which block."""

from ranks import Ranks

SOURCE = """
    import numpy as np
    from onehop import Group
    from onehop.lattice import Gauge, Staggered, Wilson

    group = Group.world()
    extents, grid = (4, 4, 8, 8), (1, 1, 2, 2)
    generator = np.random.default_rng(5)
    source = generator.normal(size=(8, 8, 4, 4, 4, 3)) + 0j

    def numbers(rank_at):
        gauge = Gauge(group, extents, grid, map=rank_at)
        gauge.set_random(3)
        gauge.heat_bath(5.7, 3, 0)
        block = gauge.geometry.block_slices(group.rank)
        found = [np.array(gauge.gather()), np.array(list(gauge.plaquettes()), float)]
        staggered = Staggered(gauge)
        wilson = Wilson(gauge, 0.12, csw=1.0)
        for part, field in ((staggered, source[..., 0, :]), (wilson, source)):
            result = part.dslash(np.ascontiguousarray(field[block]))
            gathered = group.allgather(result.tobytes())
            whole = np.zeros(field.shape, complex)
            for rank, data in enumerate(gathered):
                one = np.frombuffer(data, complex).reshape(result.shape)
                whole[gauge.geometry.block_slices(rank)] = one
            found.append(whole)
        return found

    for plain, mapped in zip(numbers(None), numbers([2, 0, 3, 1]), strict=True):
        assert np.array_equal(plain, mapped)
    assert Gauge(group, extents, grid, map="auto").geometry.rank_at == (0, 1, 2, 3)
    print("equal", flush=True)
"""


def test_the_numbers_do_not_depend_on_the_map(ranks: Ranks) -> None:
    done = ranks.launch(4, SOURCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("equal") == 4
