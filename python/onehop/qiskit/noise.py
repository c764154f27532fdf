"""Noise models of runs: qiskit-aer's, read without importing it, and onehop's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qiskit import QuantumCircuit
from qiskit.transpiler import PassManager

from onehop.error import BadInput
from onehop.qiskit.active import active_qubits
from onehop.quantum.io.from_qiskit import program_from_qiskit
from onehop.quantum.io.qiskit_steps import kraus_of
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.core_program import with_noise
from onehop.quantum.noise.model import NoiseModel, warn_without
from onehop.quantum.steps import Program
from onehop.text import counted

_TABLES = (
    "_default_quantum_errors",
    "_local_quantum_errors",
    "_default_readout_error",
    "_local_readout_errors",
)
_NO_GATES = frozenset({"measure", "reset", "delay"})


def read_noise(model: Any) -> AerNoise | OwnNoise | None:
    """Read a noise model of qiskit-aer or of onehop for a run; None stays None."""
    if model is None:
        return None
    return OwnNoise(model) if isinstance(model, NoiseModel) else AerNoise(model)


def basis_of(model: Any) -> frozenset[str] | None:
    """Return the names of the gates to which a noise model of qiskit-aer confines circuits; None: to no gates."""
    names = getattr(model, "basis_gates", None)
    return None if names is None else frozenset(names)


class OwnNoise:
    """A noise model of onehop, which acts as in `simulate_density` on the circuit that `from_qiskit` makes.

    `without` has the names of the gates that ran without noise, and the qubits of the first of each.
    """

    def __init__(self, model: NoiseModel) -> None:
        self.model = model
        self.without: dict[str, Sequence[int]] = {}

    def program(self, circuit: QuantumCircuit, *, keep_idle: bool) -> Program:
        """Convert a circuit with its noise; see `AerNoise.program`."""
        qubits = None if keep_idle else active_qubits(circuit)
        program = program_from_qiskit(circuit, None, qubits)
        qubits = qubits or range(circuit.num_qubits)
        here = self.model.on(qubits)
        noisy = with_noise(program, here, lambda _, operation: f"noise of {operation.name}")
        for name, places in here.without(program.circuit).items():
            self.without.setdefault(name, [qubits[place] for place in places])
        readout = [(place, *here.misread(place)) for place in range(len(qubits))]
        return replace(noisy, readout=[one for one in readout if any(one[1:])])

    def warn(self) -> None:
        """Warn about the gates without noise."""
        warn_without(self.without)


class AerNoise:
    """The channels and readout errors of a noise model of qiskit-aer.

    An error of certain qubits replaces the error of all qubits, as in qiskit-aer. `names` are those of the instructions
    with noise, and their labels; `without` is as in `OwnNoise`. A gate of the model's basis that has no noise anywhere
    is not in it: the model says that it has none.
    """

    def __init__(self, model: Any) -> None:
        if not all(hasattr(model, name) for name in _TABLES):
            raise BadInput(
                "noise_model: expected a NoiseModel of qiskit-aer or of onehop.quantum, found "
                f"{type(model).__module__}.{type(model).__name__}"
            )
        self._everywhere = dict(model._default_quantum_errors)
        self._on_qubits = {name: dict(table) for name, table in model._local_quantum_errors.items()}
        self._passes = list(getattr(model, "_custom_noise_passes", ()))
        self.names = frozenset({*self._everywhere, *self._on_qubits})
        self.without: dict[str, Sequence[int]] = {}
        self._clean = (basis_of(model) or frozenset()) - self.names
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

    def program(self, circuit: QuantumCircuit, *, keep_idle: bool) -> Program:
        """Convert a circuit with its noise; `keep_idle`: also the qubits on which nothing acts."""
        if self._passes:  # they add channels to the circuit
            circuit = PassManager(self._passes).run(circuit)
        return program_from_qiskit(circuit, self, None if keep_idle else active_qubits(circuit))

    def channels(self, name: str, qubits: Sequence[int]) -> list[tuple[NDArray[np.complex128], ...]]:
        """Return the Kraus operators of the noise of an instruction."""
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

    def warn(self) -> None:
        """Warn about the gates without noise."""
        remedies = []
        if not self.names.issuperset(self.without):
            remedies.append(
                "`transpile(circuit, OnehopBackend(noise_model=model))` writes a circuit in the gates of the model; "
                "or add noise of these gates to the model, or the gates to its basis if they shall have none"
            )
        if not self.names.isdisjoint(self.without):
            remedies.append("`transpile(circuit, device)` moves gates to qubits on which they have noise")
        warn_without(self.without, "; ".join(remedies))

    def miss(self, name: str, qubits: Sequence[int]) -> None:
        """Note a gate without noise; the basis of the model may have such gates."""
        if name not in self._clean and self.names - _NO_GATES:
            self.without.setdefault(name, qubits)

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
