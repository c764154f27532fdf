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
from onehop.quantum.noise.program_run import Saved, run_program
from onehop.quantum.observables import PauliSum
from onehop.quantum.run.program_message import (
    decode_program,
    decode_saved,
    decode_sum,
    encode_program,
    encode_saved,
    encode_sum,
)
from onehop.quantum.run.serialization import pack, unpack
from onehop.quantum.steps import Program
from onehop.serialization import decode, encode


@dataclass(frozen=True)
class Task:
    """A circuit to simulate, with shots and observables."""

    circuit: Circuit
    shots: int = 0  # number of samples; 0: none
    seed: int = 0  # the same seed gives the same shots on any number of ranks
    observables: tuple[PauliSum, ...] = ()
    precision: str = "double"  # "double" or "single"
    program: Program | None = None  # program with this circuit. It takes no observables but saves
    method: str = "statevector"  # "statevector" or "density_matrix", for programs


@dataclass(frozen=True)
class Outcome:
    """The results of a task; the same on every rank."""

    values: list[int]  # the distinct values of the classical bits, bit 0 least significant
    counts: list[int]  # number of shots with each value
    of_shot: NDArray[np.integer]  # index into `values` for each shot
    expectations: list[Any] = field(default_factory=list)  # one for each observable
    seconds: float = 0.0
    ranks: int = 1  # number of ranks over which the state was split
    bytes_moved: int = 0  # bytes moved between ranks, summed over all ranks
    saved: dict[str, Saved] = field(default_factory=dict)  # what a program has saved, by label


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
            *map(encode_sum, task.observables),
            *([] if task.program is None else [encode_program(task.program)]),
        ],
    )


def decode_task(data: bytes) -> Task:
    """Decode a task. Raises BadInput if the bytes are no task."""
    message = decode(data, "task")
    circuit, sums = unpack(message.bytes_of(0)), message.get("observables", int, least=0)
    program = None
    if len(message.parts) > 1 + sums:
        program = decode_program(message.bytes_of(1 + sums), circuit)
    return Task(
        circuit,
        message.get("shots", int, least=0),
        message.get("seed", int),
        tuple(decode_sum(message.bytes_of(place)) for place in range(1, 1 + sums)),
        message.get("precision", str),
        program,
        message.get("method", str),
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
