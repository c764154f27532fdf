"""Computes between `start` and `finish` of a plan while its messages cross a link between two hosts.

Two emulated hosts with one rank each exchange two faces of 1 MiB. For each transport between hosts, and with and
without calls of `Plan.test` between steps of computing, the program prints how much of the time of an exchange alone
the computing hides, and draws when what happened. It needs root and an MPI; UCX takes part where it is found:

    python tools/overlap_on_links.py 1gbit --plot overlap.svg
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

import onehop
from onehop.figure import empty_figure, save_figure
from onehop.hosts import Unavailable, emulated_hosts, launch_on_hosts

RUNS = 25
FACE = 1 << 17  # float64 numbers of a face
LONG_ENOUGH = 1.5  # time of computing over that of an exchange
STEP = 2e-4  # seconds of computing between two calls of test()
SETTINGS = ("test() after each step", "no test()")


@dataclass
class Run:
    """One exchange beside computing, in s since `start`: end of each step, arrival of all messages, and the end."""

    steps: list[float] = field(default_factory=list)
    arrived: float = 0.0
    end: float = 0.0


class Computing:
    """Steps of computing of about the same time, in the nearest cache."""

    def __init__(self) -> None:
        self._numbers = np.linspace(0, 1, 1024)
        self._result = np.zeros_like(self._numbers)
        self._repetitions = 1
        begin = time.perf_counter()
        for _ in range(2000):
            self._one()
        self._repetitions = max(1, round(2000 * STEP / (time.perf_counter() - begin)))

    def _one(self) -> None:
        np.multiply(self._numbers, self._numbers, out=self._result)
        np.add(self._result, self._numbers, out=self._result)

    def step(self) -> None:
        """Compute for about `STEP` seconds."""
        for _ in range(self._repetitions):
            self._one()


def compute(computing: Computing, steps: int) -> None:
    """Compute for some steps."""
    for _ in range(steps):
        computing.step()


def run_beside(plan: onehop.Plan, computing: Computing, steps: int, with_test: bool, kept: list[Run]) -> None:
    """Start the exchange, compute, finish it, and keep the times. A plan is asked until its messages have arrived."""
    found, arrived = Run(), False
    begin = time.perf_counter()
    plan.start()
    for _ in range(steps):
        computing.step()
        if with_test and not arrived:
            arrived = plan.test()
            found.arrived = time.perf_counter() - begin
        found.steps.append(time.perf_counter() - begin)
    plan.finish()
    found.end = time.perf_counter() - begin
    if not arrived:
        found.arrived = found.end
    kept.append(found)


def seconds_of(group: onehop.Group, run: Callable[[], object]) -> float:
    """Time of the slower rank from a barrier on."""
    group.barrier()
    begin = time.perf_counter()
    run()
    own = time.perf_counter() - begin
    return max(np.frombuffer(part)[0] for part in group.allgather(np.array([own]).tobytes()))


def transports(group: onehop.Group) -> dict[str, dict]:
    """The transports between hosts that all ranks have."""
    mine = b"\1" if onehop._core.ucx_library()["path"] else b"\0"
    with_ucx = all(part == b"\1" for part in group.allgather(mine))
    return {"mpi": {}, **({"ucx": {}} if with_ucx else {})}


def measure(group: onehop.Group, plot: str | None) -> None:
    """Run all settings in turns; rank 0 prints a table."""
    layout = {
        "extents": [8 * group.size, FACE],
        "grid": [group.size, 1],
        "width": [1, 0],
        "periodic": [True, False],
    }
    array = np.zeros(onehop.halo_block(**layout, rank=group.rank).shape)
    before, behind = (group.rank - 1) % group.size, (group.rank + 1) % group.size
    plans = {
        name: onehop.Plan(onehop.halo(**layout), group, [array], transport=name) for name in transports(group)
    }
    computing = Computing()

    def fill(number: int) -> None:
        array[:] = -1
        array[1:-1] = group.rank + 10 * number

    def check(number: int) -> None:
        assert (array[0] == before + 10 * number).all()
        assert (array[-1] == behind + 10 * number).all()

    alone: dict[str, list[float]] = {name: [] for name in plans}
    for number in range(RUNS + 2):
        for name, plan in plans.items():
            fill(number)
            alone[name].append(seconds_of(group, plan.run))
            check(number)
    steps = {name: int(np.ceil(LONG_ENOUGH * np.median(times[2:]) / STEP)) for name, times in alone.items()}
    only: dict[str, list[float]] = {name: [] for name in plans}
    beside: dict[tuple[str, str], list[tuple[float, Run]]] = {
        (name, setting): [] for name in plans for setting in SETTINGS
    }
    for number in range(RUNS):
        for name, plan in plans.items():
            only[name].append(seconds_of(group, partial(compute, computing, steps[name])))
            for setting in SETTINGS:
                fill(number)
                kept: list[Run] = []
                beside_it = partial(run_beside, plan, computing, steps[name], setting == SETTINGS[0], kept)
                seconds = seconds_of(group, beside_it)
                check(number)
                beside[name, setting].append((seconds, kept[0]))
    if group.rank != 0:
        return
    print(
        f"{'transport':10} {'':24} {'exchange':>9} {'computing':>10} {'both, ms (p10 to p90)':>24} {'hidden':>7}"
    )
    typical = {}
    for (name, setting), runs in beside.items():
        exchange, computed = np.median(alone[name][2:]), np.median(only[name])
        times = np.array([seconds for seconds, _ in runs])
        both = np.median(times)
        low, high = np.percentile(times, [10, 90])
        hidden = (exchange + computed - both) / exchange
        spread = f"{1e3 * both:.2f} ({1e3 * low:.2f} to {1e3 * high:.2f})"
        print(
            f"{name:10} {setting:24} {1e3 * exchange:9.2f} {1e3 * computed:10.2f} {spread:>24} {hidden:7.0%}"
        )
        typical[name, setting] = runs[int(np.argsort(times)[len(times) // 2])][1]
    if plot is not None:
        draw(typical, plot)


def draw(typical: dict[tuple[str, str], Run], file: str) -> None:
    """Draw the run with the median time of each setting: computing, and the exchange until it has arrived."""
    figure = empty_figure(7.0, 0.9 * len(typical) + 0.6)
    axes = figure.subplots()
    labels = []
    for place, ((name, setting), run) in enumerate(typical.items()):
        height = -2.5 * place
        times = [0.0, *(1e3 * step for step in run.steps)]
        for number, (begin, end) in enumerate(pairwise(times)):
            axes.barh(
                height, end - begin, left=begin, height=0.8, color=("tab:orange", "moccasin")[number % 2]
            )
        axes.barh(height - 0.9, 1e3 * run.arrived, height=0.8, color="tab:blue")
        axes.plot([1e3 * run.end] * 2, [height - 1.4, height + 0.5], color="black", linewidth=1)
        labels += [(height, f"{name.upper()}, {setting}:\ncomputing"), (height - 0.9, "exchange")]
    axes.set_yticks([height for height, _ in labels], [text for _, text in labels], fontsize=7)
    axes.set_xlabel("ms since start(); the line is the end of finish()")
    save_figure(figure, file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rate", help="rate of the link, for example 1gbit, or 0 for no limit")
    parser.add_argument("--plot", metavar="FILE", help="draw a time line")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)  # a rank on a host
    given = parser.parse_args()
    if given.measure:
        measure(onehop.Group.world(), given.plot)
    else:
        try:
            with emulated_hosts(2, given.rate) as hosts:
                words = [sys.executable, __file__, *sys.argv[1:], "--measure"]
                sys.exit(launch_on_hosts(hosts, 1, words))
        except Unavailable as error:
            sys.exit(f"skipped: {error}")
