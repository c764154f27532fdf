"""Tasks and outcomes of simulations as plain values, with their messages between processes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit
from onehop.quantum.noise.program_run import run_program
from onehop.quantum.noise.saved import Saved
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.run.program_message import decode_program, decode_saved, encode_program, encode_saved
from onehop.quantum.run.serialization import pack, unpack
from onehop.quantum.steps import Program
from onehop.serialization import decode, encode

__all__ = ["Outcome", "Task", "decode_outcome", "decode_task", "encode_outcome", "encode_task", "run_task"]


@dataclass(frozen=True)
class Task:
    """A circuit to simulate, with shots and observables.

    Attributes
    ----------
    circuit : Circuit
        The circuit to simulate.
    shots : int
        Number of samples; 0: none.
    seed : int
        The same seed gives the same shots on any number of ranks.
    observables : tuple of PauliSum
        Observables to evaluate.
    precision : str
        "double" or "single".
    program : Program, optional
        Program with this circuit. It takes no observables but saves.
    method : str
        "statevector" or "density_matrix", for programs.
    """

    circuit: Circuit
    shots: int = 0
    seed: int = 0
    observables: tuple[PauliSum, ...] = ()
    precision: str = "double"
    program: Program | None = None
    method: str = "statevector"


@dataclass(frozen=True)
class Outcome:
    """The results of a task; the same on every rank.

    Attributes
    ----------
    values : list of int
        The distinct values of the classical bits, bit 0 least significant.
    counts : list of int
        Number of shots with each value.
    of_shot : array of int
        Index into `values` for each shot.
    expectations : list of float or complex
        One for each observable.
    seconds : float
        Duration of the simulation.
    ranks : int
        Number of ranks over which the state was split.
    bytes_moved : int
        Bytes moved between ranks, summed over all ranks.
    saved : dict from str to Saved
        What a program has saved, by label.
    """

    values: list[int]
    counts: list[int]
    of_shot: NDArray[np.integer]
    expectations: list[Any] = field(default_factory=list)
    seconds: float = 0.0
    ranks: int = 1
    bytes_moved: int = 0
    saved: dict[str, Saved] = field(default_factory=dict)


def run_task(task: Task, group: Group) -> Outcome:
    """Run a task. Collective; every rank gets the same outcome."""
    from onehop.quantum import simulate

    result: Any
    if task.program is not None:
        result = run_program(
            task.program,
            group,
            method=task.method,
            shots=max(task.shots, 1),
            seed=task.seed,
            precision=task.precision,
        )
    else:
        result = simulate(
            task.circuit,
            group,
            shots=task.shots,
            seed=task.seed,
            observables=task.observables,
            precision=task.precision,
        )
    return Outcome(
        values=list(result.outcomes.values),
        counts=list(result.outcomes.counts),
        of_shot=np.asarray(result.outcomes.of_shot),
        expectations=list(getattr(result, "expectations", [])),
        seconds=result.seconds,
        ranks=result.ranks,
        bytes_moved=result.bytes_moved,
        saved=getattr(result, "saved", {}),
    )


# -- as messages -------------------------------------------------------------------------------------------------------


def encode_task(task: Task) -> bytes:
    """Encode a task as a message."""
    return encode(
        "task",
        {
            "shots": operator.index(task.shots),
            "seed": operator.index(task.seed),
            "precision": task.precision,
            "method": task.method,
            "observables": len(task.observables),
        },
        [
            pack(task.circuit),
            *map(_encode_sum, task.observables),
            *([] if task.program is None else [encode_program(task.program, _encode_sum)]),
        ],
    )


def decode_task(data: bytes) -> Task:
    """Decode a task. Raises BadInput if the bytes are no task."""
    message = decode(data, "task")
    circuit, sums = unpack(message.bytes_of(0)), message.get("observables", int, least=0)
    program = None
    if len(message.parts) > 1 + sums:
        program = decode_program(message.bytes_of(1 + sums), circuit, _decode_sum)
    return Task(
        circuit,
        message.get("shots", int, least=0),
        message.get("seed", int),
        tuple(_decode_sum(message.bytes_of(place)) for place in range(1, 1 + sums)),
        message.get("precision", str),
        program,
        message.get("method", str),
    )


def _encode_sum(observable: PauliSum) -> bytes:
    paulis = [pauli for term in observable.terms for pauli in term.paulis]
    parts = [
        np.array([term.coefficient for term in observable.terms], np.complex128),
        np.array([len(term.paulis) for term in observable.terms], np.int64),
        np.array([qubit for qubit, _ in paulis], np.int64),
        np.array([ord(letter) for _, letter in paulis], np.uint8),
    ]
    return encode("sum", {}, parts)


def _decode_sum(data: bytes) -> PauliSum:
    message = decode(data, "sum")
    weights, lengths = message.array(0, np.complex128), message.array(1, np.int64)
    qubits, letters = message.array(2, np.int64), message.array(3, np.uint8)
    lengths_fit = (lengths >= 0).all() and sum(lengths.tolist()) == len(qubits) == len(letters)
    if len(weights) != len(lengths) or not lengths_fit or not np.isin(letters, list(b"XYZ")).all():
        raise BadInput("sum: expected the weights and Pauli strings of an observable, found something else")
    term_of = np.repeat(np.arange(len(lengths)), lengths)
    descends = (qubits[1:] <= qubits[:-1]) & (term_of[1:] == term_of[:-1])
    if (qubits < 0).any() or descends.any():
        raise BadInput("sum: expected ascending qubits from 0 in every Pauli string, found others")
    pairs = zip(qubits.tolist(), letters.tobytes().decode("ascii"), strict=True)
    return PauliSum(
        tuple(
            PauliTerm(weight, tuple(next(pairs) for _ in range(length)))
            for weight, length in zip(weights.tolist(), lengths.tolist(), strict=True)
        )
    )


def encode_outcome(outcome: Outcome) -> bytes:
    """Encode an outcome as a message."""
    expectations = [
        [float(one.real), float(one.imag)] if isinstance(one, complex) else float(one)
        for one in outcome.expectations
    ]
    fields = {
        "values": [int(one) for one in outcome.values],
        "counts": [int(one) for one in outcome.counts],
        "expectations": expectations,
        "seconds": outcome.seconds,
        "ranks": outcome.ranks,
        "bytes_moved": outcome.bytes_moved,
    }
    return encode("outcome", fields, [outcome.of_shot, encode_saved(outcome.saved)])


def decode_outcome(data: bytes) -> Outcome:
    """Decode an outcome. Raises BadInput if the bytes are no outcome."""
    message = decode(data, "outcome")
    values, counts = message.get("values", list), message.get("counts", list)
    if len(values) != len(counts) or not all(type(one) is int and one >= 0 for one in [*values, *counts]):
        raise BadInput("outcome: expected as many counts as values, numbers from 0, found something else")
    of_shot = message.array(0, np.uint32)
    if len(of_shot) and of_shot.max() >= len(values):
        raise BadInput(f"outcome: expected places below {len(values)}, found {of_shot.max()}")
    return Outcome(
        values,
        counts,
        of_shot,
        [_expectation(one) for one in message.get("expectations", list)],
        message.get("seconds", float),
        message.get("ranks", int, least=1),
        message.get("bytes_moved", int, least=0),
        decode_saved(message.bytes_of(1)) if len(message.parts) > 1 else {},
    )


def _expectation(one: Any) -> float | complex:
    if isinstance(one, float):
        return one
    if isinstance(one, list) and len(one) == 2 and all(isinstance(part, float) for part in one):
        return complex(*one)
    raise BadInput(f"outcome: expected an expectation value, found {str(one)[:40]}")
