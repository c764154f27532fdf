"""Simulations on a device, by the processor as the device: against those in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cards import environment
from onehop import BadInput, quantum
from onehop.cli import main
from onehop.quantum import Circuit, DensityMatrix, NoiseModel, State, generators
from ranks import Ranks

DEVICE = {"device": "processor"}


def _random_circuit(qubits: int, seed: int, *, inside: bool) -> Circuit:
    rng = np.random.default_rng(seed)
    circuit = Circuit(qubits, qubits)
    for _ in range(40):
        a, b = rng.choice(qubits, 2, replace=False).tolist()
        angle = float(rng.uniform(-3, 3))
        kind = int(rng.integers(8))
        if kind == 0:
            circuit.h(a)
        elif kind == 1:
            circuit.cx(a, b)
        elif kind == 2:
            circuit.rz(angle, a)
        elif kind == 3:
            circuit.cp(angle, a, b)
        elif kind == 4:
            circuit.ry(angle, a)
        elif kind == 5:
            circuit.swap(a, b)
        elif kind == 6:
            circuit.rzz(angle, a, b)
        elif inside:
            circuit.measure(a, a)
    return circuit


@pytest.mark.parametrize("precision", ["double", "single"])
def test_circuits_have_the_results_of_states_in_memory(precision: str) -> None:
    for seed in range(4):
        inside = seed % 2 == 1
        circuit = _random_circuit(5 + seed, seed, inside=inside)
        asked: dict[str, Any] = {"precision": precision, "shots": 200, "seed": seed}
        if not inside:
            asked["observables"] = ["Z0 Z1", "X0 Y2 + 0.5*Z1"]
        expected, found = quantum.simulate(circuit, **asked), quantum.simulate(circuit, **asked, **DEVICE)
        assert found.counts == expected.counts
        np.testing.assert_allclose(found.expectations, expected.expectations, atol=1e-5)
        if not inside:
            np.testing.assert_allclose(found.state.vector(), expected.state.vector(), atol=1e-5)


def test_shots_of_large_states_are_those_of_states_in_memory() -> None:
    circuit = generators.qft(16)
    expected = quantum.simulate(circuit, shots=300, seed=3)
    assert quantum.simulate(circuit, shots=300, seed=3, **DEVICE).counts == expected.counts


def test_gradients_variances_and_entropies() -> None:
    circuit = Circuit(4)
    angles = [quantum.Parameter(f"t{k}") for k in range(6)]
    for k, angle in enumerate(angles):
        circuit.ry(angle, k % 4)
        circuit.cx(k % 4, (k + 1) % 4)
        circuit.rzz(2 * angle, k % 4, (k + 2) % 4)
    values, sums = [0.1 * k - 0.2 for k in range(6)], ["Z0 Z1 - X2", "Y0 Y1 + 0.3*Z3"]
    for more in ({}, {"weights": [0.4, -2.0]}, {"variance": True}):
        expected = quantum.gradients(circuit, values, sums, **more)
        found = quantum.gradients(circuit, values, sums, **more, **DEVICE)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
        np.testing.assert_allclose(found.derivatives, expected.derivatives, atol=1e-12)
    state, expected_state = State(4, **DEVICE), State(4)
    for one in (state, expected_state):
        one.run(circuit.bind(values))
    assert state.entropy([0, 1]) == pytest.approx(expected_state.entropy([0, 1]), abs=1e-9)
    assert state.variances(sums) == pytest.approx(expected_state.variances(sums), abs=1e-12)
    with pytest.raises(BadInput, match="found one on the device 'processor'"):
        state.local()
    with pytest.raises(BadInput, match="reproducible: expected a state on the device 'cpu'"):
        quantum.compile(circuit, reproducible=True, **DEVICE)


def test_noise_runs_on_density_matrices_and_trajectories() -> None:
    circuit = _random_circuit(4, 9, inside=False)
    noise = NoiseModel.parse("depolarizing=0.05; readout=0.02")
    asked: dict[str, Any] = {"noise": noise, "seed": 5, "observables": ["Z0", "X1 X2"]}
    for run in (
        lambda **more: quantum.simulate_density(circuit, shots=50, **asked, **more),
        lambda **more: quantum.simulate_trajectories(circuit, trajectories=30, **asked, **more),
    ):
        expected, found = run(), run(**DEVICE)
        np.testing.assert_allclose(found.expectations, expected.expectations, atol=1e-12)
        assert found.counts == expected.counts
    matrix, expected_matrix = DensityMatrix(3, **DEVICE), DensityMatrix(3)
    for one in (matrix, expected_matrix):
        one.run(generators.ghz(3))
    np.testing.assert_allclose(matrix.matrix(), expected_matrix.matrix(), atol=1e-14)


def test_the_command_runs_on_ranks(ranks: Ranks, tmp_path: Path) -> None:
    file, report = tmp_path / "circuit.qasm", tmp_path / "report.json"
    circuit = _random_circuit(9, 4, inside=False)
    file.write_text(circuit.to_qasm())
    line = ["run", file, "--shots", 100, "--seed", 2, "--observable", "Z0 X8", "--json", report]
    done = ranks.onehop(*line, "-n", 4, "--device", "processor", "--profile")
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    main([str(one) for one in line])
    expected = json.loads(report.read_text())
    assert found["counts"] == expected["counts"]
    assert found["expectations"] == pytest.approx(expected["expectations"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--device", "gpu"], "found 'gpu'"),
        (["--device", "processor", "--save", "state.h5"], "--save: expected --device cpu, found 'processor'"),
        (["--device", "processor", "--precision", "q8"], "found precision q8"),
    ],
)
def test_what_a_device_does_not_do_is_refused_in_a_line(
    line: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "circuit.qasm"
    file.write_text(generators.ghz(6).to_qasm())
    assert main(["run", str(file), *line]) == 2
    assert said in capsys.readouterr().err


FAILURE = """
    import os
    import onehop
    from onehop.quantum import State, generators

    group = onehop.Group.world()
    state = State(6, group, device="cuda")
    circuit = generators.random_circuit(6, depth=6, seed=1)
    group.barrier()
    try:
        if group.rank == 1:
            os.environ["STANDIN_FAIL"] = "cuLaunchKernel:1"
        state.run(circuit)
    except onehop.PeerLost as error:
        assert group.rank == 0 and "rank 1" in str(error), error
        print("right")
    except onehop.Error as error:
        assert "cuda:1 (stand-in): CUDA_ERROR_UNKNOWN from cuLaunchKernel" in str(error), error
        print("right")
