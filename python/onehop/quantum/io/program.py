"""`Program`: OpenQASM written a gate at a time, with the names and angles that a file shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onehop._core import __version__
from onehop.error import BadInput
from onehop.output import write_file
from onehop.quantum.circuit import Circuit, Operation, Register, gate

__all__ = ["Program", "Step"]

_PLAIN = {"id", "x", "y", "z", "h", "swap", "rccx", "barrier"}
_SELF_INVERSE = frozenset({"cx", "CX", "cy", "cz", "ch", "ccx", "ccz", "cswap", "c3x", "c4x", "mcx"} | _PLAIN)
_PAIRS = {"s": "sdg", "t": "tdg", "sx": "sxdg", "cs": "csdg"}
_INVERSE_NAMES = {**_PAIRS, **{inverse: name for name, inverse in _PAIRS.items()}}
_ROTATIONS = {"rx", "ry", "rz", "crx", "cry", "crz", "rxx", "ryy", "rzz", "rzx"}
_NEGATED = frozenset({"p", "phase", "u1", "cp", "cphase", "cu1", "mcphase", "gphase"} | _ROTATIONS)

# What neither qelib1.inc nor stdgates.inc has, or only one of them: written into the file where it is used.
_DEFINITIONS = {
    "rzz": "gate rzz(t) a, b { cx a, b; rz(t) b; cx a, b; }",
    "rxx": "gate rxx(t) a, b { h a; h b; cx a, b; rz(t) b; cx a, b; h b; h a; }",
    "ryy": "gate ryy(t) a, b { rx(pi/2) a; rx(pi/2) b; cx a, b; rz(t) b; cx a, b; rx(-pi/2) b; rx(-pi/2) a; }",
}
_NEEDS_DEFINITION = {2: ("ryy",), 3: ("rzz", "rxx", "ryy")}


@dataclass(frozen=True)
class Step:
    """One line of a circuit.

    Attributes
    ----------
    name : str
        A gate by its OpenQASM name, or "measure", "reset", "barrier", "pauli_rotation".
    qubits : tuple of int
        In the gate's order.
    parameters : tuple of float
        Radians.
    clbits : tuple of int
        For "measure": one per qubit.
    paulis : str
        For "pauli_rotation": a letter per qubit; the gate is exp(-i angle/2 P).
    """

    name: str
    qubits: tuple[int, ...]
    parameters: tuple[float, ...] = ()
    clbits: tuple[int, ...] = ()
    paulis: str = ""


class Program:
    """An OpenQASM program of gates, measurements and resets; what the generators make.

    `Circuit` is what runs: `to_circuit` makes one. It has forgotten angles for matrices.

    Parameters
    ----------
    qubits : int
        How many; qubit 0 is the least significant in a basis state's number.
    clbits : int
        Classical bits for measurements, all in one register `c`.
    name : str
        For messages and the file's first line.

    Examples
    --------
    >>> from onehop.quantum.io.program import Program
    >>> bell = Program(2, 2, "bell").add("h", 0).add("cx", (0, 1)).measure_all()
    >>> text = bell.to_qasm()
    """

    def __init__(self, qubits: int, clbits: int = 0, name: str = "circuit") -> None:
        if qubits < 1:
            raise BadInput(f"a circuit has at least one qubit, found {qubits}")
        self.qubits = qubits
        self.clbits = clbits
        self.name = name
        self.steps: list[Step] = []

    def _checked(self, step: Step) -> None:
        for qubit in step.qubits:
            if not 0 <= qubit < self.qubits:
                raise BadInput(f"{step.name}: qubit {qubit} does not exist; the circuit has {self.qubits}")
        if len(set(step.qubits)) != len(step.qubits):
            raise BadInput(f"{step.name}: a qubit is named twice in {step.qubits}")
        for bit in step.clbits:
            if not 0 <= bit < self.clbits:
                raise BadInput(f"{step.name}: classical bit {bit} does not exist; there are {self.clbits}")
        for angle in step.parameters:
            if not math.isfinite(angle):
                raise BadInput(f"{step.name}: expected a finite angle, found {angle}")
        self.steps.append(step)

    def add(
        self, name: str, qubits: int | Iterable[int] = (), parameters: float | Iterable[float] = ()
    ) -> Program:
        """Append a gate by its OpenQASM name; returns the program.

        Raises
        ------
        BadInput
            No such qubit, or one twice. Whether the gate exists is found out when the circuit is made.
        """
        which = (qubits,) if isinstance(qubits, int) else tuple(map(int, qubits))
        angles = (parameters,) if isinstance(parameters, (int, float)) else tuple(parameters)
        self._checked(Step(name, which, tuple(map(float, angles))))
        return self

    def rotate(self, paulis: Sequence[tuple[int, str]], angle: float) -> Program:
        """Append exp(-i angle/2 P), P the product of the given (qubit, letter); as a named gate where there is one."""
        qubits = tuple(qubit for qubit, _ in paulis)
        letters = "".join(letter for _, letter in paulis)
        if not letters:
            return self.add("gphase", (), -angle / 2)
        if len(letters) == 1:
            return self.add("r" + letters.lower(), qubits, angle)
        if letters in ("XX", "YY", "ZZ"):
            return self.add("r" + letters.lower(), qubits, angle)
        self._checked(Step("pauli_rotation", qubits, (float(angle),), paulis=letters))
        return self

    def measure(self, qubits: int | Iterable[int], clbits: int | Iterable[int]) -> Program:
        """Append measurements, qubit i into classical bit i of those given."""
        which = (qubits,) if isinstance(qubits, int) else tuple(qubits)
        bits = (clbits,) if isinstance(clbits, int) else tuple(clbits)
        if len(which) != len(bits):
            raise BadInput(f"measure: {len(which)} qubits into {len(bits)} classical bits")
        self._checked(Step("measure", which, clbits=bits))
        return self

    def measure_all(self) -> Program:
        """Append a measurement of every qubit into the classical bit of its number."""
        self.clbits = max(self.clbits, self.qubits)
        return self.measure(range(self.qubits), range(self.qubits))

    def reset(self, qubits: int | Iterable[int]) -> Program:
        """Append a reset to |0>."""
        self._checked(Step("reset", (qubits,) if isinstance(qubits, int) else tuple(qubits)))
        return self

    def barrier(self) -> Program:
        """Append a barrier across all qubits."""
        self._checked(Step("barrier", tuple(range(self.qubits))))
        return self

    def extend(self, steps: Iterable[Step]) -> Program:
        """Append steps of another program."""
        for step in steps:
            self._checked(step)
        return self

    def inverse_steps(self) -> list[Step]:
        """The steps that undo this circuit.

        Raises
        ------
        BadInput
            There is a measurement or a reset in it, or a gate whose inverse has no name.
        """
        return [_inverse(step) for step in reversed(self.steps)]

    def to_qasm(self, version: int = 2) -> str:
        """The circuit as OpenQASM.

        Parameters
        ----------
        version : int
            2 or 3.

        Raises
        ------
        BadInput
            Another version.
        """
        if version not in (2, 3):
            raise BadInput(f"expected OpenQASM version 2 or 3, found {version}")
        names = {step.name for step in self.steps}
        include = "qelib1.inc" if version == 2 else "stdgates.inc"
        lines = [
            f"// {self.name}, made by onehop {__version__}",
            f"OPENQASM {version}.0;",
            f'include "{include}";',
        ]
        lines += [_DEFINITIONS[name] for name in _NEEDS_DEFINITION[version] if name in names]
        if version == 2:
            lines.append(f"qreg q[{self.qubits}];")
            lines += [f"creg c[{self.clbits}];"] * bool(self.clbits)
        else:
            lines.append(f"qubit[{self.qubits}] q;")
            lines += [f"bit[{self.clbits}] c;"] * bool(self.clbits)
        for step in self.steps:
            lines += _lines(step, version)
        return "\n".join(lines) + "\n"

    def to_circuit(self) -> Circuit:
        """What the simulator runs.

        Raises
        ------
        BadInput
            A gate that does not exist, or with a wrong number of qubits or parameters.
        """
        circuit = Circuit(self.qubits, self.clbits, self.name)
        for step in self.steps:
            circuit.add(_operation(step))
        if self.clbits:
            circuit.registers = [Register("c", 0, self.clbits)]
        return circuit

    def save(self, file: str | Path, version: int = 2) -> None:
        """Write the circuit as an OpenQASM file.

        Raises
        ------
        BadInput
            The file cannot be written.
        """
        write_file(file, self.to_qasm(version), "the circuit")


def _operation(step: Step) -> Operation:
    if step.name in ("measure", "reset", "barrier"):
        return Operation(step.name, step.name, list(step.qubits), clbits=list(step.clbits))
    if step.name == "pauli_rotation":
        return Operation(
            "pauli_rotation", step.name, list(step.qubits), paulis=step.paulis, angle=step.parameters[0]
        )
    return gate(step.name, list(step.qubits), list(step.parameters))


def _inverse(step: Step) -> Step:
    if step.name in _SELF_INVERSE:
        return step
    if step.name in _INVERSE_NAMES:
        return replace(step, name=_INVERSE_NAMES[step.name])
    if step.name in _NEGATED or step.name == "pauli_rotation":
        return replace(step, parameters=(-step.parameters[0],))
    if step.name in ("u", "u3", "U", "cu3"):
        theta, phi, lambda_ = step.parameters
        return replace(step, parameters=(-theta, -lambda_, -phi))
    raise BadInput(f"cannot undo {step.name}: it is no gate, or one whose inverse has no name")


def _ladder(step: Step) -> list[Step]:
    """A Pauli rotation in gates that every OpenQASM file knows."""
    to_z = [
        Step("h", (qubit,)) if letter == "X" else Step("rx", (qubit,), (math.pi / 2,))
        for qubit, letter in zip(step.qubits, step.paulis, strict=True)
        if letter != "Z"
    ]
    down = [Step("cx", pair) for pair in zip(step.qubits, step.qubits[1:], strict=False)]
    back = [_inverse(one) for one in reversed(to_z + down)]
    return [*to_z, *down, Step("rz", (step.qubits[-1],), step.parameters), *back]


def _lines(step: Step, version: int) -> list[str]:
    qubits = ", ".join(f"q[{qubit}]" for qubit in step.qubits)
    if step.name == "pauli_rotation":
        return [line for one in _ladder(step) for line in _lines(one, version)]
    if step.name == "gphase":
        # A global phase cannot be seen; OpenQASM 2 has no word for it.
        return [f"gphase({step.parameters[0]!r});"] if version == 3 else []
    if step.name == "measure":
        pairs = zip(step.qubits, step.clbits, strict=True)
        if version == 3:
            return [f"c[{bit}] = measure q[{qubit}];" for qubit, bit in pairs]
        return [f"measure q[{qubit}] -> c[{bit}];" for qubit, bit in pairs]
    if step.name == "reset":
        return [f"reset q[{qubit}];" for qubit in step.qubits]
    angles = f"({', '.join(map(repr, step.parameters))})" if step.parameters else ""
    name = "U" if step.name == "u" and version == 3 else step.name
    return [f"{name}{angles} {qubits};"]
