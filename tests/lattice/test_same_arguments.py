"""Ranks that call a function with other numbers than each other get an error, not a mixture."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Group, Mismatch
from onehop.lattice import (
    Flow,
    Gauge,
    Staggered,
    Wilson,
    fix_gauge,
    gradient_flow,
    hybrid_monte_carlo,
    lowest_eigenvectors,
    thermalize,
)
from onehop.lattice.mesons import chiral_condensate, staggered_mesons, wilson_mesons
from onehop.lattice.smearing import ape, fat_links, hisq_links, hyp, stout
from threads import run_threads


def field(group: Group) -> Gauge:
    return Gauge(group, (4, 4, 4, 4))


def solved(group: Group, kind: Callable[[Gauge], Any], *mass: float, **options: Any) -> Any:
    gauge = field(group)
    spins = (4,) if kind is Wilson else ()
    return kind(gauge).solve(np.zeros((*gauge.geometry.block_shape, *spins, 3), complex), *mass, **options)


CASES: dict[str, Callable[[Group], Any]] = {
    "beta": lambda g: thermalize(field(g), 5.6 + g.rank, 2),
    "sweeps": lambda g: thermalize(field(g), 5.6, 2 + g.rank),
    "seed": lambda g: field(g).set_random(g.rank),
    "sweep": lambda g: field(g).heat_bath(5.6, 1, g.rank),
    "action": lambda g: Flow(field(g), ("wilson", "symanzik")[g.rank]),
    "epsilon": lambda g: Flow(field(g)).step(0.01 + g.rank / 99),
    "trajectories": lambda g: hybrid_monte_carlo(field(g), 5.6, 1 + g.rank),
    "alpha": lambda g: ape(field(g), 0.5 + g.rank / 9),
    "rho": lambda g: stout(field(g), 0.1 + g.rank / 9),
    "steps": lambda g: hyp(field(g), steps=1 + g.rank),
    "time": lambda g: gradient_flow(field(g), 0.1 + g.rank / 9),
    "weights": lambda g: fat_links(field(g), ("fat3", "fat5")[g.rank]),
    "naik_epsilon": lambda g: hisq_links(field(g), naik_epsilon=0.1 * g.rank),
    "condition": lambda g: fix_gauge(field(g), ("coulomb", "landau")[g.rank]),
    "u0": lambda g: Staggered(field(g), "asqtad", u0=0.9 + g.rank / 99),
    "kappa": lambda g: Wilson(field(g), 0.1 + g.rank / 99),
    "mass": lambda g: solved(g, Staggered, 0.1 + g.rank / 9),
    "tolerance": lambda g: solved(g, Wilson, tolerance=(1e-3, 1e-5)[g.rank]),
    "count": lambda g: lowest_eigenvectors(Staggered(field(g)), count=3 + g.rank),
    "sources": lambda g: staggered_mesons(field(g), Staggered(field(g)), 0.1, sources=1 + g.rank),
    "momenta": lambda g: wilson_mesons(field(g), Wilson(field(g)), momenta=g.rank),
    "noise_vectors": lambda g: chiral_condensate(
        field(g), Staggered(field(g)), 0.1, noise_vectors=1 + g.rank
    ),
}


def test_lattices() -> None:
    def told(group: Group) -> dict[str, str]:
        found = {}
        for name, call in CASES.items():
            with pytest.raises(Mismatch) as error:
                call(group)
            found[name] = str(error.value)
        return found

    for texts in run_threads(2, told):
        for name, text in texts.items():
            assert f"expected the same {name} on every rank" in text, name


def test_threads_and_functions_may_differ() -> None:
    def run(group: Group) -> None:
        thermalize(field(group), 5.6, 1, progress=(lambda _: None) if group.rank else None)
        own: dict[str, Any] = {"threads": 1 + group.rank}
        mass = np.float64(1) if group.rank else 1.0
        solved(group, lambda gauge: Staggered(gauge, **own), mass, progress=lambda *_: None)

    run_threads(2, run)


def test_lists_of_several_lengths_are_refused_by_the_function() -> None:
    def run(group: Group) -> None:
        with pytest.raises(BadInput):
            solved(group, Staggered, [[0.1], [0.1, 0.2]])  # type: ignore[arg-type]

    run_threads(2, run)
