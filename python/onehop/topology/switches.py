"""Hosts below a tree of switches, from Slurm's topology.conf or a list of switches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from onehop._core import HostLayout
from onehop.arguments import items, quoted, whole_number, whole_numbers
from onehop.error import BadInput
from onehop.input_file import read_text
from onehop.text import counted

_LARGEST = 1 << 20  # hosts, and places of hosts below switches of unequal size


def _pieces(text: str, where: str) -> Iterator[str]:
    """Split a list at the commas and spaces outside of brackets."""
    for piece in re.findall(r"(?:\[[^\[\]]*\]|[^\[\],\s])+|\S", text):
        if piece == ",":
            continue
        if piece in "[]":
            raise BadInput(f"{where}: expected brackets in pairs, as in n[0-7], found {text!r}")
        yield piece


def _range(item: str, piece: str, where: str) -> Iterator[str]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", item.strip())
    first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
    if match is None or last < first:
        raise BadInput(f"{where}: expected numbers and ranges in brackets, as in n[0-3,7], found {piece!r}")
    if last - first >= _LARGEST:
        raise BadInput(f"{where}: expected at most {_LARGEST} names, found {piece!r}")
    for number in range(first, last + 1):
        yield f"{number:0{len(match[1])}d}"


def host_names(text: str, where: str = "the list of hosts") -> list[str]:
    """Return the names of a list as Slurm writes it: n[0-2,7],login gives n0, n1, n2, n7, login. Raises BadInput."""
    found: list[str] = []
    for piece in _pieces(text, where):
        names = [""]
        for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", piece):
            ends = (
                [literal]
                if literal
                else [one for item in ranges.split(",") for one in _range(item, piece, where)]
            )
            if len(names) * len(ends) + len(found) > _LARGEST:
                raise BadInput(f"{where}: expected at most {_LARGEST} names, found more in {piece!r}")
            names = [name + end for name in names for end in ends]
        found += names
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Give the lines without comments, those that end with a backslash joined to the next, with their numbers."""
    begun, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        first = first or number
        begun += line.split("#")[0].rstrip()
        if begun.endswith("\\"):
            begun = begun[:-1] + " "
            continue
        if begun.strip():
            yield first, begun.strip()
        begun, first = "", 0
    if begun.strip():
        yield first, begun.strip()


def _switches(text: str, file: str) -> dict[str, tuple[str, list[str]]]:
    """Return the place and the members of every switch, in the order of the file."""
    found: dict[str, tuple[str, list[str]]] = {}
    for number, line in _lines(text):
        where = f"{file}, line {number}"
        if match := re.fullmatch(r"([^\s:=]+)\s*:\s*(.*)", line):
            name, members = match[1], host_names(match[2], where)
        else:
            fields = {}
            for word in line.split():
                key, equals, value = word.partition("=")
                if not equals or not value:
                    raise BadInput(
                        f"{where}: expected SwitchName=NAME with Nodes=LIST or Switches=LIST, or 'NAME: MEMBERS', "
                        f"found {line[:60]!r}"
                    )
                fields[key.lower()] = value
            name = fields.get("switchname", "")
            members = host_names(fields.get("switches", ""), where) + host_names(
                fields.get("nodes", ""), where
            )
        if not name or not members:
            what = "a name" if not name else f"nodes or switches of {name}"
            raise BadInput(f"{where}: expected a switch with {what}, found {line[:60]!r}")
        if name in found:
            raise BadInput(f"{where}: expected every switch once, found {name} again, as in {found[name][0]}")
        found[name] = (where, members)
    if not found:
        raise BadInput(f"{file}: expected switches, one a line, found none")
    return found


