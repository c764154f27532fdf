"""Assignments of any schedule's messages to the interfaces of its hosts, compared: `onehop rails --schedule`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from onehop import _core
from onehop._core import Machine, RailAssignment, Schedule, Traffic
from onehop.error import BadInput
from onehop.machine.rails import ASSIGNMENTS, assign_rails, check_injected, checked_speeds
from onehop.machine.simulate import simulate
from onehop.machine.traffic_rails import RAIL_RULES, host_level, host_rails, hosts_of_ranks, traffic_of

_GIGA = 1e9


def _hosts(ranks: int, per_host: int | None) -> list[int]:
    if per_host is None or per_host < 1:
        found = "none" if per_host is None else per_host
        raise BadInput(f"expected the number of ranks per host, at least 1, or a machine, found {found}")
    return [rank // per_host for rank in range(ranks)]


def _slowest(
    assignments: Sequence[RailAssignment], hosts: Sequence[int], speeds: Sequence[float]
) -> int | None:
    """Return the host whose busiest rail finishes last; the lowest of several. None without messages."""
    loads: dict[int, list[int]] = defaultdict(lambda: [0] * len(speeds))
    for one in assignments:
        loads[hosts[one.from_]][one.rail] += one.bytes
    times = {
        host: max(load / speed for load, speed in zip(each, speeds, strict=True))
        for host, each in loads.items()
    }
    return min(times, key=lambda host: (-times[host], host), default=None)


def _round(
    messages: Sequence[tuple[int, int, int]],
    assignments: Sequence[RailAssignment],
    hosts: Sequence[int],
    speeds: Sequence[float],
    **options: Any,
) -> dict[str, Any]:
    """Return what the slowest host does in a round."""
    host = _slowest(assignments, hosts, speeds)
    own = sorted(one for one in messages if hosts[one[0]] == host != hosts[one[1]] and one[2] > 0)
    plan = assign_rails(own, speeds=speeds, **options)
    return {
        "host": host,
        "messages": len(own),
        "pieces": len(plan.assignments),
        "bytes": sum(plan.loads),
        "loads": list(plan.loads),
        "seconds": plan.busiest,
        "lower_bound": plan.lower_bound,
        "optimal": plan.optimal,
    }


def compare_schedule_rails(
    schedule: Schedule | Traffic,
    *,
    machine: Machine | None = None,
    per_host: int | None = None,
    rails: int | None = None,
    speeds: Sequence[float] | None = None,
    injected: float = 40.8,
    min_piece: int = 1,
) -> tuple[dict[str, Any], dict[str, list[list[RailAssignment]]]]:
    """Compare assignments of the messages of a schedule that leave their host.

    The hosts and their interfaces are those of `machine`, and the result then has predicted times. Without it, a host
    has `per_host` ranks (the last host may have fewer) and `rails` interfaces of relative `speeds` (equal by default),
    through which it injects `injected` GB/s if all are busy. A piece of a cut message has at least `min_piece` bytes.
    In the result, `assignments` lists a dict for each assignment. Its `rounds` say what the host does whose busiest
    rail finishes last: `bytes` that leave it, `loads` of its rails, `seconds`, and `lower_bound` in seconds. `seconds`
    is their sum, `gb_per_s` the bytes of these hosts over it, `busiest_rail` the bytes that all rails carry in this
    time, `bytes` those that they have to, and `predicted_seconds` the time of the whole schedule on the machine. The
    second dict has, for each rule of `machine_rails`, the assignments of every round. Raise BadInput if an argument is
    missing or out of range, or the machine has too few processors.
    """
    traffic = traffic_of(schedule)
    if machine is not None:
        job = machine.job(traffic.ranks)
        hosts = hosts_of_ranks(job, range(traffic.ranks))
        number, speed = host_rails(host_level(job)[0])
        rates = [speed] * number
    else:
        hosts = _hosts(traffic.ranks, per_host)
        check_injected(injected)
        shares = checked_speeds(rails, speeds)
        rates = [injected * _GIGA * share / sum(shares) for share in shares]
    listed = [traffic.messages(number) for number in range(traffic.rounds)]
    rows, chosen = [], {}
    for (name, rule, cut), key in zip(ASSIGNMENTS, RAIL_RULES, strict=True):
        options: dict[str, Any] = {"rule": rule, "cut": cut, "min_piece": min_piece}
        assignments = _core.assign_traffic_rails(traffic, hosts, rates, **options)
        chosen[key] = assignments
        rounds = [
            _round(messages, one, hosts, rates, **options)
            for messages, one in zip(listed, assignments, strict=True)
        ]
        seconds = math.fsum(one["seconds"] for one in rounds)
        moved = sum(one["bytes"] for one in rounds)
        row: dict[str, Any] = {
            "name": name,
            "busiest_rail": seconds * sum(rates),
            "gb_per_s": moved / seconds / _GIGA if seconds else 0.0,
            "bytes": moved,
            "seconds": seconds,
            "optimal": all(one["optimal"] for one in rounds),
            "rounds": rounds,
        }
        if machine is not None:
            row["predicted_seconds"] = simulate(traffic, machine, rails=assignments).seconds
        rows.append(row)
    report = {
        "schedule": traffic.name,
        "machine": None if machine is None else machine.name,
        "ranks": traffic.ranks,
        "hosts": max(hosts) + 1,
        "rails": len(rates),
        "injected": sum(rates) / _GIGA,
        "speeds": [rate / _GIGA for rate in rates],
        "min_piece": min_piece,
        "assignments": rows,
    }
    return report, chosen
