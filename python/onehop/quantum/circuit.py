"""`Circuit`: operations on qubits and classical bits, in program order; a small builder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Condition, Operation, Register, gate, gate_names
from onehop.error import BadInput

__all__ = ["Circuit", "Condition", "Operation", "Register", "gate", "gate_names"]


class Circuit(_core.Circuit):
    """A quantum circuit as plain data, built operation by operation.

    The order of bits is Qiskit's: qubit 0 is the least significant bit of an amplitude's index, and the first target
    of an operation the least significant bit of its matrix's index. Every method that adds an operation returns the
    circuit. What cannot be (a qubit that does not exist, a matrix that is not unitary) is found by `validate`, which
    everything that runs a circuit calls first.

    Parameters
    ----------
    qubits, clbits : int
        How many of each.
    name : str
        For messages and reports.

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

    def gate(self, name: str, qubits: Sequence[int], parameters: Sequence[float] = ()) -> Circuit:
        """Any named gate of OpenQASM 2 and 3: controls first, parameters in radians.

        Raises
        ------
        BadInput
            An unknown name, or a wrong number of qubits or parameters.
        """
        return self._append(gate(name, list(qubits), [float(p) for p in parameters]))

    # -- gates on one qubit --------------------------------------------------------------------------------------

    def id(self, qubit: int) -> Circuit:
        """The identity."""
        return self.gate("id", [qubit])

    def x(self, qubit: int) -> Circuit:
        """Pauli X."""
        return self.gate("x", [qubit])

    def y(self, qubit: int) -> Circuit:
        """Pauli Y."""
        return self.gate("y", [qubit])

    def z(self, qubit: int) -> Circuit:
        """Pauli Z."""
        return self.gate("z", [qubit])

    def h(self, qubit: int) -> Circuit:
        """Hadamard."""
        return self.gate("h", [qubit])

    def s(self, qubit: int) -> Circuit:
        """diag(1, i)."""
        return self.gate("s", [qubit])

    def sdg(self, qubit: int) -> Circuit:
        """diag(1, -i)."""
        return self.gate("sdg", [qubit])

    def t(self, qubit: int) -> Circuit:
        """diag(1, exp(i pi/4))."""
        return self.gate("t", [qubit])

    def tdg(self, qubit: int) -> Circuit:
        """diag(1, exp(-i pi/4))."""
        return self.gate("tdg", [qubit])

    def sx(self, qubit: int) -> Circuit:
        """The square root of X."""
        return self.gate("sx", [qubit])

    def sxdg(self, qubit: int) -> Circuit:
        """The inverse of `sx`."""
        return self.gate("sxdg", [qubit])

    def rx(self, angle: float, qubit: int) -> Circuit:
        """exp(-i angle/2 X)."""
        return self.gate("rx", [qubit], [angle])

    def ry(self, angle: float, qubit: int) -> Circuit:
        """exp(-i angle/2 Y)."""
        return self.gate("ry", [qubit], [angle])

    def rz(self, angle: float, qubit: int) -> Circuit:
        """exp(-i angle/2 Z)."""
        return self.gate("rz", [qubit], [angle])

    def p(self, angle: float, qubit: int) -> Circuit:
        """diag(1, exp(i angle))."""
        return self.gate("p", [qubit], [angle])

    def u(self, theta: float, phi: float, lam: float, qubit: int) -> Circuit:
        """The general gate on one qubit, with a real upper left entry."""
        return self.gate("u", [qubit], [theta, phi, lam])

    # -- gates on more ---------------------------------------------------------------------------------------------

    def cx(self, control: int, target: int) -> Circuit:
        """X, controlled."""
        return self.gate("cx", [control, target])

    def cy(self, control: int, target: int) -> Circuit:
        """Y, controlled."""
        return self.gate("cy", [control, target])

    def cz(self, control: int, target: int) -> Circuit:
        """Z, controlled."""
        return self.gate("cz", [control, target])

    def ch(self, control: int, target: int) -> Circuit:
        """Hadamard, controlled."""
        return self.gate("ch", [control, target])

    def cp(self, angle: float, control: int, target: int) -> Circuit:
        """`p`, controlled."""
        return self.gate("cp", [control, target], [angle])

    def crx(self, angle: float, control: int, target: int) -> Circuit:
        """`rx`, controlled."""
        return self.gate("crx", [control, target], [angle])

    def cry(self, angle: float, control: int, target: int) -> Circuit:
        """`ry`, controlled."""
        return self.gate("cry", [control, target], [angle])

    def crz(self, angle: float, control: int, target: int) -> Circuit:
        """`rz`, controlled."""
        return self.gate("crz", [control, target], [angle])

    def swap(self, a: int, b: int) -> Circuit:
        """Exchange two qubits. Costs nothing: only their names change places."""
        return self.gate("swap", [a, b])

    def cswap(self, control: int, a: int, b: int) -> Circuit:
        """`swap`, controlled."""
        return self.gate("cswap", [control, a, b])

    def ccx(self, a: int, b: int, target: int) -> Circuit:
        """X with two controls."""
        return self.gate("ccx", [a, b, target])

    def rxx(self, angle: float, a: int, b: int) -> Circuit:
        """exp(-i angle/2 XX)."""
        return self.gate("rxx", [a, b], [angle])

    def ryy(self, angle: float, a: int, b: int) -> Circuit:
        """exp(-i angle/2 YY)."""
        return self.gate("ryy", [a, b], [angle])

    def rzz(self, angle: float, a: int, b: int) -> Circuit:
        """exp(-i angle/2 ZZ)."""
        return self.gate("rzz", [a, b], [angle])

    # -- gates by their numbers --------------------------------------------------------------------------------------

    def unitary(
        self,
        matrix: Any,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
        name: str = "unitary",
    ) -> Circuit:
        """A dense matrix on any qubits.

        Parameters
        ----------
        matrix : array of shape (2^k, 2^k)
            Unitary; qubits[0] is the least significant bit of its index.
        qubits : sequence of int
            The k targets.
        controls : sequence of int
            Qubits that must have `control_values` for anything to happen.
        control_values : int or sequence of 0 and 1, optional
            As a number (bit i belongs to controls[i]) or one by one; all 1 unless given.
        """
        values = np.asarray(matrix, dtype=np.complex128)
        if values.ndim != 2 or values.shape[0] != values.shape[1]:
            raise BadInput(f"{name}: expected a square matrix, found an array of shape {values.shape}")
        return self._numbers("matrix", values, qubits, controls, control_values, name)

    def diagonal(
        self,
        values: Any,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
        name: str = "diagonal",
    ) -> Circuit:
        """A diagonal matrix: 2^k numbers of modulus 1 on k qubits, qubits[0] least significant."""
        return self._numbers(
            "diagonal", np.asarray(values, np.complex128), qubits, controls, control_values, name
        )

    def pauli_rotation(
        self,
        paulis: str,
        angle: float,
        qubits: Sequence[int],
        *,
        controls: Sequence[int] = (),
        control_values: int | Sequence[int] | None = None,
    ) -> Circuit:
        """exp(-i angle/2 P), where P has the letter paulis[i] (I, X, Y or Z) on qubits[i]."""
        if len(paulis) != len(qubits):
            raise BadInput(
                f"pauli_rotation: expected one letter per qubit, found '{paulis}' for {len(qubits)} qubits"
            )
        kept = [(letter, qubit) for letter, qubit in zip(paulis, qubits, strict=True) if letter != "I"]
        return self._append(
            Operation(
                "pauli_rotation",
                "pauli_rotation",
                [qubit for _, qubit in kept],
                controls=list(controls),
                control_values=_control_values(controls, control_values),
                paulis="".join(letter for letter, _ in kept),
                angle=float(angle),
            )
        )

    def permutation(self, targets: Sequence[int]) -> Circuit:
        """Move what qubit i holds to qubit targets[i]. Costs nothing, as `swap`."""
        if sorted(targets) != list(range(self.qubits)):
            raise BadInput(
                f"permutation: expected every qubit from 0 to {self.qubits - 1} once, found {targets}"
            )
        to = list(targets)
        for qubit in range(self.qubits):
            while to[qubit] != qubit:
                other = to[qubit]
                self.swap(qubit, other)
                to[qubit], to[other] = to[other], other
        return self

    def global_phase(self, angle: float, *, controls: Sequence[int] = ()) -> Circuit:
        """exp(i angle); with controls, a phase of those."""
        return self._append(
            Operation(
                "global_phase",
                "global_phase",
                [],
                controls=list(controls),
                control_values=_control_values(controls, None),
                angle=float(angle),
            )
        )

    # -- what is no gate ---------------------------------------------------------------------------------------------

    def measure(self, qubits: int | Sequence[int], clbits: int | Sequence[int]) -> Circuit:
        """Measure qubits[i] into clbits[i]."""
        return self._append(Operation("measure", "measure", _list(qubits), clbits=_list(clbits)))

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
        """Bring qubits to |0>, whatever they are."""
        return self._append(Operation("reset", "reset", _list(qubits)))

    def barrier(self, qubits: Sequence[int] | None = None) -> Circuit:
        """Keep what stands before it before it (nothing that a result could show depends on it)."""
        return self._append(
            Operation("barrier", "barrier", list(range(self.qubits) if qubits is None else qubits))
        )

    @contextmanager
    def when(
        self, clbits: int | Sequence[int], value: int = 1, *, negated: bool = False
    ) -> Iterator[Circuit]:
        """Do what the block adds only if classical bits have a value.

        Parameters
        ----------
        clbits : int or sequence of int
            Read as a number, the first least significant.
        value : int
            What that number must be.
        negated : bool
            It must be another number instead.

        Notes
        -----
        The condition is looked at once, before the block, also if the block writes to these bits.

        Examples
        --------
        >>> c = quantum.Circuit(2, 1)
        >>> c.h(0).measure(0, 0)
        >>> with c.when(0):
        ...     c.x(1)
        """
        condition = Condition(_list(clbits), value, negated)
        if self._conditions:
            if negated:
                condition = self._asked(condition)
            outer = self._conditions[-1]
            condition = Condition([*outer.clbits, *condition.clbits], 1 | condition.value << 1)
        self._conditions.append(self._asked(condition))
        try:
            yield self
        finally:
            self._conditions.pop()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _append(self, operation: Operation) -> Circuit:
        if self._conditions:
            operation.condition = self._conditions[-1]
        self.add(operation)
        return self

    def _numbers(
        self,
        kind: str,
        values: np.ndarray,
        qubits: Sequence[int],
        controls: Sequence[int],
        control_values: int | Sequence[int] | None,
        name: str,
    ) -> Circuit:
        return self._append(
            Operation(
                kind,
                name,
                list(qubits),
                controls=list(controls),
                control_values=_control_values(controls, control_values),
                values=np.ascontiguousarray(values).reshape(-1),
            )
        )

    def _asked(self, condition: Condition) -> Condition:
        """Write now, into a bit of its own, whether the condition holds; the same asked of that bit."""
        bit = self.clbits + self.hidden_clbits
        self.hidden_clbits += 1
        self.add(Operation("assign", "assign", [], clbits=[bit], condition=condition))
        return Condition([bit], 1)

    def __repr__(self) -> str:
        name = f" '{self.name}'" if self.name else ""
        return f"<Circuit{name}: {self.qubits} qubits, {self.clbits} clbits, {len(self)} operations>"


def _list(items: int | Sequence[int]) -> list[int]:
    return [int(items)] if isinstance(items, (int, np.integer)) else [int(i) for i in items]


def _control_values(controls: Sequence[int], values: int | Sequence[int] | None) -> int:
    if values is None:
        return (1 << len(controls)) - 1
    if isinstance(values, (int, np.integer)):
        return int(values)
    if len(values) != len(controls):
        raise BadInput(f"expected a value for each of {len(controls)} controls, found {len(values)}")
    return sum(int(bool(value)) << i for i, value in enumerate(values))
