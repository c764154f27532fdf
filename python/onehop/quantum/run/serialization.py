"""Serialization of circuits between processes, and reading of circuit files once for all ranks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from onehop.error import BadInput, Error, WrongType
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Condition, Operation, Register
from onehop.quantum.io.qasm import load_qasm
from onehop.serialization import Message, decode, decode_error, encode, encode_error
from onehop.text import counted

# The environment variable with which the launcher tells its ranks where it shares a circuit: process id, file
# descriptor, and path of the circuit as the user gave it.
SHARED = "ONEHOP_CIRCUIT"
# The fields of an operation in a message, besides its numbers and its condition.
_FIELDS = (
    "kind",
    "name",
    "targets",
    "controls",
    "control_values",
    "paulis",
    "angle",
    "clbits",
    "index",
    "angles",
)


def pack(circuit: Circuit, name: str | None = None) -> bytes:
    """Encode a circuit, or one of another name, as a message for `unpack`."""
    operations = circuit.operations
    numbers = [one.values for one in operations]
    rows = [
        [
            [getattr(one, field) for field in _FIELDS],
            len(values),
            [one.condition.clbits, one.condition.value, one.condition.negated],
        ]
        for one, values in zip(operations, numbers, strict=True)
    ]
    fields = {
        "qubits": circuit.qubits,
        "clbits": circuit.clbits,
        "hidden": circuit.hidden_clbits,
        "name": circuit.name if name is None else name,
        "registers": [[one.name, one.first, one.size] for one in circuit.registers],
        "operations": rows,
        "parameters": list(circuit.parameters),
    }
    return encode("circuit", fields, [np.concatenate(numbers) if numbers else np.zeros(0, complex)])


def unpack(data: bytes) -> Circuit:
    """Decode a circuit that `pack` has encoded. `Circuit.validate` checks its operations."""
    return _from_message(decode(data, "circuit"))


def _from_message(message: Message) -> Circuit:
    sizes = [message.get(name, int, least=0) for name in ("qubits", "clbits", "hidden")]
    numbers = message.array(0, np.complex128)
    place = 0
    try:
        circuit = Circuit(sizes[0], sizes[1], message.get("name", str))
        circuit.hidden_clbits = sizes[2]
        circuit.registers = _registers(message, sizes[1])
        circuit.parameters = message.get("parameters", list)
        for row, size, condition in message.get("operations", list):
            kind, name, targets, *others, angles = row
            if size.__class__ is not int or not 0 <= size <= len(numbers) - place:
                raise BadInput(
                    f"circuit: {name}: expected at most {counted(len(numbers) - place, 'value')}, found {size}"
                )
            fields = dict(zip(_FIELDS[3:-1], others, strict=True))
            values, condition = numbers[place : place + size], Condition(*condition)
            operation = Operation(kind, name, targets, **fields, values=values, condition=condition)
            operation.angles = angles
            circuit.add(operation)
            place += size
    except (TypeError, ValueError) as error:
        if isinstance(error, BadInput) and not isinstance(error, WrongType):
            raise
        raise BadInput(
            f"circuit: expected the fields of an operation, found others: {str(error)[:200]}"
        ) from None
    if place != len(numbers):
        raise BadInput(f"circuit: expected {counted(place, 'value')} of operations, found {len(numbers)}")
    return circuit


def _registers(message: Message, clbits: int) -> list[Register]:
    found = [Register(*one) for one in message.get("registers", list)]
    for one in found:
        if one.first < 0 or one.size < 0 or one.first + one.size > clbits:
            raise BadInput(
                f"circuit: expected registers of {clbits} classical bits, found {one.name} beyond them"
            )
    return found


def share_circuit(file: str, circuit: Circuit) -> dict[str, str]:
    """Return environment variables with which the ranks that this process starts need not read the file.

    They are valid as long as this process lives, and none where the system refuses memfd_create.
    """
    try:
        memory = os.memfd_create("onehop-circuit")
    except OSError:
        return {}
    with open(memory, "wb", closefd=False) as stream:
        stream.write(pack(circuit))
    return {SHARED: f"{os.getpid()} {memory} {file}"}


def _shared(file: str) -> bytes | None:
    """Return the circuit of this file as the launcher of this rank shares it, or None."""
    parent, _, rest = os.environ.pop(SHARED, "").partition(" ")
    memory, _, name = rest.partition(" ")
    if name != file or parent != str(os.getppid()):
        return None
    try:
        return Path(f"/proc/{parent}/fd/{memory}").read_bytes()
    except OSError:
        return None


def _read(file: str) -> bytes:
    shared = _shared(file)
    if shared is not None:
        return shared
    try:
        return pack(load_qasm(file))
    except Error as error:
        return encode_error(error)


def read_circuit(file: str | Path, group: Group) -> Circuit:
    """Read an OpenQASM file; return the circuit on every rank. Collective.

    Rank 0 takes the circuit from its launcher if that has read it (`share_circuit`), and reads the file otherwise.
    """
    if group.size == 1 and SHARED not in os.environ:
        return load_qasm(file)
    data = _read(str(file)) if group.rank == 0 else b""
    message = decode(group.allgather(data)[0], "circuit", "error")
    if message.tag == "error":
        raise decode_error(message)
    return _from_message(message)
