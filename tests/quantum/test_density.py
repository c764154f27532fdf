"""Density matrices, channels and noise against NumPy and Qiskit; trajectories against density matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from onehop import BadInput, Group, quantum
from onehop.cli import main
from onehop.quantum import Channel, DensityMatrix, NoiseModel, channel
from threads import run_threads

N = 4
NAMED = [
    ("depolarizing", 0.3),
    ("depolarizing", 0.2, 2),
    ("dephasing", 0.4),
    ("bit_flip", 0.2),
    ("phase_flip", 0.15),
    ("pauli", {"X": 0.1, "Y": 0.2, "Z": 0.05}),
    ("pauli", {"XY": 0.1, "ZI": 0.2}),
    ("amplitude_damping", 0.3),
    ("phase_damping", 0.35),
    ("thermal_relaxation", 50.0, 80.0, 20.0, 0.2),
]


def wide(matrix: np.ndarray, qubits: list[int], n: int = N) -> np.ndarray:
    """Extend a matrix on some qubits to all qubits."""
    operation = quantum.Operation(
        "matrix", "m", qubits, values=np.ascontiguousarray(matrix, complex).reshape(-1)
    )
    return np.array([brute_force.apply(column, operation) for column in np.eye(1 << n, dtype=complex)]).T


def gate_matrix(operation: quantum.Operation, n: int = N) -> np.ndarray:
    return np.array([brute_force.apply(column, operation) for column in np.eye(1 << n, dtype=complex)]).T


def random_channel(rng: np.random.Generator, qubits: int, operators: int) -> Channel:
    size = 1 << qubits
    unitary = brute_force.random_unitary(rng, operators * size)
    return Channel([unitary[i * size : (i + 1) * size, :size] for i in range(operators)])


def random_density(rng: np.random.Generator, n: int = N) -> np.ndarray:
    m = rng.normal(size=(1 << n, 1 << n)) + 1j * rng.normal(size=(1 << n, 1 << n))
    m = m @ m.conj().T
    return m / np.trace(m)


def through(one: Channel, qubits: list[int], rho: np.ndarray) -> np.ndarray:
    return sum(wide(k, qubits) @ rho @ wide(k, qubits).conj().T for k in one.kraus)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    ranks=st.sampled_from([1, 2, 4, 8]),
    precision=st.sampled_from(["double", "single"]),
)
def test_gates_and_channels_agree_with_brute_force(seed: int, ranks: int, precision: str) -> None:
    rng = np.random.default_rng(seed)
    circuit = brute_force.random_circuit(N, 12, seed, 2)
    general = [random_channel(rng, k, int(rng.integers(1, 4))) for k in (1, 2)]
    places = [rng.permutation(N)[: one.qubits].tolist() for one in general]
    rho = random_density(rng)
    expected = rho
    for operation in circuit.operations:
        m = gate_matrix(operation)
        expected = m @ expected @ m.conj().T
    for one, qubits in zip(general, places, strict=True):
        expected = through(one, qubits, expected)

    def run(group: Group) -> np.ndarray:
        state = DensityMatrix(N, group, precision=precision).set_matrix(rho)
        state.run(circuit)
        for one, qubits in zip(general, places, strict=True):
            state.apply(one, qubits)
        return state.matrix()

    for found in run_threads(ranks, run):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 if precision == "double" else 1e-5)


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("qubits", [1, 2, 3])
def test_small_matrices_are_split_over_fewer_ranks(qubits: int, ranks: int) -> None:
    rng = np.random.default_rng(qubits)
    general = random_channel(rng, qubits, 3)
    places = rng.permutation(qubits).tolist()
    noise = NoiseModel().add("amplitude_damping", 0.3)
    circuit = quantum.Circuit(qubits)
    rho = random_density(rng, qubits)
    expected = rho
    for qubit in range(qubits):
        circuit.h(qubit)
        (h,) = quantum.Circuit(qubits).h(qubit).operations
        expected = gate_matrix(h, qubits) @ expected @ gate_matrix(h, qubits).T
        kraus = [wide(k, [qubit], qubits) for k in channel("amplitude_damping", 0.3).kraus]
        expected = sum(k @ expected @ k.conj().T for k in kraus)
    expected = sum(
        wide(k, places, qubits) @ expected @ wide(k, places, qubits).conj().T for k in general.kraus
    )

    def run(group: Group) -> tuple[Any, ...]:
        state = DensityMatrix(qubits, group).set_matrix(rho)
        state.run(circuit, noise)
        before = state.ranks
        state.apply(general, places)
        return state.matrix(), before, state.ranks, state.measure([0], seed=3), state.matrix()

    alone = run(Group.alone())
    for found in run_threads(ranks, run):
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-12)
        assert found[1] == min(ranks, 4 ** (qubits - 1))  # a channel of one qubit leaves 4 entries together
        assert found[2] == 1
        assert found[3] == alone[3]
        np.testing.assert_allclose(found[4], alone[4], rtol=0, atol=1e-12)


@pytest.mark.parametrize("arguments", NAMED, ids=lambda a: f"{a[0]}")
def test_named_channels_agree_with_qiskit(arguments: tuple[Any, ...]) -> None:
    info = pytest.importorskip("qiskit.quantum_info")
    one = channel(*arguments)
    kraus = info.Kraus(list(one.kraus))
    assert kraus.is_cptp()
    np.testing.assert_allclose(one.superoperator(), info.SuperOp(kraus).data, atol=1e-14)
    rng = np.random.default_rng(4)
    rho = random_density(rng)
    qubits = [2, 0][: one.qubits]
    expected = info.DensityMatrix(rho).evolve(kraus, qubits).data
    for ranks in (1, 4):
        for found in run_threads(
            ranks, lambda group: DensityMatrix(N, group).set_matrix(rho).apply(one, qubits).matrix()
        ):
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_named_channels_match_their_definitions() -> None:
    """Named channels on a general one-qubit state, against the formulas of their definitions."""
    rho = np.array([[0.3, 0.2 - 0.1j], [0.2 + 0.1j, 0.7]])
    x, z = brute_force.PAULI["X"], brute_force.PAULI["Z"]
    p = 0.3
    off = np.array([[0, 1], [1, 0]])
    expected = {
        "depolarizing": (1 - p) * rho + p * np.eye(2) / 2,
        "dephasing": rho * (1 - p * off),
        "bit_flip": (1 - p) * rho + p * x @ rho @ x,
        "phase_flip": (1 - p) * rho + p * z @ rho @ z,
        "amplitude_damping": np.array(
            [[0.3 + p * 0.7, rho[0, 1] * (1 - p) ** 0.5], [rho[1, 0] * (1 - p) ** 0.5, 0.7 * (1 - p)]]
        ),
        "phase_damping": np.where(off, rho * (1 - p) ** 0.5, rho),
    }
    for name, value in expected.items():
        found = DensityMatrix(1).set_matrix(rho).apply(channel(name, p), [0]).matrix()
        np.testing.assert_allclose(found, value, atol=1e-14, err_msg=name)


def test_queries_of_a_density_matrix() -> None:
    info = pytest.importorskip("qiskit.quantum_info")
    rng = np.random.default_rng(8)
    rho, other = random_density(rng), random_density(rng)
    vector = brute_force.random_vector(rng, N)
    known = info.DensityMatrix(rho)
    text = "0.5*X0 Y2 + Z1 - 2*Y0 Y1 X3"
    pauli = info.SparsePauliOp.from_sparse_list(
        [("XY", [0, 2], 0.5), ("Z", [1], 1), ("YYX", [0, 1, 3], -2)], N
    )

    def look(group: Group) -> list[int]:
        state = DensityMatrix(N, group).set_matrix(rho)
        assert state.trace() == pytest.approx(1, abs=1e-12)
        assert state.purity() == pytest.approx(known.purity().real, abs=1e-12)
        assert state.expectation(text) == pytest.approx(known.expectation_value(pauli).real, abs=1e-12)
        np.testing.assert_allclose(state.probabilities([2, 0]), known.probabilities([2, 0]), atol=1e-12)
        np.testing.assert_allclose(state.partial_trace([1]), info.partial_trace(known, [1]).data, atol=1e-12)
        fidelity = info.state_fidelity(known, info.DensityMatrix(other))
        assert state.fidelity(DensityMatrix(N, group).set_matrix(other)) == pytest.approx(fidelity, abs=1e-10)
        assert state.fidelity(vector) == pytest.approx(np.vdot(vector, rho @ vector).real, abs=1e-12)
        drawn = state.sample(4000, [3, 1], seed=5)
        np.testing.assert_allclose(
            np.bincount(drawn.astype(int), minlength=4) / 4000, state.probabilities([3, 1]), atol=0.04
        )
        outcome = state.measure([2], seed=3)[0]
        kept = wide(np.diag([1 - outcome, outcome]), [2])
        np.testing.assert_allclose(state.matrix(), kept @ rho @ kept / np.trace(kept @ rho).real, atol=1e-12)
        return [outcome, *drawn[:50].tolist()]

    results = [run_threads(ranks, look)[0] for ranks in (1, 2, 8)]
    assert results[0] == results[1] == results[2]


def noisy_circuit() -> quantum.Circuit:
    circuit = quantum.Circuit(3, 4)
    circuit.h(0).cx(0, 1).ry(0.7, 2).cx(1, 2).measure(0, 3)
    with circuit.when(3):
        circuit.rx(0.4, 1).h(0)
    return circuit.cz(0, 2).ry(0.3, 0).measure([0, 1, 2], [0, 1, 2])


def noise() -> NoiseModel:
    model = NoiseModel().add("depolarizing", 0.05, gates=["cx"]).add("amplitude_damping", 0.08)
    return model.add("dephasing", 0.05, qubits=[1, 2]).readout(0.03, 0.06)


def exact(model: NoiseModel) -> np.ndarray:
    """Return the probabilities of the noisy circuit's four bits and <Z0 X2>, computed with matrices."""

    def after(m: np.ndarray, rho: np.ndarray, o: quantum.Operation) -> np.ndarray:
        rho = m @ rho @ m.conj().T
        for one, qubits in model.after(o):
            rho = sum(wide(k, qubits, 3) @ rho @ wide(k, qubits, 3).conj().T for k in one.kraus)
        return rho

    rho = np.zeros((8, 8), complex)
    rho[0, 0] = 1
    parts = [rho, None]  # indexed by the bit that was read
    for o in noisy_circuit().operations:
        if o.kind == "measure" and list(o.clbits) == [3]:
            zero, one = (wide(np.diag(d), [0], 3) for d in ([1, 0], [0, 1]))
            kept = [zero @ parts[0] @ zero, one @ parts[0] @ one]
            parts = [0.97 * kept[0] + 0.06 * kept[1], 0.03 * kept[0] + 0.94 * kept[1]]
        elif o.kind != "measure":
            parts = [
                part if part is None or (o.condition and read == 0) else after(gate_matrix(o, 3), part, o)
                for read, part in enumerate(parts)
            ]
    misread = np.array([[0.97, 0.06], [0.03, 0.94]])
    three = np.kron(misread, np.kron(misread, misread))
    value = np.trace((parts[0] + parts[1]) @ brute_force.pauli_matrix("ZIX")).real
    return np.array([*(three @ np.diag(parts[0]).real), *(three @ np.diag(parts[1]).real), value])


