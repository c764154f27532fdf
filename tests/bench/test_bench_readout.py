"""`onehop bench readout`: shots and Pauli strings, and the reference simulators that are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from onehop.cli import main
from onehop.error import Error
from onehop.quantum import simulate
from onehop_bench.circuits_cases import Gate, brickwork, to_circuit
from onehop_bench.readout import Readout, _row, pauli_strings
from onehop_bench.reference_simulators import REFERENCE_SIMULATORS, ReadoutSimulator, find_simulators
from onehop_bench.simulators import contests, refuse_wrong

SHOTS = 100_000


class Fake:
    """A simulator that is off by some amount."""

    version, precisions = "1.0", ("double",)

    def __init__(self, name: str, off: float) -> None:
        self.name, self.off = name, off

    def prepare(self, gates: Sequence[Gate], strings: Any, qubits: int, precision: str) -> None:
        state = np.abs(_vector(gates, qubits)) ** 2
        self.shares = [state[np.arange(1 << qubits) >> q & 1 == 1].sum() for q in range(qubits)]

    def read(self, case: str, shots: int) -> tuple[list[float], np.ndarray]:
        assert (case, shots) == ("sampling", SHOTS)
        return [0.25], np.array(self.shares) + self.off


def _vector(gates: Sequence[Gate], qubits: int) -> np.ndarray:
    return simulate(to_circuit(gates, qubits)).state.vector()


def test_shares_of_shots_are_compared() -> None:
    options = Readout(qubits=[6], cases=["sampling"], seconds=0.001)
    result = contests(
        "readout", options, [Fake("right", 0.0), Fake("wrong", 0.02)], partial(_row, shots=SHOTS, count=10)
    )
    (found,) = result.rows
    assert (found.best_peer, found.best_peer_s, set(found.wrong)) == ("right", 0.25, {"wrong"})
    assert found.p10_s <= found.median_s <= found.p90_s
    with pytest.raises(Error, match="sampling, 6 qubits, double: those of wrong"):
        refuse_wrong("values", result)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "readout", "--quick", "--qubits", "6", "--peers", "none", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["case"], row["qubits"], row["peers"]) for row in rows] == [
        ("sampling", 6, {}),
        ("pauli", 6, {}),
    ]
    assert min(row["ours_s"] for row in rows) > 0


@pytest.mark.parametrize("name", REFERENCE_SIMULATORS)
def test_other_simulators_agree(name: str) -> None:
    found, missing = find_simulators([name], 1, ReadoutSimulator)
    if missing:
        pytest.skip(missing[0])
    precision = found[0].precisions[-1]
    gates, strings = brickwork(5, 2), pauli_strings(5, 20)
    state = _vector(gates, 5)
    letters = {
        "X": np.array([[0, 1], [1, 0]]),
        "Y": np.array([[0, -1j], [1j, 0]]),
        "Z": np.diag([1, -1]),
        "I": np.eye(2),
    }
    expected = []
    for string in strings:
        matrix = np.eye(1)
        for qubit in range(5):
            matrix = np.kron(letters[dict(string).get(qubit, "I")], matrix)
        expected.append(np.vdot(state, matrix @ state).real)
    shares = [(np.abs(state) ** 2)[np.arange(32) >> q & 1 == 1].sum() for q in range(5)]
    try:
        found[0].prepare(gates, strings, 5, precision)
        for _ in range(2):
            np.testing.assert_allclose(found[0].read("pauli", 0)[1], expected, rtol=0, atol=1e-5)
            np.testing.assert_allclose(found[0].read("sampling", SHOTS)[1], shares, rtol=0, atol=0.01)
    finally:
        found[0].close()
