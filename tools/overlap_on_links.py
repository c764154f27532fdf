"""Computes between `start` and `finish` of a plan while its messages cross a link between two hosts.

Two emulated hosts with one rank each exchange two faces. For each transport between hosts, with and without calls of
`Plan.test` between steps of computing, the program prints how much of the time of an exchange alone the computing
hides, and draws when what happened. It needs root and an MPI; UCX takes part where it is found:

    python tools/overlap_on_links.py 100mbit --face 131072 --plot overlap.svg
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import onehop
from onehop.figure import empty_figure, save_figure
from onehop_bench.hosts import EmulatedHosts, Unavailable, emulated_hosts, launch_on_hosts

RUNS = 21
LONG_ENOUGH = 1.5  # time of computing over that of an exchange
STEP = 2e-4  # seconds of computing between two calls of test()
# What computes in a step, and whether test() is called after it.
SETTINGS = {
    "core computes": (True, False),
    "core computes, test()": (True, True),
    "device computes, test()": (False, True),
}


class Computing:
    """Steps of about the same time: of computing in the nearest cache, or of sleeping while a device would compute."""

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

    def step(self, on_core: bool) -> None:
        """Compute for about `STEP` seconds."""
        if not on_core:
            time.sleep(STEP)
            return
        for _ in range(self._repetitions):
            self._one()


def compute(computing: Computing, on_core: bool, steps: int) -> None:
    """Compute for some steps."""
    for _ in range(steps):
        computing.step(on_core)


def run_beside(plan: onehop.Plan, computing: Computing, setting: str, steps: int, kept: list[dict]) -> None:
    """Start the exchange, compute, finish it, and keep the times since `start`."""
    on_core, with_test = SETTINGS[setting]
    arrived = 0.0
    begin = time.perf_counter()
    plan.start()
    started = time.perf_counter() - begin
    for _ in range(steps):
        computing.step(on_core)
        if with_test and not arrived and plan.test():
            arrived = time.perf_counter() - begin
    computed = time.perf_counter() - begin
    plan.finish()
    end = time.perf_counter() - begin
    kept.append({"started": started, "computed": computed, "arrived": arrived or end, "end": end})


def seconds_of(group: onehop.Group, run: Callable[[], object]) -> float:
    """Time of the slower rank from a barrier on."""
    group.barrier()
    begin = time.perf_counter()
    run()
    own = time.perf_counter() - begin
    return max(np.frombuffer(part)[0] for part in group.allgather(np.array([own]).tobytes()))


def measure(group: onehop.Group, transport: str, face: int, file: str) -> None:
    """Run all settings in turns; rank 0 writes the times to a file."""
    layout = {"grid": [group.size, 1], "width": [1, 0], "periodic": [True, False]}
    layout["extents"] = [8 * group.size, face // 8]
    array = np.zeros(onehop.halo_block(**layout, rank=group.rank).shape)
    before, behind = (group.rank - 1) % group.size, (group.rank + 1) % group.size
    plan = onehop.Plan(onehop.halo(**layout), group, [array], transport=transport)
    computing = Computing()

    def exchange(number: int, run: Callable[[], object]) -> float:
        array[:] = -1
        array[1:-1] = group.rank + 10 * number
        seconds = seconds_of(group, run)
        assert (array[0] == before + 10 * number).all()
        assert (array[-1] == behind + 10 * number).all()
        return seconds

    first = [exchange(number, plan.run) for number in range(7)]
    steps = int(np.ceil(LONG_ENOUGH * np.median(first[2:]) / STEP))
    alone: list[float] = []
    found: dict[str, dict] = {name: {"computing": [], "both": [], "runs": []} for name in SETTINGS}
    for number in range(RUNS):
        alone.append(exchange(number, plan.run))
        for name, one in found.items():
            one["computing"].append(seconds_of(group, partial(compute, computing, SETTINGS[name][0], steps)))
            run = partial(run_beside, plan, computing, name, steps, one["runs"])
            one["both"].append(exchange(number, run))
    if group.rank == 0:
        Path(file).write_text(json.dumps({"alone": alone, "settings": found}))


def report(found: dict[str, dict]) -> None:
    """Print a table: medians in ms with the 10th and 90th percentiles, and the part of an exchange that is hidden."""
    print(f"{'':32} {'exchange':>20} {'computing':>20} {'both':>20} {'hidden':>7}")
    for transport, result in found.items():
        for name, one in result["settings"].items():
            words, middles = [], []
            for times in (result["alone"], one["computing"], one["both"]):
                low, middle, high = np.percentile(1e3 * np.array(times), [10, 50, 90])
                words.append(f"{middle:.1f} ({low:.1f} to {high:.1f})")
                middles.append(middle)
            hidden = (middles[0] + middles[1] - middles[2]) / middles[0]
            case = f"{transport.upper()}, {name}"
            print(f"{case:32} {words[0]:>20} {words[1]:>20} {words[2]:>20} {hidden:7.0%}")


def draw(found: dict[str, dict], file: str) -> None:
    """Draw the run with the median time of each setting: when it computed, and when all messages had arrived."""
    rows = [
        (transport, name, one)
        for transport, result in found.items()
        for name, one in result["settings"].items()
    ]
    figure = empty_figure(7.0, 0.55 * len(rows) + 0.6)
    axes = figure.subplots()
    for place, (_, _, one) in enumerate(rows):
        run = {
            key: 1e3 * value for key, value in one["runs"][int(np.argsort(one["both"])[RUNS // 2])].items()
        }
        height, width = -2.5 * place, run["computed"] - run["started"]
        axes.barh(height, width, left=run["started"], height=0.8, color="tab:orange", label="computes")
        axes.barh(height - 0.9, run["arrived"], height=0.8, color="tab:blue", label="messages are under way")
        end = [height - 1.4, height + 0.5]
        axes.plot([run["end"]] * 2, end, color="black", linewidth=1, label="end of finish()")
    labels = [f"{transport.upper()}: {name}" for transport, name, _ in rows]
    axes.set_yticks([-2.5 * place - 0.45 for place in range(len(rows))], labels, fontsize=8)
    axes.set_xlabel("ms since start()", fontsize=8)
    shown = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown.keys(), fontsize=8, ncols=3, loc="outside lower center")
    save_figure(figure, file)


def measure_on(hosts: EmulatedHosts, face: int) -> dict[str, dict]:
    """Measure each transport in a launch of its own."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for transport in ("mpi", "ucx") if onehop._core.ucx_library()["path"] else ("mpi",):
            file = str(Path(folder, transport))
            code = launch_on_hosts(
                hosts, 1, [sys.executable, __file__, "measure", transport, str(face), file]
            )
            if code != 0:
                sys.exit(code)
            found[transport] = json.loads(Path(file).read_text())
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:  # a rank on a host
        measure(onehop.Group.world(), sys.argv[2], int(sys.argv[3]), sys.argv[4])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rate", help="rate of the link, for example 1gbit, or 0 for no limit")
    parser.add_argument("--face", type=int, default=1 << 20, help="bytes of a face")
    parser.add_argument("--plot", metavar="FILE", help="draw a time line")
    given = parser.parse_args()
    try:
        with emulated_hosts(2, given.rate) as two:
            results = measure_on(two, given.face)
    except Unavailable as error:
        sys.exit(f"skipped: {error}")
    report(results)
    if given.plot is not None:
        draw(results, given.plot)
