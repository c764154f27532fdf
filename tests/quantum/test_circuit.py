"""The circuit builder: the operations that it makes, and the arguments that it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from onehop import BadInput, quantum


def test_builder_makes_operations_in_order() -> None:
    c = quantum.Circuit(3, 2, "mine")
    c.h(0).cx(0, 1).rz(0.3, 2).measure([0, 1], [1, 0])
    assert [o.name for o in c.operations] == ["h", "cx", "rz", "measure"]
    assert (c.operations[1].controls, c.operations[1].targets) == ((0,), (1,))
    assert c.operations[3].clbits == (1, 0)
    assert len(c) == 4
    np.testing.assert_allclose(c.operations[2].values, np.exp([-0.15j, 0.15j]))
    c.validate()


def test_matrices_keep_their_numbers() -> None:
    matrix = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)) + 1j)[0]
    c = quantum.Circuit(4).unitary(matrix, [2, 0], controls=[1, 3], control_values=[0, 1])
    np.testing.assert_array_equal(c.operations[0].matrix().reshape(4, 4), matrix)
    assert c.operations[0].control_values == 2
    transposed = quantum.Circuit(2).unitary(matrix.T, [0, 1]).operations[0]
    np.testing.assert_array_equal(transposed.values.reshape(4, 4), matrix.T)


def test_conditions_are_evaluated_before_their_block() -> None:
    c = quantum.Circuit(2, 2)
    c.measure(0, 0)
    with c.when(0):
        c.x(1)
        with c.when(1, 0, negated=True):
            c.measure(1, 0)
    kinds = [(o.kind, o.clbits, o.condition.clbits, o.condition.value) for o in c.operations]
    assert kinds == [
        ("measure", (0,), (), 0),
        ("assign", (2,), (0,), 1),
        ("matrix", (), (2,), 1),
        ("assign", (3,), (1,), 0),
        ("assign", (4,), (2, 3), 3),
        ("measure", (0,), (4,), 1),
    ]
    assert c.hidden_clbits == 3
    c.validate()


@pytest.mark.parametrize(("value", "found"), [(1, "1"), (1 | 1 << 63, "0")])
def test_a_condition_of_more_than_64_bits_in_a_block(value: int, found: str) -> None:
    """Bits from the 65th on must be 0, whatever the first ones must be."""
    c = quantum.Circuit(2, 65).x(0).measure(0, 0)
    with c.when(0), c.when(range(64), value):
        c.x(1)
    c.measure(1, 64)
    assert quantum.simulate(c, shots=5).counts == {found + "0" * 63 + "1": 5}


def test_permutation_is_made_of_swaps() -> None:
    targets = [2, 0, 3, 1]
    holds = list("abcd")
    for o in quantum.Circuit(4).permutation(targets).operations:
        i, j = o.targets
        holds[i], holds[j] = holds[j], holds[i]
    assert [holds[targets[i]] for i in range(4)] == list("abcd")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda c: c.gate("nonsense", [0]), "nonsense"),
        (lambda c: c.cx(0, 0), "twice"),
        (lambda c: c.h(3), "qubit 3 does not exist"),
        (lambda c: c.unitary([[1, 1], [0, 1]], [0]), "unitary"),
        (lambda c: c.unitary([1, 0], [0]), "square"),
        (lambda c: c.unitary(np.eye(4), [0]), "16 numbers"),
        (lambda c: c.pauli_rotation("XQ", 0.1, [0, 1]), "XQ"),
        (lambda c: c.pauli_rotation("X", 0.1, [0, 1]), "one letter for each of 2 qubits"),
        (lambda c: c.measure(0, 5), "classical bit 5"),
        (lambda c: c.permutation([0, 0, 1]), "once"),
        (lambda c: c.measure_all(), "at least 3"),
        (lambda c: c.unitary(np.ma.masked_array(np.eye(2), np.eye(2)), [0]), "numbers, found masked"),
        (lambda c: c.unitary(np.eye(2), [0], controls=[1], control_values=2), "controls below 2.1, found 2"),
        (lambda c: c.when([0, 1], 6).__enter__(), "condition below 2.2, found 6"),
    ],
)
def test_bad_input_is_refused(make: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make(quantum.Circuit(3, 2)).validate()
