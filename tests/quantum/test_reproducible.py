"""Amplitudes, expectation values and derivatives with the same bits on every number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradient_checks import exact, random_circuit, random_sum
from onehop import quantum
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit, NoiseModel, Parameter, gradients, parameter_shift
from threads import run_threads

RANKS = [1, 2, 4, 8]


def _bits(compiled: Any, values: Any, sums: Any) -> list[bytes]:
    """Return the bits of everything that a reproducible circuit computes."""
    found = [
        compiled.gradients(values, sums),
        compiled.gradients(values, sums, [0.5, -2]),
        compiled.gradients(values, sums, variance=True),
    ]
    arrays = [array for one in found for array in (one.values, one.derivatives)]
    # The sign of an amplitude that is zero depends on the ranks.
    arrays += [np.array(compiled.expectations(values, sums)), compiled.run(values).vector() + 0.0]
    return [array.tobytes() for array in arrays]


# 6 qubits on 8 ranks have 3 bits in a rank, 15 have several tiles; seed 7 leaves bits flipped that are rank bits on 8
# ranks and local bits on 1.
@settings(max_examples=5, deadline=None)
@example(seed=7, qubits=7, precision="double")
@example(seed=10, qubits=6, precision="single")  # amplitudes of 0 and -0
@given(
    seed=st.integers(0, 2**32),
    qubits=st.sampled_from([6, 7, 12, 15]),
    precision=st.sampled_from(["double", "single"]),
)
def test_the_bits_do_not_depend_on_the_ranks(seed: int, qubits: int, precision: str) -> None:
    draw = np.random.default_rng(seed)
    circuit = random_circuit(draw, qubits, 25)
    sums = [random_sum(draw, qubits, 1), random_sum(draw, qubits, 30)]
    rows = draw.normal(size=(2, len(circuit.parameters))).tolist()

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group, search_seconds=0, reproducible=True, precision=precision)
        return [_bits(compiled, values, sums) for values in (rows[0], rows[1], rows[0])]

    expected = run_threads(1, look)[0]
    assert expected[0] == expected[2]
    for ranks in RANKS[1:]:
        same = [found == expected for found in run_threads(ranks, look)]
        assert all(same), same  # not the bytes, whose difference pytest would take minutes to show


@pytest.mark.parametrize("ranks", RANKS)
def test_reproducible_gradients_are_right(ranks: int) -> None:
    draw = np.random.default_rng(3)
    circuit = random_circuit(draw, 6, 25)
    values = draw.normal(size=len(circuit.parameters)).tolist()
    sums = [random_sum(draw, 6, 1), random_sum(draw, 6, 10)]
    expected = parameter_shift(circuit, values, sums, exact)

    def look(group: Group) -> Any:
        compiled = quantum.compile(circuit, group, search_seconds=0, reproducible=True)
        drawn = compiled.simulate(values, shots=0, seed=1, observables=sums)
        return compiled.ranks, compiled.gradients(values, sums), drawn.expectations

    for used, found, expectations in run_threads(ranks, look):
        assert used == ranks
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found.derivatives, expected.derivatives, rtol=0, atol=1e-10)
        np.testing.assert_allclose(expectations, expected.values, rtol=0, atol=1e-10)


# Forwards nothing is compiled in advance for parts of more than 18 qubits.
def test_large_parts() -> None:
    qubits = 22
    circuit = Circuit(qubits)
    for qubit in range(qubits):
        circuit.ry(Parameter(f"a{qubit}"), qubit)
    for qubit in range(qubits):
        circuit.cx(qubit, (qubit + 5) % qubits)
    circuit.rzz(Parameter("b"), 20, 21)
    values = np.linspace(0.1, 2, qubits + 1)
    found = [
        run_threads(ranks, lambda group: gradients(circuit, values, ["Z0 X21"], group, reproducible=True))[0]
        for ranks in (1, 4)
    ]
    assert found[0].values.tobytes() == found[1].values.tobytes()
    assert found[0].derivatives.tobytes() == found[1].derivatives.tobytes()


def test_errors() -> None:
    circuit = Circuit(5).rx(Parameter("a"), 0)
    with pytest.raises(BadInput, match="a power of two, found 6"):
        quantum.compile(circuit, reproducible=6)
    with pytest.raises(BadInput, match="adjoint method, found one that takes parameter shifts"):
        gradients(circuit, [1], ["Z0"], noise=NoiseModel().add("bit_flip", 0.1), reproducible=True)

    def look(group: Group) -> str:
        with pytest.raises(BadInput) as caught:
            quantum.compile(circuit, group, reproducible=2)
        return str(caught.value)

    for message in run_threads(4, look):
        assert "expected at least the number of ranks, 4, found 2" in message
