"""Measured times of messages, halos, all-reduce and permutations beside those that `onehop simulate` predicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.json_file import read_json
from onehop.launch.interpreter import python_module
from onehop.machine import (
    Machine,
    Traffic,
    allreduce_traffic,
    message_traffic,
    permutation_traffic,
    simulate,
    traffic_of,
)
from onehop.place import private_folder
from onehop.schedule import halo
from onehop.tune.machine_times import LINE, TIMED_ALONE, lines_out, measure_machine
from onehop.tune.settings import result_of_ranks
from onehop_bench.allreduce import allreduce
from onehop_bench.permutation import permutation
from onehop_bench.result import Bench
from onehop_bench.run import Settings, halo_exchange, pingpong

__all__ = [
    "BENCHES",
    "Compared",
    "Prediction",
    "joined_benches",
    "measure_turn",
    "predictions",
    "read_bench",
    "turn_on_ranks",
]


_MOST_QUBITS = 62  # of a state


@dataclass(frozen=True)
class Prediction:
    """One case.

    Attributes
    ----------
    bench, case : str
        The benchmark and its case.
    measured_us, predicted_us : float
        The median that was measured, and the prediction.
    """

    bench: str
    case: str
    measured_us: float
    predicted_us: float

    @property
    def factor(self) -> float:
        """The larger time over the smaller one."""
        return float(np.exp(abs(np.log(self.measured_us / self.predicted_us))))

    def to_dict(self) -> dict[str, Any]:
        """The prediction as an object for JSON."""
        return {**asdict(self), "factor": self.factor}


@dataclass(frozen=True)
class Work:
    """What a row has measured.

    Attributes
    ----------
    traffic : list of Traffic
        What moves: one entry, or one for each algorithm from which onehop takes the fastest.
    lines : int
        Cache lines of a rank of which the benchmark writes a word before and reads one after, while its clock runs.
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
    """A benchmark that can be predicted.

    Attributes
    ----------
    work : callable
        What a row has measured.
    keys : tuple of str
        The keys of a row that say so.
    measure : callable
        The benchmark on a group of two ranks.
    """

    work: Callable[[dict[str, Any]], Work]
    keys: tuple[str, ...]
    measure: Callable[[Group, Settings, Callable[[float], None]], Bench]


BENCHES: dict[str, Compared] = {
    "pingpong": Compared(_pingpong, (), pingpong),
    "halo": Compared(_halo, ("extents", "grid", "periodic"), halo_exchange),
    "permutation": Compared(_permutation, ("qubits", "pairs", "transport"), permutation),
    "allreduce": Compared(_allreduce, ("count",), allreduce),
}


def measure_turn(group: Group, seconds: float) -> dict[str, Any]:
    """Measure the times of a machine file once, and every benchmark, as one of two ranks.

    Parameters
    ----------
    group : Group
        Both ranks.
    seconds : float
        Time for all measurements together.

    Returns
    -------
    dict
        `samples`, as `measure_machine` returns them but with medians, so that every turn counts the same; and
        `benches`, the benchmarks' results by name as for JSON.
    """
    part = seconds / (len(BENCHES) + 2)
    samples = measure_machine(group, 2 * part, passes=1)
    settings = Settings(seconds=part, peers=False)
    return {
        "samples": {
            name: {role: [float(np.median(us))] for role, us in roles.items()}
            for name, roles in samples.items()
        },
        "benches": {
            name: one.measure(group, settings, lambda _: None).to_dict() for name, one in BENCHES.items()
        },
    }


def turn_on_ranks(seconds: float) -> dict[str, Any]:
    """Measure on two ranks what `measure_turn` measures, with the tuning of this process."""
    with private_folder("onehop-predict-") as folder:
        out = folder / "turn"
        command = python_module("onehop_bench.predict", str(seconds), str(out))
        found: dict[str, Any] = result_of_ranks(2, command, out, json.loads(_core.tuning()))
        return found


def _rank_main(seconds: float, out: Path) -> None:
    group = Group.world()
    result = measure_turn(group, seconds)
    if group.rank == 0:
        out.write_text(json.dumps(result))
    group.barrier()


def _is_rounded(row: Any) -> bool:
    return isinstance(row, dict) and row.get("codec", "raw") != "raw"


def read_bench(file: str) -> dict[str, Any]:
    """Read the JSON of `onehop bench pingpong`, `halo`, `permutation` or `allreduce` with two ranks.

    Raises
    ------
    BadInput
        The file is no such result.
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

    Raises
    ------
    BadInput
        The results have different cases.
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


def predictions(bench: dict[str, Any], machine: Machine) -> list[Prediction]:
    """Predict every case of a benchmark whose messages are not encoded.

    Raises
    ------
    BadInput
        A row describes no such case.
    """
    found = []
    for row in bench["rows"]:
        if _is_rounded(row) or row["bytes"] == 0:
            continue
        try:
            work = BENCHES[bench["bench"]].work(row)
            measured_us = float(row["ours_us"])
            used = work.lines * machine.used_line.value
            seconds = min(simulate(one, machine, compute=used).seconds for one in work.traffic)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise BadInput(
                f"expected a case of onehop bench {bench['bench']}, found {str(row)[:60]}: {error}"
            ) from error
        if not seconds > 0 or not 0 < measured_us < np.inf:
            raise BadInput(
                f"expected a case of onehop bench {bench['bench']} that takes time, found {str(row)[:60]}"
            )
        found.append(Prediction(bench["bench"], row["case"], measured_us, seconds * 1e6))
    return found


if __name__ == "__main__":
    _rank_main(float(sys.argv[1]), Path(sys.argv[2]))
