"""No gate loses its noise in silence: warnings of all ways in which a noise model reaches a run, and the targets.

Nothing here needs qiskit-aer: its noise models are imitated.
"""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, quantum
from onehop.quantum import Circuit, DensityMatrix, NoiseModel, Parameter
from ranks import Ranks
from threads import run_threads

BELL = 'OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; creg c[2]; h q[0]; cz q[0],q[1]; h q[1]; measure q -> c;\n'


def bell() -> Circuit:
    return Circuit(2, 2).h(0).cz(0, 1).h(1).cx(0, 1).measure_all()


def texts(run: Any) -> list[str]:
    """Run and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in caught]


RUNS = {
    "density matrix": lambda noise: quantum.simulate_density(bell(), noise=noise, shots=10, seed=1),
    "trajectories": lambda noise: quantum.simulate_trajectories(bell(), noise=noise, trajectories=10, seed=1),
    "trajectories with a measurement inside": lambda noise: quantum.simulate_trajectories(
        bell().h(0).cx(0, 1).cz(0, 1), noise=noise, trajectories=10, seed=1
    ),
    "derivatives": lambda noise: quantum.gradients(
        Circuit(2).h(0).cz(0, 1).h(1).cx(0, 1).rx(Parameter("a"), 0), [0.3], ["Z0"], noise=noise
    ),
    "an existing state": lambda noise: DensityMatrix(2).run(bell(), noise),
}


@pytest.mark.parametrize("how", list(RUNS))
def test_gates_without_noise_are_named_once(how: str) -> None:
    (text,) = texts(lambda: RUNS[how](NoiseModel().add("depolarizing", 0.1, gates=["cx", "rx"])))
    assert "expected noise after every gate" in text
    assert "found none after h on 0, cz on 0, 1;" in text
    # A gate that reaches beyond the qubits of a rule has no noise, too.
    (text,) = texts(lambda: RUNS[how](NoiseModel().add("bit_flip", 0.1, qubits=[0])))
    assert "found none after cz on 0, 1, h on 1, cx on 0, 1;" in text
    for complete in NoiseModel().add("bit_flip", 0.1), NoiseModel().readout(0.1), None:
        assert not texts(lambda complete=complete: RUNS[how](complete))


def test_one_rank_warns() -> None:
    noise = NoiseModel().add("depolarizing", 0.1, gates=["cx"])
    found = texts(
        lambda: run_threads(2, lambda group: quantum.simulate_density(bell(), group, noise=noise, seed=1))
    )
    assert len(found) == 1


def test_the_command_warns_in_one_line(ranks: Ranks) -> None:
    pytest.importorskip("qiskit")
    done = ranks.onehop(
        "run", ranks.script(BELL, "bell.qasm"), "-n", 2, "--noise", "bit_flip=0.1:cz", status=0
    )
    (line,) = [line for line in done.stderr.splitlines() if "noise" in line]
    assert line.startswith("warning: expected noise after every gate")
    assert "none after h on 0;" in line


# -- models of qiskit-aer, imitated ------------------------------------------------------------------------------------


def flips(qubits: int) -> SimpleNamespace:
    """Make an error that flips all qubits, always."""
    from qiskit import QuantumCircuit

    circuit = QuantumCircuit(qubits)
    circuit.x(range(qubits))
    return SimpleNamespace(circuits=[circuit], probabilities=[1.0], num_qubits=qubits)


def aer_model(
    everywhere: dict[str, int], basis: tuple[str, ...] = ("id", "rz", "sx", "cx"), local: Any = None
) -> SimpleNamespace:
    """Imitate a noise model of qiskit-aer: names with their numbers of qubits, all of which an error flips."""
    return SimpleNamespace(
        _default_quantum_errors={name: flips(qubits) for name, qubits in everywhere.items()},
        _local_quantum_errors=local or {},
        _default_readout_error=None,
        _local_readout_errors={},
        basis_gates=sorted({*basis, *everywhere}),
    )


GATES: dict[str, Any] = {
    "ch": lambda c: c.ch(0, 1),
    "cz": lambda c: c.cz(0, 1),
    "ccx": lambda c: c.ccx(0, 1, 2),
    "cswap": lambda c: c.cswap(0, 1, 2),
    "cp": lambda c: c.cp(0.3, 0, 1),
    "rzz": lambda c: c.rzz(0.3, 0, 1),
    "crx": lambda c: c.crx(0.3, 0, 1),
    "unitary": lambda c: c.unitary(np.eye(4)[[0, 2, 1, 3]], [0, 1]),
}


def expected(transpiled: Any, gate: str) -> np.ndarray:
    """Return the density matrix after a circuit, each gate of this name followed by flips of its qubits."""
    from qiskit.quantum_info import DensityMatrix as Exact
    from qiskit.quantum_info import Operator, Pauli

    rho = Exact.from_int(0, 2**transpiled.num_qubits)
    for one in transpiled.data:
        places = [transpiled.find_bit(qubit).index for qubit in one.qubits]
        rho = rho.evolve(Operator(one.operation), places)
        if one.operation.name == gate:
            rho = rho.evolve(Pauli("X" * len(places)), places)
    return rho.data


@pytest.mark.parametrize("name", list(GATES))
def test_the_target_has_the_gates_of_the_model(name: str) -> None:
    qiskit = pytest.importorskip("qiskit")
    from onehop.qiskit import OnehopBackend

    circuit = qiskit.QuantumCircuit(3)
    circuit.h([0, 1])
    GATES[name](circuit)
    backend = OnehopBackend(noise_model=aer_model({"cx": 2}))
    transpiled = qiskit.transpile(circuit, backend, optimization_level=0)
    assert {one.operation.name for one in transpiled.data} <= {"id", "rz", "sx", "cx"}
    wanted = expected(transpiled, "cx")
    saved = qiskit.circuit.Instruction("save_density_matrix", 3, 0, [])
    saved._label, saved._subtype = "rho", "single"
    transpiled.append(saved, range(3))
    found: list[Any] = []
    assert not texts(lambda: found.append(backend.run(transpiled, shots=1).result().data()["rho"]))
    np.testing.assert_allclose(found[0], wanted, rtol=0, atol=1e-12)


def test_the_target_follows_the_options() -> None:
    pytest.importorskip("qiskit")
    from onehop.qiskit import OnehopBackend

    backend = OnehopBackend()
    everything = set(backend.target.operation_names)
    backend.set_options(noise_model=aer_model({"cx": 2, "ecr": 2, "a label": 1}))
    confined = set(backend.target.operation_names)
    assert {"id", "rz", "sx", "cx", "ecr"} <= confined < everything
    # Only gates are left out.
    assert not confined & {"h", "cz", "unitary", "mcx", "pauli", "PauliEvolution"}
    kept = "measure reset delay barrier if_else initialize kraus save_state"
    assert confined.issuperset(kept.split(" "))
    backend.set_options(noise_model=None)
    assert set(backend.target.operation_names) == everything


def test_gates_that_a_model_does_not_name_are_named_once() -> None:
    qiskit = pytest.importorskip("qiskit")
    from qiskit.circuit.library import XGate

    from onehop.qiskit import EstimatorV2, OnehopBackend, SamplerV2

    inner = qiskit.QuantumCircuit(2, name="inner")
    inner.cz(0, 1)
    inner.cx(0, 1)
    circuit = qiskit.QuantumCircuit(3)
    circuit.h(0)
    circuit.h(1)
    circuit.rz(0.1, 0)  # the basis has it: the model says that it has no noise
    circuit.append(inner.to_gate(), [1, 2])
    circuit.append(XGate(label="a label"), [2])
    measured = circuit.copy()
    measured.measure_all()
    local = {"cx": {(0, 1): flips(2)}}
    for noise, last in (aer_model({"cx": 2}), ""), (aer_model({}, local=local), ", cx on 1, 2"):
        backend = OnehopBackend(noise_model=noise)
        runs = [
            lambda backend=backend: backend.run([measured, measured], shots=1),
            lambda noise=noise: OnehopBackend().run(measured, shots=1, noise_model=noise),
            lambda backend=backend: SamplerV2(backend).run([measured], shots=1),
            lambda backend=backend: EstimatorV2(backend).run([(circuit, "ZZZ")]),
        ]
        for run in runs:
            (text,) = texts(run)
            assert f"found none after h on 0, cz on 1, 2{last}, a label on 2; `transpile(" in text
            assert ("`transpile(circuit, device)` moves gates" in text) == bool(last)
    assert not texts(lambda: OnehopBackend(noise_model=aer_model({"measure": 1})).run(measured, shots=1))


# -- onehop's own models on the backend --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["statevector", "density_matrix"])
def test_a_model_of_onehop_runs_on_the_backend(method: str) -> None:
    qiskit = pytest.importorskip("qiskit")
    from onehop.qiskit import OnehopBackend
    from onehop.quantum.io.from_qiskit import from_qiskit

    # Qubits 1 and 3 of five are used; the rules are about the numbers in this circuit.
    noise = (
        NoiseModel()
        .add("bit_flip", 1.0, gates=["cx"])
        .add("bit_flip", 1.0, qubits=[3])
        .readout(1.0, qubits=[1])
    )
    circuit = qiskit.QuantumCircuit(5, 3)
    circuit.x(3)  # noise: 3 is |0>
    circuit.x(1)
    circuit.cx(1, 3)  # to 1, then noise: |1> of 1 and |1> of 3 become 0
    circuit.measure(1, 0)  # read 1 for 0
    with circuit.if_test((circuit.clbits[0], 1)):
        circuit.x(3)  # to 1, then noise: 0
    circuit.measure(3, 1)
    circuit.z(3)  # noise: to 1
    circuit.measure(3, 2)
    found = OnehopBackend(noise_model=noise, method=method).run(circuit, shots=20, seed_simulator=1).result()
    assert found.get_counts() == {"101": 20}
    assert quantum.simulate_density(from_qiskit(circuit), noise=noise, shots=20).counts == {"101": 20}


def test_other_objects_are_refused() -> None:
    pytest.importorskip("qiskit")
    from onehop.qiskit import OnehopBackend

    with pytest.raises(
        BadInput, match=r"NoiseModel of qiskit-aer or of onehop\.quantum, found builtins\.dict"
    ):
        OnehopBackend(noise_model={})
