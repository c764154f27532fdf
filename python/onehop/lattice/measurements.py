"""Measurements of an ensemble: an HDF5 file of series, which says what was measured with which options."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop._core import __version__
from onehop.arguments import quoted
from onehop.error import BadInput, Error
from onehop.hdf5 import ask, file_size
from onehop.hdf5_child import DIGEST
from onehop.input_file import require_memory
from onehop.lattice.files.headers import read_header
from onehop.output import write_file

__all__ = ["Measurements", "check_ensemble", "read_measurements", "require_h5py", "write_measurements"]

_KIND = "onehop lattice measurements"
_ABOUT = ("file", "number", "checksums", "hash")
_AVERAGES = ("plaquette", "plaquette_space", "plaquette_time", "link_trace")
_OBSERVABLES = ("polyakov_loop", "energy_plaquette", "energy_clover", "charge")
_ORDER = (*_AVERAGES, *_OBSERVABLES)
HADRONS = ("pion", "rho", "nucleon")  # whose masses are always fitted
_CORRELATOR = re.compile(r"correlators/\w+(\(-?\d{1,3},-?\d{1,3},-?\d{1,3}\))?")
_LARGEST = 1e60  # of numbers, of which the analysis needs the squares of squares
_FLOW = ("energy_plaquette", "energy_clover", "t2_energy", "charge")


@dataclass
class Measurements:
    """What was measured on the configurations of an ensemble.

    Attributes
    ----------
    options : dict
        The options of the measurement, on which its numbers depend.
    extents : tuple of int
        Extents of the lattice, x first.
    configurations : list of dict
        The file, number, checksums and hash of each configuration.
    flow_times : list of float
        The flow times; empty without a flow.
    series : dict
        One array for each observable, whose first axis counts configurations. Names with / are of a group:
        "flow/t2_energy", "correlators/pion", "wilson_loops/2" (those of 2 links in space).
    """

    options: dict[str, Any]
    extents: tuple[int, ...]
    configurations: list[dict[str, Any]] = field(default_factory=list)
    flow_times: list[float] = field(default_factory=list)
    series: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def add(self, reports: Sequence[dict[str, Any]]) -> None:
        """Add reports of `onehop lattice measure`, each with the `number` of its configuration, in their order."""
        for report in reports:
            self.configurations.append({name: report[name] for name in ("file", "number", "checksums")})
            self.configurations[-1]["hash"] = report["sha256"]
            values = {name: report[name] for name in (*_AVERAGES, *_OBSERVABLES) if report[name] is not None}
            if "flow" in report:
                self.flow_times = [point["time"] for point in report["flow"]]
                values |= {f"flow/{name}": [point[name] for point in report["flow"]] for name in _FLOW}
            for r, loops in enumerate(report.get("wilson_loops", []), 1):
                values[f"wilson_loops/{r}"] = loops
            if "quarks" in report:
                quarks = report["quarks"]
                values |= {f"correlators/{name}": one for name, one in quarks["correlators"].items()}
                values |= {"condensate": quarks["condensate"]} if "condensate" in quarks else {}
            if self.series and values.keys() != self.series.keys():
                raise BadInput(
                    f"{report['file']}: expected the observables of the other configurations, found "
                    f"{', '.join(sorted(values.keys() ^ self.series.keys()))} on one side only; measure fields with "
                    "open boundaries apart"
                )
            for name, value in values.items():
                known = self.series.get(name)
                added = np.asarray(value, np.float64)[None]
                self.series[name] = added if known is None else np.concatenate([known, added])
        order = sorted(range(len(self.configurations)), key=lambda at: _order(self.configurations[at]))
        self.configurations = [self.configurations[at] for at in order]
        self.series = {name: values[order] for name, values in self.series.items()}

    def parts(self) -> dict[str, Any]:
        """Return the configurations, and the correlators with a list of values for each configuration, for JSON."""
        averages = {"all": "plaquette", "space": "plaquette_space", "time": "plaquette_time"}
        averages = {name: series for name, series in averages.items() if series in self.series}
        configurations = [
            one | {"plaquettes": {name: float(self.series[series][at]) for name, series in averages.items()}}
            for at, one in enumerate(self.configurations)
        ]
        correlators = [
            {"name": hadron, "momentum": list(momentum), "values": values.tolist()}
            for (hadron, momentum), values in self.correlators().items()
        ]
        return {"configurations": configurations, "correlators": correlators}

    def correlators(self) -> dict[tuple[str, tuple[int, ...]], NDArray[np.float64]]:
        """Return the series of each correlator by its name and momentum, the usual hadrons first."""
        found = {}
        for name, values in self.series.items():
            hadron, _, momentum = name.removeprefix("correlators/").rstrip(")").partition("(")
            if name.startswith("correlators/"):
                numbers = [int(one) for one in momentum.split(",")] if momentum else [0, 0, 0]
                found[hadron, tuple(numbers)] = values
        first = {name: at for at, name in enumerate(HADRONS)}
        return dict(
            sorted(found.items(), key=lambda one: (first.get(one[0][0], 9), sum(p * p for p in one[0][1])))
        )

    def missing(
        self, configurations: Sequence[dict[str, Any]], hash_of: Callable[[str], str]
    ) -> list[dict[str, Any]]:
        """Return the configurations that are not measured. Raises BadInput if a file has other links than it had.

        `hash_of` reads the links of a file whose header does not have the checksums of those that were measured.
        """
        known = {Path(one["file"]).name: one for one in self.configurations}
        for one in configurations:
            before = known.get(Path(one["file"]).name)
            if before is None or (one["checksums"] and one["checksums"] == before["checksums"]):
                continue
            if (found := hash_of(one["file"])) != before["hash"]:
                raise BadInput(
                    f"{one['file']}: expected the links that were measured, with the hash {before['hash']}, found "
                    f"{found}; measure into another file"
                )
        return [one for one in configurations if Path(one["file"]).name not in known]


def correlator_key(name: str, momentum: Sequence[int]) -> str:
    """Return the name of a correlator among the series: "pion", or with a momentum "pion(1,0,0)"."""
    return f"{name}({','.join(map(str, momentum))})" if any(momentum) else name


def _order(configuration: dict[str, Any]) -> tuple[float, str]:
    number = configuration["number"]
    return (np.inf if number is None else number, configuration["file"])


def _number(path: str) -> int | None:
    """Return the number of a configuration, the last one in its name; None without any."""
    digits = re.findall(r"\d{1,15}", Path(path).stem)
    return int(digits[-1]) if digits else None


def check_ensemble(
    files: Sequence[str], extents: tuple[int, ...] | None = None, more: Sequence[int | None] = ()
) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """Read the headers of an ensemble, and return its extents and the file, number and checksums of each configuration.

    `extents` are those of files that do not give them, `more` the numbers of configurations measured before.

    Raises
    ------
    BadInput
        Two files have one name or other extents, or numbers are missing in their sequence.
    """
    found = []
    lattices: dict[tuple[int, ...], str] = {}
    for path in files:
        layout = read_header(path, extents)
        lattices.setdefault(layout.extents, path)
        checksums = {name: f"{value:08x}" for name, value in layout.checksums.items()}
        found.append({"file": path, "number": _number(path), "checksums": checksums})
    if len(lattices) > 1:
        (one, first), (other, second), *_ = lattices.items()
        raise BadInput(
            f"expected files of one lattice, found {'x'.join(map(str, one))} in {first} and "
            f"{'x'.join(map(str, other))} in {second}; measure them apart"
        )
    names: dict[str, str] = {}
    for path in files:
        if names.setdefault(Path(path).name, path) != path or files.count(path) > 1:
            raise BadInput(
                f"expected files with names of their own, found {names[Path(path).name]} and {path}"
            )
    numbers = {one["number"] for one in found}
    if None in numbers or len(numbers) < len(found):  # the names do not count configurations
        found = [one | {"number": None} for one in found]
    else:
        _check_numbers(sorted({number for number in [*numbers, *more] if number is not None}))
    return next(iter(lattices)), found


def _check_numbers(numbers: list[int]) -> None:
    steps = [after - before for before, after in pairwise(numbers)]
    for number, step in zip(numbers, steps, strict=False):
        if step != min(steps):
            raise BadInput(
                f"expected configurations {min(steps)} apart, found none between {number} and {number + step}: with a "
                "gap, no autocorrelation is known; name the files of one side of the gap"
            )


def write_measurements(path: str, found: Measurements) -> None:
    """Write all measurements to an HDF5 file, in place of an earlier one."""
    h5py = require_h5py()
    memory = io.BytesIO()
    with h5py.File(memory, "w") as stored:
        stored.attrs["kind"] = _KIND
        stored.attrs["version"] = __version__
        stored.attrs["options"] = json.dumps(found.options)
        stored.attrs["extents"] = found.extents
        for name in _ABOUT:
            texts = [json.dumps(one[name]) for one in found.configurations]
            stored.create_dataset(f"configurations/{name}", data=texts, dtype=h5py.string_dtype())
        if found.flow_times:
            stored["flow/time"] = found.flow_times
        for name, values in found.series.items():
            stored[f"series/{name}"] = values
    data = memory.getvalue()
    write_file(path, data + DIGEST + hashlib.sha256(data).hexdigest().encode(), "the measurements")


def read_measurements(path: str) -> Measurements:
    """Read measurements. Raises BadInput if the file is none of `write_measurements`, or is damaged."""
    require_h5py()
    size = file_size(path, "measurements")  # the file may grow while it is read
    require_memory(4 * size, f"the measurements in {path}")  # read, checked and copied
    answer, data = ask(path, "measurements", {"kind": "measurements", "format": _KIND, "texts": _ABOUT}, size)
    parts, at = {}, 0
    try:
        for name, shape in answer["numbers"].items():
            parts[name] = np.frombuffer(data, np.float64, math.prod(shape), at).reshape(shape)
            at += parts[name].nbytes
        times = parts.pop("flow/time", np.empty(0)).ravel().tolist()
        series = {name.removeprefix("series/"): values for name, values in parts.items()}
        columns = [[json.loads(text) for text in answer["texts"][name]] for name in _ABOUT]
        found = Measurements(
            json.loads(answer["attributes"]["options"]),
            tuple(int(one) for one in answer["attributes"]["extents"]),
            [dict(zip(_ABOUT, row, strict=True)) for row in zip(*columns, strict=True)],
            times,
            {name: series[name] for name in dict.fromkeys((*_ORDER, *series)) if name in series},
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(f"cannot read measurements from {path}: {error!s:.300}") from error
    except KeyError as error:
        raise BadInput(
            f"cannot read measurements from {path}: expected the attribute {error} as text or integers, found none"
        ) from error
    _check(path, found)
    return found


def _check(path: str, found: Measurements) -> None:
    """Refuse contents that no measurement has."""
    kinds = {"file": str, "number": int | None, "checksums": dict, "hash": str}
    if not (
        isinstance(found.options, dict)
        and len(found.extents) == 4
        and all(1 <= extent < 1 << 31 for extent in found.extents)
        and all(isinstance(one[name], kind) for one in found.configurations for name, kind in kinds.items())
        and (np.diff([-1.0, *found.flow_times]) > 0).all()
    ):
        raise BadInput(
            f"{path}: expected options, four extents, files with their numbers and checksums, and ascending flow "
            "times, found others; the file was altered"
        )
    if "plaquette" not in found.series:
        raise BadInput(f"{path}: expected the plaquettes of each configuration, found none")
    odd = [
        name for name in found.series if name.startswith("correlators/") and not _CORRELATOR.fullmatch(name)
    ]
    if odd:
        raise BadInput(
            f"{path}: expected correlators named as pion or pion(1,0,0), found {quoted(odd[0])}; the file was altered"
        )
    lengths = {"polyakov_loop": (2,), "flow": (len(found.flow_times),), "correlators": found.extents[3:]}
    loops = found.options.get("wilson_loops")
    lengths["wilson_loops"] = tuple(loops[1:]) if isinstance(loops, list) else (0,)
    for name, values in found.series.items():
        expected = (len(found.configurations), *lengths.get(name.partition("/")[0], ()))
        if values.shape != expected or not (abs(values) < _LARGEST).all():
            raise BadInput(
                f"{path}: expected a finite number for each configuration in {name} (shape {expected}), found other "
                f"values (shape {values.shape})"
            )


def require_h5py() -> Any:
    """Return the module h5py. Raises Error if it is not installed."""
    try:
        import h5py
    except ImportError as error:
        raise Error("measurements in files need h5py: `pip install h5py`") from error
    return h5py
