"""Circuits on their way to other processes: as bytes, and read from a file by a process that ends after it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.launch.environment import variables
from onehop.quantum.circuit import Circuit, Condition, Operation, Register

__all__ = ["lend", "pack", "read_circuit", "unpack"]

# Where ranks find what the process that started them has read already: the number of that process, its open file, and
# the path of the circuit, as it was given.
LENT = "ONEHOP_CIRCUIT"


def pack(circuit: Circuit) -> bytes:
    """A circuit as bytes for `unpack` in another process of the same program."""
    return pickle.dumps(to_values(circuit))


def unpack(data: bytes) -> Circuit:
    """The circuit that was packed."""
    return from_values(pickle.loads(data))


def to_values(circuit: Circuit) -> dict[str, Any]:
    """A circuit as numbers, texts and arrays."""
    return {
        "head": (circuit.qubits, circuit.clbits, circuit.name),
        "hidden": circuit.hidden_clbits,
        "registers": [(one.name, one.first, one.size) for one in circuit.registers],
        "operations": [_operation_values(one) for one in circuit.operations],
    }


def _operation_values(one: Operation) -> tuple[Any, ...]:
    condition = one.condition
    rest = {
        "controls": list(one.controls),
        "control_values": one.control_values,
        "values": np.array(one.values) if len(one.values) else None,
        "paulis": one.paulis,
        "angle": one.angle,
        "clbits": list(one.clbits),
    }
    asked = (list(condition.clbits), condition.value, condition.negated)
    return (one.kind, one.name, list(one.targets)), rest, asked


def from_values(values: dict[str, Any]) -> Circuit:
    """The circuit of such numbers."""
    circuit = Circuit(*values["head"])
    circuit.hidden_clbits = values["hidden"]
    circuit.registers = [Register(*one) for one in values["registers"]]
    for head, rest, condition in values["operations"]:
        circuit.add(Operation(*head, **rest, condition=Condition(*condition)))
    return circuit


def _in_child(file: str) -> tuple[str, Any]:
    """What `python -m onehop.quantum.travel FILE` found out: ("circuit", bytes) or ("error", text)."""
    environment = {name: value for name, value in os.environ.items() if name not in variables()}
    package = str(Path(__file__).resolve().parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "onehop.quantum.travel", file],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        return "broken", f"cannot read {file}: {words[-1] if words else f'exit code {done.returncode}'}"
    return pickle.loads(done.stdout)


def lend(file: str, circuit: Circuit) -> dict[str, str]:
    """Variables with which ranks that this process starts find the circuit, as long as this process lives."""
    memory = os.memfd_create("onehop-circuit")
    with open(memory, "wb", closefd=False) as stream:
        stream.write(pack(circuit))
    return {LENT: f"{os.getpid()} {memory} {file}"}


def _lent(file: str) -> bytes | None:
    """What the launcher of this rank has read of the same file, if it has."""
    parent, _, rest = os.environ.pop(LENT, "").partition(" ")
    memory, _, name = rest.partition(" ")
    if name != file or parent != str(os.getppid()):
        return None
    try:
        return Path(f"/proc/{parent}/fd/{memory}").read_bytes()
    except OSError:
        return None


def _read(file: str) -> tuple[str, Any]:
    lent = _lent(file)
    return _in_child(file) if lent is None else ("circuit", lent)


def read_circuit(file: str | Path, group: Group) -> Circuit:
    """An OpenQASM file on every rank. Collective.

    Rank 0 has it read by a process that ends after it: Qiskit's parsers take a hundred MiB, which would stay with
    every rank. Where the process that started the ranks has read it, they take it from there (`lend`).

    Raises
    ------
    BadInput
        On every rank: as for `load_qasm`.
    """
    told = pickle.dumps(_read(str(file))) if group.rank == 0 else b""
    kind, found = pickle.loads(group.allgather(told)[0])
    if kind == "circuit":
        return unpack(found)
    raise (BadInput if kind == "error" else Error)(found)


def _main(file: str) -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may stand in the answer
    from onehop.quantum.qasm import load_qasm

    try:
        told = ("circuit", pack(load_qasm(file)))
    except BadInput as error:
        told = ("error", str(error))
    with answers:
        pickle.dump(told, answers)


if __name__ == "__main__":
    _main(sys.argv[1])
