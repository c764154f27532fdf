"""`Circuit`: a quantum circuit, built operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Condition, Operation, Register, gate, gate_names
from onehop.arguments import (
    complex_array,
    instance,
    is_sequence,
    nearest_unitary,
    whole_number,
    whole_numbers,
)
from onehop.error import BadInput
from onehop.quantum.composition import Composition
from onehop.quantum.named_gates import NamedGates
from onehop.quantum.parameters import Angle, Bindings, Expression, placeholder, terms_of, values_of
from onehop.text import counted

__all__ = ["Circuit", "Condition", "Operation", "Register", "gate", "gate_names"]


class Circuit(NamedGates, Composition):
    """A quantum circuit as plain data, built operation by operation.

    Bits are ordered as in Qiskit: qubit 0 is the least significant bit of an amplitude's index, and the first target
    of an operation is the least significant bit of its matrix's index. Angles are in radians. Every method that adds
    an operation returns the circuit. An angle may be a linear expression of parameters, which `bind` gives values.
    Errors such as a qubit that does not exist or a matrix that is not unitary are found by `validate`, which every
    function that runs a circuit calls first.

    Parameters
    ----------
    qubits, clbits : int
        Number of qubits and of classical bits.
    name : str
        Name in messages and reports.

    Examples
    --------
    >>> from onehop import quantum
    >>> c = quantum.Circuit(2, 2)
    >>> c.h(0).cx(0, 1).measure([0, 1], [0, 1])
    <Circuit: 2 qubits, 2 clbits, 3 operations>
    """

    def __init__(self, qubits: int, clbits: int = 0, name: str = "") -> None:
        super().__init__(qubits, clbits, name)
        self._conditions: list[Condition] = []

    # -- gates by their matrices -------------------------------------------------------------------------------------

    def unitary(
        self,
        matrix: Any,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
        name: str = "unitary",
    ) -> Circuit:
        """Append a dense unitary matrix.

        Parameters
        ----------
        matrix : array of complex, shape (2^k, 2^k)
            Unitary matrix. qubits[0] is the least significant bit of its index. One that is unitary only within 1e-6,
            as in single precision, is replaced by the nearest unitary matrix.
        qubits : sequence of int
            The k targets.
        controls : sequence of int
            Control qubits. The matrix acts where they have `control_values`.
        control_values : int or sequence of 0 and 1, optional
            Values of the controls, as a number (bit i belongs to controls[i]) or one by one. Default: all 1.
        name : str
            Name of the gate in messages and noise models.

        Raises
        ------
        BadInput
            The matrix is not square, or the number of control values is not that of the controls.
        """
        values = complex_array(matrix, name)
        if values.ndim != 2 or values.shape[0] != values.shape[1]:
            raise BadInput(f"{name}: expected a square matrix, found an array of shape {values.shape}")
        numbers = nearest_unitary(values).reshape(-1)
        return self._append(_gate("matrix", name, qubits, controls, control_values, values=numbers))

    def diagonal(
        self,
        values: Any,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
        name: str = "diagonal",
    ) -> Circuit:
        """Append a diagonal matrix.

        Parameters
        ----------
        values : array of complex, shape (2^k,)
            Numbers of modulus 1. qubits[0] is the least significant bit of their index.
        qubits, controls, control_values, name
            As for `unitary`.
        """
        numbers = nearest_unitary(complex_array(values, name).reshape(-1))
        return self._append(_gate("diagonal", name, qubits, controls, control_values, values=numbers))

    def pauli_rotation(
        self,
        paulis: str,
        angle: Angle,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
    ) -> Circuit:
        """Append exp(-i angle/2 P) for a Pauli string P.

        Parameters
        ----------
        paulis : str
            One letter (I, X, Y or Z) per qubit; paulis[i] acts on qubits[i].
        angle : float or Expression
            Angle in radians.
        qubits : sequence of int
            Qubits of the string.
        controls, control_values
            As for `unitary`.

        Raises
        ------
        BadInput
            The number of letters is not that of the qubits.
        """
        qubits = whole_numbers(qubits, "qubits")
        if len(instance(paulis, str, "paulis")) != len(qubits):
            raise BadInput(
                f"pauli_rotation: expected one letter for each of {counted(len(qubits), 'qubit')}, found '{paulis}'"
            )
        targets = [qubit for letter, qubit in zip(paulis, qubits, strict=True) if letter != "I"]
        kind, letters = "pauli_rotation", paulis.replace("I", "")
        number = placeholder(angle)
        operation = _gate(kind, kind, targets, controls, control_values, paulis=letters, angle=number)
        return self._with_angle(operation, angle)

    def generated(self, generator: Any, angle: Angle, qubits: Sequence[int]) -> Circuit:
        """Append exp(-i angle G) for a Hermitian matrix G.

        The gate is made of the eigenvectors of G, rotations about strings of Z and a phase, so that it has derivatives
        by its angle.

        Parameters
        ----------
        generator : array of complex, shape (2^k, 2^k)
            Hermitian matrix. qubits[0] is the least significant bit of its index.
        angle : float or Expression
            Angle in radians.
        qubits : sequence of int
            The k targets, at most 10.

        Raises
        ------
        BadInput
            The matrix is not square, not Hermitian, not finite, or not on as many qubits.
        """
        values = complex_array(generator, "generator")
        qubits = whole_numbers(qubits, "qubits")
        size = 1 << len(qubits)
        placeholder(angle)  # refuses what is no angle
        if len(qubits) > 10 or values.shape != (size, size):
            raise BadInput(
                f"generated: expected a matrix of shape ({size}, {size}) on {len(qubits)} qubits (at most 10), "
                f"found an array of shape {values.shape}"
            )
        tolerance = 1e-12 * max(1.0, np.abs(values).max())
        if not np.isfinite(values).all() or not np.allclose(values, values.conj().T, rtol=0, atol=tolerance):
            raise BadInput(
                "generated: expected a Hermitian generator of finite numbers, found another matrix"
            )
        energies, vectors = np.linalg.eigh(values)
        self.unitary(vectors.conj().T, qubits, name="generated")
        # exp(-i angle E) on the eigenvectors: E is a sum of strings of Z, whose weights are its Walsh transform.
        for string in range(size):
            signs = [-1 if (place & string).bit_count() % 2 else 1 for place in range(size)]
            weight = float(np.dot(signs, energies)) / size
            where = [qubit for place, qubit in enumerate(qubits) if string >> place & 1]
            if string == 0:
                self.global_phase(-weight * angle)
            elif abs(weight) > 1e-15:
                self.pauli_rotation("Z" * len(where), 2 * weight * angle, where)
        return self.unitary(vectors, qubits, name="generated")

    def permutation(self, targets: Sequence[int]) -> Circuit:
        """Move the state of qubit i to qubit targets[i]. Like `swap`, this costs nothing.

        Raises
        ------
        BadInput
            `targets` is no permutation of all qubits.
        """
        to = whole_numbers(targets, "targets")
        if sorted(to) != list(range(self.qubits)):
            raise BadInput(
                f"permutation: expected every qubit from 0 to {self.qubits - 1} once, found {targets}"
            )
        for a, b in swaps_of(to):
            self.swap(a, b)
        return self

    def global_phase(self, angle: Angle, *, controls: Sequence[int] = ()) -> Circuit:
        """Append the phase exp(i angle). With controls, it applies where all of them are 1."""
        kind = "global_phase"
        return self._with_angle(_gate(kind, kind, [], controls, None, angle=placeholder(angle)), angle)

    # -- parameters ----------------------------------------------------------------------------------------------------

    def bind(self, bindings: Bindings) -> Circuit:
        """Return the circuit with a value for each of its parameters.

        Parameters
        ----------
        bindings : mapping from str or Parameter to float, or sequence of float
            Values by name, or in the order of `parameters`.

        Raises
        ------
        BadInput
            A parameter has no value, a name is unknown, or a value is not a finite number.
        """
        bound = _core.bind(self, values_of(self, bindings))
        return Circuit._like(bound)

    # -- operations other than gates ---------------------------------------------------------------------------------

    def measure(self, qubits: int | Sequence[int], clbits: int | Sequence[int]) -> Circuit:
        """Measure qubits[i] into the classical bit clbits[i]."""
        return self._append(
            Operation("measure", "measure", _list(qubits, "qubits"), clbits=_list(clbits, "clbits"))
        )

    def measure_all(self) -> Circuit:
        """Measure qubit i into classical bit i.

        Raises
        ------
        BadInput
            The circuit has fewer classical bits than qubits.
        """
        if self.clbits < self.qubits:
            raise BadInput(
                f"measure_all: expected at least {self.qubits} classical bits, the circuit has {self.clbits}"
            )
        return self.measure(range(self.qubits), range(self.qubits))

    def reset(self, qubits: int | Sequence[int]) -> Circuit:
        """Reset qubits to |0>."""
        return self._append(Operation("reset", "reset", _list(qubits, "qubits")))

    def barrier(self, qubits: Sequence[int] | None = None) -> Circuit:
        """Append a barrier on some or all qubits. Results do not depend on barriers."""
        return self._append(
            Operation("barrier", "barrier", _list(range(self.qubits) if qubits is None else qubits, "qubits"))
        )

    @contextmanager
    def when(
        self, clbits: int | Sequence[int], value: int = 1, *, negated: bool = False
    ) -> Iterator[Circuit]:
        """Execute the operations of a `with` block only if classical bits have a value. Blocks may be nested.

        Parameters
        ----------
        clbits : int or sequence of int
            Classical bits, read as a number; the first one is the least significant.
        value : int
            Number that the bits must equal.
        negated : bool
            If True, the bits must not equal `value`.

        Notes
        -----
        The condition is evaluated once, before the block, even if the block writes to these bits.

        Examples
        --------
        >>> c = quantum.Circuit(2, 1)
        >>> c.h(0).measure(0, 0)
        >>> with c.when(0):
        ...     c.x(1)
        """
        condition = Condition(_list(clbits, "clbits"), value, negated)
        if self._conditions:
            if negated or len(condition.clbits) > 63:  # a value has 64 bits
                condition = Condition([self._assign(condition)], 1)
            outer = self._conditions[-1]
            condition = Condition([*outer.clbits, *condition.clbits], 1 | condition.value << 1)
        self._conditions.append(Condition([self._assign(condition)], 1))
        try:
            yield self
        finally:
            self._conditions.pop()

    def _parametrised(self, name: str, qubits: list[int], angles: Sequence[Angle]) -> Circuit:
        names = list(self.parameters)
        operation = _core.parametrised_gate(name, qubits, terms_of(angles, names))
        self._append(operation)
        self.parameters = names
        return self

    def _with_angle(self, operation: Operation, angle: Angle) -> Circuit:
        if isinstance(angle, Expression) and angle.terms:
            names = list(self.parameters)
            operation.angles = terms_of([angle], names)
            self.parameters = names
        return self._append(operation)

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _append(self, operation: Operation) -> Circuit:
        if self._conditions:
            operation.condition = self._conditions[-1]
        self.add(operation)
        return self

    def _assign(self, condition: Condition) -> int:
        """Store the current truth of a condition in a new hidden bit; return the bit."""
        bit = self.clbits + self.hidden_clbits
        self.hidden_clbits += 1
        self.add(Operation("assign", "assign", [], clbits=[bit], condition=condition))
        return bit

    def to_circuit(self) -> Circuit:
        """Return the circuit itself: generators return circuits now. Version 0.3 will remove this."""
        return self

    def __repr__(self) -> str:
        name = f" '{self.name}'" if self.name else ""
        return (
            f"<Circuit{name}: {counted(self.qubits, 'qubit')}, {counted(self.clbits, 'clbit')}, "
            f"{counted(len(self), 'operation')}>"
        )


def _gate(
    kind: str,
    name: str,
    qubits: Sequence[int],
    controls: Sequence[int],
    control_values: int | Sequence[int] | None,
    **fields: Any,
) -> Operation:
    return Operation(
        kind,
        name,
        whole_numbers(qubits, "qubits"),
        controls=whole_numbers(controls, "controls"),
        control_values=_control_values(controls, control_values),
        **fields,
    )


def swaps_of(targets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the swaps that move the state of qubit i to qubit targets[i]."""
    to = list(targets)
    for qubit in range(len(to)):
        while to[qubit] != qubit:
            other = to[qubit]
            yield qubit, other
            to[qubit], to[other] = to[other], other


def _list(given: int | Sequence[int], name: str) -> list[int]:
    """Return one number or several as a list."""
    return whole_numbers(given, name) if is_sequence(given) else [whole_number(given, name)]


def _control_values(controls: Sequence[int], values: int | Sequence[int] | None) -> int:
    if values is None:
        return (1 << len(controls)) - 1
    if not is_sequence(values):
        return whole_number(values, "control_values")
    listed = [bool(one) if isinstance(one, np.bool_) else one for one in values]
    if len(listed) != len(controls):
        raise BadInput(f"expected a value for each of {len(controls)} controls, found {len(listed)}")
    return sum(value << i for i, value in enumerate(whole_numbers(listed, "control_values", 0, 1)))