@pytest.mark.parametrize("how", ["density", "trajectories"])
def test_noisy_circuits_agree_with_matrices(how: str) -> None:
    """Frequencies are within five standard errors of the probabilities; the circuit measures and branches inside."""
    number = 1500
    expected = exact(noise())

    def run(group: Group) -> quantum.NoisyResult:
        options: dict[str, Any] = {"noise": noise(), "seed": 11, "shots": number, "observables": ["Z0 X2"]}
        if how == "density":
            return quantum.simulate_density(noisy_circuit(), group, **options)
        return quantum.simulate_trajectories(noisy_circuit(), group, trajectories=number, **options)

    result = run(Group.alone())
    found = np.array([result.counts.get(format(i, "04b"), 0) for i in range(16)]) / number
    allowed = 5 * np.sqrt(expected[:16] * (1 - expected[:16]) / number)
    assert (np.abs(found - expected[:16]) <= allowed).all()
    assert 0 < result.errors[0] < 0.04
    assert abs(result.expectations[0] - expected[16]) < 5 * result.errors[0]
    for other in run_threads(4, run):  # more ranks than the matrix can be divided between
        assert other.counts == result.counts
        assert other.expectations == pytest.approx(result.expectations, abs=1e-12)


def test_noise_may_follow_gates_that_a_circuit_does_not_have() -> None:
    circuit = quantum.Circuit(2).h(0)
    quantum.NoiseModel().add("bit_flip", 0.1, gates=["h", "cz"]).check_names(circuit)
    with pytest.raises(BadInput, match="noise after gate 'kx': there is no such gate; this circuit has h"):
        quantum.NoiseModel().add("bit_flip", 0.1, gates=["kx"]).check_names(circuit)


