"""Random observables, and expectation values to compute differences of."""

from __future__ import annotations

from typing import Any

import numpy as np

from onehop import quantum
from onehop.quantum import Circuit, PauliSum, PauliTerm


def random_sum(draw: np.random.Generator, qubits: int, terms: int) -> PauliSum:
    """Return a Hermitian sum of random strings."""
    found = []
    for _ in range(terms):
        letters = draw.choice(list("IXYZ"), qubits).tolist()
        string = tuple((qubit, letter) for qubit, letter in enumerate(letters) if letter != "I")
        found.append(PauliTerm(float(draw.normal()), string))
    return PauliSum(tuple(found))


def exact(circuit: Circuit, sums: Any) -> list[float]:
    """Expectation values of a circuit without parameters."""
    return [float(np.real(one)) for one in quantum.simulate(circuit, observables=sums).expectations]
