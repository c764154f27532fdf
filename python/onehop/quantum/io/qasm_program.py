"""`QasmProgram`: an OpenQASM program, built gate by gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onehop._core import __version__
from onehop.arguments import whole_numbers
from onehop.error import BadInput
from onehop.output import write_file
from onehop.quantum.circuit import Circuit, Operation, Register, gate

_PLAIN = {"id", "x", "y", "z", "h", "swap", "rccx", "barrier"}
_SELF_INVERSE = frozenset({"cx", "CX", "cy", "cz", "ch", "ccx", "ccz", "cswap", "c3x", "c4x", "mcx"} | _PLAIN)
_PAIRS = {"s": "sdg", "t": "tdg", "sx": "sxdg", "cs": "csdg"}
_INVERSE_NAMES = {**_PAIRS, **{inverse: name for name, inverse in _PAIRS.items()}}
_ROTATIONS = {"rx", "ry", "rz", "crx", "cry", "crz", "rxx", "ryy", "rzz", "rzx"}
_NEGATED = frozenset({"p", "phase", "u1", "cp", "cphase", "cu1", "mcphase", "gphase"} | _ROTATIONS)

# Gates that qelib1.inc or stdgates.inc lacks. A program that uses one includes its definition.
_DEFINITIONS = {
    "rzz": "gate rzz(t) a, b { cx a, b; rz(t) b; cx a, b; }",
    "rxx": "gate rxx(t) a, b { h a; h b; cx a, b; rz(t) b; cx a, b; h b; h a; }",
    "ryy": "gate ryy(t) a, b { rx(pi/2) a; rx(pi/2) b; cx a, b; rz(t) b; cx a, b; rx(-pi/2) b; rx(-pi/2) a; }",
}
_NEEDS_DEFINITION = {2: ("ryy",), 3: ("rzz", "rxx", "ryy")}


@dataclass(frozen=True)
class Step:
    """One statement of a program."""

    name: str  # OpenQASM name of a gate, or "measure", "reset", "barrier", "pauli_rotation"
    qubits: tuple[int, ...]  # qubits in the gate's order
    parameters: tuple[float, ...] = ()  # angles in radians
    clbits: tuple[int, ...] = ()  # classical bits of "measure", one per qubit
    paulis: str = ""  # letters of "pauli_rotation", one per qubit; the gate is exp(-i angle/2 P)


class QasmProgram:
    """An OpenQASM program of gates, measurements and resets, as the generators return it.

    In contrast to `Circuit`, it keeps the names and angles of gates, so that it can be written to a file. `to_circuit`
    converts it for the simulator.

    Parameters
    ----------
    qubits : int
        Number of qubits. Qubit 0 is the least significant bit of a basis state's number.
    clbits : int
        Number of classical bits, all in one register `c`.
    name : str
        Name in messages and in the first line of the file.

    Raises
    ------
    BadInput
        There are no qubits.

    Examples
    --------
    >>> from onehop.quantum.io.qasm_program import QasmProgram
    >>> bell = QasmProgram(2, 2, "bell").add("h", 0).add("cx", (0, 1)).measure_all()
    >>> text = bell.to_qasm()
    """

    def __init__(self, qubits: int, clbits: int = 0, name: str = "circuit") -> None:
        if qubits < 1:
            raise BadInput(f"expected at least 1 qubit, found {qubits}")
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
    ) -> QasmProgram:
        """Append a gate; return the program.

        Parameters
        ----------
        name : str
            OpenQASM name of the gate. `to_circuit` finds out whether it exists.
        qubits : int or iterable of int
            Qubits in the gate's order.
        parameters : float or iterable of float
            Angles in radians.

        Raises
        ------
        BadInput
            A qubit does not exist or is named twice, or an angle is not finite.
        """
        angles = (parameters,) if isinstance(parameters, (int, float)) else parameters
        self._checked(Step(name, _places(qubits), tuple(map(float, angles))))
        return self

    def rotate(self, paulis: Sequence[tuple[int, str]], angle: float) -> QasmProgram:
        """Append exp(-i angle/2 P), where P is the product of (qubit, letter); use a named gate if there is one."""
        qubits = tuple(qubit for qubit, _ in paulis)
        letters = "".join(letter for _, letter in paulis)
        if not letters:
            return self.add("gphase", (), -angle / 2)
        if letters in ("X", "Y", "Z", "XX", "YY", "ZZ"):
            return self.add("r" + letters.lower(), qubits, angle)
        self._checked(Step("pauli_rotation", qubits, (float(angle),), paulis=letters))
        return self

    def measure(self, qubits: int | Iterable[int], clbits: int | Iterable[int]) -> QasmProgram:
        """Append measurements of qubits[i] into the classical bit clbits[i]; return the program."""
        which, bits = _places(qubits), _places(clbits)
        if len(which) != len(bits):
            raise BadInput(f"measure: expected {len(which)} classical bits, one per qubit, found {len(bits)}")
        self._checked(Step("measure", which, clbits=bits))
        return self

    def measure_all(self) -> QasmProgram:
        """Append a measurement of qubit i into classical bit i for all qubits; return the program."""
        self.clbits = max(self.clbits, self.qubits)
        return self.measure(range(self.qubits), range(self.qubits))

    def reset(self, qubits: int | Iterable[int]) -> QasmProgram:
        """Append a reset of qubits to |0>; return the program."""
        self._checked(Step("reset", _places(qubits)))
        return self

    def barrier(self) -> QasmProgram:
        """Append a barrier across all qubits; return the program."""
        self._checked(Step("barrier", tuple(range(self.qubits))))
        return self

    def extend(self, steps: Iterable[Step]) -> QasmProgram:
        """Append the steps of another program; return this program."""
        for step in steps:
            self._checked(step)
        return self

    def inverse_steps(self) -> list[Step]:
        """Return the steps of the inverse circuit.

        Raises
        ------
        BadInput
            The program has a measurement or a reset, or a gate whose inverse has no name.
        """
        return [_inverse(step) for step in reversed(self.steps)]

    def to_qasm(self, version: int = 2) -> str:
        """Write the program as OpenQASM text.

        Parameters
        ----------
        version : int
            2 or 3. OpenQASM 2 has no global phases; they are left out.

        Raises
        ------
        BadInput
            The version is not 2 or 3.
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
        """Convert the program to a `Circuit` for the simulator.

        Raises
        ------
        BadInput
            A gate does not exist, or has a wrong number of qubits or parameters.
        """
        circuit = Circuit(self.qubits, self.clbits, self.name)
        for step in self.steps:
            circuit.add(_operation(step))
        if self.clbits:
            circuit.registers = [Register("c", 0, self.clbits)]
        return circuit

    def save(self, file: str | Path, version: int = 2) -> None:
        """Write the program to an OpenQASM file. `version` is 2 or 3.

        Raises
        ------
        BadInput
            The file cannot be written, or the version is not 2 or 3.
        """
        write_file(file, self.to_qasm(version), "the circuit")


def _places(numbers: int | Iterable[int]) -> tuple[int, ...]:
    return tuple(whole_numbers(numbers if isinstance(numbers, Iterable) else [numbers], "qubits"))


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
    raise BadInput(f"cannot invert {step.name}: it is no gate, or a gate whose inverse has no name")


def _ladder(step: Step) -> list[Step]:
    """Decompose a Pauli rotation into gates that every version of OpenQASM has."""
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
        # OpenQASM 2 has no global phase, and results do not depend on it.
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
