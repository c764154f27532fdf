"""Messages between processes: every value survives a round trip."""

import io
import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onehop import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop import serialization as wire
from onehop.quantum import Circuit, PauliSum, PauliTerm
from onehop.quantum.circuit import Condition, Operation, Register
from onehop.quantum.run.records import from_message, to_message
from onehop.quantum.run.serialization import pack, unpack
from onehop.quantum.run.task import Outcome, Task

QUBITS, CLBITS = 4, 5
KINDS = (
    "matrix",
    "diagonal",
    "swap",
    "pauli_rotation",
    "global_phase",
    "measure",
    "reset",
    "barrier",
    "assign",
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
ints32 = st.integers(-(2**31), 2**31 - 1)
words = st.integers(0, 2**64 - 1)
bits = st.lists(st.integers(0, QUBITS - 1), max_size=4)
conditions = st.builds(Condition, bits, words, st.booleans())
finite = st.complex_numbers(allow_nan=False, allow_infinity=False)
complexes = st.lists(finite, max_size=16).map(lambda v: np.array(v, complex))


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    return Operation(
        draw(st.sampled_from(KINDS)),
        draw(texts),
        draw(bits),
        controls=draw(bits),
        control_values=draw(words),
        values=draw(complexes),
        paulis=draw(st.text("XYZ", max_size=3)),
        angle=draw(floats),
        clbits=draw(bits),
        condition=draw(conditions),
    )


@st.composite
def circuits(draw: st.DrawFn) -> Circuit:
    circuit = Circuit(QUBITS, CLBITS, draw(texts))
    circuit.hidden_clbits = draw(st.integers(0, 3))
    first = draw(st.integers(0, CLBITS))
    circuit.registers = [Register(draw(texts), first, CLBITS - first)] * draw(st.integers(0, 2))
    for one in draw(st.lists(operations(), max_size=5)):
        circuit.add(one)
    return circuit


@st.composite
def terms(draw: st.DrawFn) -> PauliTerm:
    qubits = sorted(draw(st.sets(st.integers(0, 61), max_size=4)))
    weight = draw(finite)
    return PauliTerm(weight, tuple((qubit, draw(st.sampled_from("XYZ"))) for qubit in qubits))


sums = st.builds(PauliSum, st.lists(terms(), max_size=4).map(tuple))


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    values = draw(st.lists(st.integers(0, 2**80), max_size=5, unique=True))
    places = st.lists(st.integers(0, len(values) - 1), max_size=20) if values else st.just([])
    return Outcome(
        values,
        draw(st.lists(st.integers(0, 2**60), min_size=len(values), max_size=len(values))),
        np.array(draw(places), np.uint32),
        draw(st.lists(st.one_of(floats, finite), max_size=4)),
        draw(st.floats(0, 1e9)),
        draw(st.integers(1, 1024)),
        draw(st.integers(0, 2**62)),
    )


@given(circuits())
def test_circuits_come_out_as_they_went_in(circuit: Circuit) -> None:
    found = unpack(pack(circuit))
    assert found == circuit
    assert isinstance(found, Circuit)
    assert (found.name, found.hidden_clbits) == (circuit.name, circuit.hidden_clbits)
    assert found.registers == circuit.registers


def test_angles_and_matrices_keep_every_bit() -> None:
    circuit = Circuit(2, 2, "bits")
    matrix = np.array([[-0.0, 1], [1, complex(5e-324, -0.0)]])
    circuit.rx(-0.0, 0).rx(1e308, 0).rx(-1 / 3, 1).rx(5e-324, 1).unitary(matrix, [1])
    with circuit.when([0, 1], 2, negated=True):
        circuit.x(0)
    found = unpack(pack(circuit))
    for here, there in zip(circuit.operations, found.operations, strict=True):
        assert struct.pack("<d", here.angle) == struct.pack("<d", there.angle)
        assert here.values.tobytes() == there.values.tobytes()
        assert here.condition == there.condition


@given(circuits(), st.integers(0, 2**40), st.integers(0, 2**128), st.lists(sums, max_size=3))
def test_tasks_come_out_as_they_went_in(
    circuit: Circuit, shots: int, seed: int, observables: list[PauliSum]
) -> None:
    task = Task(circuit, shots, seed, tuple(observables), "single")
    assert from_message(wire.decode(to_message("task", task), "task"), Task) == task


@given(outcomes())
def test_outcomes_come_out_as_they_went_in(outcome: Outcome) -> None:
    found = from_message(wire.decode(to_message("outcome", outcome), "outcome"), Outcome)
    assert found.of_shot.dtype == outcome.of_shot.dtype
    assert found.of_shot.flags.writeable
    assert found.of_shot.tolist() == outcome.of_shot.tolist()
    assert [type(one) for one in found.expectations] == [type(one) for one in outcome.expectations]
    for name in ("values", "counts", "expectations", "seconds", "ranks", "bytes_moved"):
        assert getattr(found, name) == getattr(outcome, name)


@pytest.mark.parametrize("kind", [Error, BadInput, Mismatch, Timeout, PeerLost])
@given(said=st.text(max_size=30), rank=st.integers(-1, 1000))
def test_errors_come_out_with_their_class_and_their_words(kind: type[Error], said: str, rank: int) -> None:
    error = PeerLost(said, rank) if kind is PeerLost else kind(said)
    found = wire.decode_error(wire.decode(wire.encode_error(error), "error"))
    assert type(found) is kind
    assert str(found) == str(error)
    assert getattr(found, "rank", rank) == rank


def test_an_error_of_an_unknown_class_is_the_nearest_known_one() -> None:
    class Special(BadInput):
        pass

    found = wire.decode_error(wire.decode(wire.encode_error(Special("odd")), "error"))
    assert (type(found), str(found)) == (BadInput, "odd")


@given(
    st.dictionaries(
        texts, st.one_of(st.none(), st.booleans(), st.integers(), floats, texts, st.lists(floats))
    ),
    st.lists(st.sampled_from([np.int8, np.uint8, np.int64, np.float32, np.complex64, ">i4"]), max_size=4),
    st.lists(st.integers(0, 3), max_size=3),
)
def test_fields_and_arrays_of_every_type(fields: dict[str, Any], dtypes: list[Any], shape: list[int]) -> None:
    arrays = [np.arange(math.prod(shape)).reshape(shape).astype(dtype) for dtype in dtypes]
    message = wire.decode(wire.encode("any", fields, arrays), "some", "any")
    assert message.fields == fields
    for place, array in enumerate(arrays):
        dtype = array.dtype.newbyteorder("<")
        assert np.array_equal(message.array(place, dtype, dimensions=array.ndim), array)
    with pytest.raises(BadInput, match="at least"):
        message.array(len(arrays), np.uint8)


@given(st.lists(st.binary(max_size=50), max_size=4))
def test_frames_follow_each_other(messages: list[bytes]) -> None:
    stream = io.BytesIO()
    for one in messages:
        wire.write_framed(stream, one)
    stream.seek(0)
    assert [wire.read_framed(stream) for _ in messages] == messages
    with pytest.raises(EOFError):
        wire.read_framed(stream)
