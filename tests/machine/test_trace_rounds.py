"""Traces of programs in simulations: `onehop simulate trace` and `trace_rounds`."""

import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import onehop
from onehop.cli import main
from onehop.codec import encoded_bytes
from onehop.error import BadInput
from onehop.machine import Traffic, goal, message_traffic, simulate, trace_rounds, traffic_of

# The numbers of Chakra's et_def.proto: node types, collective operations, and fields of a node's attributes.
COMP, SEND, RECV, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, BARRIER = 0, 2, 5, 6, 9
INT64, BOOL, TEXT = 9, 27, 29


def varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def packed(number: int, value: int | str | bytes | float) -> bytes:
    """Encode a field as protobuf does."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def binary(nodes: list[dict[str, Any]]) -> bytes:
    """Encode a trace: the metadata, then the nodes, each after its length."""
    texts = [packed(1, "0.0.4") + packed(2, packed(1, "pi") + packed(3, 3.14))]
    for node in nodes:
        text = packed(1, node["id"]) + packed(2, "name") + packed(3, node["type"])
        text += packed(4, b"".join(map(varint, node.get("ctrl_deps", [])))) + packed(6, 17)
        text += b"".join(packed(5, one) for one in node.get("data_deps", []))  # a writer may also pack them
        text += packed(7, node.get("duration_micros", 0))
        for name, value in node.get("attr", {}).items():
            kind = BOOL if isinstance(value, bool) else TEXT if isinstance(value, str) else INT64
            text += packed(10, packed(1, name) + packed(kind, value))
        texts.append(text)
    return b"".join(varint(len(text)) + text for text in texts)


def as_json(nodes: list[dict[str, Any]]) -> str:
    """Write a trace as Chakra's jsonizer: objects one after the other, long numbers as texts, enumerations by name."""
    names = {COMP: "COMP_NODE", SEND: "COMM_SEND_NODE", RECV: "COMM_RECV_NODE", COLLECTIVE: "COMM_COLL_NODE"}
    texts = ['{"version": "0.0.4"}']
    for node in nodes:
        attributes = []
        for name, value in node.get("attr", {}).items():
            key = (
                "boolVal"
                if isinstance(value, bool)
                else "stringVal"
                if isinstance(value, str)
                else "int64Val"
            )
            attributes.append({"name": name, key: str(value) if type(value) is int else value})
        found = {"id": str(node["id"]), "type": names[node["type"]], "attr": attributes}
        found |= {"durationMicros": str(node.get("duration_micros", 0))}
        found |= {
            "ctrlDeps": node.get("ctrl_deps", []),
            "dataDeps": list(map(str, node.get("data_deps", []))),
        }
        texts.append(json.dumps(found, indent=2))
    return "\n".join(texts)


def collective(number: int, kind: int, size: int, after: list[int], **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "type": COLLECTIVE,
        "data_deps": after,
        "attr": {"comm_type": kind, "comm_size": size, **more},
    }


STEP: list[dict[str, Any]] = [
    {"id": 7, "type": COMP, "duration_micros": 300, "attr": {"is_cpu_op": False}},
    {
        "id": 8,
        "type": COMP,
        "duration_micros": 10**6,
        "attr": {"is_cpu_op": True},
    },  # launches; not a time of its own
    collective(9, ALL_REDUCE, 64_000, [7]),
    {"id": 11, "type": COMP, "duration_micros": 200, "ctrl_deps": [7]},  # beside the all-reduce
    {"id": 12, "type": COMP, "duration_micros": 50, "data_deps": [9], "ctrl_deps": [11]},
]


def messages(traffic: Traffic) -> list[Counter[tuple[int, int, int]]]:
    return [Counter(traffic.messages(one)) for one in range(traffic.rounds)]


def as_graph(nodes: list[dict[str, Any]]) -> str:
    """Write a trace in the JSON form that ASTRA-sim's feeder reads."""
    listed = [
        {"Id": one["id"], "NodeType": one["type"], "runtime": one.get("duration_micros", 0)}
        | {"ctrlDeps": one.get("ctrl_deps", []), "data_deps": one.get("data_deps", []), **one.get("attr", {})}
        for one in nodes
    ]
    launch = {"Id": 99, "Name": "c10d::allreduce_", "NodeType": COLLECTIVE, "runtime": 85, "is_cpu_op": True}
    return json.dumps({"workload_graph": [*listed, launch]})


