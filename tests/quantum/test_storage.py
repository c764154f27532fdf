"""Only what is entangled is stored: idle qubits, and qubits that no operation joins.

The reference for shots is the same circuit with gates that change nothing but join all its qubits in one state.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import brute_force
from onehop import BadInput, Error, Group, quantum
from onehop.cli import main
from threads import run_threads, same_on

NOTHING = np.eye(4)


def joined(circuit: quantum.Circuit) -> quantum.Circuit:
    """Return the circuit after gates that do nothing but join all qubits."""
    result = quantum.Circuit._like(circuit, [])
    for qubit in range(1, circuit.qubits):
        result.unitary(NOTHING, [qubit - 1, qubit], name="nothing")
    for operation in circuit.operations:
        result.add(operation)
    return result


def spread(part: quantum.Circuit, places: Sequence[int], whole: quantum.Circuit) -> None:
    """Append a circuit of gates on these qubits of another one."""
    for operation in part.operations:
        operation.targets = [places[qubit] for qubit in operation.targets]
        operation.controls = [places[qubit] for qubit in operation.controls]
        whole.add(operation)


def parts(qubits: int, *places: Sequence[int], clbits: int = 0, seed: int = 1) -> quantum.Circuit:
    """Return a circuit of random gates on each of these sets of qubits."""
    circuit = quantum.Circuit(qubits, clbits)
    for number, one in enumerate(places):
        spread(brute_force.random_circuit(len(one), 12, seed + number, 2), one, circuit)
    return circuit


def with_measurements() -> quantum.Circuit:
    """Two parts draw inside, a third one only at the end."""
    circuit = parts(8, [0, 3, 5], [1, 6], [2, 7], clbits=8)
    circuit.measure(3, 0).measure(6, 1).reset(0).h(3).h(0).cx(0, 5).h(6)
    with circuit.when([0, 1], 2):
        circuit.x(1)
    circuit.swap(2, 5).swap(4, 0).cz(4, 2).h(2)
    return circuit.measure([7, 0, 1, 2, 5, 6], [7, 2, 3, 4, 5, 6])


CIRCUITS: dict[str, tuple[Callable[[], quantum.Circuit], int]] = {
    "two parts": (lambda: parts(7, [0, 2, 4], [1, 3, 5, 6]), 4),
    "idle qubits": (lambda: parts(9, [1, 8, 4]), 3),
    "single qubits": (
        lambda: quantum.Circuit(6, 6).h(0).h(1).ry(0.3, 4).measure(range(6), [5, 4, 3, 2, 1, 0]),
        1,
    ),
    "measured inside": (with_measurements, 5),
    "nothing": (lambda: quantum.Circuit(3, 1).measure(2, 0), 1),
    "a permutation": (lambda: quantum.Circuit(5).x(0).h(1).swap(0, 4).swap(4, 2).cx(2, 1), 2),
    "classical": (lambda: _classical(), 1),
}


def _classical() -> quantum.Circuit:
    circuit = quantum.Circuit(4, 2).h(1)
    with circuit.when(0, 0):
        circuit.global_phase(0.3)
    return circuit.measure(3, 1).measure(1, 0)


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_same_shots_states_and_values_as_in_one_state(name: str) -> None:
    make, largest = CIRCUITS[name]
    circuit = make()
    observables = ["Z0 Z1 + 0.5*X2", "Y1 Y2 Z0", "2*I + Z2"]
    whole = quantum.simulate(joined(circuit), shots=500, seed=7, observables=observables)
    assert whole.largest_state_qubits == circuit.qubits
    for ranks in (1, 2, 4):
        for precision, tolerance in (("double", 1e-12), ("single", 1e-5)):

            def run(group: Group, precision: str = precision) -> tuple[quantum.Result, np.ndarray]:
                result = quantum.simulate(
                    circuit, group, shots=500, seed=7, observables=observables, precision=precision
                )
                return result, result.state.vector()

            results = run_threads(ranks, run)
            for result, vector in results:
                assert result.counts == whole.counts
                assert result.memory == whole.memory
                assert result.runs == whole.runs
                assert result.largest_state_qubits == largest
                np.testing.assert_allclose(result.expectations, whole.expectations, atol=tolerance)
                np.testing.assert_allclose(vector, whole.state.vector(), atol=tolerance)


def test_states_and_values_agree_with_brute_force() -> None:
    circuit = parts(8, [0, 2, 4], [1, 6], [3, 7]).swap(5, 0).global_phase(0.3)
    observable = quantum.PauliSum.parse("Z0 X1 Y2 Z5 + 0.5*Z4 Z6 Y3 - 2*X5")
    vector = brute_force.run(circuit)
    expected = np.vdot(vector, brute_force.sum_matrix(observable, 8) @ vector).real
    for ranks in (1, 2, 4):
        for values, found in run_threads(ranks, lambda group: values_and_state(circuit, group, [observable])):
            np.testing.assert_allclose(found, vector, atol=1e-12)
            assert values[0] == pytest.approx(expected, abs=1e-12)


def values_and_state(
    circuit: quantum.Circuit, group: Group, observables: Sequence[quantum.PauliSum]
) -> tuple[list[float | complex], np.ndarray]:
    result = quantum.simulate(circuit, group, observables=observables)
    return result.expectations, result.state.vector()


# -- circuits that are wider than any state ----------------------------------------------------------------------------

WIDE = [3, 60, 126]


def wide(measured: bool = True) -> quantum.Circuit:
    circuit = parts(127, WIDE, clbits=127 if measured else 0)
    return circuit.measure(range(127), range(127)) if measured else circuit


def test_a_wide_circuit_has_the_shots_of_the_qubits_that_it_uses() -> None:
    used = brute_force.random_circuit(3, 12, 1, 2)
    probabilities = abs(brute_force.run(used)) ** 2
    for circuit in (wide(), wide(measured=False)):
        result = quantum.simulate(circuit, shots=20_000, seed=3, observables=["Z60", "X5", "Z5"])
        assert result.largest_state_qubits == 3
        found = np.zeros(8)
        for value, count in zip(result.outcomes.values, result.outcomes.counts, strict=True):
            assert value == sum((value >> place & 1) << place for place in WIDE)
            found[sum((value >> place & 1) << k for k, place in enumerate(WIDE))] = count / 20_000
        np.testing.assert_allclose(found, probabilities, atol=0.015)
        signs = np.array([1, 1, -1, -1, 1, 1, -1, -1])
        np.testing.assert_allclose(result.expectations, [signs @ probabilities, 0, 1], atol=1e-12)
        with pytest.raises(Error, match="the state of all 127 qubits"):
            _ = result.state
        for ranks in (2, 4):
            counts = same_on(ranks, partial(counts_of, circuit, shots=100, seed=3))
            assert counts == counts_of(circuit, None, shots=100, seed=3)


def test_the_plan_is_that_of_the_largest_state() -> None:
    planned = quantum.plan(wide(), 4)
    alone = quantum.plan(brute_force.random_circuit(3, 12, 1, 2), 4)
    assert (planned.qubits, planned.largest_state_qubits, planned.ranks) == (127, 3, 2)
    assert planned.memory_in_all == alone.memory_in_all
    assert planned.operations == alone.operations + 1
    divided = quantum.plan(parts(9, [0, 2, 4], [1, 3, 5, 6]))
    assert (divided.largest_state_qubits, len(divided.parts)) == (4, 2)
    assert divided.passes == sum(one.passes for one in divided.parts)
    density = quantum.plan_density(wide(), noise=quantum.NoiseModel.parse("depolarizing=0.01"))
    assert (density.qubits, density.largest_state_qubits) == (127, 3)
    with pytest.raises(BadInput, match="1 to 10000 qubits, found 10001"):
        quantum.plan(quantum.Circuit(10_001))


def test_states_that_do_not_fit_are_named_by_the_largest() -> None:
    circuit = quantum.Circuit(127)
    for one, other in itertools.combinations(range(50, 100), 2):
        circuit.cp(0.3, one, other)
    with pytest.raises(Error, match="a state of 50 qubits"):
        quantum.simulate(circuit, shots=1)


# -- noise, checkpoints and compiled circuits --------------------------------------------------------------------------


def touched(circuit: quantum.Circuit) -> quantum.Circuit:
    """Return the circuit with gates that do nothing and have no noise on all qubits."""
    result = quantum.Circuit._like(circuit, [])
    for qubit in range(circuit.qubits):
        result.unitary(np.eye(2), [qubit], name="nothing")
    for operation in circuit.operations:
        result.add(operation)
    return result


def test_idle_qubits_do_not_change_noisy_runs() -> None:
    circuit = quantum.Circuit(6, 6).h(1).cx(1, 4).h(5).cx(5, 1).h(4).measure(range(6), range(6))
    noise = quantum.NoiseModel.parse("depolarizing=0.05:h,cx; readout=0.1")
    for run in (quantum.simulate_density, quantum.simulate_trajectories):
        options = {"noise": noise, "shots": 200, "seed": 5, "observables": ["Z1 Z0", "X4 Z5"]}
        found, expected = run(circuit, **options), run(touched(circuit), **options)
        assert found.memory == expected.memory
        assert (found.largest_state_qubits, expected.largest_state_qubits) == (3, 6)
        np.testing.assert_allclose(found.expectations, expected.expectations, atol=1e-12)
    matrix = quantum.simulate_density(circuit, noise=noise).state.matrix()
    np.testing.assert_allclose(
        matrix, quantum.simulate_density(touched(circuit), noise=noise).state.matrix(), atol=1e-12
    )


def test_compiled_circuits_leave_idle_qubits_out() -> None:
    circuit = quantum.Circuit(90)
    angle = quantum.Parameter("t")
    circuit.rx(angle, 80).cx(80, 7).ry(0.4, 7)
    compiled = quantum.compile(circuit)
    assert compiled.placement.qubits == 2
    observables = ["Z7", "Z80 Z7", "Z3", "X3"]
    values = compiled.expectations([0.3], observables)
    small = quantum.Circuit(3).rx(0.3, 1).cx(1, 0).ry(0.4, 0)
    expected = quantum.simulate(small, observables=["Z0", "Z0 Z1", "Z2", "X2"]).expectations
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(compiled.run_many([[0.3]], observables), [expected], atol=1e-12)
    found = compiled.gradients([0.3], ["Z7"])
    assert found.derivatives[0][0] == pytest.approx(-np.cos(0.4) * np.sin(0.3))
    counts = compiled.simulate([0.3], shots=50, seed=1).counts
    assert counts == quantum.simulate(circuit.bind([0.3]), shots=50, seed=1).counts
    narrow = quantum.Circuit(4).rx(angle, 1).cx(1, 3)
    vector = quantum.compile(narrow).run([0.3]).vector()
    np.testing.assert_allclose(vector, brute_force.run(narrow.bind([0.3])), atol=1e-12)


def test_commands_report_the_largest_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wide.qasm"
    file.write_text(
        'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[127];\ncreg c[3];\n'
        "h q[5]; cx q[5],q[70]; t q[70]; cx q[70],q[126]; cx q[90],q[91];\n"
        "measure q[5]->c[0]; measure q[70]->c[1]; measure q[126]->c[2];\n"
    )
    reports = []
    for command in ("run", "plan"):
        assert main([command, str(file), "--json", "-"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    ran, planned = reports
    assert (ran["method"], ran["largest_state_qubits"], ran["qubits"]) == ("statevector", 3, 127)
    assert ran["counts"].keys() == {"000", "111"}
    assert planned["largest_state_qubits"] == 3
    assert planned["memory_in_all"] == 16 * 8
    noisy = ["run", str(file), "--noise", "depolarizing=0.01", "--method", "clifford"]
    assert main(noisy) == 2
    assert "--method does not work with --noise" in capsys.readouterr().err


# -- qubits that leave the state ---------------------------------------------------------------------------------------


def repeated(rounds: int) -> quantum.Circuit:
    """Measure parities of neighbours with an ancilla of its own each time; some are reset, others not."""
    circuit = quantum.Circuit(3 + rounds, 2 * rounds + 3).ry(0.7, 0).ry(1.1, 1).ry(0.4, 2)
    for k in range(rounds):
        circuit.h(3 + k).cz(k % 3, 3 + k).cx((k + 1) % 3, 3 + k).h(3 + k).measure(3 + k, 2 * k)
        if k % 3 == 0:
            circuit.reset(3 + k)
        if k % 3 == 1:
            circuit.measure(3 + k, 2 * k + 1)
        with circuit.when(2 * k):
            circuit.ry(0.2, k % 3)
    circuit.x(3).cx(3, 0).measure(3, 1)
    return circuit.measure([0, 1, 2], [2 * rounds, 2 * rounds + 1, 2 * rounds + 2])


def test_qubits_that_were_measured_leave_the_state(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    circuit = repeated(9)
    asked = {"shots": 400, "seed": 11, "observables": ["Z0 Z1", "X2", "Z5", "Z7 Z0"]}
    whole = quantum.simulate(circuit, checkpoint=tmp_path / "one state.h5", **asked)
    assert whole.largest_state_qubits == 12
    for ranks in (1, 2, 4):
        for observables, largest in (["Z0 Z1", "X2"], 7), (["Z0 Z1", "X2", "Z5", "Z7 Z0"], 8):

            def run(group: Group, observables: list[str] = observables) -> tuple[quantum.Result, np.ndarray]:
                result = quantum.simulate(circuit, group, shots=400, seed=11, observables=observables)
                return result, result.state.vector()

            for result, vector in run_threads(ranks, run):
                assert (result.largest_state_qubits, result.runs) == (largest, whole.runs)
                assert result.memory == whole.memory
                np.testing.assert_allclose(
                    result.expectations, whole.expectations[: len(observables)], atol=1e-12
                )
                np.testing.assert_allclose(vector, whole.state.vector(), atol=1e-12)
    assert quantum.plan(circuit).largest_state_qubits == 7


def chain(qubits: int, measured: bool = True) -> quantum.Circuit:
    circuit = quantum.Circuit(qubits, qubits if measured else 0).ry(1.0, 0)
    for qubit in range(1, qubits):
        circuit.cx(qubit - 1, qubit)
    return circuit.measure(range(qubits), range(qubits)) if measured else circuit


def test_circuits_that_do_not_fit_measure_qubits_early(monkeypatch: pytest.MonkeyPatch) -> None:
    for circuit in (chain(200), chain(200, measured=False)):
        result = same_on(2, partial(counts_of, circuit, shots=2000, seed=1))
        assert result[0] == 2
        assert result[1].keys() == {"0" * 200, "1" * 200}
        assert result[1]["1" * 200] == pytest.approx(2000 * np.sin(0.5) ** 2, abs=80)
    kept = quantum.simulate(chain(200), seed=1, shots=2000, observables=["Z0 Z199", "Z100", "Z0", "X199"])
    np.testing.assert_allclose(kept.expectations, [1, np.cos(1), np.cos(1), 0], atol=0.05)
    with pytest.raises(Error, match="the state of all"):
        _ = kept.state
    # Two parts draw independently, and with a distribution that NumPy knows.
    monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(16 << 21))
    narrow = quantum.Circuit(44)
    for first in (0, 1):
        for qubit in range(first, 42, 2):
            narrow.ry(0.5 + 0.01 * qubit, qubit).cx(qubit, qubit + 2)
    result = quantum.simulate(narrow, shots=1500, seed=2)
    assert result.largest_state_qubits == 2
    bits = np.array([[int(value) >> k & 1 for k in range(44)] for value in result.shot_values()])
    ones = np.zeros(44)
    for first in (0, 1):
        for qubit in range(first, 44, 2):
            p = ones[qubit]
            if qubit < 42:
                p, ones[qubit + 2] = rotated(p, 0.5 + 0.01 * qubit)
            ones[qubit] = p
    np.testing.assert_allclose(bits.mean(axis=0), ones, atol=0.06)
    correlations = np.corrcoef(bits.T)[0::2, 1::2]
    assert abs(correlations).max() < 0.13


def rotated(one: float, angle: float) -> tuple[float, float]:
    """Return the probability of 1 after ry on a qubit that is 1 with a probability, twice: cx copies it."""
    after = one * np.cos(angle / 2) ** 2 + (1 - one) * np.sin(angle / 2) ** 2
    return after, after


def counts_of(circuit: quantum.Circuit, group: Group | None, **asked: int) -> tuple[int, dict[str, int]]:
    result = quantum.simulate(circuit, group, **asked)
    return result.largest_state_qubits, result.counts


def random_program(qubits: int, operations: int, seed: int) -> quantum.Circuit:
    """Return gates, measurements, resets (also at the beginning of qubits) and conditions."""
    rng = np.random.default_rng(seed)
    circuit = quantum.Circuit(qubits, qubits)
    for _ in range(operations):
        # Few qubits at a time, so that others can leave or have not come yet.
        first = int(rng.integers(qubits - 2))
        one, other, third = (first + rng.permutation(3)).tolist()
        kind = rng.integers(9)
        if kind < 2:
            circuit.ry(float(rng.uniform(0, 3)), one)
        elif kind < 4:
            circuit.cx(one, other)
        elif kind == 4:
            circuit.measure([one, third], [int(bit) for bit in rng.permutation(qubits)[:2]])
        elif kind == 5:
            circuit.reset([one, other] if rng.integers(2) else one)
        elif kind == 6:
            circuit.swap(one, third)
        elif kind == 7:
            with circuit.when(int(rng.integers(qubits)), int(rng.integers(2))):
                circuit.ry(0.9, one).cx(one, third)
        else:
            circuit.measure(one, int(rng.integers(qubits))).reset(one)
    return circuit.measure(0, 0) if seed % 2 else circuit


def test_random_programs_have_the_shots_of_one_state(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    saved = 0
    for seed in range(40):
        circuit = random_program(9, 24, seed)
        asked = {"shots": 50, "seed": seed, "observables": ["Z0 X1", "Z5"] if seed % 3 == 0 else []}
        whole = quantum.simulate(circuit, checkpoint=tmp_path / f"{seed}.h5", **asked)
        ranks = (1, 2, 4)[seed % 3]
        for found, vector in run_threads(ranks, partial(result_and_state, circuit, **asked)):
            assert found.memory == whole.memory
            np.testing.assert_allclose(found.expectations, whole.expectations, atol=1e-12)
            np.testing.assert_allclose(vector, whole.state.vector(), atol=1e-12)
        saved += whole.largest_state_qubits - found.largest_state_qubits
    assert saved > 40


def test_a_later_measurement_of_another_part_overwrites_a_bit() -> None:
    for first, last in ((0, 1), (1, 0)):
        bits = quantum.Circuit(3, 2).h(first).z(last).x(2).measure(first, 0).measure(last, 0).measure(2, 1)
        assert quantum.simulate(bits, shots=50, seed=1).counts == {"10": 50}
        assert quantum.compile(bits).simulate(shots=50, seed=1).counts == {"10": 50}
        read = quantum.Circuit(3, 2).h(first).z(last).measure(first, 0)
        with read.when(0):
            read.x(2)
        read.measure(last, 0).measure(2, 1)
        counts = quantum.simulate(read, shots=200, seed=1).counts
        assert counts.keys() == {"00", "10"}


def result_and_state(
    circuit: quantum.Circuit, group: Group, **asked: object
) -> tuple[quantum.Result, np.ndarray]:
    result = quantum.simulate(circuit, group, **asked)
    return result, result.state.vector()
