"""Traces of programs as traffic: GOAL (the text of LogGOPSim), and Chakra's execution traces, binary or JSON."""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.input_file import decoded, read_bytes

_LONGEST = 1 << 30  # bytes of a file
_MOST_RANKS = 1 << 20


@dataclass
class Step:
    """A calculation, a message's end or a collective operation of one rank."""

    kind: str  # "calc", "send", "recv", or the name of a collective operation
    size: int  # nanoseconds or bytes
    after: list[int] = field(default_factory=list)  # steps of the rank that end before it begins
    beside: list[int] = field(default_factory=list)  # steps of the rank that begin before it
    peer: int = 0  # the other rank of a message, or the root
    tag: int = 0
    lane: object = 0  # calculations of one lane take turns
    group: str = ""
    where: str = ""


Program = list[list[Step]]  # of each rank


def read_trace(file: str | Path, ranks: int | None = None) -> Program:
    """Read a trace in one of the formats, and check that messages have ranks below the number of ranks.

    Parameters
    ----------
    file : str or path
        GOAL as text, or Chakra's trace of rank 0. Where its name ends with `.0.et` or `.0.json`, the traces of the
        other ranks are beside it, with their numbers.
    ranks : int, optional
        Number of ranks. One trace of Chakra then stands for all of them.

    Raises
    ------
    BadInput
        The file is none of these formats, or malformed.
    """
    data = read_bytes(Path(file), "trace", _LONGEST)
    head = data[:4096].lstrip()
    if re.match(rb"(?://.*\s|/\*|#.*\s)*num_ranks\b", head):
        program = _goal(decoded(data, file), str(file))
        if ranks is not None and ranks != len(program):
            raise BadInput(
                f"{file}: expected the number of ranks of the trace, {len(program)}, found {ranks}"
            )
        return program
    files = [Path(file)]
    match = re.fullmatch(r"(.*\.)0(\.et|\.json)", Path(file).name)
    while match and (beside := Path(file).with_name(f"{match[1]}{len(files)}{match[2]}")).exists():
        files.append(beside)
    if len(files) > 1 and ranks not in (None, len(files)):
        raise BadInput(f"{file}: expected the number of ranks of the traces, {len(files)}, found {ranks}")
    program = [
        _chakra(data if one == Path(file) else read_bytes(one, "trace", _LONGEST), str(one)) for one in files
    ]
    number = ranks or len(files)
    for steps in program:
        for step in steps:
            if step.kind in ("send", "recv") and (number > len(files) or not 0 <= step.peer < number):
                raise BadInput(
                    f"{step.where}: expected messages between ranks below {len(files)}, the number of traces, found "
                    f"one with rank {step.peer}; name the trace of rank 0 as NAME.0.et, beside those of all others"
                )
    return program


_STEP = re.compile(
    r"(?:(\w+)\s*:\s*)?(?:(send|recv)\s+(\d+)b\s+(to|from)\s+(\d+)|calc\s+(\d+))((?:\s+(?:tag|cpu|nic)\s+\d+)*)"
)
_ORDER = re.compile(r"(\w+)\s+(i?)requires\s+(\w+)")


def _goal(text: str, file: str) -> Program:
    """Return the program of a text in GOAL."""
    found: Program = []
    opened: int | None = None
    seen: set[int] = set()
    labels: dict[str, int] = {}
    plain = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.DOTALL)
    for number, raw in enumerate(plain.splitlines(), 1):
        line = re.split(r"//|#", raw)[0].strip()
        where = f"{file}, line {number}"
        if not line:
            continue
        if not found:
            match = re.fullmatch(r"num_ranks\s+(\d+)", line)
            if not match or not 0 < int(match[1]) <= _MOST_RANKS:
                raise BadInput(
                    f"{where}: expected num_ranks with 1 to {_MOST_RANKS} ranks, found {line[:60]!r}"
                )
            found = [[] for _ in range(int(match[1]))]
        elif opened is None:
            match = re.fullmatch(r"rank\s+(\d+)\s*\{", line)
            if not match or int(match[1]) >= len(found) or int(match[1]) in seen:
                raise BadInput(
                    f"{where}: expected 'rank R {{' with every R below {len(found)} once, found {line[:60]!r}"
                )
            opened, labels = int(match[1]), {}
            seen.add(opened)
        elif line == "}":
            opened = None
        elif match := _ORDER.fullmatch(line):
            for label in (match[1], match[3]):
                if label not in labels:
                    raise BadInput(f"{where}: expected the label of a line above, found {label!r}")
            step = found[opened][labels[match[1]]]
            (step.beside if match[2] else step.after).append(labels[match[3]])
        else:
            step = _goal_step(line, len(found), where)
            label = line.split(":")[0].strip() if ":" in line else ""
            if label in labels:
                raise BadInput(f"{where}: expected every label once on a rank, found {label!r} again")
            if label:
                labels[label] = len(found[opened])
            found[opened].append(step)
    if opened is not None or not found:
        raise BadInput(
            f"{file}: expected a '}}' after the last line of every rank, found the end of the file"
        )
    return found


