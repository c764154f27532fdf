"""The named gates of OpenQASM as methods of a circuit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from onehop._core import Operation, gate
from onehop.arguments import items, real_numbers, whole_numbers
from onehop.quantum.parameters import Angle, Expression

Self = TypeVar("Self", bound="NamedGates")


class NamedGates:
    """The part of `Circuit` that appends named gates.

    Angles are in radians, numbers or linear expressions of parameters. Every method returns the circuit.
    """

    def _append(self: Self, operation: Operation) -> Self:
        raise NotImplementedError

    def _parametrised(self: Self, name: str, qubits: list[int], angles: Sequence[Angle]) -> Self:
        raise NotImplementedError

    def gate(self: Self, name: str, qubits: Sequence[int], parameters: Sequence[Angle] = ()) -> Self:
        """Append a named gate of OpenQASM 2 or 3.

        Parameters
        ----------
        name : str
            One of `gate_names`.
        qubits : sequence of int
            Controls first, then targets.
        parameters : sequence of float or Expression
            Angles in radians.

        Raises
        ------
        BadInput
            The name is unknown, or the number of qubits or parameters is wrong.
        """
        where, angles = whole_numbers(qubits, "qubits"), items(parameters, "parameters")
        if any(isinstance(one, Expression) for one in angles):
            return self._parametrised(name, where, angles)
        return self._append(gate(name, where, real_numbers(angles, "parameters")))

    # -- gates on one qubit --------------------------------------------------------------------------------------

    def id(self: Self, qubit: int) -> Self:
        """Append the identity."""
        return self.gate("id", [qubit])

    def x(self: Self, qubit: int) -> Self:
        """Append Pauli X."""
        return self.gate("x", [qubit])

    def y(self: Self, qubit: int) -> Self:
        """Append Pauli Y."""
        return self.gate("y", [qubit])

    def z(self: Self, qubit: int) -> Self:
        """Append Pauli Z."""
        return self.gate("z", [qubit])

    def h(self: Self, qubit: int) -> Self:
        """Append a Hadamard gate."""
        return self.gate("h", [qubit])

    def s(self: Self, qubit: int) -> Self:
        """Append diag(1, i)."""
        return self.gate("s", [qubit])

    def sdg(self: Self, qubit: int) -> Self:
        """Append diag(1, -i)."""
        return self.gate("sdg", [qubit])

    def t(self: Self, qubit: int) -> Self:
        """Append diag(1, exp(i pi/4))."""
        return self.gate("t", [qubit])

    def tdg(self: Self, qubit: int) -> Self:
        """Append diag(1, exp(-i pi/4))."""
        return self.gate("tdg", [qubit])

    def sx(self: Self, qubit: int) -> Self:
        """Append the square root of X."""
        return self.gate("sx", [qubit])

    def sxdg(self: Self, qubit: int) -> Self:
        """Append the inverse of `sx`."""
        return self.gate("sxdg", [qubit])

    def rx(self: Self, angle: Angle, qubit: int) -> Self:
        """Append exp(-i angle/2 X)."""
        return self.gate("rx", [qubit], [angle])

    def ry(self: Self, angle: Angle, qubit: int) -> Self:
        """Append exp(-i angle/2 Y)."""
        return self.gate("ry", [qubit], [angle])

    def rz(self: Self, angle: Angle, qubit: int) -> Self:
        """Append exp(-i angle/2 Z)."""
        return self.gate("rz", [qubit], [angle])

    def p(self: Self, angle: Angle, qubit: int) -> Self:
        """Append diag(1, exp(i angle))."""
        return self.gate("p", [qubit], [angle])

    def u(self: Self, theta: Angle, phi: Angle, lam: Angle, qubit: int) -> Self:
        """Append the general one-qubit gate of OpenQASM, with the real upper left entry cos(theta/2)."""
        return self.gate("u", [qubit], [theta, phi, lam])

    # -- gates on several qubits -----------------------------------------------------------------------------------

    def cx(self: Self, control: int, target: int) -> Self:
        """Append a controlled X."""
        return self.gate("cx", [control, target])

    def cy(self: Self, control: int, target: int) -> Self:
        """Append a controlled Y."""
        return self.gate("cy", [control, target])

    def cz(self: Self, control: int, target: int) -> Self:
        """Append a controlled Z."""
        return self.gate("cz", [control, target])

    def ch(self: Self, control: int, target: int) -> Self:
        """Append a controlled Hadamard gate."""
        return self.gate("ch", [control, target])

    def cp(self: Self, angle: Angle, control: int, target: int) -> Self:
        """Append a controlled `p`."""
        return self.gate("cp", [control, target], [angle])

    def crx(self: Self, angle: Angle, control: int, target: int) -> Self:
        """Append a controlled `rx`."""
        return self.gate("crx", [control, target], [angle])

    def cry(self: Self, angle: Angle, control: int, target: int) -> Self:
        """Append a controlled `ry`."""
        return self.gate("cry", [control, target], [angle])

    def crz(self: Self, angle: Angle, control: int, target: int) -> Self:
        """Append a controlled `rz`."""
        return self.gate("crz", [control, target], [angle])

    def swap(self: Self, a: int, b: int) -> Self:
        """Exchange two qubits. This costs nothing, because the simulator only renames them."""
        return self.gate("swap", [a, b])

    def cswap(self: Self, control: int, a: int, b: int) -> Self:
        """Append a controlled `swap`."""
        return self.gate("cswap", [control, a, b])

    def ccx(self: Self, a: int, b: int, target: int) -> Self:
        """Append X with two controls."""
        return self.gate("ccx", [a, b, target])

    def rxx(self: Self, angle: Angle, a: int, b: int) -> Self:
        """Append exp(-i angle/2 XX)."""
        return self.gate("rxx", [a, b], [angle])

    def ryy(self: Self, angle: Angle, a: int, b: int) -> Self:
        """Append exp(-i angle/2 YY)."""
        return self.gate("ryy", [a, b], [angle])

    def rzz(self: Self, angle: Angle, a: int, b: int) -> Self:
        """Append exp(-i angle/2 ZZ)."""
        return self.gate("rzz", [a, b], [angle])
