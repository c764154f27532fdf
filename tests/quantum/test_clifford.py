"""Clifford circuits on stim's tableaus: outcomes and expectation values are those of the state vector."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from onehop import BadInput, quantum
from onehop.cli import main
from threads import same_on

pytest.importorskip("stim")

GATES = ("h", "s", "sdg", "x", "y", "z", "sx", "sxdg", "id", "cx", "cy", "cz", "swap", "ecr", "iswap")


def random_circuit(qubits: int, operations: int, seed: int) -> quantum.Circuit:
    """Return Clifford gates of all kinds, with measurements, resets and conditions between them."""
    rng = np.random.default_rng(seed)
    widths = {name: 1 if GATES.index(name) < 9 else 2 for name in GATES}
    known = {one[0] for one in quantum.gate_names()}
    circuit = quantum.Circuit(qubits, qubits + 2)
    for _ in range(operations):
        kind = rng.integers(12)
        places = rng.permutation(qubits).tolist()
        bits = rng.permutation(qubits + 2).tolist()
        if kind == 0:
            circuit.measure(places[:2], bits[:2])
        elif kind == 1:
            circuit.reset(places[:1])
        elif kind == 2:
            with circuit.when(bits[:2], int(rng.integers(4))):
                circuit.h(places[0]).cx(places[0], places[1])
        elif kind == 3:
            letters = "".join(rng.choice(list("XYZ"), 3))
            circuit.pauli_rotation(letters, np.pi / 2 * int(rng.integers(4)), places[:3])
        elif kind == 4:
            circuit.unitary([[0, 1], [1, 0]], places[:1], controls=places[1:2], control_values=0)
        else:
            name = str(rng.choice([one for one in GATES if one in known]))
            circuit.add(quantum.gate(name, places[: widths[name]]))
    return circuit.measure(range(0, qubits, 2), range(0, qubits, 2)) if seed % 2 else circuit


@pytest.mark.parametrize("seed", range(12))
def test_outcomes_are_those_of_the_state_vector(seed: int) -> None:
    circuit = random_circuit(6, 40, seed)
    asked = {"shots": 300, "seed": seed, "observables": ["Z0 Z1 + 0.5*X2", "Y1 Y2 Z0", "2*I + Z2"]}
    expected = quantum.simulate(circuit, method="statevector", **asked)
    found = quantum.simulate(circuit, method="clifford", **asked)
    assert (expected.method, found.method) == ("statevector", "clifford")
    assert found.memory == expected.memory
    assert found.counts == expected.counts
    assert found.runs == expected.runs
    np.testing.assert_allclose(found.expectations, expected.expectations, atol=1e-12)
    np.testing.assert_allclose(found.state.vector(), expected.state.vector(), atol=1e-12)


def test_circuits_without_bits_and_with_equations_between_qubits() -> None:
    circuit = quantum.Circuit(9)
    for qubit in (0, 3, 4, 7):
        circuit.h(qubit)
    for one, other in [(0, 1), (3, 1), (4, 8), (7, 8), (0, 8), (7, 2), (3, 5)]:
        circuit.cx(one, other)
    circuit.cz(0, 4).x(1).s(7)
    expected = quantum.simulate(circuit, method="statevector", shots=2000, seed=3)
    assert quantum.simulate(circuit, method="clifford", shots=2000, seed=3).memory == expected.memory


def surface(qubits: int) -> quantum.Circuit:
    circuit = quantum.Circuit(qubits, qubits).h(0)
    for qubit in range(1, qubits):
        circuit.cx(0, qubit)
    for qubit in range(qubits):
        circuit.cz(qubit, (qubit + 5) % qubits).s(qubit)
    for qubit in range(1, qubits):
        circuit.cx(0, qubit)
    return circuit.measure(range(qubits), range(qubits))


def test_auto_takes_stim_for_large_clifford_circuits_only() -> None:
    large = quantum.simulate(surface(150), shots=200, seed=1, observables=["Z0 Z149"])
    assert large.method == "clifford"
    for ranks in (2, 4):
        found = same_on(ranks, lambda group: quantum.simulate(surface(150), group, shots=200, seed=1).counts)
        assert found == large.counts
    assert quantum.simulate(surface(12), shots=1).method == "statevector"
    middle = surface(22)
    by_stim = quantum.simulate(middle, shots=100, seed=4, observables=["X0 Z3"])
    by_vector = quantum.simulate(middle, shots=100, seed=4, observables=["X0 Z3"], method="statevector")
    assert (by_stim.method, by_vector.method) == ("clifford", "statevector")
    assert by_stim.counts == by_vector.counts
    assert by_stim.expectations == pytest.approx(by_vector.expectations, abs=1e-12)
    assert quantum.simulate(surface(22).t(0), shots=1).method == "statevector"


def test_the_command_says_which_method_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ghz.qasm"
    chain = "".join(f"cx q[{k}],q[{k + 1}];" for k in range(99))
    text = f'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[100];\ncreg c[100];\nh q[0];{chain}measure q->c;\n'
    file.write_text(text)
    assert main(["run", str(file), "--json", "-", "--observable", "Z0 Z99", "--variance"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["method"], report["expectations"], report["variances"]) == (
        "clifford",
        {"Z0 Z99": 1},
        {"Z0 Z99": 0},
    )
    assert set(report["counts"]) == {"0" * 100, "1" * 100}
    assert main(["run", str(file), "-n", "2"]) == 0
    assert "method clifford (stim)" in " ".join(capsys.readouterr().out.split())
    assert main(["run", str(file), "--method", "statevector", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["measures_early"]


def test_what_is_refused() -> None:
    with pytest.raises(BadInput, match=r"expected Clifford gates, found t on \[1\]"):
        quantum.simulate(quantum.Circuit(2).h(0).t(1), method="clifford")
    with pytest.raises(BadInput, match="expected Clifford gates, found cp"):
        quantum.simulate(quantum.Circuit(2).cp(0.01, 0, 1), method="clifford")
    with pytest.raises(BadInput, match="which need a state vector"):
        quantum.simulate(quantum.Circuit(2).h(0), method="clifford", profile=True)
    with pytest.raises(BadInput, match="auto or statevector or clifford"):
        quantum.simulate(quantum.Circuit(2).h(0), method="stim")
    with pytest.raises(BadInput, match="qubit 7"):
        quantum.simulate(quantum.Circuit(2).h(0), method="clifford", observables=["Z7"])


def test_loops_run_on_the_state_vector() -> None:
    text = "qubit q; bit c = 1; while (c) { U(pi/2, 0, pi) q; c = measure q; }"
    circuit = quantum.parse_qasm(text)
    assert quantum.simulate(circuit, shots=20, seed=1).counts == {"0": 20}
    with pytest.raises(BadInput, match="'clifford': expected a circuit without loops"):
        quantum.simulate(circuit, shots=1, method="clifford")
