"""Reading of OpenQASM 2 and 3."""

from __future__ import annotations

import sys
from pathlib import Path

from onehop import _core
from onehop.arguments import instance
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.output import file_path
from onehop.quantum.circuit import Circuit
from onehop.quantum.io.qasm_limits import Budget, memory_limit

__all__ = ["load_qasm", "parse_qasm"]

_MAX_BYTES = 512 << 20  # of a file


def load_qasm(file: str | Path) -> Circuit:
    """Read an OpenQASM 2 or 3 file.

    Parameters
    ----------
    file : path
        File to read. It may include other files of its folder.

    Returns
    -------
    Circuit
        A valid circuit, named after the file. Its parameters are the inputs of the program.

    Raises
    ------
    BadInput
        The file cannot be read or is no valid OpenQASM (the message names file, line and column), or it exceeds a
        limit of `ONEHOP_QASM_OPERATIONS`, `ONEHOP_QASM_SECONDS` or `ONEHOP_QASM_MEMORY_MIB`.
    """
    file = file_path(file, "file")
    text = read_text(file, "circuit", min(_MAX_BYTES, memory_limit()))
    return parse_qasm(text, name=str(file), folder=file.parent)


def parse_qasm(text: str, *, name: str = "<text>", folder: str | Path = ".") -> Circuit:
    """Parse OpenQASM text.

    Parameters
    ----------
    text : str
        Program. Without a version line it is taken for version 2 if it declares a `qreg`, otherwise for version 3.
    name : str
        Name of the text in messages; its stem is the name of the circuit.
    folder : path
        Folder of included files.

    Raises
    ------
    BadInput
        As for `load_qasm`.

    Examples
    --------
    >>> from onehop import quantum
    >>> quantum.parse_qasm('include "stdgates.inc"; qubit[3] q; for int i in [0:2] { h q[i]; }')
    <Circuit '<text>': 3 qubits, 0 clbits, 3 operations>
    """
    instance(text, str, "text")
    instance(name, str, "name")
    folder = file_path(folder, "folder")
    for what, value in (("text", text), ("name", name), ("folder", str(folder))):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadInput(
                f"{what}: expected text, found bytes that are no UTF-8, at character {error.start}"
            ) from None
    budget = Budget()
    circuit = Circuit(0)
    try:
        _core.read_qasm(
            circuit,
            text,
            name=name,
            folder=str(folder),
            operations=min(budget.operations, sys.maxsize // 4),
            seconds=budget.seconds,
            memory=memory_limit(),
        )
    except MemoryError as error:
        raise BadInput(f"{name}: there is not enough memory to read the circuit; make it smaller") from error
    return circuit
