"""Weighted sums of Pauli strings from text."""

from __future__ import annotations

import pytest

from onehop import BadInput
from onehop.quantum.observables import PauliSum, PauliTerm


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Z0 Z1 + 0.5*X2", [(1, "Z0 Z1"), (0.5, "X2")]),
        ("Z0*Z1-X_2", [(1, "Z0 Z1"), (-1, "X2")]),
        ("-2.5e-1 Y3", [(-0.25, "Y3")]),
        ("- -X0", [(1, "X0")]),
        ("2", [(2, "")]),
        ("I + 3 I0 Z2", [(1, ""), (3, "Z2")]),
        ("(1+0j) [Z0 Z1] +\n(2+0j) [X0]", [(1, "Z0 Z1"), (2, "X0")]),
        ("(0.5-1.5j) [] + 1e5 X10", [(0.5 - 1.5j, ""), (1e5, "X10")]),
        ("X1 Z0", [(1, "Z0 X1")]),
        ("(-3) X0", [(-3, "X0")]),
        ("IZZ", [(1, "Z0 Z1")]),
        ("-0.5*XYI + 2 IIZ - I + Y1", [(-0.5, "Y1 X2"), (2, "Z0"), (-1, ""), (1, "Y1")]),
        ("X", [(1, "X0")]),
    ],
)
def test_text(text: str, terms: list[tuple[complex, str]]) -> None:
    expected = tuple(
        PauliTerm(complex(weight), tuple((int(one[1:]), one[0]) for one in paulis.split()))
        for weight, paulis in terms
    )
    assert PauliSum.parse(text).terms == expected
    assert PauliSum.parse(str(PauliSum.parse(text))).terms == expected


def test_from_qiskit() -> None:
    info = pytest.importorskip("qiskit.quantum_info")
    assert PauliSum.of(info.SparsePauliOp(["XIZ", "IYI"], [2, 0.5])) == PauliSum.parse("2 Z0 X2 + 0.5 Y1")
    assert PauliSum.of(info.Pauli("-XIZ")) == PauliSum.parse("-Z0 X2")
    assert PauliSum.of("Z0") == PauliSum.parse("Z0")
    with pytest.raises(BadInput, match="found int"):
        PauliSum.of(3)


def test_thousands_of_terms() -> None:
    text = " +\n".join(f"({k}+0j) [Z{k % 30} X{30 + k % 20}]" for k in range(5000))
    assert len(PauliSum.parse(text)) == 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is empty"),
        ("Z0 Q1", "column 4: found 'Q1'"),
        ("Z0 Z0", "column 4: qubit 0 occurs twice"),
        ("Z0 X", "column 4: found 'X'"),
        ("XX + XIX", "column 6: found 3 letters after a term of 2"),
        ("XX Z0", "column 4: found 'Z0'"),
        ("XQ", "column 1: found 'XQ'"),
        ("Z0 +", "a term is missing"),
        ("3*", r"column 2: found '\*'"),
        ("Z0 * * Z1", r"column 4: found '\*'"),
        ("Z0 *", r"column 4: found '\*'"),
        ("2 3", "column 3: found '3'"),
        ("(1+0j) [Z0 Z1", "']' is missing"),
        ("] Z0", "column 1: found ']'"),
        ("Z0 @", "found '@'"),
        ("X99999999", "there is no qubit 99999999"),
        ("(1+2+3j) X0", "is no number"),
    ],
)
def test_bad_input_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        PauliSum.parse(text)


def test_too_many_qubits_for_a_state() -> None:
    with pytest.raises(BadInput, match="names qubit 5, but there are 4 qubits: 0 to 3"):
        PauliSum.parse("Z0 + X5").require(4)
    PauliSum.parse("Z0 + X3").require(4)