def _paths(switches: dict[str, tuple[str, list[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the switches above every node, outermost first."""
    above: dict[str, str] = {}
    for name, (where, members) in switches.items():
        for member in members:
            if member in above:
                raise BadInput(
                    f"{where}: expected {member} below one switch, found it below {above[member]} and {name}"
                )
            above[member] = name
    found: dict[str, tuple[str, ...]] = {}
    for node in [*above, *switches]:
        path = [node]
        while path[-1] in above:
            path.append(above[path[-1]])
            if path[-1] == node or len(path) > len(switches) + 1:
                loop = path[path.index(path[-1]) :]
                where = switches[path[-1]][0]
                raise BadInput(
                    f"{where}: expected a tree of switches, found a loop: {' -> '.join(reversed(loop))}"
                )
        if node not in switches:
            found[node] = tuple(reversed(path[1:]))
    return found


def switch_hosts(
    file: str | Path,
    per_host: Sequence[int],
    names: Sequence[str] | None = None,
    costs: Sequence[int] | None = None,
    *,
    hosts: int | None = None,
) -> tuple[HostLayout, list[str]]:
    """Return hosts with the switches above them as units, and the name of every host.

    Where switches have unequal numbers of members, hosts have numbers that leave gaps, whose names are empty.

    Parameters
    ----------
    file : str or path
        Slurm's topology.conf (topology/tree), or one line `SWITCH: MEMBER MEMBER ...` for every switch; members are
        nodes or switches, and lists as n[0-7].
    per_host : sequence of int
        Number of ranks per host, one for all or one for each.
    names : sequence of str, optional
        The nodes of the job, in the order of ranks; by default the first ones of the file.
    costs : sequence of int, optional
        Cost of a byte that leaves a host, the lowest switch, ...; by default 1, 2, 3, ...
    hosts : int, optional
        Number of nodes of the job; by default all.

    Raises
    ------
    BadInput
        The file is malformed, a node is below two switches or unknown, or the switches form a loop.
    """
    if not isinstance(file, str | Path):
        raise BadInput(f"switch_hosts: expected the path of a file, found {quoted(file)}")
    per_host = whole_numbers(per_host, "per_host", 0)
    hosts = None if hosts is None else whole_number(hosts, "hosts", 0)
    paths = _paths(_switches(read_text(file, "topology", 64 << 20), str(file)))
    nodes = list(paths) if names is None else [str(name) for name in items(names, "names")]
    if hosts is not None and (hosts > len(nodes) or (names is not None and hosts < len(nodes))):
        found = "names" if names is not None else f"nodes in {file}"
        raise BadInput(f"expected {counted(hosts, 'host')}, found {len(nodes)} {found}")
    nodes = nodes[:hosts]
    for node in nodes:
        if node not in paths:
            raise BadInput(f"{file}: expected the node {node} below a switch, found none of this name")
    if len(per_host) not in (1, len(nodes)):
        raise BadInput(
            f"expected the ranks per host as one number, or one for each of {counted(len(nodes), 'host')}, found "
            f"{len(per_host)}"
        )
    sizes = dict(zip(nodes, per_host if len(per_host) > 1 else [*per_host] * len(nodes), strict=True))
    if len(sizes) < len(nodes):
        raise BadInput(
            f"expected every host once, found {counted(len(nodes), 'host')} with {len(sizes)} names"
        )
    depth = max(len(paths[node]) for node in nodes)
    # A node that is not as deep as others has switches of its own below its last one.
    members: list[dict[tuple[str, ...], dict[str, int]]] = [{} for _ in range(depth + 1)]
    places: dict[str, list[int]] = {}
    for node in (one for one in paths if one in sizes):
        path = (*paths[node], *[node] * (depth - len(paths[node])), node)
        places[node] = [
            members[level]
            .setdefault(path[:level], {})
            .setdefault(path[level], len(members[level][path[:level]]))
            for level in range(depth + 1)
        ]
    widths = [max(len(below) for below in level.values()) for level in members]
    kept = [level for level, width in enumerate(widths) if width > 1] or [depth]
    number: dict[str, int] = {}
    for node, place in places.items():
        host = 0
        for level in kept:
            host = host * widths[level] + place[level]
        number[node] = host
    if max(number.values()) >= _LARGEST:
        raise BadInput(
            f"{file}: expected switches of similar sizes, found {_LARGEST} or more places of hosts"
        )
    host_of_rank = [number[node] for node, size in sizes.items() for _ in range(size)]
    groups = [widths[level] for level in reversed(kept[1:])]
    known = list(range(1, len(groups) + 2)) if costs is None else costs
    by_number = {host: node for node, host in number.items()}
    return HostLayout(host_of_rank, groups, known), [
        by_number.get(host, "") for host in range(max(by_number) + 1)
    ]