def test_a_density_matrix_has_the_attributes_of_its_vector() -> None:
    def run(group: Group) -> tuple[int, str, int, int]:
        rho = quantum.DensityMatrix(3, group, precision="single")
        rho.run(quantum.Circuit(3).h(2).cx(2, 0))
        assert rho.expectation("Z0 Z2") == pytest.approx(1, abs=1e-6)
        assert rho.probability_of_one(0) == pytest.approx(0.5, abs=1e-6)
        assert rho.partial_trace([0, 2]) == pytest.approx(np.diag([1, 0]), abs=1e-6)
        return rho.ranks, rho.precision, rho.exchanges, rho.bytes_sent

    for ranks, precision, exchanges, bytes_sent in run_threads(2, run):
        assert (ranks, precision) == (2, "single")
        assert exchanges > 0
        assert bytes_sent > 0


def test_run_with_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("qiskit")
    program = tmp_path / "bell.qasm"
    program.write_text('OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0]; cx q[0], q[1];')
    words = ["run", str(program), "--seed", "5", "--noise", "depolarizing=0.2:cx", "--observable", "Z0 Z1"]
    words += ["--shots", "400", "--json", "-"]
    assert main(words) == 0
    exact = json.loads(capsys.readouterr().out)
    assert exact["expectations"]["Z0 Z1"] == pytest.approx(0.8, abs=1e-12)
    assert sum(exact["counts"].values()) == 400
    assert main([*words, "--trajectories", "400"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    error = drawn["standard_errors"]["Z0 Z1"]
    assert 0 < error < 0.1
    assert abs(drawn["expectations"]["Z0 Z1"] - 0.8) < 5 * error
    assert main(["run", str(program), "--noise", "gravity=1"]) == 2
    assert main(["run", str(program), "--trajectories", "9"]) == 2
    capsys.readouterr()
    assert main(["run", str(program), "--noise", "depolarizing=0.1:kx"]) == 2
    assert "no such gate; this circuit has cx, h" in capsys.readouterr().err
    known_but_absent = "depolarizing=0.1:cx,cz"
    assert main(["run", str(program), "--noise", known_but_absent, "--shots", "1"]) == 0
    capsys.readouterr()
    assert main([*words, "--trajectories", "9", "--save", str(tmp_path / "x.h5")]) == 2
    assert main([*words, "--checkpoint", str(tmp_path / "x.h5")]) == 2
    assert "--checkpoint does not work with --noise" in capsys.readouterr().err
    h5py = pytest.importorskip("h5py")
    assert main([*words, "--save", str(tmp_path / "x.h5")]) == 0
    assert "2 qubits as a density matrix on 1 rank: 256 B per rank" in capsys.readouterr().err
    with h5py.File(tmp_path / "x.h5") as stored:  # 4/5 Bell state, 1/5 maximally mixed
        found = stored["amplitudes"][()].reshape(4, 4)
    bell = np.outer([1, 0, 0, 1], [1, 0, 0, 1]) / 2
    assert np.abs(found - (0.8 * bell + 0.2 * np.eye(4) / 4)).max() < 1e-12


def test_plan_of_a_density_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan agrees with what a run does."""
    pytest.importorskip("qiskit")
    program = tmp_path / "w.qasm"
    program.write_text(
        'OPENQASM 2.0; include "qelib1.inc"; qreg q[6]; h q; cx q[0], q[5]; rx(0.3) q[5]; ch q[4], q[1];'
    )
    noise = ["--noise", "amplitude_damping=0.1; depolarizing=0.02:cx"]
    assert main(["plan", str(program), "-n", "4", *noise, "--json", "-"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["qubits"], planned["kind"]) == (6, "density matrix")
    assert 16 << 10 <= planned["memory_per_rank"] < (16 << 10) * 5  # staging is a large part of small states

    def run(group: Group) -> tuple[int, int]:
        model = quantum.NoiseModel.parse(noise[1])
        result = quantum.simulate_density(quantum.load_qasm(program), group, noise=model)
        return result.exchanges, result.bytes_moved

    for exchanges, moved in run_threads(4, run):
        assert exchanges == planned["exchanges"] > 0
        assert moved == 4 * planned["bytes_per_rank"]
    assert main(["plan", str(program), "--density", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["memory_per_rank"] == 16 << 12
    assert main(["plan", str(program), *noise, "--trajectories", "7", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["memory_per_rank"] == 16 << 6
    assert "7 trajectories" in captured.err
    assert main(["plan", str(program), "--trajectories", "7"]) == 2


def test_bad_input_is_refused() -> None:
    with pytest.raises(BadInput, match="do not preserve the trace"):
        Channel([np.eye(2) * 0.9])
    with pytest.raises(BadInput, match="shape"):
        Channel([np.eye(2), np.eye(4)])
    with pytest.raises(BadInput, match="probability"):
        channel("bit_flip", 1.2)
    with pytest.raises(BadInput, match="expected one probability, found 2 parameters"):
        channel("bit_flip", 1.2, 2)
    with pytest.raises(BadInput, match="no channel"):
        channel("gravity", 0.1)
    with pytest.raises(BadInput, match="expected 2 qubits, found 1"):
        DensityMatrix(2).apply(channel("depolarizing", 0.1, 2), [0])
    with pytest.raises(BadInput, match="distinct qubits"):
        DensityMatrix(2).apply(channel("depolarizing", 0.1, 2), [0, 2])
    for other, found in (
        (DensityMatrix(1), "one of 1"),
        (quantum.State(3), "one of 3"),
        (np.ones((4, 4)), "an array"),
    ):
        with pytest.raises(BadInput, match=f"fidelity: expected a state of 2 qubits, found {found}"):
            DensityMatrix(2).fidelity(other)
    for seed in (-1, 1.5, 1 << 64):
        with pytest.raises(BadInput, match="seed: expected a whole number"):
            DensityMatrix(2).sample(1, seed=seed)
        with pytest.raises(BadInput, match="seed: expected a whole number"):
            DensityMatrix(2).measure([0], seed=seed)
    for text in ("depolarizing", "bit_flip=x", "gravity=0.1", "bit_flip=0.1,0.2", "readout=1.5"):
        with pytest.raises(BadInput):
            NoiseModel.parse(text)
    model = NoiseModel.parse("depolarizing=0.1:cx,cz; pauli=0.1,0.2,0.3; readout=0.02,0.04")
    assert model.misread(3) == (0.02, 0.04)
    assert [(c.name, q) for c, q in model.after(quantum.gate("cz", [2, 0]))] == [
        ("depolarizing", [2, 0]),
        ("pauli", [2]),
        ("pauli", [0]),
    ]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(4), "trace 1, found the trace 4; pass normalize=True"),
        (np.diag([1, np.nan, 0, 0]), "expected finite entries"),
        (np.diag([1.5, -0.5, 0, 0]), "expected eigenvalues of 0 or more"),
        (np.eye(4) / 4 + np.eye(4, k=1) / 8, "expected a Hermitian matrix"),
        (np.diag([1j, 1 - 1j, 0, 0]), "expected a Hermitian matrix"),
        (np.zeros((4, 4)), "found the trace 0"),
    ],
)
def test_matrices_that_are_no_state_are_refused(matrix: np.ndarray, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        DensityMatrix(2).set_matrix(matrix)


def test_states_are_normalised_if_asked_for() -> None:
    state = DensityMatrix(2).set_matrix(np.eye(4), normalize=True)
    np.testing.assert_allclose(state.matrix(), np.eye(4) / 4, rtol=0, atol=1e-15)
    vector = np.array([3, 0, 4j, 0])
    with pytest.raises(BadInput, match="found the norm 5"):
        state.set_vector(vector)
    state.set_vector(vector, normalize=True)
    np.testing.assert_allclose(state.matrix(), np.outer(vector, vector.conj()) / 25, rtol=0, atol=1e-15)


@pytest.mark.parametrize("amplitudes", [[1, 1], [np.nan, 0], [0, 0], [np.inf, 0], [0.5, 0]])
def test_fidelity_with_amplitudes_that_are_no_state(amplitudes: list[float]) -> None:
    with pytest.raises(BadInput, match="set_amplitudes: expected"):
        DensityMatrix(1).fidelity(np.array(amplitudes))
    assert DensityMatrix(1).fidelity(np.array([0.6, 0.8j], np.complex64)) == pytest.approx(0.36, abs=1e-6)


def test_depolarizing_after_a_large_gate_is_refused() -> None:
    """Its Kraus operators would take 16^k numbers: more than a machine has."""
    circuit = quantum.Circuit(20).unitary(np.eye(128), range(7))
    noise = NoiseModel().add("depolarizing", 0.1)
    for simulate in (quantum.simulate_density, quantum.simulate_trajectories):
        with pytest.raises(BadInput, match=r"depolarizing: expected 1 to 6 qubits, .* found 7"):
            simulate(circuit, noise=noise)
    for qubits in (0, -1, 40):
        with pytest.raises(BadInput, match=rf"expected 1 to 6 qubits, .* found {qubits}"):
            quantum.channel("depolarizing", 0.1, qubits)


@pytest.mark.parametrize("t2", [30.0, 50.0, 80.0, 100.0])
@pytest.mark.parametrize("excited", [0.0, 0.3, 1.0])
def test_thermal_relaxation(t2: float, excited: float) -> None:
    rho = np.array([[0.3, 0.2 - 0.1j], [0.2 + 0.1j, 0.7]])
    for time in 0.0, 7.0, 1e5:
        found = quantum.channel("thermal_relaxation", 50.0, t2, time, excited)
        one = excited + (0.7 - excited) * np.exp(-time / 50)
        off = rho[0, 1] * np.exp(-time / t2)
        expected = np.array([[1 - one, off], [off.conjugate(), one]])
        after = (found.superoperator() @ rho.T.reshape(-1)).reshape(2, 2).T
        np.testing.assert_allclose(after, expected, rtol=0, atol=1e-12)
        aer = pytest.importorskip("qiskit_aer.noise")
        theirs = aer.thermal_relaxation_error(50.0, t2, time, excited)
        from qiskit.quantum_info import SuperOp

        np.testing.assert_allclose(found.superoperator(), SuperOp(theirs).data, rtol=0, atol=1e-9)


def test_thermal_relaxation_as_text() -> None:
    noise = NoiseModel.parse("thermal_relaxation=50e-6,70e-6,1e-6:cx; thermal_relaxation=50,70,1,0.1")
    assert repr(noise) == "<NoiseModel: thermal_relaxation after cx; thermal_relaxation>"
    for text, words in {
        "thermal_relaxation=1,3,1": "at most 2 t1",
        "thermal_relaxation=1,1": "three or four for thermal_relaxation",
        "thermal_relaxation=1,1,1,2": "probability from 0 to 1",
    }.items():
        with pytest.raises(BadInput, match=words):
            NoiseModel.parse(text)


def test_encoded_states_are_refused() -> None:
    circuit, noise = quantum.Circuit(4).h(0), NoiseModel().add("bit_flip", 0.1)
    for run in (
        lambda: quantum.simulate_density(circuit, noise=noise, precision="q8"),
        lambda: quantum.simulate_trajectories(circuit, noise=noise, precision="q8", trajectories=2),
        lambda: quantum.plan_density(circuit, 1, "q8"),
        lambda: DensityMatrix(4, precision="fp16"),
    ):
        with pytest.raises(BadInput, match="expected precision double or single, found"):
            run()
