"""Reading of OpenQASM 2 and 3 with Qiskit's parsers."""

from __future__ import annotations

import contextlib
import io
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onehop.arguments import instance
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.output import file_path
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.qasm_limits import (
    MEMORY,
    Registers,
    check_numbers,
    check_text,
    current_budget,
    limited,
)
from onehop.quantum.io.qasm_text import Includes, first_failing, where, without_comments
from onehop.quantum.io.qasm_words import in_words, wrong_parameters
from onehop.quantum.io.qiskit_gates import is_standard

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

__all__ = ["load_qasm", "load_qiskit", "parse_qasm"]

T = TypeVar("T")

_VERSION = re.compile(r"^\s*OPENQASM\s+(\d+)(?:\.(\d+))?\s*;", re.M | re.ASCII)
# Qiskit's Rust code panics at a minor version that does not fit into eight bytes.
_MINOR_DIGITS = 9
_PLACE = re.compile(r"^(?:(.*):)?(\d+),(\d+): (.*)$", re.S)
# Brackets, and strings, whose brackets do not count.
_BRACKETS = re.compile(r"\"[^\"\n]*\"|[][(){}]")
_PANIC = "Qiskit cannot read it"
# Maximum nesting of brackets. With thousands, Qiskit's parsers take minutes, or fail without naming a place.
_MAX_DEPTH = 200
# Qiskit may look for the modified gate among its own up to this number of qubits. A circuit has at most 62 qubits.
_SMALL_GATE, _MAX_CONTROLS = 4, 61
_MAX_BYTES = 512 << 20  # of a file
# A message that begins with a file, a line and a column.
_PLACED = re.compile(r"^.*?:\d+:\d+: ")


def load_qasm(file: str | Path) -> Circuit:
    """Read an OpenQASM 2 or 3 file.

    Parameters
    ----------
    file : path
        File to read. It may include other files (OpenQASM 2), relative to its folder.

    Returns
    -------
    Circuit
        A valid circuit, named after the file.

    Raises
    ------
    BadInput
        The file cannot be read or is no valid OpenQASM (the message names file, line and column), it exceeds a limit
        of `ONEHOP_QASM_OPERATIONS`, `ONEHOP_QASM_SECONDS` or `ONEHOP_QASM_MEMORY_MIB`, or Qiskit is missing.
    """
    file = file_path(file, "file")
    text, name = _read(file)
    return parse_qasm(text, name=name, folder=file.parent)


def load_qiskit(file: str | Path) -> QuantumCircuit:
    """Read an OpenQASM file as a Qiskit circuit; errors as for `load_qasm`."""
    text, name = _read(file)
    version, plain = _checked(text, name, Path(file).parent)
    with limited():
        return _placed(plain, name, lambda part: _parse(version, part, name, Path(file).parent))


