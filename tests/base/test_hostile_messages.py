"""Bytes that no process of onehop writes, in the place of a message, raise an error with a message."""

import contextlib
import io
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onehop import BadInput
from onehop import serialization as wire
from onehop.quantum import Circuit, Condition, PauliSum
from onehop.quantum.circuit import Register
from onehop.quantum.run.records import from_message, to_message
from onehop.quantum.run.serialization import pack, unpack
from onehop.quantum.run.task import Outcome, Task
from onehop.quantum.steps import Program, Save
from ranks import Ranks


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
        lambda f: f["operations"][0][0].append(1),
        lambda f: f["operations"][0][0].__setitem__(0, "no kind"),
        lambda f: f["operations"][0][0].__setitem__(2, [2**31]),
        lambda f: f["operations"][0][0].__setitem__(2, "00"),
        lambda f: f["operations"][0][0].__setitem__(4, -1),
        lambda f: f["operations"][0].__setitem__(1, -1),
        lambda f: f["operations"][0].__setitem__(1, 3),
        lambda f: f["operations"][0].__setitem__(1, 10**9),
        lambda f: f["operations"][0][0].__setitem__(6, "0.5"),
        lambda f: f["operations"][0][2].__setitem__(0, [2**64]),
        lambda f: f["operations"][0][2].__setitem__(1, []),
    ],
)
def test_circuits_with_wrong_fields(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(BadInput, match=r"circuit|kind of operation"):
        unpack(_altered(change))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, [0]),
        (0, [0, "3"]),
        (1, [1, -1]),
        (2, 7),
        (3, ["1"]),
        (3, [[1.0, 2.0, 3.0]]),
        (4, None),
        (5, 0),
        (5, True),
        (7, [["label", 3]]),
        (7, [["label"]]),
    ],
)
def test_outcomes_with_wrong_fields(place: int, value: Any) -> None:
    good = to_message("outcome", Outcome([0, 3], [1, 1], np.array([0, 1], np.uint32), [0.5, 1j]))
    message = wire.decode(good, "outcome")
    assert from_message(message, Outcome).expectations == [0.5, 1j]
    fields = list(message.fields["value"])
    fields[place] = value
    for parts, changed in (
        (message.parts, fields),
        ([np.array([0, 2], np.uint32)], message.fields["value"]),
        ([np.array([0, 1], np.int64)], message.fields["value"]),
    ):
        bad = wire.decode(wire.encode("outcome", {"value": changed}, parts), "outcome")
        with pytest.raises(BadInput):
            from_message(bad, Outcome)


@settings(max_examples=300)
@given(st.data())
def test_damaged_messages_are_read_or_refused_with_words(data: st.DataObject) -> None:
    circuit, sums = unpack(_circuit_bytes()), (PauliSum.parse("Z0 Z1 + 0.5*X2"),)
    program = Program(circuit, readout=[(0, 0.1, 0.1)]) if data.draw(st.booleans()) else None
    if program is not None:
        program.mark(1)
        program.channel((np.eye(2, dtype=complex),), [0])
        program.save(Save("expval", "value", "average", observable=sums[0]), [0])
        program.jump(1, Condition([0], 1))
    good = bytearray(to_message("task", Task(circuit, 10, 3, sums, program=program)))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(good[: data.draw(st.integers(0, len(good)))]) if data.draw(st.booleans()) else bytes(good)
    with contextlib.suppress(BadInput):  # and nothing else
        from_message(wire.decode(damaged, "task"), Task)


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
    frames = io.BytesIO()
    bad = Task(Circuit(2, 2).h(0), shots=1, precision="quadruple")
    good = Task(Circuit(2, 2).x(0).cx(0, 1).measure([0, 1], [0, 1]), shots=10)
    for data in (
        b"cos\nsystem\n(S'echo unpickled >&2'\ntR.",
        to_message("tasks", [bad]),
        to_message("tasks", [good]),
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
    (outcome,) = from_message(wire.decode(wire.read_framed(answers), "outcomes"), list[Outcome])
    assert (outcome.values, outcome.counts, outcome.ranks) == ([3], [10], 2)
