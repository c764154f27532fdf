"""The examination of `onehop doctor --all`: all ranks of a launch and the links between their hosts. Collective."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from onehop import _core
from onehop.cores import machine_cores, usable_cores
from onehop.doctor import machine, software
from onehop.group import Group
from onehop.text import bytes_text, counted, ranges, seconds_text

LARGE = 4 << 20  # bytes of the messages whose rate is measured
_SECONDS = 8.0  # of all measurements of pairs together
_PER_PAIR = 0.3
# What has less than this part of the speed of others is called slow.
SLOW = 0.6
_CLOCK_LIMIT = 0.1  # seconds between the clocks of hosts, from where they are called different


@dataclass(frozen=True)
class Pair:
    """The link of two hosts, `a` and `b`, which are numbers in the list of hosts; of two ranks if both are one host.

    Attributes
    ----------
    us : float
        Time of a message of 16 bytes in microseconds: half of a round trip that one in ten is below.
    gb_per_s : float
        Rate of messages of 4 MiB in each direction in turn.
    clock_s : float
        How far the clock of host `b` is ahead of that of `a`.
    """

    a: int
    b: int
    us: float
    gb_per_s: float
    clock_s: float


@dataclass
class Allocation:
    """What `examine_all` finds; the same on all ranks.

    Attributes
    ----------
    hosts : list of dict
        Of each host its `name`, `ranks`, `cores`, `memory`, `clock_mhz`, `ucx` (its networks), and `memory_gb_per_s`
        and `compute` (relative to the median of all ranks) of its slowest rank.
    differences : list of str
        Settings in which ranks differ.
    pairs : list of Pair
        The links, first those inside hosts that have several ranks.
    slow : list of str
        What is slow against the rest.
    verdict : str
        One line.
    """

    hosts: list[dict[str, Any]]
    differences: list[str]
    pairs: list[Pair] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    verdict: str = ""

    @property
    def is_well(self) -> bool:
        """Whether nothing differs and nothing is slow."""
        return not (self.differences or self.slow)

    def to_dict(self) -> dict[str, Any]:
        """Return the object of the JSON report, in which links have the names of their hosts."""
        names = [host["name"] for host in self.hosts]
        pairs = [{**asdict(one), "a": names[one.a], "b": names[one.b]} for one in self.pairs]
        return {"ok": self.is_well, **asdict(self), "pairs": pairs}


def _loaded(library: str) -> str:
    """Return the path of a library that this process has loaded."""
    try:
        found = re.search(rf"\S*/{library}[^/\s]*\.so\S*", Path("/proc/self/maps").read_text())
    except OSError:
        return "unknown"
    return found[0] if found else "none"


def settings() -> dict[str, str]:
    """Return the versions and settings of this rank that all ranks should share."""
    found = {
        "onehop": _core.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "processor": machine.cpu_name(),
        "SIMD": machine.simd()[0],
        "cores": str(usable_cores()),
        "MPI library": _loaded("libmpi"),
        "UCX library": _loaded("libucp"),
        "tuning": "built in" if _core.tuning_origin() == "built in" else "measured",
    }
    for variable in _core.environment_variables():
        if variable["set_by"] == "user":
            found[variable["name"]] = os.environ.get(variable["name"], "") or "unset"
    return found


def differences(of_ranks: Sequence[Mapping[str, str]]) -> list[str]:
    """Say which settings differ, and on which ranks: "NumPy: 2.1 on rank 0-3, 1.26 on rank 4"."""
    found = []
    for name in dict.fromkeys(name for one in of_ranks for name in one):
        ranks: dict[str, list[int]] = {}
        for rank, one in enumerate(of_ranks):
            ranks.setdefault(one.get(name, "unset"), []).append(rank)
        if len(ranks) > 1:
            found.append(
                f"{name}: " + ", ".join(f"{text} on rank {ranges(own)}" for text, own in ranks.items())
            )
    return found


def rounds_of(hosts: int) -> list[list[tuple[int, int]]]:
    """Return rounds of pairs in which each host meets every other one once, and is in one pair at a time."""
    places: list[int] = list(range(hosts + hosts % 2))
    found = []
    for _ in range(len(places) - 1):
        pairs = [(places[i], places[-1 - i]) for i in range(len(places) // 2)]
        found.append([(min(pair), max(pair)) for pair in pairs if max(pair) < hosts])
        places = [places[0], places[-1], *places[1:-1]]
    return found


def slow_pairs(pairs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """Say which links are slow against others of their kind; a host whose links all are is named once."""
    found = []
    for kind in ([one for one in pairs if one.a != one.b], [one for one in pairs if one.a == one.b]):
        if len(kind) < 3:
            continue
        # Of the best third: a host that is slow takes half of the links of four hosts.
        third = (len(kind) - 1) // 3
        rate = sorted((one.gb_per_s for one in kind), reverse=True)[third]
        time_of_message = sorted(one.us for one in kind)[third]
        slow = [one for one in kind if one.gb_per_s < SLOW * rate or one.us * SLOW > time_of_message]
        bad = {
            host
            for host in range(len(names))
            if (own := [one for one in kind if host in (one.a, one.b) and one.a != one.b])
            and len(own) > 1
            and all(one in slow for one in own)
        }
        found += [f"all links of host {names[host]}" for host in sorted(bad)]
        for one in slow:
            if one.a in bad or one.b in bad:
                continue
            where = f"{names[one.a]} to {names[one.b]}" if one.a != one.b else f"inside host {names[one.a]}"
            found.append(
                f"{where}: {one.us:.3g} µs and {one.gb_per_s:.3g} GB/s, where others have "
                f"{time_of_message:.3g} µs and {rate:.3g} GB/s"
            )
    return found


def _rank_speed() -> tuple[float, float]:
    """Return this rank's rate of copies in GB/s, and its computations per second; the best of some."""
    source = np.ones(4 << 20)
    target = np.empty_like(source)
    numbers = np.linspace(0, 1, 1 << 14)
    copies, computations = [], []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        copies.append(time.perf_counter() - begin)
    for _ in range(50):
        begin = time.perf_counter()
        np.sin(numbers)
        computations.append(time.perf_counter() - begin)
    return 2e-9 * source.nbytes / min(copies), 1 / min(computations)


