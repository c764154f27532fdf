"""OpenQASM 2 and 3 files, read by Qiskit's parsers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit

if TYPE_CHECKING:
    from qiskit import QuantumCircuit

__all__ = ["load_qasm", "load_qiskit", "parse_qasm"]

_VERSION = re.compile(r"^\s*OPENQASM\s+(\d+)(?:\.\d+)?\s*;", re.M)
_PLACE = re.compile(r"^(?:(.*):)?(\d+),(\d+): (.*)$", re.S)
_INCLUDE = re.compile(r'\binclude\s*"([^"]+)"\s*;')
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
# Brackets, and what may hide one.
_BRACKETS = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"|[][(){}]", re.S)
# No program needs more brackets in each other; Qiskit's parsers take minutes over thousands, or fail without a place.
_DEEPEST = 200


def load_qasm(file: str | Path) -> Circuit:
    """Read an OpenQASM 2 or 3 file.

    Raises
    ------
    BadInput
        The file cannot be read or is no OpenQASM; the message has file, line and column. Or Qiskit is missing.
    """
    text, name = _read(file)
    return parse_qasm(text, name=name, folder=Path(file).parent)


def load_qiskit(file: str | Path) -> QuantumCircuit:
    """Read an OpenQASM file as Qiskit's circuit; errors as for `load_qasm`."""
    text, name = _read(file)
    return _parse(text, name, Path(file).parent)


def parse_qasm(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Circuit:
    """A circuit from OpenQASM text.

    Parameters
    ----------
    text : str
        The program; without a version line it is taken for version 2 if it declares a `qreg`.
    name : str
        For messages.
    folder : path
        Where files are looked for that it includes (OpenQASM 2).

    Raises
    ------
    BadInput
        As for `load_qasm`.
    """
    parsed = _parse(text, name, Path(folder))
    from onehop.quantum.from_qiskit import from_qiskit

    parsed.name = Path(name).stem
    try:
        circuit = from_qiskit(parsed)
        circuit.validate()
    except BadInput as error:
        raise BadInput(f"{_where(name, text, str(error))}{error}") from error
    return circuit


def _read(file: str | Path) -> tuple[str, str]:
    try:
        return Path(file).read_text(encoding="utf-8"), str(file)
    except OSError as error:
        raise BadInput(f"cannot read the circuit {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is no OpenQASM file: it is not text ({error.reason})") from error


def _where(name: str, text: str, message: str) -> str:
    """The file, and line and column of the instruction that the message names."""
    quoted = re.search(r"instruction '(\w+)'", message)
    word = "while" if "while" in message else quoted[1] if quoted else None
    if word is not None:
        plain = _COMMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        found = re.search(rf"(?<!gate )(?<!opaque )\b{word}\b", plain)
        if found:
            start = found.start()
            return f"{name}:{plain.count(chr(10), 0, start) + 1}:{start - plain.rfind(chr(10), 0, start)}: "
    return f"{name}: "


def _parse(text: str, name: str, folder: Path) -> QuantumCircuit:
    plain = _COMMENTS.sub("", text)
    version = _VERSION.search(plain)
    number = int(version[1]) if version else (2 if re.search(r"\bqreg\b", plain) else 3)
    if number not in (2, 3):
        raise BadInput(f"{name}: expected OpenQASM 2 or 3, found version {number}")
    if not plain.strip():
        raise BadInput(f"{name}:1:1: expected an OpenQASM program, found nothing")
    _check_depth(text, name)
    return _parse_2(text, name, folder) if number == 2 else _parse_3(text, name)


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        if depth > _DEEPEST:
            start = found.start()
            line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
            raise BadInput(
                f"{name}:{line}:{column}: {depth} brackets are open here; at most {_DEEPEST} may be in each other"
            )


def _missing(error: ImportError) -> BadInput:
    return BadInput(
        f"OpenQASM files need Qiskit, and version 3 its importer: `pip install 'onehop[quantum]'`, or "
        f"`pip install qiskit qiskit-qasm3-import` ({error})"
    )


def _bad(name: str, message: str) -> BadInput:
    """With the place in front, columns from 1; the file may be an included one."""
    found = _PLACE.match(message)
    if found:
        before = re.match(r"cannot use non-builtin custom instruction '(\w+)' before definition", found[4])
        what = f"'{before[1]}' is not defined; is `include \"qelib1.inc\";` missing?" if before else found[4]
        file = name if found[1] in (None, "<input>") else found[1]
        return BadInput(f"{file}:{found[2]}:{int(found[3]) + 1}: {what}")
    return BadInput(f"{name}: {message}")


def _parse_2(text: str, name: str, folder: Path) -> QuantumCircuit:
    try:
        from qiskit import qasm2
    except ImportError as error:
        raise _missing(error) from error
    try:
        return qasm2.loads(
            _with_includes(text, folder),
            include_path=(str(folder), "."),
            custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS,
        )
    except qasm2.QASM2Error as error:
        raise _bad(name, error.message) from error


def _with_includes(text: str, folder: Path, depth: int = 0) -> str:
    """Included files in the place of their line, as one line, so that all others keep their numbers.

    Qiskit's parser stumbles over angles in files that it includes itself. What is not there is left to its message.
    """

    def contents(match: re.Match[str]) -> str:
        path = folder / match[1]
        if match[1] == "qelib1.inc" or depth > 20 or not path.is_file():
            return match[0]
        inner = _COMMENTS.sub(" ", _read(path)[0]).replace("\n", " ")
        return _with_includes(inner, folder, depth + 1)

    return _INCLUDE.sub(contents, text)


def _parse_3(text: str, name: str) -> QuantumCircuit:
    try:
        import openqasm3
        from qiskit_qasm3_import import converter
        from qiskit_qasm3_import.exceptions import ConversionError
    except ImportError as error:
        raise _missing(error) from error

    class Placed(converter.ConvertVisitor):
        """Says where what Qiskit's circuit refuses stands in the file."""

        def visit(self, node: Any, context: Any = None) -> Any:
            try:
                return super().visit(node, context)
            except (ConversionError, RecursionError):
                raise
            except Exception as error:
                raise ConversionError(getattr(error, "message", None) or str(error), node) from error

    try:
        program = openqasm3.parse(text)
    except openqasm3.parser.QASM3ParsingError as error:
        raise _bad(name, _syntax_error(error)) from error
    try:
        return Placed().convert(program).circuit
    except ConversionError as error:
        raise _bad(name, error.message) from error


def _syntax_error(error: Exception) -> str:
    """`line,column: what`; the parser keeps the place of a word it did not expect in the cause of its error."""
    known = re.match(r"L(\d+):C(\d+): (.*)", str(error), re.S)
    if known:
        return f"{known[1]},{known[2]}: {known[3]}"
    cause = getattr(error.__cause__, "args", [None])[0]
    token = getattr(cause, "offendingToken", None)
    if token is None:
        return f"syntax error {error}".strip()
    word = "the end of the file" if token.text == "<EOF>" else repr(token.text)
    return f"{token.line},{token.column}: syntax error: did not expect {word} here"