@pytest.mark.parametrize("form", ["binary", "json", "list", "graph"])
def test_a_step_of_training(form: str, tmp_path: Path) -> None:
    file = tmp_path / "step"
    if form == "list":
        file.write_text(json.dumps({"nodes": STEP}))
    elif form == "graph":
        file.write_text(as_graph(STEP))
    else:
        file.write_bytes(binary(STEP) if form == "binary" else as_json(STEP).encode())
    traffic, times = trace_rounds(file, 4, algorithm="two_shot")
    segments = Counter((a, b, 16_000) for a in range(4) for b in range(4) if a != b)
    assert messages(traffic) == [Counter(), segments, segments, Counter()]
    # Node 11 runs behind node 7; node 12 waits for the all-reduce.
    assert times == pytest.approx([500e-6, 0, 0, 50e-6])
    coded, _ = trace_rounds(file, 4, algorithm="two_shot", codec="q8")
    assert {size for _, _, size in coded.messages(1)} == {encoded_bytes("q8", "float32", 4000)}
    by_host, _ = trace_rounds(file, 8, machine="frontier")
    assert by_host.ranks == 8


def test_collective_operations(tmp_path: Path) -> None:
    nodes = [collective(1, ALL_GATHER, 10, []), collective(2, BROADCAST, 7, [1], root_rank=2)]
    nodes += [collective(3, ALL_TO_ALL, 9, [2]), collective(4, BARRIER, 0, [3])]
    (tmp_path / "x").write_bytes(binary(nodes))
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    assert messages(trace_rounds(tmp_path / "x", 3)[0]) == [
        Counter((a, b, 10) for a, b in pairs),
        Counter({(2, 0, 7): 1, (2, 1, 7): 1}),
        Counter((a, b, 3) for a, b in pairs),
        Counter((a, b, 0) for a, b in pairs),
    ]


