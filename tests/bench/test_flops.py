"""The least arithmetic of circuits: against counts by hand."""

from __future__ import annotations

import pytest

flops = pytest.importorskip("onehop_bench.flops")
cases = pytest.importorskip("onehop_bench.circuits_cases")


@pytest.mark.parametrize("qubits", [3, 8, 22])
def test_the_counts_of_the_cases(qubits: int) -> None:
    blocks = 10 * (qubits // 2)  # of two qubits, in ten layers
    expected = {
        "qft": 5 * qubits - 3,  # the last Hadamard has no phases after it
        "tfim-1d": 10 * (4 * qubits + 6),
        "brickwork": 20 * (4 * qubits + 6),
        "volume": 16 * blocks + 6 * 10,
        "ghz": 2,
        "grover": 2 * qubits * 11,
    }
    for case, count in expected.items():
        found = flops.least_flops(cases.make_gates(case, qubits))
        assert found == count, case


def test_phases_of_one_control_are_half_a_product() -> None:
    assert flops.least_flops([("cp", [0, 1], [0.1]), ("cp", [0, 2], [0.2])]) == 3
    assert flops.least_flops([("cp", [0, 1], [0.1]), ("cp", [1, 2], [0.2]), ("cp", [0, 2], [0.3])]) == 6
    assert flops.least_flops([("cp", [0, 1], [0.1]), ("h", [2], []), ("cp", [0, 1], [0.1])]) == 5
    assert flops.least_flops([("cx", [0, 1], []), ("swap", [0, 1], []), ("cz", [0, 1], [])]) == 0