def _goal_step(line: str, ranks: int, where: str) -> Step:
    match = _STEP.fullmatch(line)
    if not match or (match[2] == "send") != (match[4] == "to"):
        raise BadInput(
            f"{where}: expected 'send NUMBERb to RANK', 'recv NUMBERb from RANK', 'calc NUMBER' or 'A requires B', "
            f"found {line[:60]!r}"
        )
    words = match[7].split()
    more = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    if match[2] and int(match[5]) >= ranks:
        raise BadInput(f"{where}: expected a rank below {ranks}, found {match[5]}")
    if match[2]:
        return Step(match[2], int(match[3]), peer=int(match[5]), tag=more.get("tag", 0), where=where)
    return Step("calc", int(match[6]), lane=more.get("cpu", 0), where=where)


# The numbers of Chakra's enumerations.
_NODES = ("INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL")
COLLECTIVES = (
    "ALL_REDUCE",
    "REDUCE",
    "ALL_GATHER",
    "GATHER",
    "SCATTER",
    "BROADCAST",
    "ALL_TO_ALL",
    "REDUCE_SCATTER",
    "REDUCE_SCATTER_BLOCK",
    "BARRIER",
)


def _fields(data: bytes, where: str) -> Iterator[tuple[int, Any]]:
    """Give the fields of a message in the protobuf encoding: numbers, or bytes of what is nested."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at, where)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at, where)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _varint(data, at, where)
        else:
            length = {1: 8, 5: 4}.get(kind, len(data))
        if at + length > len(data):
            raise BadInput(f"{where}: expected a trace of GOAL or Chakra (et_def.proto), found other bytes")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    raise BadInput(
        f"{where}: expected a trace of GOAL or Chakra, found bytes that end too early or are neither"
    )


def _attribute(data: bytes, where: str) -> tuple[str, Any]:
    name, value = "", None
    for number, found in _fields(data, where):
        if number == 1:
            name = bytes(found).decode("utf-8", "replace") if isinstance(found, bytes) else ""
        elif number in (7, 9, 11, 13, 27):  # int32, int64, uint32, uint64, bool
            value = found - (1 << 64) if isinstance(found, int) and found >> 63 else found
        elif number in (15, 17) and isinstance(found, int):  # sint32, sint64
            value = (found >> 1) ^ -(found & 1)
        elif number in (19, 21, 23, 25) and isinstance(found, bytes):  # fixed32, fixed64, sfixed32, sfixed64
            value = int.from_bytes(found, "little", signed=number > 21)
        elif number == 3 and isinstance(found, bytes) and len(found) == 8:
            (value,) = struct.unpack("<d", found)
        elif number == 29 and isinstance(found, bytes):
            value = found.decode("utf-8", "replace")
    return name, value


def _binary_nodes(data: bytes, file: str) -> Iterator[dict[str, Any]]:
    """Give the nodes of a binary trace, in the names of the JSON form."""
    at, first = 0, True
    while at < len(data):
        where = f"{file}, byte {at}"
        length, at = _varint(data, at, where)
        if at + length > len(data):
            raise BadInput(f"{where}: expected a message of {length} bytes, found the end of the file")
        if first:  # the metadata
            list(_fields(data[at : at + length], where))
        else:
            node: dict[str, Any] = {"ctrl_deps": [], "data_deps": [], "attr": {}}
            for number, value in _fields(data[at : at + length], where):
                if number in (4, 5):
                    packed = [value]
                    if isinstance(value, bytes):
                        packed, place = [], 0
                        while place < len(value):
                            one, place = _varint(value, place, where)
                            packed.append(one)
                    node["ctrl_deps" if number == 4 else "data_deps"] += packed
                elif number == 10 and isinstance(value, bytes):
                    name, found = _attribute(value, where)
                    node["attr"][name] = found
                elif number in (1, 3, 7):
                    node[{1: "id", 3: "type", 7: "duration_micros"}[number]] = value
            yield node
        at, first = at + length, False


def _json_nodes(text: str, file: str) -> Iterator[dict[str, Any]]:
    """Give the nodes of the JSON forms: objects one after the other, the first one the metadata, or one list."""
    decoder, space, at = json.JSONDecoder(), re.compile(r"[\s,]*"), 0
    found: list[Any] = []
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            if isinstance(value, dict):
                value = value.get("nodes", value.get("workload_graph", value))
            found += value if isinstance(value, list) else [value]
            at = space.search(text, at).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file}: expected Chakra's trace in JSON, found {str(error)[:80]}") from error
    snake = re.compile(r"(?<=[a-z0-9])([A-Z])")
    for one in found:
        if not isinstance(one, dict):
            raise BadInput(f"{file}: expected nodes as JSON objects, found {json.dumps(one)[:60]}")
        node = {snake.sub(r"_\1", key).lower(): value for key, value in one.items()}
        if "id" not in node:
            continue  # the metadata
        node = {"type": node.get("node_type", 0), "duration_micros": node.get("runtime", 0), **node}
        attributes = node.get("attr", node)
        if isinstance(attributes, list):
            attributes = {
                each.get("name"): next(
                    (value for key, value in each.items() if key.lower().endswith("val")), None
                )
                for each in attributes
                if isinstance(each, dict)
            }
        node["attr"] = attributes
        yield node


def _number(node: dict[str, Any], key: str, where: str) -> int:
    """Return a whole number of a node or of its attributes; JSON has long ones as texts."""
    value = node.get(key, 0)
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < 1 << 62:
        raise BadInput(f"{where}: expected {key} as a whole number of 0 or more, found {str(value)[:40]!r}")
    return number


def _named(value: Any, names: tuple[str, ...], suffix: str = "") -> str:
    """Return the name of an entry of an enumeration, given by its number or name."""
    text = str(value).upper()
    if text.isdecimal():
        return names[int(text)] if int(text) < len(names) else ""
    return text.removesuffix(suffix)


def _chakra(data: bytes, file: str) -> list[Step]:
    """Return the program of one rank."""
    is_json = data[:64].lstrip()[:1] in (b"{", b"[")
    nodes = list(_json_nodes(decoded(data, file).strip(), file) if is_json else _binary_nodes(data, file))
    if not nodes:
        raise BadInput(f"{file}: expected a trace of GOAL or Chakra with nodes, found none")
    place: dict[int, int] = {}
    steps = []
    for node in nodes:
        identity = _number(node, "id", file)
        where = f"{file}, node {identity}"
        if identity in place:
            raise BadInput(f"{where}: expected every node once, found it again")
        place[identity] = len(steps)
        attributes = node["attr"] if isinstance(node.get("attr"), dict) else {}
        kind = _named(node.get("type", 0), _NODES, "_NODE")
        group = attributes.get("pg_name", attributes.get("comm_group"))
        step = Step("calc", 0, group="" if group is None else str(group), where=where)
        launches = str(attributes.get("is_cpu_op", 0)).lower() in ("1", "true")
        if kind in ("COMP", "MEM_LOAD", "MEM_STORE") and not launches:
            step.size = 1000 * _number(node, "duration_micros", where)
        elif kind in ("COMM_SEND", "COMM_RECV"):
            step.kind = "send" if kind == "COMM_SEND" else "recv"
            step.peer = _number(attributes, "comm_dst" if step.kind == "send" else "comm_src", where)
            step.size, step.tag = (_number(attributes, key, where) for key in ("comm_size", "comm_tag"))
        elif kind == "COMM_COLL" and ("comm_size" in attributes or not launches):
            step.kind = _named(attributes.get("comm_type", 0), COLLECTIVES)
            step.size = _number(attributes, "comm_size", where)
            step.peer = _number(attributes, "root_rank", where)
            if step.kind not in COLLECTIVES:
                raise BadInput(
                    f"{where}: expected comm_type as one of {', '.join(COLLECTIVES)}, found "
                    f"{str(attributes.get('comm_type'))[:40]}"
                )
        steps.append(step)
    for node, step in zip(nodes, steps, strict=True):
        for key in ("ctrl_deps", "data_deps"):
            listed = node.get(key, [])
            for one in listed if isinstance(listed, list) else [listed]:
                number = _number({key: one}, key, step.where)
                if number in place:  # a trace may be a part of a longer one
                    step.after.append(place[number])
    return steps


def groups_of(program: Program) -> dict[str, list[int]]:
    """Return the ranks that take part in the collective operations of each group."""
    found: dict[str, list[int]] = defaultdict(list)
    for rank, steps in enumerate(program):
        for group in dict.fromkeys(step.group for step in steps if step.kind in COLLECTIVES):
            found[group].append(rank)
    return found
