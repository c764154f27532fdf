"""The simulator through Qiskit's interfaces, on one rank and on two."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from onehop import BadInput, Error
from onehop.launch.mpi import find_mpi_launcher, mpi_command
from ranks import Ranks, completed

pytest.importorskip("qiskit")
from qiskit import ClassicalRegister, QuantumCircuit, QuantumRegister, transpile
from qiskit.circuit import Clbit, Parameter
from qiskit.exceptions import QiskitError
from qiskit.primitives import StatevectorEstimator
from qiskit.providers import JobStatus
from qiskit.quantum_info import SparsePauliOp, hellinger_fidelity

from onehop.qiskit import EstimatorV2, OnehopBackend, SamplerV2

PROGRAM = """
from qiskit import QuantumCircuit
from onehop.qiskit import OnehopBackend, SamplerV2
circuit = QuantumCircuit(6)
for qubit in range(6):
    circuit.ry(0.3 + 0.2 * qubit, qubit)
    circuit.cx(qubit, (qubit + 1) % 6)
circuit.measure_all()
backend = OnehopBackend({ranks})
result = backend.run([circuit, circuit], shots=300, seed_simulator=11).result()
sampled = SamplerV2(backend, seed=5).run([(circuit, None, 50)]).result()[0].data.meas.get_counts()
line = (backend.executor.size, sorted(result.get_counts(0).items()), sorted(result.get_counts(1).items()), sampled)
print(line)
"""


def bell() -> QuantumCircuit:
    circuit = QuantumCircuit(
        QuantumRegister(2), ClassicalRegister(1, "a"), ClassicalRegister(1, "b"), name="bell"
    )
    circuit.h(0)
    circuit.cx(0, 1)
    circuit.measure([0, 1], [0, 1])
    return circuit


def test_run_and_result() -> None:
    backend = OnehopBackend()
    three = QuantumCircuit(3, 3, name="three")
    three.x(1)
    three.measure(range(3), range(3))
    job = backend.run([bell(), three], shots=500, seed_simulator=3, memory=True)
    assert job.status() == JobStatus.DONE
    result = job.result()
    assert (backend.name, result.backend_name) == ("onehop_simulator", "onehop_simulator")
    assert result.success
    assert result.job_id == job.job_id()
    assert set(result.get_counts(0)) == {"0 0", "1 1"}
    assert result.get_counts("three") == {"010": 500}
    assert set(result.data(0)["counts"]) == {"0x0", "0x3"}
    assert len(result.get_memory(0)) == 500
    header = result.results[0].header
    assert header["creg_sizes"] == [["a", 1], ["b", 1]]
    assert header["memory_slots"] == 2
    assert all(one.time_taken > 0 for one in result.results)
    again = backend.run([bell(), three], shots=500, seed_simulator=3).result()
    assert again.get_counts() == result.get_counts()


def test_counts_keep_bits_that_are_in_no_register() -> None:
    """Qiskit would cut the registers out of the wrong end of the text, and merge outcomes."""
    for registers in ([ClassicalRegister(1, "a")], [ClassicalRegister(1, "a"), ClassicalRegister(1, "b")]):
        circuit = QuantumCircuit(QuantumRegister(3), *registers, [Clbit()])
        circuit.h(0)
        circuit.x(1)
        circuit.measure(range(circuit.num_clbits), circuit.clbits)
        counts = OnehopBackend().run(circuit, shots=100, seed_simulator=1).result().get_counts()
        assert {key.zfill(3) for key in counts} == {"010", "011"}
        assert sum(counts.values()) == 100


def test_transpiles_to_the_target() -> None:
    backend = OnehopBackend()
    circuit = QuantumCircuit(4)
    circuit.h(range(4))
    circuit.ccx(0, 1, 3)
    circuit.mcx([0, 1, 2], 3)
    circuit.rzz(0.3, 0, 2)
    circuit.measure_all()
    assert backend.target.num_qubits >= 20
    for level in (0, 2):
        ready = transpile(circuit, backend, optimization_level=level)
        counts = [
            backend.run(one, shots=4000, seed_simulator=1).result().get_counts() for one in (circuit, ready)
        ]
        assert hellinger_fidelity(*counts) > 0.98


def test_sampler() -> None:
    angle = Parameter("angle")
    circuit = QuantumCircuit(QuantumRegister(10), ClassicalRegister(9, "low"), ClassicalRegister(1, "high"))
    circuit.rx(angle, 9)
    circuit.x(3)
    circuit.measure(range(10), range(10))
    sampler = SamplerV2(seed=2)
    result = sampler.run([(circuit, [[0.0], [np.pi]], 40), bell()], shots=70).result()
    assert result[0].data.shape == (2,)
    assert result[0].data.low.get_counts() == {"000001000": 80}
    assert result[0].data.high.get_counts(0) == {"0": 40}
    assert result[0].data.high.get_counts(1) == {"1": 40}
    assert result[1].data.a.num_shots == 70
    assert (result[1].data.a.array == result[1].data.b.array).all()


def test_estimator_refuses_states_that_depend_on_chance() -> None:
    """Of a density matrix, resets are exact; those of qubits that are still 0 do nothing."""
    reset, measured, last = (QuantumCircuit(2, 1) for _ in range(3))
    for circuit in (reset, measured, last):
        circuit.reset([0, 1])
        circuit.h(0)
        circuit.cx(0, 1)
    reset.reset(0)
    measured.measure(0, 0)
    measured.x(0)
    last.measure(0, 0)
    mixed = OnehopBackend(method="density_matrix")
    for backend, circuits in ((OnehopBackend(), (reset, measured)), (mixed, (measured,))):
        for circuit in circuits:
            with pytest.raises(BadInput, match=r"found (reset|measure) inside, whose outcome is random"):
                EstimatorV2(backend).run([(circuit, "ZI")])
    for backend, circuit in ((mixed, reset), (OnehopBackend(), last)):
        (found,) = EstimatorV2(backend).run([(circuit, "ZI")]).result()
        assert found.data.evs == pytest.approx(0, abs=1e-12)


def test_estimator_agrees_with_qiskits() -> None:
    angle = Parameter("angle")
    circuit = QuantumCircuit(3)
    circuit.ry(angle, 0)
    circuit.cx(0, 1)
    circuit.sx(2)
    observables = [[SparsePauliOp(["ZZI", "IXX"], [1, 0.5])], ["YIZ"], [{"ZII": 0.3, "III": 2}]]
    pub = (circuit, observables, np.linspace(0, 2, 4)[:, None])
    found = EstimatorV2().run([pub]).result()[0]
    expected = StatevectorEstimator().run([pub]).result()[0]
    np.testing.assert_allclose(found.data.evs, expected.data.evs, atol=1e-12)
    np.testing.assert_array_equal(found.data.stds, 0)
    noisy = EstimatorV2(seed=1).run([pub], precision=0.1).result()[0]
    assert 0 < np.abs(noisy.data.evs - expected.data.evs).max() < 0.6


def test_own_processes_and_launches_agree(ranks: Ranks) -> None:
    outputs = []
    commands = [
        (["launch", "-n", "1"], "2"),
        (["launch", "-n", "2"], ""),
    ]
    for words, number in commands:
        done = ranks.onehop(*words, ranks.script(PROGRAM.format(ranks=number)), status=0)
        outputs += [line.partition("] ")[2] for line in done.stdout.splitlines()]
    assert len(outputs) == 3
    assert len(set(outputs)) == 1
    assert outputs[0].startswith("(2,")


def test_under_mpi(ranks: Ranks) -> None:
    pytest.importorskip("mpi4py")
    try:
        find_mpi_launcher(None)
    except BadInput as error:
        pytest.skip(str(error))
    alone = ranks.onehop("launch", "-n", 1, "--prefix", "raw", ranks.script(PROGRAM.format(ranks="")))
    program = ranks.script("from mpi4py import MPI\n" + PROGRAM.format(ranks=""))

    command, environment = mpi_command(find_mpi_launcher(None), 2, [sys.executable, program])
    done = completed(command, env={**environment, **ranks.environment}, timeout=60, status=0)
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) == 2
    assert lines[0] == lines[1] == "(2" + alone.stdout.strip()[2:]


def test_ranks_that_die_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = OnehopBackend(2)
    try:
        backend.run(bell(), shots=10).result()
        process = backend.executor._process
        process.kill()
        assert process.stdout.read() == b""  # its ranks have ended, too
        monkeypatch.setattr(process, "poll", lambda: None)  # as if they died just after the check
        with pytest.raises(Error, match="have ended"):
            backend.run(bell(), shots=10)
        assert sum(backend.run(bell(), shots=10).result().get_counts().values()) == 10  # on new processes
        backend.executor._process.kill()
        backend.executor._process.wait()  # ends between two tasks, so no task is lost
        assert sum(backend.run(bell(), shots=10).result().get_counts().values()) == 10
        with pytest.raises(BadInput, match="shots: expected a whole number from 1"):
            backend.run(bell(), shots=0)
    finally:
        backend.executor.close()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: OnehopBackend(3), "power of two"),
        (lambda: OnehopBackend(precision="half"), "precision"),
        (lambda: OnehopBackend().run(bell(), shots=0), "shots: expected a whole number from 1"),
        (lambda: OnehopBackend().run(bell(), shots=1e3), r"shots: expected a whole number, found 1000\.0"),
        (lambda: OnehopBackend().run(["bell"]), "found str"),
        (lambda: EstimatorV2().run([(QuantumCircuit(1), "+")]), "Pauli"),
        (lambda: EstimatorV2(seed=-1), "seed"),
        (lambda: SamplerV2(seed=0.5), "seed"),
    ],
)
def test_bad_input_is_refused(run: object, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run()


@pytest.mark.parametrize("method", ["statevector", "density_matrix"])
def test_a_circuit_without_classical_bits_has_all_qubits_measured(method: str) -> None:
    circuit = QuantumCircuit(40 if method == "statevector" else 3)
    circuit.x(1)
    before = circuit.copy()
    result = OnehopBackend(method=method).run([circuit, bell()], shots=10).result()
    assert result.get_counts(0) == {format(2, f"0{circuit.num_qubits}b"): 10}
    assert sum(result.get_counts(1).values()) == 10
    assert circuit == before
    sampled = SamplerV2(OnehopBackend(method=method)).run([circuit], shots=10).result()[0]
    assert sampled.data.meas.get_counts() == result.get_counts(0)


@pytest.mark.parametrize("method", ["statevector", "density_matrix"])
def test_a_circuit_without_qubits_has_no_counts(method: str) -> None:
    circuit = QuantumCircuit(name="silent", metadata={"number": 7})
    result = OnehopBackend(method=method).run([circuit, bell()], shots=10).result()
    assert result.success
    assert result.data(0) == {}
    assert result.results[0].header["n_qubits"] == 0
    assert result.results[0].header["metadata"] == {"number": 7}
    with pytest.raises(QiskitError, match="No counts"):
        result.get_counts(0)
    assert sum(result.get_counts(1).values()) == 10


def test_unknown_options_are_named() -> None:
    with pytest.warns(UserWarning, match="no option noise"):
        OnehopBackend().run(bell(), shots=5, noise=1)


def test_states_on_a_device() -> None:
    runs = [
        OnehopBackend(**more).run(bell(), shots=50, seed_simulator=1)
        for more in ({}, {"device": "processor"})
    ]
    assert runs[0].result().get_counts() == runs[1].result().get_counts()
    with pytest.raises(BadInput, match="found 'gpu'"):
        OnehopBackend().run(bell(), device="gpu").result()
