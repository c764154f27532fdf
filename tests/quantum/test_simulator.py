"""The simulator against NumPy, on several ranks and in both precisions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from onehop import BadInput, Error, Group, Mismatch, quantum
from threads import run_threads, same_on

TOLERANCE = {"double": 1e-12, "single": 1e-5}


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32),
    qubits=st.integers(4, 7),
    ranks=st.sampled_from([1, 2, 4, 8]),
    precision=st.sampled_from(["double", "single"]),
    gates=st.integers(1, 30),
)
def test_random_circuits_agree_with_brute_force(
    seed: int, qubits: int, ranks: int, precision: str, gates: int
) -> None:
    most = min(3, qubits - {1: 0, 2: 1, 4: 2, 8: 3}[ranks])
    circuit = brute_force.random_circuit(qubits, gates, seed, most)
    found = same_on(ranks, lambda group: quantum.simulate(circuit, group, precision=precision).state.vector())
    np.testing.assert_allclose(found, brute_force.run(circuit), rtol=0, atol=TOLERANCE[precision])


# -- measurements ------------------------------------------------------------------------------------------------------


def teleportation() -> quantum.Circuit:
    c = quantum.Circuit(3, 3)
    c.u(1.1, 0.4, -0.3, 0).h(1).cx(1, 2).cx(0, 1).h(0)
    c.measure(0, 0).measure(1, 1)
    with c.when(1):
        c.x(2)
    with c.when(0):
        c.z(2)
    c.u(-1.1, 0.3, -0.4, 2)  # the inverse of the prepared state: the qubit is |0> again
    return c.measure(2, 2)


def test_the_same_shots_on_every_number_of_ranks() -> None:
    unconditional = brute_force.random_circuit(6, 30, 5)
    unconditional.measure([0, 2, 5, 1], [0, 1, 2, 3])
    inside = brute_force.random_circuit(5, 20, 6)
    inside.measure([0, 4], [1, 0]).reset(3).h(4).cx(4, 3)
    with inside.when([0, 1], 2):
        inside.x(2)
    for i in range(5):
        inside.h(i)
    inside.measure([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    for circuit in (unconditional, inside, teleportation()):
        runs = [
            same_on(
                ranks,
                lambda group, circuit=circuit: quantum.simulate(circuit, group, shots=2000, seed=12).memory,
            )
            for ranks in (1, 2, 4, 8)
        ]
        assert runs[0] == runs[1] == runs[2] == runs[3]
    other = quantum.simulate(unconditional, shots=2000, seed=13)
    assert other.memory != quantum.simulate(unconditional, shots=2000, seed=12).memory


def test_teleportation_arrives_and_shares_runs() -> None:
    result = quantum.simulate(teleportation(), shots=4000, seed=1)
    assert result.runs == 4
    assert {bits[0] for bits in result.counts} == {"0"}
    assert set(result.counts) == {"000", "001", "010", "011"}
    assert all(850 < count < 1150 for count in result.counts.values())
    assert sum(result.counts.values()) == 4000


@pytest.mark.parametrize("ranks", [1, 4])
def test_counts_follow_the_probabilities(ranks: int) -> None:
    n = 6
    circuit = brute_force.random_circuit(n, 30, 3)
    expected = np.abs(brute_force.run(circuit)) ** 2
    circuit.measure_all()
    shots = 200_000
    result = same_on(
        ranks,
        lambda g: np.bincount(quantum.simulate(circuit, g, shots=shots, seed=4).shot_values(), minlength=64),
    )
    chi_square = sum((result - shots * expected) ** 2 / np.maximum(shots * expected, 1e-9))
    assert chi_square < 64 + 6 * np.sqrt(128)


def test_a_circuit_without_classical_bits_is_measured_on_all_qubits() -> None:
    """The shots are those of a measurement of all qubits at the end, in every kind of run and on several ranks."""
    bare, angle = quantum.Circuit(4), quantum.Parameter("angle")
    bare.ry(angle, 0).cx(0, 1).rxx(0.7, 1, 3).reset(1).h(1)
    measured = quantum.Circuit(4, 4)
    for one in bare.operations:
        measured.add(one)
    measured.measure_all()
    measured.parameters = bare.parameters = ["angle"]
    noise = quantum.NoiseModel().add("depolarizing", 0.1).readout(0.1, 0.3)

    def runs(circuit: quantum.Circuit, group: Group) -> list[dict[str, int]]:
        options: dict[str, Any] = {"shots": 300, "seed": 3}
        bound = circuit.bind([0.9])
        return [
            quantum.simulate(bound, group, **options).counts,
            quantum.compile(circuit, group).simulate([0.9], **options).counts,
            quantum.simulate_density(bound, group, noise=noise, **options).counts,
            quantum.simulate_trajectories(bound, group, noise=noise, trajectories=300, **options).counts,
        ]

    expected = runs(measured, Group.alone())
    assert all(len(counts) > 3 and {len(outcome) for outcome in counts} == {4} for counts in expected)
    for ranks in (1, 2):
        assert same_on(ranks, lambda group: runs(bare, group)) == expected


def test_sampling_more_qubits_than_are_decided_at_once() -> None:
    """GHZ on 24 qubits with the second half flipped: the outcomes are known although the state has 2^24 amplitudes."""
    n = 22
    c = quantum.Circuit(n, n).h(0)
    for q in range(1, n):
        c.cx(q - 1, q)
    for q in range(0, n, 3):
        c.x(q)
    c.measure_all()
    flips = sum(1 << q for q in range(0, n, 3))
    found = same_on(2, lambda g: quantum.simulate(c, g, shots=300, seed=2, precision="single").memory)
    assert set(found) == {hex(flips), hex(flips ^ (1 << n) - 1)}
    assert 100 < found.count(hex(flips)) < 200


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_reset_and_measured_states(ranks: int) -> None:
    """A measurement projects the state, and a reset leaves |0>."""
    n = 6
    circuit = brute_force.random_circuit(n, 20, 21)
    vector = brute_force.run(circuit)

    def run(group: Group) -> list[int]:
        state = quantum.State(n, group)
        state.run(circuit)
        measure = quantum.Circuit(n, 2).measure([4, 1], [0, 1])
        bits = state.run(measure, seed=8)
        index = np.arange(1 << n)
        kept = np.where(((index >> 4 & 1) == bits[0]) & ((index >> 1 & 1) == bits[1]), vector, 0)
        kept /= np.linalg.norm(kept)
        np.testing.assert_allclose(state.vector(), kept, atol=1e-12)
        state.run(quantum.Circuit(n).reset([4, 0]), seed=9)
        assert state.probabilities([4])[0] == pytest.approx(1)
        assert state.probabilities([0])[0] == pytest.approx(1)
        assert state.norm() == pytest.approx(1)
        return bits

    same_on(ranks, run)


def test_expectations_with_measurements_inside_are_averages() -> None:
    c = quantum.Circuit(2, 1).ry(1.0, 0).measure(0, 0)
    with c.when(0):
        c.x(1)
    result = quantum.simulate(c, shots=5000, seed=3, observables=["Z1", "Z0 Z1"])
    ones = result.counts["1"] / 5000
    assert result.runs == 2
    assert result.expectations == pytest.approx([1 - 2 * ones, 1], abs=1e-12)
    assert ones == pytest.approx(np.sin(0.5) ** 2, abs=0.03)


def test_conditions_and_counts_by_registers() -> None:
    c = quantum.Circuit(3, 3)
    c.registers = [quantum.Register("a", 0, 1), quantum.Register("b", 1, 2)]
    c.x(0).measure(0, 0)
    with c.when([0, 1], 2, negated=True):
        c.x(1)
        c.measure(1, 1)
        c.x(2)  # the condition was evaluated before bit 1 was written
    c.measure(2, 2)
    result = quantum.simulate(c, shots=10, seed=1)
    assert result.counts == {"11 1": 10}
    assert result.hex_counts == {"0x7": 10}


# Registers of three bits as name, first bit and size; the text of the outcome 0b011 and that of 0b010.
REGISTERS = {
    "none": ([], "011", "010"),
    "one": ([("a", 0, 3)], "011", "010"),
    "two": ([("a", 0, 1), ("b", 1, 2)], "01 1", "01 0"),
    "another order": ([("b", 1, 2), ("a", 0, 1)], "0 11", "0 10"),
    "common bits": ([("a", 0, 2), ("b", 1, 2)], "01 1", "01 0"),
    "more common bits": ([("a", 0, 1), ("b", 0, 3)], "011 ", "010 "),
    "first bit outside": ([("a", 1, 1), ("b", 2, 1)], "011", "010"),
    "bit outside between": ([("a", 0, 1), ("b", 2, 1)], "011", "010"),
    "last bit outside": ([("a", 0, 1), ("b", 1, 1)], "011", "010"),
}


@pytest.mark.parametrize("name", REGISTERS)
def test_texts_have_all_bits(name: str) -> None:
    registers, first, second = REGISTERS[name]
    circuit = quantum.Circuit(3, 3)
    circuit.h(0).x(1).measure([0, 1, 2], [0, 1, 2])
    circuit.registers = [quantum.Register(*one) for one in registers]
    for simulate in (quantum.simulate, quantum.simulate_density, quantum.simulate_trajectories):
        counts = simulate(circuit, shots=100, seed=1).counts
        assert counts.keys() == {first, second}
        assert sum(counts.values()) == 100


def test_bits_of_openqasm_3_that_are_in_no_register() -> None:
    circuit = quantum.parse_qasm(
        'OPENQASM 3.0; include "stdgates.inc"; qubit[3] q; bit flag; bit[1] a; bit[1] b;'
        "h q[0]; x q[1]; flag = measure q[0]; a[0] = measure q[1]; b[0] = measure q[2];"
    )
    counts = quantum.simulate(circuit, shots=100, seed=1).counts
    assert counts.keys() == {"010", "011"}
    assert sum(counts.values()) == 100


def test_more_than_64_classical_bits() -> None:
    c = quantum.Circuit(1, 70)
    for bit in range(70):
        c.x(0).measure(0, bit)
    result = quantum.simulate(c, shots=3, seed=1)
    assert result.counts == {"01" * 35: 3}
    assert result.shot_values().tolist() == [int("01" * 35, 2)] * 3


def test_tfim_against_exact_diagonalisation() -> None:
    """Trotter steps small enough that the energy and the magnetisation follow the exact evolution."""
    n, steps, time, field = 6, 200, 0.8, 0.7
    text = (
        " ".join(f"- Z{i} Z{i + 1}" for i in range(n - 1))
        + " "
        + " ".join(f"- {field}*X{i}" for i in range(n))
    )
    hamiltonian = np.zeros((1 << n, 1 << n), complex)
    for i in range(n - 1):
        hamiltonian -= brute_force.pauli_matrix("".join("Z" if q in (i, i + 1) else "I" for q in range(n)))
    for i in range(n):
        hamiltonian -= field * brute_force.pauli_matrix("".join("X" if q == i else "I" for q in range(n)))
    energies, modes = np.linalg.eigh(hamiltonian)
    start = np.zeros(1 << n)
    start[5] = 1
    exact = modes @ (np.exp(-1j * energies * time) * (modes.conj().T @ start))
    dt = time / steps
    c = quantum.Circuit(n).x(0).x(2)
    for _ in range(steps):
        for i in range(n):
            c.rx(-field * dt, i)
        for i in range(n - 1):
            c.rzz(-2 * dt, i, i + 1)
        for i in range(n):
            c.rx(-field * dt, i)
    z = np.real(np.vdot(exact, brute_force.pauli_matrix("IIZIII") @ exact))
    found = same_on(4, lambda g: quantum.simulate(c, g, observables=[text, "Z2"]).expectations)
    assert found[0] == pytest.approx(np.vdot(start, hamiltonian @ start).real, abs=1e-4)
    assert found[1] == pytest.approx(z, abs=1e-4)


# -- ranks, memory, refused arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("qubits", "ranks"), [*itertools.product([1, 2, 3], [2, 8])])
def test_circuits_too_small_for_the_ranks(qubits: int, ranks: int) -> None:
    circuit = brute_force.random_circuit(qubits, 12, 4)
    results = run_threads(ranks, lambda g: _small(circuit, g))
    assert all(r == results[0] for r in results)


def _small(circuit: quantum.Circuit, group: Group) -> list[Any]:
    measured = quantum.Circuit(circuit.qubits, circuit.qubits)
    for operation in circuit.operations:
        measured.add(operation)
    result = quantum.simulate(measured.measure_all(), group, shots=50, seed=1)
    assert result.ranks <= 1 << (circuit.qubits - 1)
    np.testing.assert_allclose(result.state.vector(), brute_force.run(circuit), atol=1e-12)
    return [*result.memory, result.ranks]


def joined_pairs(qubits: int) -> quantum.Circuit:
    """Return a circuit whose qubits all have to be in the state at once."""
    circuit = quantum.Circuit(qubits)
    for one, other in itertools.combinations(range(qubits), 2):
        circuit.cp(0.3, one, other)
    return circuit


def test_bad_input_is_refused() -> None:
    circuit = quantum.Circuit(3, 3).h(0).cx(0, 1).cx(1, 2)
    with pytest.raises(BadInput, match="a number of ranks that is a power of two, found 3; take 2 or 4"):
        run_threads(3, lambda g: quantum.simulate(circuit, g))
    with pytest.raises(BadInput, match="too few amplitudes for 8 ranks; take at most 4"):
        run_threads(8, lambda g: quantum.State(3, g))
    with pytest.raises(BadInput, match="qubit 3"):
        quantum.simulate(circuit, observables=["Z3"])
    with pytest.raises(BadInput, match="'double'"):
        quantum.simulate(circuit, precision="half")
    with pytest.raises(BadInput, match="not unitary"):
        quantum.simulate(quantum.Circuit(1).unitary([[1, 0], [0, 2]], [0]))
    with pytest.raises(BadInput, match="the circuit has 3 qubits, the state 2"):
        quantum.State(2).run(circuit)
    with pytest.raises(BadInput, match="amplitude 4"):
        quantum.State(2).amplitudes(4)
    with pytest.raises(BadInput, match="named twice"):
        quantum.State(2).probabilities([1, 1])
    with pytest.raises(Error, match=r"qubits in double precision needs .* on each of 1 rank,.*qubits fit"):
        quantum.simulate(joined_pairs(45))
    plan = quantum.plan(joined_pairs(45), 64)
    assert not plan.fits
    assert plan.memory_in_all >= 16 << 45


def test_plan_reports_bytes_and_exchanges() -> None:
    circuit = quantum.Circuit(12)
    for layer in range(4):
        for q in range(12):
            circuit.u(0.3, 0.1 * q, layer, q)
        for q in range(layer % 2, 11, 2):
            circuit.cx(q, q + 1)
    plan = quantum.plan(circuit, 4)
    results = run_threads(4, lambda g: quantum.simulate(circuit, g).state.bytes_sent)
    assert results == [plan.bytes_per_rank] * 4
    assert sum(plan.bytes_per_exchange) == plan.bytes_per_rank
    assert plan.exchanges > 0
    assert plan.passes > 0
    assert 3 * plan.bytes_per_rank <= plan.baseline_bytes_per_rank


def test_progress_may_end_a_run() -> None:
    seen: list[tuple[int, ...]] = []

    def stop(*what: int) -> None:
        seen.append(what)
        if what[0] > 1000:
            raise KeyError("enough")

    circuit = brute_force.random_circuit(5, 3000, 1)
    with pytest.raises(KeyError, match="enough"):
        quantum.simulate(circuit, progress=stop)
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert len(seen) >= 2


def test_time_is_predicted_by_the_rate_of_the_first_longer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onehop.quantum.circuit_plan import BUILT_IN_RATE, keep_rate, kept_rate, predict

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    keep_rate(quantum.plan(_rotated()), 4.0)
    assert kept_rate() is None  # too small to say anything, however long a busy machine took
    circuit = quantum.Circuit(20)
    for layer in range(20):
        for qubit in range(20):
            circuit.rx(0.1 * layer, qubit).cx(qubit, (qubit + 1) % 20)
    for ranks in (1, 4):
        plan = quantum.plan(circuit, ranks)
        moved = 16 * 2**20 * (1 + 2 * plan.passes) + 2 * ranks * plan.bytes_per_rank
        assert predict(plan) == pytest.approx(moved / BUILT_IN_RATE)
    keep_rate(plan, 0.01)
    assert kept_rate() is None  # too short to say anything
    for seconds in (20.0, 10.0):
        keep_rate(plan, seconds)
        assert predict(plan) == pytest.approx(20)
    keep_rate(plan, 10.0, replace=True)
    assert predict(plan) == pytest.approx(10)
    for text in (
        "",
        "{}",
        '{"bytes_per_second": -1}',
        '{"bytes_per_second": 892.2}',
        '{"bytes_per_second": "many"}',
        "[" * 9999,
    ):
        (tmp_path / "onehop" / "circuits.json").write_text(text)
        assert kept_rate() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    keep_rate(plan, 10.0)  # in a place where nothing can be kept
    assert kept_rate() is None
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 2)  # a user without a home, as in some containers
    keep_rate(plan, 10.0)
    assert predict(plan) == pytest.approx(moved / BUILT_IN_RATE)


def _noisy(strength: float) -> quantum.NoiseModel:
    return quantum.NoiseModel().add("depolarizing", strength, gates=["h"])


def _misread(rank: int) -> quantum.NoiseModel:
    return quantum.NoiseModel().readout(0.1 + rank / 9)


def _rotated() -> quantum.Circuit:
    return quantum.Circuit(3, 3).h(0).cx(0, 1).measure_all()


def _on_tableaus(circuit: quantum.Circuit, group: Group, **options: Any) -> Any:
    return quantum.simulate(circuit, group, **{"method": "clifford", "seed": 1, "shots": 9} | options)


def _compiled(group: Group) -> quantum.CompiledCircuit:
    circuit = quantum.Circuit(3).h(0)
    return quantum.compile(circuit.rx(quantum.Parameter("a"), 0).cx(0, 1).cx(1, 2), group)


H = quantum.Circuit(3).h(0)
METHOD = "method, saved data, readout errors or trajectories"


@pytest.mark.parametrize(
    ("what", "run"),
    [
        ("circuit", lambda g: quantum.simulate(quantum.Circuit(3).rx(0.1 + g.rank, 0), g, seed=1)),
        ("circuit", lambda g: quantum.simulate(quantum.Circuit(3).h(g.rank), g, seed=1)),
        ("shots", lambda g: quantum.simulate(H, g, shots=10 + g.rank, seed=1)),
        ("seed", lambda g: quantum.simulate(H, g, shots=10, seed=g.rank)),
        ("circuit", lambda g: quantum.simulate_density(H, g, noise=_noisy(0.1 + g.rank / 9))),
        ("circuit", lambda g: quantum.simulate_trajectories(H, g, noise=_noisy(0.1 + g.rank / 9))),
        ("circuit", lambda g: quantum.simulate_density(quantum.Circuit(3).rx(0.1 + g.rank, 0), g)),
        ("observables", lambda g: quantum.simulate(_rotated(), g, observables=[f"Z{g.rank}"])),
        ("precision", lambda g: quantum.simulate(_rotated(), g, precision=("single", "double")[g.rank])),
        (METHOD, lambda g: quantum.simulate_trajectories(_rotated(), g, noise=_misread(g.rank))),
        ("circuit", lambda g: _on_tableaus(quantum.Circuit(3).h(g.rank), g)),
        ("circuit", lambda g: _on_tableaus(quantum.Circuit(3 + 20 * g.rank).h(0), g, method="auto")),
        ("shots", lambda g: _on_tableaus(H, g, shots=g.rank)),
        ("seed", lambda g: _on_tableaus(H, g, seed=g.rank)),
        ("observables", lambda g: _on_tableaus(H, g, observables=[f"Z{g.rank}"])),
        (METHOD, lambda g: _on_tableaus(_rotated(), g, method=("statevector", "clifford")[g.rank])),
        ("seed", lambda g: quantum.DensityMatrix(1, g).measure([0], seed=g.rank)),
        ("circuit", lambda g: quantum.DensityMatrix(1, g).run(quantum.Circuit(1).ry(g.rank, 0))),
        ("shots", lambda g: quantum.DensityMatrix(1, g).sample(g.rank)),
        ("steps", lambda g: quantum.imaginary_time(quantum.State(3, g), "X0", 0.1, 1 + g.rank)),
        ("choice of a device", lambda g: quantum.State(3, g, device=("cpu", "processor")[g.rank])),
        ("search_seconds", lambda g: quantum.simulate(_rotated(), g, search_seconds=g.rank)),
        (
            "choice of profiles, checkpoints or a device",
            lambda g: quantum.simulate(_rotated(), g, profile=g.rank > 0),
        ),
        ("circuit", lambda g: quantum.compile(quantum.Circuit(3).h(g.rank), g)),
        ("values of the parameters", lambda g: _compiled(g).run([g.rank])),
        ("values of the parameters", lambda g: _compiled(g).expectations([g.rank], ["Z0"])),
        ("observables", lambda g: _compiled(g).expectations([1], [f"Z{g.rank}"])),
        ("values of the parameters", lambda g: _compiled(g).gradients([g.rank], ["Z0"])),
        ("weights", lambda g: _compiled(g).gradients([1], ["Z0"], [1 + g.rank])),
        ("choice of variances", lambda g: _compiled(g).gradients([1], ["Z0"], variance=g.rank > 0)),
        ("values of the parameters", lambda g: _compiled(g).run_many([[1], [g.rank]], ["Z0"])),
        ("values of the parameters", lambda g: _compiled(g).simulate([g.rank], seed=1)),
        ("shots", lambda g: _compiled(g).simulate([1], seed=1, shots=g.rank)),
        ("seed", lambda g: _compiled(g).run([1]).sample(3, [0], seed=g.rank)),
        ("circuit", lambda g: quantum.State(3, g).run(quantum.Circuit(3).h(g.rank))),
        ("seed", lambda g: quantum.State(3, g).run(_rotated(), seed=g.rank)),
        ("circuit", lambda g: quantum.DensityMatrix(3, g).run(quantum.Circuit(3).h(g.rank))),
        ("index", lambda g: quantum.State(3, g).set_basis_state(g.rank)),
        ("indices", lambda g: quantum.State(3, g).amplitudes([g.rank])),
        ("observables", lambda g: quantum.State(3, g).expectations([f"Z{g.rank}"])),
        ("observables", lambda g: quantum.State(3, g).variances([f"Z{g.rank}"])),
        ("qubits", lambda g: quantum.State(3, g).probabilities([g.rank])),
        ("qubits", lambda g: quantum.State(3, g).density_matrix([g.rank])),
        ("observables", lambda g: quantum.DensityMatrix(3, g).expectations([f"Z{g.rank}"])),
        ("qubits", lambda g: quantum.DensityMatrix(3, g).probabilities([g.rank])),
    ],
)
def test_programs_that_differ_between_ranks_are_refused_on_all(
    what: str, run: Callable[[Group], Any]
) -> None:
    def told(group: Group) -> str:
        with pytest.raises(Mismatch) as error:
            run(group)
        return str(error.value)

    assert all(f"the same {what} on every rank" in one for one in run_threads(2, told))
