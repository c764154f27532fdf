"""Ranks that call a function with other numbers than each other get an error, not a mixture."""

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Group, Mismatch, _core
from onehop.lattice import (
    Flow,
    Gauge,
    Hmc,
    Staggered,
    Wilson,
    fix_gauge,
    gradient_flow,
    hybrid_monte_carlo,
    lowest_eigenvectors,
    read_gauge,
    read_vectors,
    thermalize,
    wilson_loops,
    write_gauge,
    write_vectors,
)
from onehop.lattice.mesons import chiral_condensate, staggered_mesons, wilson_mesons
from onehop.lattice.smearing import ape, fat_links, hisq_links, hyp, stout
from threads import run_threads


def field(group: Group) -> Gauge:
    return Gauge(group, (4, 4, 4, 4))


def vector(gauge: Gauge, *spins: int) -> np.ndarray:
    return np.zeros((*gauge.geometry.block_shape, *spins, 3), complex)


def solved(group: Group, kind: Callable[[Gauge], Any], *mass: float, **options: Any) -> Any:
    gauge = field(group)
    return kind(gauge).solve(vector(gauge, *((4,) if kind is Wilson else ())), *mass, **options)


CASES: dict[str, Callable[[Group], Any]] = {
    "extents": lambda g: Gauge(g, (4, 4, 4, 4 + 4 * g.rank)),
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
    "integrator": lambda g: Hmc(field(g), 5.6, integrator=("omelyan", "leapfrog")[g.rank]),
    "number": lambda g: Hmc(field(g), 5.6).run(g.rank),
    "r": lambda g: wilson_loops(field(g), 1 + g.rank, 2),
    "charge": lambda g: Flow(field(g), charge=("clover", "5li")[g.rank]),
    "phases": lambda g: Staggered(field(g), phases=("standard", "milc")[g.rank]),
    "antiperiodic": lambda g: Wilson(field(g), antiperiodic=g.rank > 0),
    "parity": lambda g: Staggered(field(g)).dslash(vector(field(g)), parity=g.rank),
    "dagger": lambda g: Wilson(field(g)).apply(vector(field(g), 4), dagger=g.rank > 0),
    "degree": lambda g: Staggered(field(g)).filter(vector(field(g)), g.rank, 0.1, 1),
    "size of the fields": lambda g: Staggered(field(g)).apply(np.stack([vector(field(g))] * (1 + g.rank)), 1),
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
        thermalize(field(group), (6, 6.0)[group.rank], 1, progress=(lambda _: None) if group.rank else None)
        own: dict[str, Any] = {"threads": 1 + group.rank}
        mass = np.float64(1) if group.rank else 1.0
        solved(group, lambda gauge: Staggered(gauge, **own), mass, progress=lambda *_: None)

    run_threads(2, run)


def test_files_of_other_names_are_named(tmp_path: Path) -> None:
    def told(group: Group) -> list[str]:
        gauge, names, texts = field(group), [str(tmp_path / f"{one}.lime") for one in "ab"], []
        for name in names:
            write_gauge(name, gauge)
            write_vectors(f"{name}.scidac", vector(gauge)[None], gauge.geometry, group)
        mine = names[group.rank]
        for call in (
            lambda: read_gauge(mine, group),
            lambda: read_vectors(f"{mine}.scidac", gauge.geometry, group),
            lambda: write_gauge(f"{mine}.new.lime", gauge),
        ):
            with pytest.raises(Mismatch) as error:
                call()
            texts.append(str(error.value))
        return texts

    for text in chain(*run_threads(2, told)):
        assert re.search(
            rf"found '.*{tmp_path}/a.lime.* on rank 0 and '.*{tmp_path}/b.lime.* on rank 1", text
        ), text
    assert len(list(tmp_path.iterdir())) == 4


def test_lists_of_several_lengths_are_refused_by_the_function() -> None:
    def run(group: Group) -> None:
        with pytest.raises(BadInput):
            solved(group, Staggered, [[0.1], [0.1, 0.2]])  # type: ignore[arg-type]

    run_threads(2, run)


def test_loops_compare_their_arguments_once() -> None:
    def gathers(call: Callable[[int], Any]) -> int:
        """Return the all-gathers of each of many rounds."""
        begun = [_core.allgathers_begun()]
        for rounds in (2, 6):
            call(rounds)
            begun.append(_core.allgathers_begun())
        return (begun[2] - 2 * begun[1] + begun[0]) // 4

    def run(group: Group) -> list[int]:
        gauge = field(group)
        return [
            gathers(lambda rounds: thermalize(gauge, 5.6, rounds)),
            gathers(lambda rounds: gradient_flow(gauge, 0.01 * rounds, step=0.01, every=9)),
        ]

    # Of the plaquette; of the arguments and the error of a step.
    assert run_threads(2, run) == [[1, 2]] * 2