def _clock_mhz() -> float | None:
    """Return the clock of the processor now; None if the system does not say."""
    try:
        found = re.search(r"^cpu MHz\s*: ([\d.]+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        return (
            float(found[1])
            if found
            else float(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").read_text()) / 1000
        )
    except (OSError, ValueError):
        return None


class _Link:
    """One of the two ends of a measured link; the messages of `first` say whether the other one goes on."""

    def __init__(self, group: Group, peer: int | None, count: int, seconds: float, *, first: bool) -> None:
        both = {} if peer is None else {peer: 8 * count}
        ends = group.channels(send=both, receive=both)
        self._first, self._seconds = first, seconds
        self._ends = None if peer is None else (ends.send[peer], ends.receive[peer])
        self._message = np.zeros(count)

    def round_trips(self) -> tuple[list[float], float]:
        """Return the times of round trips, and how far the other clock is ahead; on the second rank nothing."""
        if self._ends is None:
            return [], 0.0
        send, receive = self._ends
        message, times, ahead, least = self._message, [], 0.0, float("inf")
        end = time.perf_counter() + self._seconds
        go_on = 1.0
        while go_on:
            if self._first:
                go_on = float(len(times) < 4 or time.perf_counter() < end)
                message[0] = go_on
                begin, clock = time.perf_counter(), time.time()
                send.put(message)
                receive.get(message)
                took = time.perf_counter() - begin
                times.append(took)
                if took < least:
                    least, ahead = took, message[1] - clock - took / 2
            else:
                receive.get(message)
                go_on = message[0]
                message[1] = time.time()
                send.put(message)
        return times[2:], ahead


def _usual(times: Sequence[float]) -> float:
    """Return a time that one in ten is below: that of an undisturbed round trip."""
    return sorted(times)[len(times) // 10]


def _measure(group: Group, hosts: Sequence[Sequence[int]], say: Callable[[str], None]) -> list[Pair]:
    """Measure the links of all pairs of hosts, each by the first rank of a host, and inside hosts by its first two."""
    inside = [[(number, number) for number, ranks in enumerate(hosts) if len(ranks) > 1]]
    rounds = [one for one in [*inside, *rounds_of(len(hosts))] if one]
    seconds = min(_PER_PAIR, _SECONDS / max(1, len(rounds)))
    mine: list[Pair] = []
    for number, pairs in enumerate(rounds, 1):
        say(f"links: round {number} of {len(rounds)}")
        ends = {(a, b): (hosts[a][0], hosts[b][a == b]) for a, b in pairs}
        own = next((pair for pair, ranks in ends.items() if group.rank in ranks), None)
        peer = None if own is None else next(rank for rank in ends[own] if rank != group.rank)
        is_first = own is not None and ends[own][0] == group.rank
        found = []
        for count, part in ((2, 0.3), (LARGE // 8, 0.7)):
            link = _Link(group, peer, count, part * seconds, first=is_first)
            group.barrier()
            found.append(link.round_trips())
        if is_first and own is not None:
            (small, ahead), (large, _) = found
            mine.append(Pair(*own, 5e5 * _usual(small), 2e-9 * LARGE / _usual(large), ahead))
    told = group.allgather(json.dumps([asdict(one) for one in mine]).encode())
    return sorted(
        (Pair(**one) for row in told for one in json.loads(bytes(row))),
        key=lambda one: (one.a != one.b, one.a, one.b),
    )


def _hosts(of_ranks: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Return the ranks of each host, in the order of their first ranks."""
    found: dict[int, list[int]] = {}
    for rank, one in enumerate(of_ranks):
        found.setdefault(one["first"], []).append(rank)
    return list(found.values())


def _host(ranks: Sequence[int], of_ranks: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    first, own = of_ranks[ranks[0]], [of_ranks[rank] for rank in ranks]
    return {
        "name": name,
        "ranks": list(ranks),
        "cores": first["cores"],
        "memory": first["memory"],
        "clock_mhz": first["clock_mhz"],
        "ucx": first["ucx"],
        "memory_gb_per_s": min(one["copies"] for one in own),
        "compute": min(one["compute"] for one in own) / median(one["compute"] for one in of_ranks),
    }


def _slow_ranks(of_ranks: Sequence[Mapping[str, Any]], hosts: Sequence[Sequence[int]]) -> list[str]:
    found: list[str] = []
    if any(len(ranks) > of_ranks[ranks[0]]["processors"] for ranks in hosts):
        return found  # ranks that take turns say nothing about the machine
    for key, what in (("copies", "copies in memory"), ("compute", "computes")):
        usual = median(one[key] for one in of_ranks)
        slow = [rank for rank, one in enumerate(of_ranks) if one[key] < SLOW * usual]
        if slow:
            least = min(of_ranks[rank][key] for rank in slow) / usual
            found.append(f"rank {ranges(slow)} {what} at down to {least:.2f} of the median rate")
    return found


def examine_all(group: Group, say: Callable[[str], None] = lambda _: None) -> Allocation:
    """Compare versions, settings and speeds of all ranks, and measure the link of every pair of hosts. Collective.

    At any time a host is in one pair only, but pairs of other hosts are measured at the same time. `say` is called with
    the name of each part.
    """
    say("settings")
    leads = group.rank == min(group.local_ranks)
    ucx = software.ucx_library() if leads else {}
    group.barrier()
    copies, compute = _rank_speed()
    available = machine.memory()
    limits = [available[key] for key in ("available", "group_limit") if available[key] is not None]
    mine = {
        "settings": settings(),
        "first": min(group.local_ranks),
        "host": os.environ.get("ONEHOP_TEST_HOST") or platform.node(),
        "cores": usable_cores(),
        "processors": machine_cores(),
        "memory": min(limits, default=None),
        "clock_mhz": _clock_mhz(),
        "ucx": None if not ucx.get("version") else ucx.get("networks") or "no network",
        "copies": copies,
        "compute": compute,
    }
    of_ranks = [json.loads(bytes(row)) for row in group.allgather(json.dumps(mine).encode())]
    hosts = _hosts(of_ranks)
    names = [of_ranks[ranks[0]]["host"] for ranks in hosts]
    if len(set(names)) < len(names):  # such as containers, or ranks that share no memory
        names = [f"{name} (rank {ranges(ranks)})" for name, ranks in zip(names, hosts, strict=True)]
    result = Allocation(
        [_host(ranks, of_ranks, name) for ranks, name in zip(hosts, names, strict=True)],
        differences([one["settings"] for one in of_ranks]),
        _measure(group, hosts, say),
    )
    result.slow = [*slow_pairs(result.pairs, names), *_slow_ranks(of_ranks, hosts)]
    _compare_hosts(result, names)
    result.verdict = _verdict(result, group.size)
    return result


def _compare_hosts(result: Allocation, names: Sequence[str]) -> None:
    """Add what differs between hosts: networks, memory for each rank, clocks."""
    networks = [str(host["ucx"]) for host in result.hosts]
    if len(set(networks)) > 1:
        texts = (f"{text} on {name}" for text, name in zip(networks, names, strict=True))
        result.differences.append("networks of UCX: " + ", ".join(texts))
    each = [(host["memory"] or 0) / len(host["ranks"]) for host in result.hosts]
    if min(each) < SLOW * median(each):
        host = each.index(min(each))
        result.differences.append(
            f"memory: {bytes_text(min(each))} for each rank of {names[host]}, where the median is "
            f"{bytes_text(median(each))}"
        )
    apart = max(
        (one for one in result.pairs if one.a != one.b), key=lambda one: abs(one.clock_s), default=None
    )
    if apart is not None and abs(apart.clock_s) > _CLOCK_LIMIT:
        result.differences.append(
            f"clocks: those of {names[apart.a]} and {names[apart.b]} are {seconds_text(abs(apart.clock_s))} apart"
        )


def _verdict(result: Allocation, ranks: int) -> str:
    where = f"{counted(ranks, 'rank')} on {counted(len(result.hosts), 'host')}"
    faults = []
    if result.differences:
        more = len(result.differences) - 1
        faults.append(f"ranks differ: {result.differences[0]}" + (f" (and {more} more)" if more else ""))
    if result.slow:
        more = len(result.slow) - 1
        faults.append(f"slow: {result.slow[0]}" + (f" (and {more} more)" if more else ""))
    return f"{where}: {'; '.join(faults) if faults else 'all agree, and nothing is slow against the rest'}"
