"""What one rank alone refuses ends the call of all ranks at once."""

import pickle
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Group, Mismatch, Poisson, _core, quantum
from onehop.lattice import (
    Flow,
    Gauge,
    Staggered,
    Wilson,
    gradient_flow,
    lowest_eigenvectors,
    read_gauge,
    thermalize,
    wilson_loops,
)
from onehop.lattice.mesons import staggered_mesons
from onehop.lattice.smearing import fat_links
from threads import run_threads


def field(group: Group) -> Gauge:
    return Gauge(group, (4, 4, 4, 4))


def solved(group: Group, mass: float) -> Any:
    gauge = field(group)
    return Staggered(gauge).solve(np.zeros((*gauge.geometry.block_shape, 3), complex), mass)


def wilson(group: Group, wrong: int) -> Any:
    gauge = field(group)
    shape = ((*gauge.geometry.block_shape, 4, 3), wrong)[group.rank]
    return Wilson(gauge, kappa=0.1).solve(np.zeros(shape, complex))


INVALID: dict[str, Callable[[Group], Any]] = {
    "extents": lambda g: Gauge(g, (4, 4, 4, (4, -4)[g.rank])),
    "sweeps": lambda g: thermalize(field(g), 5.6, (2, "two")[g.rank]),  # type: ignore[arg-type]
    "action": lambda g: Flow(field(g), ("wilson", "best")[g.rank]),
    "tolerance": lambda g: Flow(field(g)).try_step(0.01, (0.1, -1)[g.rank]),
    "time": lambda g: gradient_flow(field(g), (0.1, -0.1)[g.rank]),
    "weights": lambda g: fat_links(field(g), ("fat3", np.zeros(3))[g.rank]),  # type: ignore[arg-type]
    "r": lambda g: wilson_loops(field(g), (1, 0)[g.rank], 2),
    "phases": lambda g: Staggered(field(g), phases=("standard", "none")[g.rank]),
    "mass": lambda g: solved(g, (0.1, "light")[g.rank]),  # type: ignore[arg-type]
    "count": lambda g: lowest_eigenvectors(Staggered(field(g)), count=(3, 0)[g.rank]),
    "shape": lambda g: wilson(g, 3),
    "type": lambda g: Poisson(g, (8, 8)).set_source(np.zeros((8, 4), ("f8", "f4")[g.rank])),
    "sources": lambda g: staggered_mesons(field(g), Staggered(field(g)), 0.1, sources=(1, -1)[g.rank]),
}


def test_lattices() -> None:
    def told(group: Group) -> dict[str, str]:
        found = {}
        for name, call in INVALID.items():
            with pytest.raises((BadInput, Mismatch)) as error:
                call(group)
            found[name] = f"{type(error.value).__name__}: {error.value}"
            group.barrier()  # their steps still match
        return found

    first, second = run_threads(2, told)
    for name, text in first.items():
        assert re.match("Mismatch: .*rank 1", text), (name, text)
        assert second[name].split(": ")[-1] in text or "expected the same" in text, (name, second[name])


def test_circuits_and_states() -> None:
    circuit = quantum.Circuit(3).h(0)

    def attempt(group: Group) -> list[str]:
        bad, said = group.rank == 1, []
        state, matrix = quantum.State(3, group), quantum.DensityMatrix(3, group)
        compiled = quantum.compile(circuit, group)
        calls: list[Callable[[], Any]] = [
            lambda: state.probabilities(["a"] if bad else [0]),  # type: ignore[list-item]
            lambda: state.probabilities([7] if bad else [0]),
            lambda: state.amplitudes([0.5] if bad else [0]),
            lambda: state.expectation("Q0" if bad else "Z0"),
            lambda: state.variance("Z9" if bad else "Z0"),
            lambda: state.sample(1, seed=-1 if bad else 0),
            lambda: state.entropy([0, 0] if bad else [0]),
            lambda: state.run(quantum.Circuit(2) if bad else circuit),
            lambda: state.set_basis_state("one" if bad else 1),  # type: ignore[arg-type]
            lambda: matrix.probabilities(7 if bad else [0]),  # type: ignore[arg-type]
            lambda: matrix.run(quantum.Circuit(2) if bad else circuit),
            lambda: matrix.apply(quantum.channel("depolarizing", 0.1), [5] if bad else [0]),
            lambda: compiled.run([1.0] if bad else []),
            lambda: quantum.simulate(circuit, shots=-5 if bad else 5, group=group),
            lambda: quantum.simulate_density(circuit, shots="5" if bad else 5, group=group),  # type: ignore[arg-type]
        ]
        for number, call in enumerate(calls):
            with pytest.raises((BadInput, Mismatch)) as error:
                call()
            said.append(f"{number} {type(error.value).__name__}: {error.value}")
            group.barrier()  # their steps still match
        return said

    for good, bad in zip(*run_threads(2, attempt), strict=True):
        assert re.match(r"\d+ Mismatch: .*rank 1", good), (good, bad)
        assert "Mismatch" in bad or bad.split(": ", 1)[1] in good, (good, bad)


def test_density_matrices_on_fewer_ranks() -> None:
    def attempt(group: Group) -> str:
        matrix = quantum.DensityMatrix(1, group)  # which one rank holds
        with pytest.raises(BadInput) as error:
            matrix.set_matrix(np.eye(2) / (2 if group.rank == 0 else 1))
        group.barrier()
        return str(error.value)

    assert all("trace 2" in found for found in run_threads(4, attempt))


def test_a_state_on_fewer_ranks_that_is_saved(tmp_path: Path) -> None:
    def attempt(group: Group) -> list[str]:
        group.timeout = 20
        state, said = quantum.simulate(quantum.Circuit(1), group=group).state, []
        assert state.ranks < group.size
        for wrong in ({"attributes": [1]}, {"other": 1}):
            with pytest.raises((BadInput, Mismatch, TypeError)) as error:
                state.save(tmp_path / "state.h5", group, **wrong if group.rank == 1 else {})  # type: ignore[arg-type]
            said.append(str(error.value))
        return said

    for attributes, other in run_threads(4, attempt):
        assert "attributes: expected" in attributes
        assert "other" in other


def test_a_refusal_leaves_the_limit_of_the_group() -> None:
    """Other threads wait for messages by it meanwhile."""

    def attempt(group: Group) -> None:
        group.timeout = 300
        group.barrier()
        if group.rank == 0:
            telling = threading.Thread(target=_core.refuse, args=(group, "no"))
            telling.start()
            for _ in range(20):
                time.sleep(0.01)
                assert group.timeout == 300
            telling.join()
        else:
            time.sleep(0.5)
            with pytest.raises(Mismatch, match="rank 0 refuses its own: no"):
                group.barrier()
        assert group.timeout == 300

    run_threads(2, attempt)


def test_a_text_that_is_no_utf8_is_told() -> None:
    with pytest.raises(BadInput, match="cannot read"):
        read_gauge("a\udcff", Group.alone())


def test_a_function_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(quantum.simulate)) is quantum.simulate