def parse_qasm(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Circuit:
    """Parse OpenQASM text.

    Parameters
    ----------
    text : str
        Program. Without a version line it is taken for version 2 if it declares a `qreg`, otherwise for version 3.
    name : str
        Name of the text in messages; its stem is the name of the circuit.
    folder : path
        Folder of included files (OpenQASM 2).

    Raises
    ------
    BadInput
        As for `load_qasm`.
    """
    from onehop.quantum.io.from_qiskit import from_qiskit

    instance(text, str, "text")
    instance(name, str, "name")
    folder = file_path(folder, "folder")
    version, plain = _checked(text, name, folder)

    def converted(part: str) -> Circuit:
        parsed = _parse(version, part, name, folder)
        parsed.name = Path(name).stem
        with _guarded(name):
            circuit = from_qiskit(parsed)
            circuit.validate()
        return circuit

    with limited():
        return _placed(plain, name, converted)


def _placed(plain: str, name: str, convert: Callable[[str], T]) -> T:
    """Convert a program. An error without a place gets that of the first statement with which it occurs."""
    budget = current_budget()
    left = budget.left
    try:
        return convert(plain)
    except BadInput as error:
        message = str(error)
        if _PLACED.match(message) or MEMORY in message or _PANIC in message:  # which a search would repeat
            raise

        def fails(part: str) -> bool:
            budget.left = left
            try:
                convert(part)
            except BadInput as other:
                return str(other) == message
            return False

        start = first_failing(plain, fails)
        if start is None:
            raise
        raise _located(plain, name, start, message.removeprefix(f"{name}: ")) from error


def _located(plain: str, name: str, start: int, message: str) -> BadInput:
    """Make a BadInput from a message about the statement that begins at a character: place, and onehop's words."""
    start, words = wrong_parameters(message, plain) or (start, in_words(message))
    return BadInput(f"{where(plain, name, start)}: {words}")


@contextlib.contextmanager
def _guarded(name: str) -> Iterator[None]:
    """Convert any exception of the parsers and of Qiskit to BadInput."""
    try:
        yield
    except BadInput:
        raise
    except RecursionError as error:
        raise BadInput(
            f"{name}: expressions or gate definitions are nested too deeply; use fewer levels"
        ) from error
    except MemoryError as error:
        raise BadInput(
            f"{name}: there is not enough memory to read the circuit ({MEMORY} limits it)"
        ) from error
    except Exception as error:
        raise BadInput(f"{name}: {_one_line(error)}") from error
    except BaseException as error:
        # A panic of Qiskit's Rust code is a BaseException but no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise BadInput(f"{name}: {_PANIC}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "message", None) or error).split())
    return text if len(text) <= 300 else text[:300] + "..."


def _read(file: str | Path) -> tuple[str, str]:
    return read_text(file_path(file, "file"), "circuit", _MAX_BYTES), str(file)


def _checked(text: str, name: str, folder: Path) -> tuple[int, str]:
    """Check a program before it is parsed; return its version and its text without comments, with its includes."""
    plain = without_comments(text.removeprefix("\ufeff"), name)
    if not plain.strip():
        raise BadInput(f"{name}:1:1: expected an OpenQASM program, found nothing")
    check_numbers(plain, name)
    version = _VERSION.search(plain)
    number = int(version[1]) if version else (2 if re.search(r"\bqreg\b", plain) else 3)
    if version and number not in (2, 3):
        at = where(plain, name, version.start(1))
        raise BadInput(f"{at}: expected OpenQASM 2 or 3, found version {number}")
    if version and len(version[2] or "") > _MINOR_DIGITS:
        at, digits = where(plain, name, version.start(2)), len(version[2])
        raise BadInput(f"{at}: expected OpenQASM 2.0 or 3.0, found a minor version of {digits} digits")
    if number == 2:
        plain = Includes(folder, lambda path: _read(path)[0].removeprefix("\ufeff")).expanded(plain, name)
    _check_depth(plain, name)
    with limited():
        check_text(plain, name)
    return number, plain


def _parse(version: int, plain: str, name: str, folder: Path) -> QuantumCircuit:
    with _guarded(name):
        return _parse_2(plain, name, folder) if version == 2 else _parse_3(plain, name)


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        if depth > _MAX_DEPTH:
            at = where(text, name, found.start())
            raise BadInput(f"{at}: expected at most {_MAX_DEPTH} nested brackets, found {depth}")


def _missing(error: ImportError) -> BadInput:
    return BadInput(
        f"OpenQASM files need Qiskit, and version 3 its importer: `pip install 'onehop[quantum]'`, or "
        f"`pip install qiskit qiskit-qasm3-import` ({error})"
    )


def _bad(plain: str, name: str, message: str) -> BadInput:
    """Make a BadInput from a parser's message: the place of the text at the front, and onehop's words."""
    found = _PLACE.match(message)
    if not found:
        return BadInput(f"{name}: {message}")
    lines = plain.split("\n")[: int(found[2]) - 1]
    start = sum(len(line) + 1 for line in lines) + int(found[3])
    if found[1] not in (None, "<input>"):
        return BadInput(f"{found[1]}:{found[2]}:{int(found[3]) + 1}: {found[4]}")
    return _located(plain, name, start, found[4])


def _parse_2(text: str, name: str, folder: Path) -> QuantumCircuit:
    try:
        from qiskit import qasm2
    except ImportError as error:
        raise _missing(error) from error
    try:
        return qasm2.loads(
            str(text),
            include_path=(str(folder), "."),
            custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS,
        )
    except qasm2.QASM2Error as error:
        raise _bad(text, name, error.message) from error


def _converter_class(converter: Any, error_class: type[Exception], names: Any) -> Any:
    """Return Qiskit's converter with limits, which also names the place of errors that Qiskit's circuit raises.

    `converter` is the module `qiskit_qasm3_import.converter`, `error_class` its class of errors, and `names` the names
    of gate modifiers, `openqasm3.ast.GateModifierName`.
    """
    budget, registers = current_budget(), Registers()

    class Placed(converter.ConvertVisitor):
        def visit(self, node: Any, context: Any = None) -> Any:
            budget.require(1)
            try:
                return super().visit(node, context)
            except (BadInput, error_class, RecursionError, MemoryError):
                raise
            except Exception as error:
                raise error_class(_one_line(error), node) from error

        def visit_QubitDeclaration(self, node: Any, context: Any) -> Any:  # noqa: N802
            self._check_size(node, node.size, context, quantum=True)
            return super().visit_QubitDeclaration(node, context)

        def visit_ClassicalDeclaration(self, node: Any, context: Any) -> Any:  # noqa: N802
            self._check_size(node, getattr(node.type, "size", None), context, quantum=False)
            return super().visit_ClassicalDeclaration(node, context)

        def _check_size(self, node: Any, size: Any, context: Any, *, quantum: bool) -> None:
            found = 1 if size is None else self._resolve_constant_int(size, context)
            if wrong := registers.declare(found, quantum=quantum):
                raise error_class(wrong, node)

        def _apply_gate_modifier(self, modifier: Any, gate: Any, context: Any) -> Any:
            """Annotate controlled gates that Qiskit lacks, and large ones: their definitions grow with each control."""
            kind = modifier.modifier
            if kind is names.pow:
                power = float(self._resolve_constant_float(modifier.argument, context))
                if not math.isfinite(power):
                    raise error_class(f"expected a finite power, found {power}", modifier)
                return gate.power(power, annotated=gate.num_qubits > _SMALL_GATE)
            if kind is names.inv:
                return super()._apply_gate_modifier(modifier, gate, context)
            controls = 1
            if modifier.argument is not None:
                controls = self._resolve_constant_int(modifier.argument, context)
            if not 0 < controls <= _MAX_CONTROLS:
                raise error_class(f"expected 1 to {_MAX_CONTROLS} controls, found {controls}", modifier)
            if gate.num_qubits + controls <= _SMALL_GATE:
                known = super()._apply_gate_modifier(modifier, gate, context)
                if is_standard(known):
                    return known
            state = (1 << controls) - 1 if kind is names.ctrl else 0
            return gate.control(controls, ctrl_state=state, annotated=True)

    return Placed


def _parse_3(text: str, name: str) -> QuantumCircuit:
    try:
        import openqasm3
        from qiskit_qasm3_import import converter
        from qiskit_qasm3_import.exceptions import ConversionError
    except ImportError as error:
        raise _missing(error) from error

    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the parser writes there what it raises, too
            program = openqasm3.parse(text)
    except openqasm3.parser.QASM3ParsingError as error:
        raise _bad(text, name, _syntax_error(error)) from error
    try:
        placed = _converter_class(converter, ConversionError, openqasm3.ast.GateModifierName)
        with np.errstate(all="ignore"):  # a matrix that overflows is an error
            return placed().convert(program).circuit
    except ConversionError as error:
        raise _bad(text, name, error.message) from error


def _syntax_error(error: Exception) -> str:
    """Return `line,column: message`. The parser stores an unexpected token in the cause of its error."""
    known = re.match(r"L(\d+):C(\d+): (.*)", str(error), re.S)
    if known:
        return f"{known[1]},{known[2]}: {known[3]}"
    cause = getattr(error.__cause__, "args", [None])[0]
    token = getattr(cause, "offendingToken", None)
    if token is None:
        return f"syntax error {error}".strip()
    word = "the end of the file" if token.text == "<EOF>" else repr(token.text)
    return f"{token.line},{token.column}: syntax error: did not expect {word} here"
