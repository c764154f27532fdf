"""`onehop bench predict`: measured times of messages, halos, all-reduce and permutations beside those predicted."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.common import JsonOptions, console, progress, write_json
from onehop.cores import usable_cores
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.input_file import read_json
from onehop.launch import current_launch
from onehop.launch.interpreter import python_module
from onehop.machine import (
    Machine,
    Traffic,
    allreduce_traffic,
    load_machine,
    message_traffic,
    parse_machine,
    permutation_traffic,
    simulate,
    traffic_of,
)
from onehop.options import argument, option
from onehop.output import write_file
from onehop.place import private_folder
from onehop.schedule import halo
from onehop.tune.machine_file import machine_text
from onehop.tune.machine_times import LINE, TIMED_ALONE, joined, lines_out, measure_machine, times_from
from onehop.tune.settings import result_of_ranks
from onehop_bench.allreduce import AllReduce, allreduce
from onehop_bench.halo import Halo, halo_exchange
from onehop_bench.measure import Benchmark
from onehop_bench.messages import PingPong, pingpong
from onehop_bench.permutation import Permutation, permutation
from onehop_bench.result import Row
from onehop_bench.table import Columns, table_of

_DEFAULT_SECONDS = 40
_TURNS = 7
_MOST_QUBITS = 62  # of a state


@dataclass(frozen=True)
class Work:
    """What a row has measured: what moves, in one entry or one for each algorithm from which onehop takes the fastest.

    A rank writes a word of `lines` cache lines before and reads one after, while the benchmark's clock runs.
    """

    traffic: list[Traffic]
    lines: int = 0


def _pingpong(row: dict[str, Any]) -> Work:
    # The times of messages in a machine file include the use of their lines.
    return Work([message_traffic(2, [[(0, 1, row["bytes"])]])])


def _halo(row: dict[str, Any]) -> Work:
    layout = {key: row[key] for key in ("extents", "grid", "periodic")}
    schedule = halo(**layout, width=1, dtype=row.get("dtype", "float64"))  # older files have no dtype
    return Work([traffic_of(schedule)], lines_out(schedule, 0))


def _permutation(row: dict[str, Any]) -> Work:
    if not 1 < row["qubits"] <= _MOST_QUBITS:
        raise ValueError(f"{row['qubits']} qubits")
    permutation = list(range(row["qubits"]))
    for a, b in row["pairs"]:
        permutation[a], permutation[b] = permutation[b], permutation[a]
    local = row["qubits"] - (row["ranks"].bit_length() - 1)
    shared = row["transport"] == "auto"
    return Work([permutation_traffic(row["qubits"], local=local, permutation=permutation, shared=shared)])


def _allreduce(row: dict[str, Any]) -> Work:
    algorithms = ("one_shot", "two_shot")
    traffic = [allreduce_traffic(row["ranks"], row["count"], algorithm=one) for one in algorithms]
    return Work(traffic, -(-row["bytes"] // LINE) if row["bytes"] < TIMED_ALONE else 0)


@dataclass(frozen=True)
class Compared:
    """A benchmark that can be predicted: what a row has measured, the row's keys that say so, and its maker."""

    work: Callable[[dict[str, Any]], Work]
    keys: tuple[str, ...]
    benchmark: Callable[[], Benchmark]


BENCHES: dict[str, Compared] = {
    "pingpong": Compared(_pingpong, (), lambda: pingpong(PingPong())),
    "halo": Compared(_halo, ("extents", "grid", "periodic"), lambda: halo_exchange(Halo())),
    "permutation": Compared(
        _permutation, ("qubits", "pairs", "transport"), lambda: permutation(Permutation())
    ),
    "allreduce": Compared(_allreduce, ("count",), lambda: allreduce(AllReduce())),
}


def measure_turn(group: Group, seconds: float, *, tune: bool = True) -> dict[str, Any]:
    """Measure the times of a machine file once, unless not `tune`, and every benchmark, as one of two ranks.

    Return `samples`, as `measure_machine` does but with medians, so that every turn counts the same; and `benches`, the
    benchmarks' results by name as for JSON.
    """
    part = seconds / (len(BENCHES) + (2 if tune else 0))
    samples = measure_machine(group, 2 * part, passes=1) if tune else {}
    return {
        "samples": {
            name: {role: [float(np.median(us))] for role, us in roles.items()}
            for name, roles in samples.items()
        },
        "benches": {
            name: bench.benchmark().measure(group, part, peers=False).to_dict()
            for name, bench in BENCHES.items()
        },
    }


