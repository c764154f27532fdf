"""Messages between processes: every value survives a round trip, and other bytes raise an error with a message."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onehop import BadInput, Error, Mismatch, PeerLost, Timeout
from onehop import serialization as wire
from onehop.quantum import Circuit, PauliSum, PauliTerm
from onehop.quantum.circuit import Condition, Operation, Register
from onehop.quantum.run.serialization import pack, unpack
from onehop.quantum.run.task import Outcome, Task, decode_outcome, decode_task, encode_outcome, encode_task
from ranks import PYTHON_FOLDER, Ranks

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
    qubits = sorted(draw(st.sets(st.integers(0, 99), max_size=4)))
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


# -- round trips -------------------------------------------------------------------------------------------------------


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
    assert decode_task(encode_task(task)) == task


@given(outcomes())
def test_outcomes_come_out_as_they_went_in(outcome: Outcome) -> None:
    found = decode_outcome(encode_outcome(outcome))
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
    assert str(found) == said
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


# -- messages that no process of onehop writes -------------------------------------------------------------------------


def _message(head: Any, body: bytes = b"") -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return b"onehop\0\1" + struct.pack("<Q", len(text)) + text + body


HOSTILE = {
    "nothing": (b"", "expected a message"),
    "a pickle": (b"cos\nsystem\n(S'true'\ntR.", "expected a message"),
    "half a head": (b"onehop\0\1\2", "truncated"),
    "a header that is too long": (b"onehop\0\1" + struct.pack("<Q", 2**63) + b"[]", "truncated"),
    "no JSON": (_message(b"["), "JSON"),
    "UTF-16": (_message('["x",{},[]]'.encode("utf-16")), "JSON"),
    "brackets": (_message(b"[" * 200_000), "JSON"),
    "many digits": (_message(b'["x",{"a":' + b"9" * 100_000 + b"},[]]"), "JSON"),
    "an object": (_message({"tag": "x"}), "expected a message header"),
    "two items": (_message(["x", {}]), "expected a message header"),
    "an unknown tag": (_message(["y", {}, []]), "tag x, found 'y'"),
    "Python objects": (_message(["x", {}, [["|O", [1]]]], b"12345678"), "array of numbers"),
    "a record": (_message(["x", {}, [[[["a", "<i4"]], [1]]]], b"1234"), "array of numbers"),
    "a negative extent": (_message(["x", {}, [["|u1", [-1]]]]), "array of numbers"),
    "a huge empty array": (_message(["x", {}, [["|u1", [0, 2**62, 2**62]]]]), "array of numbers"),
    "1e400": (_message(b'["x",{},[["|u1",[1e400]]]]'), "array of numbers"),
    "too few bytes": (_message(["x", {}, [["<i8", [2]]]], b"123"), "truncated"),
    "petabytes": (_message(["x", {}, [["<i8", [2**36]]]], b"123"), "truncated"),
    "too many bytes": (_message(["x", {}, [["|u1", [2]]]], b"123"), "too long"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bytes_that_are_no_message(name: str) -> None:
    data, words = HOSTILE[name]
    with pytest.raises(BadInput, match=words):
        wire.decode(data, "x")


def test_fields_of_another_type() -> None:
    message = wire.decode(wire.encode("x", {"a": True, "b": -1, "c": 10**400}, [np.zeros(3)]), "x")
    for action, found in (
        (lambda: message.get("z", int), "field 'z'"),
        (lambda: message.get("a", int), "type int, found bool"),
        (lambda: message.get("b", str), "type str, found int"),
        (lambda: message.get("b", int, least=0), "at least 0, found -1"),
        (lambda: message.get("c", float), "fit into a float"),
        (lambda: message.array(0, np.int64), "int64, found 1 of float64"),
        (lambda: message.array(0, np.float64, dimensions=2), "2 dimension"),
        (lambda: message.bytes_of(0), "uint8"),
    ):
        with pytest.raises(BadInput, match=found):
            action()


def test_frames_that_are_too_long_or_truncated() -> None:
    stream = io.BytesIO(struct.pack("<Q", 2**62) + b"123")
    with pytest.raises(BadInput, match="at most"):
        wire.read_framed(stream)
    with pytest.raises(EOFError):  # no memory for what was announced is taken
        wire.read_framed(io.BytesIO(struct.pack("<Q", 2**39) + b"123"))
    with pytest.raises(EOFError):
        wire.read_framed(io.BytesIO(b"123"))


def _circuit_bytes() -> bytes:
    circuit = Circuit(3, 2, "small").h(0).cx(0, 1).unitary(np.eye(4), [0, 2]).measure([0, 1], [0, 1])
    circuit.registers = [Register("c", 0, 2)]
    with circuit.when(1):
        circuit.rz(0.5, 2)
    return pack(circuit)


def _altered(change: Callable[[dict[str, Any]], None]) -> bytes:
    message = wire.decode(_circuit_bytes(), "circuit")
    fields = dict(message.fields)
    change(fields)
    return wire.encode("circuit", fields, message.parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.pop("qubits"),
        lambda f: f.update(qubits=-1),
        lambda f: f.update(qubits=2**31),
        lambda f: f.update(qubits="3"),
        lambda f: f.update(name=3),
        lambda f: f.update(hidden=None),
        lambda f: f.update(registers=[["c", 0, 3]]),
        lambda f: f.update(registers=[["c", -1, 1]]),
        lambda f: f.update(registers=[["c", 0]]),
        lambda f: f.update(registers=[3]),
        lambda f: f.update(operations={}),
        lambda f: f.update(operations=[3]),
        lambda f: f.update(operations=[[]]),
        lambda f: f["operations"][0].append(1),
        lambda f: f["operations"][0].__setitem__(0, "no kind"),
        lambda f: f["operations"][0].__setitem__(2, [2**31]),
        lambda f: f["operations"][0].__setitem__(2, "00"),
        lambda f: f["operations"][0].__setitem__(4, -1),
        lambda f: f["operations"][0].__setitem__(5, -1),
        lambda f: f["operations"][0].__setitem__(5, 3),
        lambda f: f["operations"][0].__setitem__(5, 10**9),
        lambda f: f["operations"][0].__setitem__(7, "0.5"),
        lambda f: f["operations"][0].__setitem__(10, 2**64),
        lambda f: f["operations"][0].__setitem__(11, []),
    ],
)
def test_circuits_with_wrong_fields(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(BadInput, match=r"circuit|kind of operation"):
        unpack(_altered(change))


def _outcome_message(**changed: Any) -> bytes:
    fields = {
        "values": [0, 3],
        "counts": [1, 1],
        "expectations": [],
        "seconds": 0.0,
        "ranks": 1,
        "bytes_moved": 0,
    }
    places = changed.pop("places", np.array([0, 1], np.uint32))
    return wire.encode("outcome", {**fields, **changed}, [places])


@pytest.mark.parametrize(
    "changed",
    [
        {"values": [0]},
        {"values": [0, "3"]},
        {"counts": [1, -1]},
        {"ranks": 0},
        {"seconds": None},
        {"expectations": ["1"]},
        {"expectations": [[1.0, 2.0, 3.0]]},
        {"places": np.array([0, 2], np.uint32)},
        {"places": np.array([0, 1], np.int64)},
    ],
)
def test_outcomes_with_wrong_fields(changed: dict[str, Any]) -> None:
    assert decode_outcome(_outcome_message()).values == [0, 3]
    with pytest.raises(BadInput):
        decode_outcome(_outcome_message(**changed))


@pytest.mark.parametrize(
    ("lengths", "qubits", "letters"),
    [
        ([3], [0, 1], b"XY"),
        ([2], [1, 0], b"XY"),
        ([2], [0, 0], b"XY"),
        ([1], [-1], b"X"),
        ([1], [0], b"I"),
        ([], [], b""),
    ],
)
def test_sums_with_wrong_strings(lengths: list[int], qubits: list[int], letters: bytes) -> None:
    good = wire.decode(encode_task(Task(Circuit(1), observables=(PauliSum.parse("X0"),))), "task")
    parts = [np.ones(1, complex), np.array(lengths, np.int64), np.array(qubits, np.int64), letters]
    data = wire.encode("task", good.fields, [good.parts[0], wire.encode("sum", {}, parts)])
    with pytest.raises(BadInput, match="sum"):
        decode_task(data)


@settings(max_examples=300)
@given(st.data())
def test_damaged_messages_are_read_or_refused_with_words(data: st.DataObject) -> None:
    task = Task(unpack(_circuit_bytes()), 10, 3, (PauliSum.parse("Z0 Z1 + 0.5*X2"),))
    good = bytearray(encode_task(task))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(good[: data.draw(st.integers(0, len(good)))]) if data.draw(st.booleans()) else bytes(good)
    with contextlib.suppress(BadInput):  # and nothing else
        decode_task(damaged)


# -- no way around it --------------------------------------------------------------------------------------------------

_FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
_FORBIDDEN_MODULES |= {"multiprocessing", "xmlrpc", "dbm"}
_FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
_FORBIDDEN_NAMES = {"all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"}
_FORBIDDEN_NAMES |= {"send_object_list", "recv_object_list", "fromstring_pickle", "read_pickle"}


def _objections(source: str) -> list[str]:
    """Return the expressions in a source that could run code from another process."""
    found = []
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            found += [
                f"{line}: {one.name}" for one in node.names if one.name.split(".")[0] in _FORBIDDEN_MODULES
            ]
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in _FORBIDDEN_MODULES:
                found.append(f"{line}: {node.module}")
        elif isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "weights_only"):
            if not (
                isinstance(node.value, ast.Constant) and node.value.value is (node.arg == "weights_only")
            ):
                found.append(f"{line}: {node.arg}")
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in _FORBIDDEN_NAMES or (isinstance(node, ast.Name) and name in _FORBIDDEN_CALLS):
                found.append(f"{line}: {name}")
            owner = node.value if isinstance(node, ast.Attribute) else None
            if name == "load" and isinstance(owner, ast.Name) and owner.id == "torch":
                found.append(f"{line}: torch.load")
    return found


@pytest.mark.parametrize("folder", ["onehop", "onehop_torch"])
def test_the_package_has_no_pickle_and_no_eval(folder: str) -> None:
    files = sorted((PYTHON_FOLDER / folder).rglob("*.py"))
    assert files
    found = [
        f"{file.relative_to(PYTHON_FOLDER)}:{one}" for file in files for one in _objections(file.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, marshal",
        "def f():\n    from multiprocessing.connection import Connection",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import torch\ntorch.load('x')",
        "torch.load('x', weights_only=False)",
        "dist.all_gather_object(a, b)",
        "eval('1')",
        "f = exec",
    ],
)
def test_the_search_for_pickle_finds_it(source: str) -> None:
    assert _objections(source)
    assert not _objections("import json\nnumpy.load('x', allow_pickle=False)\nlogic.evaluate(x)")


# -- real processes ----------------------------------------------------------------------------------------------------


def test_a_pickle_in_the_place_of_an_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onehop.group import Group
    from onehop.quantum.run import serialization as travel

    mark = tmp_path / "mark"
    for lie in (f"cos\nsystem\n(S'touch {mark}'\ntR.".encode(), b"", pack(Circuit(1))[:-1] + b"xx"):
        monkeypatch.setattr(travel, "_read", lambda file, lie=lie: lie)
        with pytest.raises(BadInput):
            travel.read_circuit("some.qasm", Group.alone())
    assert not mark.exists()


def test_workers_answer_hostile_bytes_with_an_error_and_go_on(ranks: Ranks) -> None:
    """Two ranks read from a pipe: rubbish, a task that cannot be, then a good one."""
    import subprocess

    frames = io.BytesIO()
    bad = Task(Circuit(2, 2).h(0), shots=1, precision="quadruple")
    good = Task(Circuit(2, 2).x(0).measure([0, 1], [0, 1]), shots=10)
    for data in (
        b"cos\nsystem\n(S'echo unpickled >&2'\ntR.",
        wire.encode("tasks", {}, [encode_task(bad)]),
        wire.encode("tasks", {}, [encode_task(good)]),
    ):
        wire.write_framed(frames, data)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "onehop",
            "launch",
            "-n",
            "2",
            "--output",
            "rank0",
            "-m",
            "onehop.quantum.run.worker",
        ],
        env=ranks.environment,
        input=frames.getvalue(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"unpickled" not in done.stderr
    answers = io.BytesIO(done.stdout)
    for expected in ("message of onehop", "quadruple"):
        message = wire.decode(wire.read_framed(answers), "error")
        error = wire.decode_error(message)
        assert isinstance(error, BadInput)
        assert expected in str(error)
    (outcome,) = wire.decode(wire.read_framed(answers), "outcomes").list_of(decode_outcome)
    assert (outcome.values, outcome.counts, outcome.ranks) == ([1], [10], 2)
