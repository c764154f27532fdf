"""Messages between processes for observables, programs and what programs save."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onehop.error import BadInput
from onehop.quantum.circuit import Circuit
from onehop.quantum.noise.program_run import Saved
from onehop.quantum.observables import PauliSum, PauliTerm
from onehop.quantum.steps import STATE_KINDS, Program, Save
from onehop.serialization import Message, decode, encode

_MODES = ("single", "list", "average", "accum")


def encode_sum(observable: PauliSum) -> bytes:
    """Encode an observable as weights and masks."""
    observable.require(64)
    return encode("sum", {}, observable.masks())


def decode_sum(data: bytes) -> PauliSum:
    """Decode an observable."""
    message = decode(data, "sum")
    weights, x_masks, z_masks = (
        message.array(0, np.complex128),
        *(message.array(k, np.uint64) for k in (1, 2)),
    )
    if not len(weights) == len(x_masks) == len(z_masks):
        raise BadInput("sum: expected as many weights as Pauli strings, found another number")
    terms = zip(weights.tolist(), x_masks.tolist(), z_masks.tolist(), strict=True)
    return PauliSum(tuple(PauliTerm(weight, _paulis(x, z)) for weight, x, z in terms))


def _paulis(x: int, z: int) -> tuple[tuple[int, str], ...]:
    places = [qubit for qubit in range((x | z).bit_length()) if (x | z) >> qubit & 1]
    return tuple((qubit, "ZXY"[(x >> qubit & 1) * (1 + (z >> qubit & 1))]) for qubit in places)


def encode_program(program: Program) -> bytes:
    """Encode a program without its circuit."""
    fields = {"kinds": sorted(program.kinds), "readout": [list(one) for one in program.readout]}
    parts = [encode("channel", {"name": name}, list(kraus)) for name, kraus in program.channels]
    for save in program.saves:
        about = {"kind": save.kind, "label": save.label, "mode": save.mode, "conditional": save.conditional}
        sums = [] if save.observable is None else [encode_sum(save.observable)]
        parts.append(encode("save", about, [save.indices, *sums]))
    return encode("program", fields, parts)


def decode_program(data: bytes, circuit: Circuit) -> Program:
    """Decode a program with this circuit. The library checks its operations before it runs."""
    message = decode(data, "program")
    program = Program(circuit, kinds=set(map(str, message.get("kinds", list))))
    for place in range(len(message.parts)):
        part = decode(message.bytes_of(place), "channel", "save")
        if part.tag == "channel":
            kraus = tuple(part.array(k, np.complex128, dimensions=2) for k in range(len(part.parts)))
            program.channels.append((part.get("name", str), kraus))
        else:
            program.saves.append(_save(part, circuit))
    for one in message.get("readout", list):
        if not isinstance(one, list) or len(one) != 3 or type(one[0]) is not int:
            raise BadInput("program: expected a qubit with two probabilities, found something else")
        program.readout.append((one[0], float(one[1]), float(one[2])))
    return program


def _save(message: Message, circuit: Circuit) -> Save:
    kind, mode = message.get("kind", str), message.get("mode", str)
    if kind not in STATE_KINDS or mode not in _MODES:
        raise BadInput(f"program: expected a kind of data and a mode, found {kind[:20]!r} and {mode[:20]!r}")
    indices = message.array(0, np.int64)
    if any(not 0 <= one < 1 << circuit.qubits for one in indices.tolist()):
        raise BadInput(f"program: expected numbers from 0 to {(1 << circuit.qubits) - 1}, found others")
    observable = decode_sum(message.bytes_of(1)) if len(message.parts) > 1 else None
    if kind.startswith("expval") and observable is None:
        raise BadInput(f"program: expected an observable of save_{kind}, found none")
    label, conditional = message.get("label", str), message.get("conditional", bool)
    return Save(kind, label, mode, conditional, indices, observable)


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
