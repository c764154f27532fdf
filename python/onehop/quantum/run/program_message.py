"""Messages between processes for the steps of programs and for what programs save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit, Condition
from onehop.quantum.noise.saved import Saved
from onehop.quantum.observables import PauliSum
from onehop.quantum.steps import STATE_KINDS, Apply, Jump, Mark, Misread, Program, Save, SetState, Step
from onehop.serialization import Message, decode, encode

__all__ = ["decode_program", "decode_saved", "encode_program", "encode_saved"]

_KINDS = {"apply": Apply, "save": Save, "set": SetState, "misread": Misread, "mark": Mark, "jump": Jump}
_MODES = ("single", "list", "average", "accum")


def encode_program(program: Program, encode_sum: Callable[[PauliSum], bytes]) -> bytes:
    """Encode the steps and the readout errors of a program; its circuit is not part of the message."""
    parts = [
        encode("step", {"place": place, **_fields(step)}, _arrays(step, encode_sum))
        for place, step in program.steps
    ]
    return encode("program", {"readout": [list(one) for one in program.readout]}, parts)


def _fields(step: Step) -> dict[str, Any]:
    condition = step.condition
    fields: dict[str, Any] = {
        "kind": next(name for name, kind in _KINDS.items() if isinstance(step, kind)),
        "condition": [list(condition.clbits), condition.value, condition.negated],
    }
    if isinstance(step, (Mark, Jump)):
        fields["label"] = step.label
    elif isinstance(step, Misread):
        fields["clbits"] = list(step.clbits)
    else:
        fields["qubits"] = [int(qubit) for qubit in step.qubits]
    if isinstance(step, Apply):
        fields["name"] = step.name
    if isinstance(step, Save):
        fields |= {"what": step.kind, "key": step.label, "mode": step.mode, "conditional": step.conditional}
    return fields


def _arrays(step: Step, encode_sum: Callable[[PauliSum], bytes]) -> list[NDArray[Any] | bytes]:
    if isinstance(step, Apply):
        return list(step.kraus)
    if isinstance(step, SetState):
        return [step.values]
    if isinstance(step, Misread):
        return [step.table]
    if isinstance(step, Save):
        return [step.indices, *([] if step.observable is None else [encode_sum(step.observable)])]
    return []


def decode_program(data: bytes, circuit: Circuit, decode_sum: Callable[[bytes], PauliSum]) -> Program:
    """Decode a program with this circuit.

    Raises
    ------
    BadInput
        The bytes are no program, or its steps name bits or marks that do not exist.
    """
    message = decode(data, "program")
    steps = [
        _step(decode(message.bytes_of(place), "step"), circuit, decode_sum)
        for place in range(len(message.parts))
    ]
    places = [place for place, _ in steps]
    if places != sorted(places) or any(place > len(circuit) for place in places):
        raise BadInput("program: expected steps in the order of the operations, found others")
    labels = [step.label for _, step in steps if isinstance(step, Mark)]
    jumps = {step.label for _, step in steps if isinstance(step, Jump)}
    if len(set(labels)) != len(labels) or not jumps <= set(labels):
        raise BadInput("program: expected one mark for each jump, found others")
    readout = []
    for one in message.get("readout", list):
        if not isinstance(one, list) or len(one) != 3 or type(one[0]) is not int:
            raise BadInput("program: expected a qubit with two probabilities, found something else")
        readout.append((one[0], float(one[1]), float(one[2])))
    return Program(circuit, steps, readout)


def _step(message: Message, circuit: Circuit, decode_sum: Callable[[bytes], PauliSum]) -> tuple[int, Step]:
    kind, place = message.get("kind", str), message.get("place", int, least=0)
    try:
        condition = Condition(*message.get("condition", list))
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput("program: expected a condition, found something else") from error
    _require_below(condition.clbits, circuit.clbits + circuit.hidden_clbits)
    if kind in ("mark", "jump"):
        return place, (Mark if kind == "mark" else Jump)(message.get("label", int, least=0), condition)
    if kind == "misread":
        clbits = message.get("clbits", list)
        _require_below(clbits, circuit.clbits)
        return place, Misread(message.array(0, np.float64, dimensions=2), clbits, condition)
    qubits = message.get("qubits", list)
    _require_below(qubits, circuit.qubits)
    numbers = range(len(message.parts))
    if kind == "apply":
        kraus = tuple(message.array(number, np.complex128, dimensions=2) for number in numbers)
        return place, Apply(kraus, qubits, message.get("name", str), condition)
    if kind == "set":
        dimensions = message.parts[0].ndim if message.parts else 1
        return place, SetState(message.array(0, np.complex128, dimensions=dimensions), qubits, condition)
    if kind != "save":
        raise BadInput(f"program: expected a kind of step, found {kind[:20]!r}")
    what, mode = message.get("what", str), message.get("mode", str)
    if what not in STATE_KINDS or mode not in _MODES:
        raise BadInput(f"program: expected a kind of data and a mode, found {what[:20]!r} and {mode[:20]!r}")
    indices = message.array(0, np.int64)
    _require_below(indices.tolist(), 1 << circuit.qubits)
    observable = decode_sum(message.bytes_of(1)) if len(message.parts) > 1 else None
    return place, Save(
        what,
        message.get("key", str),
        mode,
        message.get("conditional", bool),
        qubits,
        indices,
        observable,
        condition,
    )


def _require_below(numbers: list[Any], limit: int) -> None:
    if any(type(one) is not int or not 0 <= one < limit for one in numbers):
        raise BadInput(f"program: expected numbers from 0 to {limit - 1}, found others")


def encode_saved(saved: Mapping[str, Saved]) -> bytes:
    """Encode saved data."""
    rows, arrays = [], []
    for label, one in saved.items():
        groups = [[key, len(values)] for key, values in one.groups.items()]
        rows.append([label, one.kind, one.mode, one.conditional, groups])
        arrays += [np.asarray(value) for values in one.groups.values() for value in values]
    return encode("saved", {"rows": rows}, arrays)


def decode_saved(data: bytes) -> dict[str, Saved]:
    """Decode saved data. Raises BadInput if the bytes are no saved data."""
    message = decode(data, "saved")
    arrays = iter(message.parts)
    try:
        return {
            label: Saved(
                kind,
                mode,
                conditional,
                {key: [next(arrays) for _ in range(number)] for key, number in groups},
            )
            for label, kind, mode, conditional, groups in message.get("rows", list)
        }
    except (TypeError, ValueError, StopIteration) as error:
        raise BadInput(f"saved: expected labels with their values, found others: {error}") from None
