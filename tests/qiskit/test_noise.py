"""Noise models and instructions of qiskit-aer on `OnehopBackend`, against qiskit-aer itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("qiskit")
pytest.importorskip("qiskit_aer", reason="there is no qiskit-aer; pip install qiskit-aer")
import qiskit_aer as aer
from qiskit import QuantumCircuit, transpile
from qiskit.circuit import Delay
from qiskit.circuit.library import DiagonalGate, UCGate
from qiskit.circuit.random import random_circuit
from qiskit.providers.fake_provider import GenericBackendV2
from qiskit.quantum_info import Kraus, SparsePauliOp, random_quantum_channel, random_unitary
from qiskit_aer.noise import (
    NoiseModel,
    QuantumError,
    RelaxationNoisePass,
    amplitude_damping_error,
    coherent_unitary_error,
    depolarizing_error,
    kraus_error,
    pauli_error,
    phase_amplitude_damping_error,
    reset_error,
    thermal_relaxation_error,
)

from onehop.qiskit import OnehopBackend

GATES = ["h", "cx", "rz", "sx", "x"]
_TURN = np.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])


def _delays() -> NoiseModel:
    noise = NoiseModel()
    noise._custom_noise_passes.append(
        RelaxationNoisePass(t1s=[50e-6] * 4, t2s=[70e-6] * 4, dt=1e-9, op_types=[Delay])
    )
    return noise


def _everywhere(error: QuantumError, gates: list[str]) -> NoiseModel:
    noise = NoiseModel()
    noise.add_all_qubit_quantum_error(error, gates)
    return noise


def _local() -> NoiseModel:
    noise = _everywhere(depolarizing_error(0.05, 1), ["h", "sx", "x"])
    noise.add_quantum_error(amplitude_damping_error(0.2), ["h", "rz"], [1])
    noise.add_quantum_error(pauli_error([("XY", 0.1), ("II", 0.9)]), "cx", [2, 0])
    noise.add_quantum_error(depolarizing_error(0.1, 2), "cx", [0, 1])
    noise.add_all_qubit_quantum_error(pauli_error([("X", 0.1), ("I", 0.9)]), ["measure", "reset"])
    noise.add_all_qubit_readout_error([[0.9, 0.1], [0.25, 0.75]])
    noise.add_readout_error([[0.8, 0.2], [0.3, 0.7]], [1])
    return noise


MODELS = {
    "thermal relaxation": lambda: _everywhere(thermal_relaxation_error(50, 70, 5, 0.1), ["h", "sx", "rz"]),
    "short T2": lambda: _everywhere(thermal_relaxation_error(50, 20, 5), ["h", "sx", "x"]),
    "reset": lambda: _everywhere(reset_error(0.1, 0.05), ["h", "x"]),
    "coherent": lambda: _everywhere(coherent_unitary_error(_TURN), ["h", "x"]),
    "phase and amplitude": lambda: _everywhere(phase_amplitude_damping_error(0.1, 0.2, 0.1), ["h", "rz"]),
    "kraus": lambda: _everywhere(kraus_error(Kraus(random_quantum_channel(2, seed=1)).data), ["h", "rz"]),
    "kraus of two qubits": lambda: _everywhere(
        QuantumError(Kraus(random_quantum_channel(4, rank=3, seed=2))), ["cx"]
    ),
    "product": lambda: _everywhere(
        amplitude_damping_error(0.2).tensor(depolarizing_error(0.1, 1)).compose(depolarizing_error(0.1, 2)),
        ["cx"],
    ),
    "local": _local,
    "delays": _delays,
}


def _circuit(seed: int) -> QuantumCircuit:
    circuit = transpile(
        random_circuit(4, 4, max_operands=2, seed=seed), basis_gates=GATES, optimization_level=0
    )
    circuit.delay(5000, 1)
    circuit.reset(3)
    return circuit


@pytest.mark.parametrize("name", list(MODELS))
def test_density_matrices_are_those_of_aer(name: str) -> None:
    noise, circuit = MODELS[name](), _circuit(3)
    circuit.save_density_matrix(label="all")
    circuit.save_density_matrix([2, 0], label="some")
    circuit.save_probabilities([1, 3], label="weights")
    circuit.save_expectation_value(SparsePauliOp(["XZY", "IIZ"], [0.4, 2]), [3, 1, 0], label="value")
    circuit.save_expectation_value_variance(SparsePauliOp(["XZ", "YI"], [0.4, 2]), [2, 1], label="variance")
    expected = (
        aer.AerSimulator(method="density_matrix", noise_model=noise).run(circuit, shots=1).result().data()
    )
    found = OnehopBackend(noise_model=noise).run(circuit, shots=1).result().data()
    assert set(found) == set(expected)
    for label in expected:
        np.testing.assert_allclose(found[label], expected[label], rtol=0, atol=1e-12)


INSIDE: dict[str, Any] = {
    "diagonal": lambda c: c.append(DiagonalGate([1, 1j, -1, 1]), [0, 2]),
    "multiplexer": lambda c: c.append(UCGate([random_unitary(2, seed=k).data for k in (1, 2)]), [2, 0]),
    "initialize": lambda c: c.initialize([0.6, 0, 0, 0.8j], [1, 2]),
    "initialize with a label": lambda c: c.initialize("1+", [1, 2]),
    "initialize with a number": lambda c: c.initialize(2, [1, 2]),
}


@pytest.mark.filterwarnings("ignore:expected noise after every gate")
@pytest.mark.parametrize("name", list(INSIDE))
def test_instructions_have_the_noise_inside_that_aer_gives_them(name: str) -> None:
    """Of those that qiskit-aer executes at once, none; a warning names them."""
    noise = _everywhere(
        depolarizing_error(0.2, 1), ["h", "u", "u3", "rz", "ry", "t", "sx", "x", "p", "unitary", "reset"]
    )
    noise.add_all_qubit_quantum_error(depolarizing_error(0.2, 2), ["cx"])
    circuit = QuantumCircuit(3)
    circuit.h([0, 2])
    INSIDE[name](circuit)
    circuit.h(0)
    circuit.measure_all()
    simulator = aer.AerSimulator(method="statevector", noise_model=noise, seed_simulator=1)
    expected = simulator.run(circuit, shots=4000).result().get_counts()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = OnehopBackend(noise_model=noise, seed=2).run(circuit, shots=4000).result().get_counts()
    assert any(f"none after {name} on" in str(one.message) for one in told) == (" " not in name)
    for key in set(expected) | set(found):
        both = expected.get(key, 0), found.get(key, 0)
        assert abs(both[0] - both[1]) < 5 * np.sqrt(sum(both) + 1)


@pytest.mark.parametrize("name", ["thermal relaxation", "kraus of two qubits", "local"])
@pytest.mark.parametrize("method", ["statevector", "density_matrix"])
def test_counts_agree_with_aer(name: str, method: str) -> None:
    noise, circuit, shots = MODELS[name](), _circuit(5), 4000
    circuit.measure_all()
    theirs = aer.AerSimulator(method="density_matrix", noise_model=noise, seed_simulator=1)
    expected = theirs.run(circuit, shots=shots).result().get_counts()
    found = (
        OnehopBackend(noise_model=noise, method=method, seed=2)
        .run(circuit, shots=shots)
        .result()
        .get_counts()
    )
    for key in set(expected) | set(found):
        both = expected.get(key, 0), found.get(key, 0)
        assert abs(both[0] - both[1]) < 5 * np.sqrt(sum(both) + 1)


LOST: dict[str, Any] = {
    "ch": lambda c: c.ch(0, 1),
    "cz": lambda c: c.cz(0, 1),
    "ccx": lambda c: c.ccx(0, 1, 2),
    "cswap": lambda c: c.cswap(0, 1, 2),
    "cp": lambda c: c.cp(0.3, 0, 1),
    "rzz": lambda c: c.rzz(0.3, 0, 1),
    "crx": lambda c: c.crx(0.3, 0, 1),
}


def _device() -> NoiseModel:
    return NoiseModel.from_backend(GenericBackendV2(4, seed=3, noise_info=True))


@pytest.mark.parametrize("name", ["flips", "device"])
def test_transpiled_circuits_have_the_noise_of_aer(name: str) -> None:
    noise = _everywhere(pauli_error([("XX", 1.0)]), ["cx"]) if name == "flips" else _device()
    theirs = aer.AerSimulator(noise_model=noise, method="density_matrix")
    own = OnehopBackend(noise_model=noise, method="density_matrix")
    for gate, add in LOST.items():
        circuit = QuantumCircuit(3)
        circuit.h([0, 1])
        add(circuit)
        circuit.save_density_matrix(label="rho")
        expected, found = (
            backend.run(transpile(circuit, backend, optimization_level=0), shots=1).result().data()["rho"]
            for backend in (theirs, own)
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=gate)


def test_counts_of_a_device_agree_with_aer() -> None:
    noise, shots = _device(), 4000
    theirs, own = aer.AerSimulator(noise_model=noise), OnehopBackend(noise_model=noise)
    circuit = random_circuit(4, 4, seed=7)
    circuit.measure_all()
    expected, found = (
        backend.run(transpile(circuit, backend), shots=shots, seed_simulator=1).result().get_counts()
        for backend in (theirs, own)
    )
    for key in set(expected) | set(found):
        both = expected.get(key, 0), found.get(key, 0)
        assert abs(both[0] - both[1]) < 5 * np.sqrt(sum(both) + 1)


def _saves(circuit: QuantumCircuit) -> None:
    circuit.save_statevector("vector")
    circuit.save_statevector_dict("ket")
    circuit.save_amplitudes([1, 5, 2], label="amplitudes")
    circuit.save_amplitudes_squared([7, 0], label="squared")
    circuit.save_probabilities_dict([2, 1], label="weights")
    circuit.save_state("state")


def test_saved_data_of_state_vectors_is_that_of_aer() -> None:
    circuit = QuantumCircuit(3)
    circuit.set_statevector(np.array([1, 2j, 0, -1, 0.5, 0, 1, 1j]) / np.sqrt(8.25))
    circuit.rx(0.3, 1)
    circuit.ccx(0, 1, 2)
    _saves(circuit)
    expected = aer.AerSimulator(method="statevector").run(circuit, shots=1).result().data()
    found = OnehopBackend().run(circuit, shots=1).result().data()
    assert set(found) == set(expected)
    for label, value in expected.items():
        if isinstance(value, dict):
            assert set(found[label]) == set(value)
            pairs = [(found[label][key], value[key]) for key in value]
        else:
            pairs = [(found[label], value)]
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_parameter_binds_are_in_the_order_of_aer() -> None:
    from qiskit.circuit import Parameter

    angle = Parameter("angle")
    circuits = []
    for gate in ("rx", "ry"):
        circuit = QuantumCircuit(1)
        getattr(circuit, gate)(angle, 0)
        circuit.save_statevector()
        circuits.append(circuit)
    binds: Any = [{angle: [0.1, 0.2, 0.3]}, {angle: [0.4]}]
    expected = aer.AerSimulator(method="statevector").run(circuits, parameter_binds=binds, shots=1).result()
    found = OnehopBackend().run(circuits, parameter_binds=binds, shots=1).result()
    assert len(found.results) == len(expected.results) == 4
    for k in range(4):
        np.testing.assert_allclose(found.get_statevector(k), expected.get_statevector(k), atol=1e-12)
