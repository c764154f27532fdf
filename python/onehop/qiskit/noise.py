"""Noise models of qiskit-aer, read without importing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.transpiler import PassManager

from onehop.error import BadInput
from onehop.quantum.io.qiskit_steps import kraus_of
from onehop.quantum.noise.channel import Channel
from onehop.text import counted

__all__ = ["AerNoise"]

_TABLES = (
    "_default_quantum_errors",
    "_local_quantum_errors",
    "_default_readout_error",
    "_local_readout_errors",
)


class AerNoise:
    """The channels and readout errors of a noise model of qiskit-aer.

    An error of certain qubits replaces the error of all qubits, as in qiskit-aer.

    Parameters
    ----------
    model : qiskit_aer.noise.NoiseModel
        Noise model.

    Attributes
    ----------
    names : frozenset of str
        Names and labels of the instructions with noise.

    Raises
    ------
    BadInput
        The object is no noise model of qiskit-aer, or its readout error of all qubits is on several.
    """

    def __init__(self, model: Any) -> None:
        if not all(hasattr(model, name) for name in _TABLES):
            raise BadInput(f"noise_model: expected a NoiseModel of qiskit-aer, found {type(model).__name__}")
        self._everywhere = dict(model._default_quantum_errors)
        self._on_qubits = {name: dict(table) for name, table in model._local_quantum_errors.items()}
        self._passes = list(getattr(model, "_custom_noise_passes", ()))
        self.names = frozenset({*self._everywhere, *self._on_qubits})
        self._kraus: dict[int, tuple[NDArray[np.complex128], ...]] = {}
        default = model._default_readout_error
        self._readout: dict[int, tuple[float, float]] = {}
        self._default = None if default is None else _misread(default)
        self._joint: dict[tuple[int, ...], NDArray[np.float64]] = {}
        for qubits, error in model._local_readout_errors.items():
            if len(qubits) == 1:
                self._readout[int(qubits[0])] = _misread(error)
            else:
                self._joint[tuple(qubits)] = np.asarray(error.probabilities, float)

    def prepared(self, circuit: QuantumCircuit) -> QuantumCircuit:
        """Apply the transpiler passes of the noise model, which add channels to the circuit."""
        return PassManager(self._passes).run(circuit) if self._passes else circuit

    def channels(self, name: str, qubits: Sequence[int]) -> list[tuple[NDArray[np.complex128], ...]]:
        """Return the Kraus operators of the noise of an instruction.

        Raises
        ------
        BadInput
            An error has another number of qubits than the instruction, is not completely positive, or does not
            preserve the trace.
        """
        error = self._on_qubits.get(name, {}).get(tuple(qubits)) or self._everywhere.get(name)
        if error is None:
            return []
        if error.num_qubits != len(qubits):
            raise BadInput(
                f"noise of {name}: expected an error on {counted(len(qubits), 'qubit')}, found one on "
                f"{error.num_qubits}"
            )
        if id(error) not in self._kraus:
            kraus = kraus_of(error)
            Channel(kraus, f"noise of {name}")  # checks that it preserves the trace
            self._kraus[id(error)] = kraus
        return [self._kraus[id(error)]]

    def readout(self, qubit: int) -> tuple[float, float]:
        """Return the probabilities to read 1 for 0, and 0 for 1: none if `joint_readout` has all errors."""
        if self._joint:
            return 0.0, 0.0
        return self._readout.get(qubit) or self._default or (0.0, 0.0)

    def joint_readout(self, qubits: Sequence[int]) -> NDArray[np.float64] | None:
        """Return the table of the readout error of qubits that are measured together.

        It is None if no readout error of the model is on several qubits. An error of exactly these qubits replaces
        those of each qubit.
        """
        if not self._joint:
            return None
        table = self._joint.get(tuple(qubits))
        if table is None:
            table = np.ones((1, 1))
            for qubit in qubits:
                zero, one = self._readout.get(qubit) or self._default or (0.0, 0.0)
                table = np.kron([[1 - zero, zero], [one, 1 - one]], table)
        return table


def _misread(error: Any) -> tuple[float, float]:
    """Convert a readout error, whose row is the true value."""
    table = np.asarray(error.probabilities, float)
    if table.shape != (2, 2):
        raise BadInput(
            f"noise_model: expected a readout error of each qubit, found one on {len(table).bit_length() - 1} qubits"
        )
    return float(table[0, 1]), float(table[1, 0])