def turn_on_ranks(seconds: float, *, tune: bool = True) -> dict[str, Any]:
    """Measure on two ranks what `measure_turn` measures, with the tuning of this process."""
    with private_folder("onehop-predict-") as folder:
        out = folder / "turn"
        command = python_module("onehop_bench.predict", str(seconds), str(out), *(["tune"] if tune else []))
        found: dict[str, Any] = result_of_ranks(2, command, out, json.loads(_core.tuning()))
        return found


def _rank_main(seconds: float, out: Path, *, tune: bool) -> None:
    group = Group.world()
    result = measure_turn(group, seconds, tune=tune)
    if group.rank == 0:
        out.write_text(json.dumps(result))
    group.barrier()


def _is_rounded(row: Any) -> bool:
    return isinstance(row, dict) and row.get("codec", "raw") != "raw"


def read_bench(file: str) -> dict[str, Any]:
    """Read the JSON of `onehop bench pingpong`, `halo`, `permutation` or `allreduce` with two ranks.

    Raise BadInput if the file is no such result.
    """
    expected = f"the JSON of onehop bench {', '.join(BENCHES)} with two ranks"
    found = read_json(file, expected)
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or found.get("bench") not in [*BENCHES]:
        raise BadInput(f"{file}: expected {expected}, found something else")
    needed = ("case", "bytes", "ranks", "ours_us", *BENCHES[found["bench"]].keys)
    for row in rows:
        if _is_rounded(row):
            continue
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("case"), str)
            or not row.keys() >= {*needed}
            or row["ranks"] != 2
        ):
            raise BadInput(
                f"{file}: expected rows of two ranks with {', '.join(needed)}, found {str(row)[:60]}"
            )
    return found