"""


def test_an_error_of_the_driver_on_one_rank_ends_all(ranks: Ranks, tmp_path: Path) -> None:
    ranks.environment = {**environment("cuda", tmp_path), **ranks.environment}
    run = ranks.launch(2, FAILURE)
    assert run.stdout.count("right") == 2, run.stderr


MEMORY = """
    import ctypes, os
    import onehop
    from onehop import quantum
    from onehop.quantum import Circuit, State, generators

    group = onehop.Group.world()
    most_bytes = ctypes.CDLL(os.environ["ONEHOP_CUDA"]).standin_most_bytes
    most_bytes.restype = ctypes.c_size_t
    qubits, state_bytes = 22, 16 << 21

    def within(states, what):
        most = most_bytes()
        limit = 1.02 * states * state_bytes + (64 << 20) // 4
        assert states * state_bytes <= most <= limit, (what, most / state_bytes)

    state = State(qubits, group, device="cuda")
    circuit = generators.random_circuit(qubits, depth=2, seed=1)
    state.run(circuit)
    within(1, "exchanges")
    state.sample(1000, seed=3)
    within(1, "sampling")
    state.probabilities([0, 5, 21])
    state.expectations(["Z0 Z21 - X0 X21 + 0.5*Y3", "X1 Y20"])
    within(1, "expectation values")
    state.entropy([0, 21])
    within(1, "density matrices")
    del state
    most_bytes()
    circuit = Circuit(qubits)
    angles = [quantum.Parameter(f"t{k}") for k in range(3)]
    for qubit, angle in zip((0, 10, 21), angles):
        circuit.ry(angle, qubit)
    for qubit in range(qubits - 1):
        circuit.cx(qubit, qubit + 1)
    quantum.gradients(circuit, [0.1, 0.2, 0.3], ["Z0 - X21"], group=group, device="cuda")
    within(2, "gradients")
    print("right")
"""


@pytest.mark.timeout(300)
def test_devices_hold_the_state_and_little_else(ranks: Ranks, tmp_path: Path) -> None:
    """A quarter of the 64 MiB that the rule allows, so that another state is more. Gradients have two states."""
    ranks.environment = {**environment("cuda", tmp_path), **ranks.environment}
    run = ranks.launch(2, MEMORY)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("right") == 2
