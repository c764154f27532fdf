"""The phases of staggered quarks, in the order of onehop and in that of MILC."""

import numpy as np
import pytest

from gauge_fields import random_gauge
from onehop import BadInput, Group
from onehop.lattice import Geometry, Staggered, smearing
from onehop.lattice.phases import with_staggered_phases
from staggered_reference import (
    dslash_site_by_site,
    phase_change,
    some_field,
)
from threads import run_threads


@pytest.mark.parametrize(("phases", "order"), [("standard", "xyzt"), ("milc", "txyz")])
@pytest.mark.parametrize("antiperiodic", [True, False])
@pytest.mark.parametrize("extents", [(4, 2, 6, 4), (2, 4, 6), (4, 6)])
def test_phases_in_either_order_site_by_site(
    extents: tuple[int, ...], antiperiodic: bool, phases: str, order: str
) -> None:
    gauge = random_gauge(Group.alone(), extents)
    field = some_field(extents, 3)
    expected = dslash_site_by_site(gauge.links, field, order, antiperiodic)
    found = Staggered(gauge, antiperiodic=antiperiodic, phases=phases).dslash(field)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    links = with_staggered_phases(gauge.links, gauge.geometry, 0, antiperiodic=antiperiodic, phases=phases)
    by_links = Staggered.of_links(Group.alone(), extents, links).dslash(field)
    np.testing.assert_allclose(by_links, expected, atol=1e-12)


def test_a_gauge_transformation_leads_from_one_order_of_phases_to_the_other() -> None:
    extents = (4, 4, 2, 6)
    gauge = random_gauge(Group.alone(), extents)
    signs = phase_change(extents)[..., None]
    source = some_field(extents, 5)
    standard, milc = (Staggered(gauge, phases=phases) for phases in ("standard", "milc"))
    np.testing.assert_allclose(milc.dslash(source), signs * standard.dslash(signs * source), atol=1e-12)
    theirs = milc.solve(source, 0.3, tolerance=1e-12).solution
    np.testing.assert_allclose(
        theirs, signs * standard.solve(signs * source, 0.3, tolerance=1e-12).solution, atol=1e-10
    )
    # With the wrong phases the solution is different.
    wrong = standard.solve(source, 0.3).solution
    assert np.linalg.norm(wrong - theirs) > 0.5 * np.linalg.norm(theirs)
    # Fat and long links get the same signs for every action.
    improved = [Staggered(gauge, "hisq", phases=phases).dslash for phases in ("standard", "milc")]
    np.testing.assert_allclose(improved[1](source), signs * improved[0](signs * source), atol=1e-11)
    with pytest.raises(BadInput, match="expected the staggered phases standard or milc, found 'chroma'"):
        Staggered(gauge, phases="chroma")


@pytest.mark.parametrize("antiperiodic", [True, False])
@pytest.mark.parametrize("phases", ["standard", "milc"])
@pytest.mark.parametrize("action", ["asqtad", "hisq"])
def test_actions_are_those_of_their_links(action: str, phases: str, antiperiodic: bool) -> None:
    extents = (4, 4, 2, 6)
    field = some_field(extents, 3)

    def one_rank(group: Group, grid: tuple[int, ...]) -> None:
        gauge = random_gauge(group, extents, grid)
        how = {"antiperiodic": antiperiodic, "phases": phases}
        made = smearing.fat_links(gauge, action, u0=0.9)
        fat, long = (
            with_staggered_phases(links, gauge.geometry, group.rank, length=length, **how)
            for links, length in ((made.fat, 1), (made.long_links, 3))
        )
        mine = field[gauge.geometry.block_slices(group.rank)]
        expected = Staggered.of_links(group, extents, fat, long, grid).dslash(mine)
        assert (Staggered(gauge, action, u0=0.9, **how).dslash(mine) == expected).all()

    one_rank(Group.alone(), (1, 1, 1, 1))
    run_threads(2, lambda group: one_rank(group, (1, 1, 1, 2)))


@pytest.mark.parametrize("phases", ["standard", "milc"])
@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("extents", [(4, 2, 6, 2), (2, 4, 6), (4, 8)])
def test_phases_and_boundary_of_every_link(extents: tuple[int, ...], length: int, phases: str) -> None:
    dims = len(extents)
    grid = [2 if mu in (0, dims - 1) and extents[mu] > 2 else 1 for mu in range(dims)]
    geometry = Geometry(extents, grid)
    for rank in range(geometry.ranks):
        links = np.ones((*geometry.block_shape, dims, 3, 3), complex)
        found = with_staggered_phases(links, geometry, rank, length=length, phases=phases)
        origin = geometry.origin(rank)
        for site in np.ndindex(*geometry.block_shape):
            x = [first + inside for first, inside in zip(origin, site[::-1], strict=True)]
            for mu in range(dims):
                earlier = x[:mu] if phases == "standard" else [*x[:mu], x[-1]] if mu < dims - 1 else []
                crossings = (x[mu] + length) // extents[mu] if mu == dims - 1 else 0
                assert (found[(*site, mu)] == (-1) ** (sum(earlier) + crossings)).all()
    with pytest.raises(BadInput, match="links of"):
        with_staggered_phases(links[..., :2], geometry, 0)