def joined_benches(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join the results of a benchmark that ran several times: the time of a case is the median of its times.

    Raise BadInput if the results have different cases.
    """
    first, *others = turns
    cases = [row["case"] for row in first["rows"]]
    for other in others:
        if [row["case"] for row in other["rows"]] != cases:
            raise BadInput(
                f"onehop bench {first['bench']}: expected the same cases in every turn, found others"
            )
    rows = []
    for each in zip(*(turn["rows"] for turn in turns), strict=True):
        rows.append({**each[0], "ours_us": float(np.median([row["ours_us"] for row in each]))})
    return {**first, "rows": rows}


def predictions(bench: dict[str, Any], machine: Machine) -> list[Row]:
    """Predict every case of a benchmark whose messages are not encoded. Raise BadInput if a row has no such case.

    A row has `bench`, `case`, the median `measured_us`, `predicted_us`, and `factor`, the larger of both over the
    smaller one.
    """
    found = []
    for row in bench["rows"]:
        if _is_rounded(row) or row["bytes"] == 0:
            continue
        try:
            work = BENCHES[bench["bench"]].work(row)
            measured_us = float(row["ours_us"])
            used = work.lines * machine.used_line.value
            us = 1e6 * min(simulate(traffic, machine, compute=used).seconds for traffic in work.traffic)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise BadInput(
                f"expected a case of onehop bench {bench['bench']}, found {str(row)[:60]}: {error}"
            ) from error
        if not us > 0 or not 0 < measured_us < np.inf:
            raise BadInput(
                f"expected a case of onehop bench {bench['bench']} that takes time, found {str(row)[:60]}"
            )
        found.append(
            Row(
                bench=bench["bench"],
                case=row["case"],
                measured_us=measured_us,
                predicted_us=us,
                factor=max(measured_us / us, us / measured_us),
            )
        )
    return found


def _results(files: list[str], seconds: float | None) -> list[dict[str, Any]]:
    if files and seconds is not None:
        raise BadInput("expected --seconds without files only, found both; leave it out")
    if files:
        return [read_bench(file) for file in files]
    found = turn_on_ranks(_DEFAULT_SECONDS if seconds is None else seconds, tune=False)["benches"]
    return [found[bench] for bench in BENCHES]


def _measure_in_turns(seconds: float | None) -> tuple[str, list[dict[str, Any]]]:
    """Measure the machine and the benchmarks in turns, so that both meet the same states of the machine.

    Return the text of the machine file, and the results.
    """
    seconds = _DEFAULT_SECONDS if seconds is None else seconds
    cores = usable_cores()
    if cores < 2:
        raise Error(
            "expected two cores for two ranks that run at the same time, found one; run this on more cores"
        )
    turns: list[dict[str, Any]] = []
    with progress("measuring", _TURNS) as advance:
        for _ in range(_TURNS):
            turns.append(turn_on_ranks(seconds / _TURNS))
            advance(1)
    samples = joined(turn["samples"] for turn in turns)
    text = machine_text(times_from(samples), cores, "onehop bench predict --tune")
    return text, [joined_benches([turn["benches"][bench] for turn in turns]) for bench in BENCHES]


@dataclass(kw_only=True)
class Predict(JsonOptions):
    files: list[str] = argument(
        "FILE",
        f"JSON of onehop bench {', '.join(BENCHES)} with two ranks. Without files, the command runs them.",
        [],
    )
    machine: str | None = option(
        None, "Machine, such as the file of onehop tune --machine-file.", metavar="NAME|FILE.toml"
    )
    tune: bool = option(
        False,
        "Instead of --machine: measure this machine in turns with the benchmarks, because times of memory change "
        "within seconds.",
    )
    machine_file: str | None = option(
        None, "With --tune: also write this machine's file.", metavar="FILE.toml", writes="the machine"
    )
    seconds: float | None = option(
        None,
        f"Time to measure all cases together (only without files). Default: {_DEFAULT_SECONDS}. Starting the ranks of "
        f"{len(BENCHES)} benchmarks takes several seconds more, and --tune about 90 s more for large arrays.",
        metavar="SECONDS",
        above=0,
    )


def _compared(options: Predict) -> tuple[Machine, list[dict[str, Any]]]:
    """Return the machine, and the results to compare with it."""
    machine, tune, machine_file = options.machine, options.tune, options.machine_file
    files, seconds = options.files, options.seconds
    if (machine is None) == (not tune):
        found = "neither" if machine is None else "both"
        raise BadInput(f"expected either --machine or --tune, found {found}")
    if machine_file is not None and not tune:
        raise BadInput("expected --machine-file with --tune only, found it with --machine")
    if machine is not None:
        return load_machine(machine), _results(files, seconds)
    if files:
        raise BadInput("expected --tune without files, found both: --tune runs the benchmarks itself")
    if current_launch() is not None:
        raise BadInput("expected no launch, because --tune starts its own ranks, found one; run it by itself")
    text, results = _measure_in_turns(seconds)
    if machine_file is not None:
        write_file(machine_file, text, "the machine")
    return parse_machine(text, "this-machine"), results


def bench_predict(options: Predict) -> None:
    """Compare measured times with those that onehop simulate predicts."""
    described, results = _compared(options)
    rows = [row for result in results for row in predictions(result, described)]
    columns: Columns = {
        "bench": "bench",
        "case": "case",
        "measured, µs": "measured_us",
        "predicted, µs": "predicted_us",
        "factor": lambda row: f"{row.factor:.2f}",
    }
    screen = console(options.json)
    screen.print(table_of(rows, f"on {described.name}", None, columns))
    summary = {}
    for bench in dict.fromkeys(row.bench for row in rows):
        factors = [row.factor for row in rows if row.bench == bench]
        summary[bench] = {"median_factor": float(np.median(factors)), "largest_factor": max(factors)}
        screen.print(f"{bench}: median factor {np.median(factors):.2f}, largest {max(factors):.2f}")
    write_json(options.json, {"machine": described.name, "rows": rows, "summary": summary})


if __name__ == "__main__":
    _rank_main(float(sys.argv[1]), Path(sys.argv[2]), tune="tune" in sys.argv[3:])
