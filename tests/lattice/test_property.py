"""Random lattices on up to eight ranks: operators against NumPy, sums and files against those of one rank."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import staggered_reference
import wilson_reference
from gauge_fields import random_gauge
from onehop import Group
from onehop.lattice import Gauge, Staggered, Wilson, field_strength, polyakov_loop, read_gauge, write_gauge
from threads import run_threads


@st.composite
def lattices(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw even extents with up to 1500 sites, and a grid with two sites or more in every divided direction."""
    grid, extents = [], []
    for _ in range(4):
        cuts = draw(st.sampled_from([c for c in (1, 2, 3, 4) if c * np.prod(grid, dtype=int) <= 8]))
        fitting = [e for e in (2, 4, 6, 8, 12) if e % cuts == 0 and (cuts == 1 or e >= 2 * cuts)]
        least = 2 ** (3 - len(extents))  # the smallest number of sites in the remaining directions
        fitting = [e for e in fitting if e * np.prod(extents, dtype=int) * least <= 1500] or fitting[:1]
        grid.append(cuts)
        extents.append(draw(st.sampled_from(fitting)))
    return tuple(extents), tuple(grid)


@given(
    lattice=lattices(),
    lanes=st.sampled_from([1, 2, 4, 8, 16]),
    precision=st.sampled_from(["double", "single", "half"]),
    antiperiodic=st.booleans(),
    name=st.sampled_from(["cfg.lime", "cfg.nersc", "cfg.milc"]),
)
@settings(max_examples=12, deadline=None)
def test_any_lattice_on_any_grid(
    lattice: tuple[tuple[int, ...], tuple[int, ...]],
    lanes: int,
    precision: str,
    antiperiodic: bool,
    name: str,
) -> None:
    extents, grid = lattice
    alone = random_gauge(Group.alone(), extents)
    vector, spinor = staggered_reference.some_field(extents, 1), wilson_reference.some_field(extents, 2)
    hops = (
        staggered_reference.dslash_by_numpy(alone.links, vector, antiperiodic),
        wilson_reference.dslash(alone.links, spinor, antiperiodic),
    )
    sums = (alone.plaquettes(), field_strength(alone), polyakov_loop(alone))

    with TemporaryDirectory() as folder:
        path = str(Path(folder) / name)

        def one_rank(group: Group) -> tuple:
            gauge = random_gauge(group, extents, grid)
            mine = gauge.geometry.block_slices(group.rank)
            staggered = Staggered(gauge, antiperiodic=antiperiodic, lanes=lanes, threads=1)
            wilson = Wilson(gauge, antiperiodic=antiperiodic, lanes=lanes, precision=precision, threads=1)
            write_gauge(path, gauge)
            return (
                mine,
                (staggered.dslash(vector[mine], precision=precision), wilson.dslash(spinor[mine])),
                (gauge.plaquettes(), field_strength(gauge), polyakov_loop(gauge)),
                read_gauge(path, group, grid)[0].links,
            )

        found = run_threads(int(np.prod(grid)), one_rank)
        again: Gauge = read_gauge(path)[0]
    np.testing.assert_allclose(again.links, alone.links, rtol=0, atol=1e-7 if name == "cfg.milc" else 0)
    for mine, hopped, summed, links in found:
        for one, whole in zip(hopped, hops, strict=True):
            atol = 3 * wilson_reference.TOLERANCE[precision] * abs(whole).max()
            np.testing.assert_allclose(one, whole[mine], rtol=0, atol=atol)
        assert summed == sums
        assert (links == again.links[mine]).all()
