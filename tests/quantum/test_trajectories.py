"""Trajectories with shared histories: against density matrices, and equal on every division of the work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import brute_force
from onehop import BadInput, Group, _core, quantum
from onehop.quantum import Channel, NoiseModel
from onehop.quantum.noise.core_program import noisy_program
from onehop.quantum.observables import core_sum
from onehop.quantum.simulation_options import core_options
from threads import run_threads

SUMS = ["Z0 X2", "Y1 - 0.5*Z2 Z3"]


def circuit_of(qubits: int, depth: int, seed: int = 3) -> quantum.Circuit:
    rng = np.random.default_rng(seed)
    circuit = quantum.Circuit(qubits, qubits)
    for layer in range(depth):
        for qubit in range(qubits):
            circuit.u(*rng.uniform(0, 6, 3), qubit)
        for qubit in range(layer % 2, qubits - 1, 2):
            circuit.cx(qubit, qubit + 1)
    return circuit.measure_all() if circuit.clbits == 0 else circuit.measure(range(qubits), range(qubits))


def general_channel(seed: int, strength: float) -> Channel:
    """Return a channel near the identity whose products K^dagger K are neither diagonal nor multiples of 1."""
    rng = np.random.default_rng(seed)
    unitary = brute_force.random_unitary(rng, 2)
    decay = [np.diag([1, (1 - strength) ** 0.5]), np.array([[0, strength**0.5], [0, 0]])]
    lost = [np.diag([1, (1 - strength) ** 0.5]), np.diag([0, strength**0.5])]
    kraus = [unitary.conj().T @ b @ unitary @ a for a in decay for b in lost]
    return Channel([k for k in kraus if np.abs(k).max() > 1e-12], "general")


def models() -> dict[str, NoiseModel]:
    return {
        "weak": NoiseModel().add("depolarizing", 0.01).add("amplitude_damping", 0.01).readout(0.02, 0.05),
        "strong": NoiseModel().add("depolarizing", 0.2, gates=["cx"]).add("amplitude_damping", 0.3),
        "general": NoiseModel().add(general_channel(5, 0.1)).add("phase_damping", 0.05, qubits=[0, 1]),
    }


def drawn_as_expected(circuit: quantum.Circuit, model: NoiseModel, number: int) -> quantum.NoisyResult:
    """Compare trajectories with the density matrix within their errors."""
    exact = quantum.simulate_density(circuit, noise=model, observables=SUMS)
    expected = quantum.simulate_density(circuit, noise=model, shots=400_000, seed=2).counts
    drawn = quantum.simulate_trajectories(
        circuit, noise=model, trajectories=number, seed=5, observables=SUMS, precision="double"
    )
    for value, error, reference in zip(drawn.expectations, drawn.errors, exact.expectations, strict=True):
        assert abs(value - reference) < 5 * error + 1e-9
    for outcome, count in expected.items():
        p = count / 400_000
        assert abs(drawn.counts.get(outcome, 0) / number - p) < 5 * (p * (1 - p) / number) ** 0.5 + 1e-3
    return drawn


@pytest.mark.parametrize("kind", list(models()))
def test_trajectories_agree_with_density_matrices(kind: str) -> None:
    drawn = drawn_as_expected(circuit_of(4, 3), models()[kind], 3000)
    assert 1 < drawn.runs <= 3000
    assert all(0 < error < 0.05 for error in drawn.errors)


def histories(
    circuit: quantum.Circuit, model: NoiseModel, group: Group, number: int, **options: Any
) -> _core.SimulationResult:
    arguments: dict[str, Any] = {
        "trajectories": number,
        "shots": number + 7,
        "seed": 9,
        "observables": [core_sum(quantum.PauliSum.of(one)) for one in SUMS],
        "threads": 1,
        "histories": True,
    }
    return _core.run_program(noisy_program(circuit, model), group, core_options(**{**arguments, **options}))


def shots_of(found: _core.SimulationResult) -> list[int]:
    return [found.outcomes.values[place] for place in found.outcomes.of_shot.tolist()]


@pytest.mark.parametrize("kind", list(models()))
def test_shots_do_not_depend_on_the_division(kind: str) -> None:
    """Ranks and threads that divide the histories, states that are split, and too little memory to save states."""
    circuit, model, number = circuit_of(4, 3), models()[kind], 300
    reference = histories(circuit, model, Group.alone(), number)
    state = 16 * 16

    def same(found: _core.SimulationResult) -> None:
        assert shots_of(found) == shots_of(reference)
        assert [run.count for run in found.made] == [run.count for run in reference.made]
        for one, other in zip(found.made, reference.made, strict=True):
            np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-12)

    divided = histories(circuit, model, Group.alone(), number, threads=3)
    assert divided.workers == 3
    same(divided)
    for memory in (2 * state, state):  # every branch begins at the beginning
        same(histories(circuit, model, Group.alone(), number, memory=memory))
    for ranks in (2, 3):
        for found in run_threads(ranks, lambda group: histories(circuit, model, group, number)):
            assert (found.ranks, found.workers) == (1, ranks)
            same(found)
    for found in run_threads(8, lambda group: histories(circuit, model, group, number, memory=3 * state - 1)):
        assert found.ranks > 1
        assert found.ranks * found.workers == 8
        assert found.bytes_moved > 0
        same(found)


@pytest.mark.parametrize("kind", list(models()))
def test_a_search_finds_the_same_events_as_a_stop_at_every_channel(kind: str) -> None:
    """Few trajectories run many steps at once, many stop at every channel; both must leave at the same channels."""
    circuit, model = circuit_of(4, 4, seed=8), models()[kind]
    few = histories(circuit, model, Group.alone(), 100, shots=100)
    many = histories(circuit, model, Group.alone(), 900, shots=900)
    assert shots_of(few) == shots_of(many)[:100]


def resetting(seed: int = 11) -> quantum.Circuit:
    """Return a circuit with resets of one and of several qubits inside, also of certain ones."""
    rng = np.random.default_rng(seed)
    circuit = quantum.Circuit(4, 4).reset(2).x(3).reset(3)
    for layer in range(3):
        for qubit in range(4):
            circuit.u(*rng.uniform(0, 6, 3), qubit)
        circuit.cx(0, 1).cx(2, 3).cx(1, 2)
        circuit.reset(layer).reset([3, (layer + 1) % 3])
        circuit.cx(3, 0)
    return circuit.measure(range(4), range(4))


@pytest.mark.parametrize("noisy", [False, True])
def test_resets_share_histories(noisy: bool) -> None:
    circuit, number = resetting(), 4000
    model = models()["weak"] if noisy else NoiseModel()
    drawn = drawn_as_expected(circuit, model, number)
    # Nine resets of superposed qubits, of which each history has a record.
    assert 1 < drawn.runs <= (number if noisy else 2**9)
    alone = histories(circuit, model, Group.alone(), 300)
    for found in run_threads(4, lambda group: histories(circuit, model, group, 300)):
        assert found.workers == 4
        assert shots_of(found) == shots_of(alone)


def test_equal_histories_run_once() -> None:
    circuit = circuit_of(3, 2)
    found = quantum.simulate_trajectories(circuit, noise=NoiseModel().readout(0.1), trajectories=500, seed=1)
    assert found.runs == 1
    assert found.state is not None
    assert found.state.norm() == pytest.approx(1, abs=1e-12)
    assert sum(found.counts.values()) == 500
    weak = NoiseModel().add("bit_flip", 0.002)
    assert 1 < quantum.simulate_trajectories(circuit, noise=weak, trajectories=500, seed=1).runs < 60


def test_a_certain_decay_leaves_no_other_history() -> None:
    """The default operator of a channel has probability 0 on this state: all trajectories leave the first history."""
    circuit = quantum.Circuit(2, 2).x(0).x(1).measure([0, 1], [0, 1])
    model = NoiseModel().add("amplitude_damping", 1.0)
    found = quantum.simulate_trajectories(circuit, noise=model, trajectories=200, seed=1, observables=["Z0"])
    assert found.counts == {"00": 200}
    assert found.expectations == [pytest.approx(1, abs=1e-12)]


def test_single_precision_and_bad_input() -> None:
    circuit = circuit_of(4, 3)
    double, single = (
        quantum.simulate_trajectories(
            circuit, noise=models()["weak"], trajectories=400, seed=4, precision=precision, observables=["Z0"]
        )
        for precision in ("double", "single")
    )
    assert single.expectations[0] == pytest.approx(double.expectations[0], abs=1e-5)
    with pytest.raises(BadInput, match=r"trajectories: expected a whole number from 1 to 2\^63 - 1, found 0"):
        quantum.simulate_trajectories(circuit, trajectories=0, shots=1)
    with pytest.raises(BadInput, match="memory: expected a whole number from 0"):
        quantum.simulate_trajectories(circuit, memory=-1)
    with pytest.raises(BadInput, match="names qubit 7"):
        quantum.simulate_trajectories(circuit, observables=["Z7"])
