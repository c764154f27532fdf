"""Measured times of messages, halos, all-reduce and permutations beside those that `onehop simulate` predicts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.machine import Machine, Traffic, allreduce_traffic, message_traffic, simulate

__all__ = ["BENCHES", "Prediction", "predictions", "read_bench"]


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


def _one_way(row: dict[str, Any]) -> list[Traffic]:
    return [message_traffic(2, [[(0, 1, row["bytes"])]])]


def _both_ways(row: dict[str, Any]) -> list[Traffic]:
    return [message_traffic(2, [[(0, 1, row["bytes"]), (1, 0, row["bytes"])]])]


def _allreduce(row: dict[str, Any]) -> list[Traffic]:
    return [allreduce_traffic(row["ranks"], row["count"], algorithm=one) for one in ("one_shot", "two_shot")]


# The traffic of a row, or that of each algorithm from which onehop takes the fastest.
BENCHES = {"pingpong": _one_way, "halo": _both_ways, "permutation": _both_ways, "allreduce": _allreduce}


def read_bench(file: str) -> dict[str, Any]:
    """Read the JSON of `onehop bench pingpong`, `halo`, `permutation` or `allreduce` with two ranks.

    Raises
    ------
    BadInput
        The file is no such result.
    """
    expected = f"the JSON of onehop bench {', '.join(BENCHES)} with two ranks"
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            f"{file}: expected {expected}, found {getattr(error, 'strerror', None) or error}"
        ) from error
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or found.get("bench") not in BENCHES:
        raise BadInput(f"{file}: expected {expected}, found something else")
    needed = ("case", "bytes", "ranks", "ours_us", *(("count",) if found["bench"] == "allreduce" else ()))
    for row in rows:
        if not isinstance(row, dict) or any(key not in row for key in needed) or row["ranks"] != 2:
            raise BadInput(
                f"{file}: expected rows of two ranks with {', '.join(needed)}, found {str(row)[:60]}"
            )
    return found


def predictions(bench: dict[str, Any], machine: Machine) -> list[Prediction]:
    """Predict every case of a benchmark whose messages are not encoded."""
    found = []
    for row in bench["rows"]:
        if row.get("codec", "raw") != "raw" or row["bytes"] == 0:
            continue
        seconds = min(simulate(one, machine).seconds for one in BENCHES[bench["bench"]](row))
        found.append(Prediction(bench["bench"], row["case"], float(row["ours_us"]), seconds * 1e6))
    return found