def test_one_trace_for_each_rank(tmp_path: Path) -> None:
    """A pipeline of two stages, and an all-reduce in groups of two ranks."""
    for rank in range(4):
        other, first = rank ^ 2, rank < 2
        key = "comm_dst" if first else "comm_src"
        attributes = {key: other, "comm_size": 100 + rank % 2, "comm_tag": 5}
        nodes: list[dict[str, Any]] = [{"id": 1, "type": SEND if first else RECV, "attr": attributes}]
        nodes += [collective(2, ALL_REDUCE, 8, [1], pg_name=str(rank // 2))]
        (tmp_path / f"run.{rank}.et").write_bytes(binary(nodes))
    found = messages(trace_rounds(tmp_path / "run.0.et", algorithm="two_shot")[0])
    assert found[0] == Counter({(0, 2, 100): 1, (1, 3, 101): 1})
    halves = Counter((a, a ^ 1, 4) for a in range(4))
    assert found[1:] == [halves, halves]
    (tmp_path / "run.3.et").write_bytes(binary([*nodes, collective(3, ALL_REDUCE, 8, [2], pg_name="1")]))
    with pytest.raises(
        BadInput, match="expected ALL_REDUCE on each of the 2 ranks of its group, found it on 1"
    ):
        trace_rounds(tmp_path / "run.0.et")
    (tmp_path / "run.3.et").write_bytes(binary([{"id": 1, "type": COMP}]))
    with pytest.raises(
        BadInput, match=r"run.1.et, node 1: expected a receive for the message from rank 1 to rank 3"
    ):
        trace_rounds(tmp_path / "run.0.et")


def test_goal_is_read_as_it_is_written(tmp_path: Path) -> None:
    for number, traffic in enumerate(
        [
            traffic_of(onehop.halo(extents=(9, 9), grid=(3, 3))),
            traffic_of(onehop.permute_bits(7, local=4, permutation=[4, 6, 2, 3, 0, 5, 1])),
            message_traffic(7, [[(rank, (rank + 1) % 7, 1 + 333 * rank) for rank in range(7)]] * 4),
            message_traffic(2, [[(0, 1, 8)], [(1, 0, 9)]] * 5),
        ]
    ):
        file = tmp_path / f"{number}.goal"
        file.write_text(goal(traffic, compute_ns=7))
        found, times = trace_rounds(file)
        assert messages(found) == messages(traffic)
        assert simulate(found, "fugaku").seconds == simulate(traffic, "fugaku").seconds
        if number != 3:  # where ranks have no message in a round, their calculations wait for none
            assert times == pytest.approx([7e-9] * traffic.rounds)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.et"
    file.write_bytes(binary([*STEP[:2], collective(9, ALL_REDUCE, 64_000_000, [7]), *STEP[3:]]))
    seconds = []
    for more in ("", "--codec q8"):
        command = f"simulate trace {file} -n 16 --machine frontier --algorithm two_shot --json - {more}"
        assert main(command.split()) == 0
        seconds.append(json.loads(capsys.readouterr().out)["seconds"])
    assert 550e-6 < seconds[1] < seconds[0]
    for arguments, message in (
        ("trace --machine fugaku", "expected the file of the trace, found none"),
        ("halo x --grid 2 --extent 8 --machine fugaku", "with the pattern trace only"),
        (f"trace {file}.none --machine fugaku", "cannot read the trace"),
        (f"trace {file} --compute 1 --machine fugaku", "expected no --compute with a trace"),
    ):
        assert main(["simulate", *arguments.split()]) == 2
        assert message in capsys.readouterr().err


GOAL = "num_ranks 2\nrank 0 {{\na: {0}\n{1}\n}}\nrank 1 {{\nb: recv 8b from 0 tag 1\n}}\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "with nodes, found none|num_ranks"),
        (b"\x7fELF\x02\x01\x01", "found the end of the file|neither"),
        (b'{"nodes": 3', "trace in JSON"),
        (b'{"nodes": 3}', "nodes as JSON objects, found 3"),
        (b'[{"id": "x", "type": 4}]', "id as a whole number of 0 or more, found 'x'"),
        (
            b'[{"id": 1, "type": 4, "ctrl_deps": ["a"]}]',
            "ctrl_deps as a whole number of 0 or more, found 'a'",
        ),
        (b'[{"id": 1, "type": 4}, {"id": 1, "type": 4}]', "every node once"),
        (b'[{"id": 1, "type": 4, "ctrl_deps": [1], "duration_micros": 1}]', "steps that wait for each other"),
        (binary([collective(1, 77, 8, [])]), "comm_type as one of ALL_REDUCE"),
        (binary([{"id": 1, "type": SEND, "attr": {"comm_dst": 1}}]), "messages between ranks below 1"),
        (binary(STEP)[:-3], "expected a message of .* bytes, found the end of the file"),
        (b"num_ranks 0", "line 1: expected num_ranks with 1 to"),
        (b"num_ranks 1\nrank 1 {\n}", r"line 2: expected 'rank R \{' with every R below 1"),
        (b"num_ranks 1\nrank 0 {", r"expected a '\}' after the last line"),
        (
            GOAL.format("send 8b to 1 tag 0", "").encode(),
            "expected a receive for the message from rank 0 to rank 1",
        ),
        (GOAL.format("send 8b to 2 tag 1", "").encode(), "line 3: expected a rank below 2, found 2"),
        (
            GOAL.format("send 8b to 1 tag 1", "a requires c").encode(),
            "line 4: expected the label .* found 'c'",
        ),
        (GOAL.format("send 8 to 1", "").encode(), "line 3: expected 'send NUMBERb to RANK'"),
        (GOAL.format("send 8b to 1 tag 1", "a: calc 3").encode(), "line 4: expected every label once"),
    ],
)
def test_bad_files(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(BadInput, match=message) as caught:
        trace_rounds(tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_any_bytes_are_a_trace_or_an_error(tmp_path: Path) -> None:
    good, errors = binary(STEP), []
    for at in range(len(good)):
        (tmp_path / "file").write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        try:
            trace_rounds(tmp_path / "file", 2)
        except BadInput as error:
            errors.append(str(error))
    assert len(errors) > 20
    assert not [error for error in errors if "\n" in error]
