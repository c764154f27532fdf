"""Ensembles: configurations of one run in a folder, each with the recipe that makes the same bits again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.group import Group, together
from onehop.input_file import read_text
from onehop.lattice.checkpoint import Checkpoint, digest_of, read_checkpoint, read_state, write_checkpoint
from onehop.lattice.files import GaugeFile, read_gauge, require_memory_to_write
from onehop.lattice.files.blocks import check_regular, open_file
from onehop.lattice.files.headers import read_header
from onehop.lattice.gauge import Gauge, thermalize
from onehop.lattice.hmc import hybrid_monte_carlo
from onehop.output import make_folder, remove_output, write_file

__all__ = [
    "Ensemble",
    "Reproduction",
    "configuration_of",
    "make_ensemble",
    "reproduce",
    "start_field",
    "update",
]

Progress = Callable[[float], None]

LINES = "configurations.jsonl"
UNFINISHED = "checkpoint"  # of the thermalization, before the first configuration
_DIGITS = 6
_LONGEST = 1 << 16  # bytes of a line


def start_field(settings: dict[str, Any], group: Group, grid: Any) -> tuple[Gauge, GaugeFile | None]:
    """Return the initial field of a run, and what is known about its file. Collective."""
    if settings["extent"] is None:
        return read_gauge(settings["start"], group, grid)
    gauge = Gauge(group, settings["extent"], grid)
    if settings["start"] == "random":
        gauge.set_random(settings["seed"])
    return gauge, None


def update(gauge: Gauge, settings: dict[str, Any], first: int, count: int, advance: Progress) -> list[Any]:
    """Do sweeps or trajectories [first, first + count) of a run and return one record of each. Collective."""
    how: dict[str, Any] = {"seed": settings["seed"], "first": first, "progress": lambda _number: advance(1)}
    if settings["algorithm"] == "heatbath":
        how["over_relaxations"] = settings["over_relaxations"]
        return thermalize(gauge, settings["beta"], count, **how)
    how |= {name: settings[name] for name in ("length", "steps", "integrator")}
    return [moved._asdict() for moved in hybrid_monte_carlo(gauge, settings["beta"], count, **how)]


@dataclass
class Ensemble:
    """The folder of an ensemble, and which configurations it keeps.

    Attributes
    ----------
    folder : str
        The folder. Configurations are in it as NUMBER.lime, where NUMBER counts the updates before.
    settings : dict
        Everything that the links depend on: the recipe.
    first, updates : int
        The number of the first update, and the number of updates before the first configuration.
    keep, every : int
        The number of configurations, and the number of updates between two of them.
    save_every : int
        The number of updates between two checkpoints of the thermalization.
    """

    folder: str
    settings: dict[str, Any]
    first: int
    updates: int
    keep: int
    every: int
    save_every: int = 10

    @property
    def numbers(self) -> list[int]:
        """The updates before each configuration."""
        return [self.first + self.updates + number * self.every for number in range(self.keep)]

    def file(self, number: int) -> str:
        """Return the file of a configuration."""
        return str(Path(self.folder) / f"{number:0{_DIGITS}d}.lime")

    def kept(self) -> list[int]:
        """Return the configurations that are there. Raises BadInput unless they are the first ones of this ensemble."""
        if self.numbers[-1] >= 10**_DIGITS:
            raise BadInput(
                f"expected at most {10**_DIGITS - 1} updates of an ensemble, found {self.numbers[-1]}"
            )
        found = sorted(Path(self.folder).glob("*.lime"))
        for number, path in zip([*self.numbers, *[-1] * len(found)], found, strict=False):
            if Path(self.file(number)) != path:
                expected = "no further configuration" if number < 0 else Path(self.file(number)).name
                raise BadInput(
                    f"{self.folder}: expected {expected} of an ensemble of {self.keep} configurations, {self.every} "
                    f"updates apart, found {path.name}; a file is missing, or belongs to another run: name another "
                    "folder, or give the options of the first run"
                )
        return self.numbers[: len(found)]


def configuration_of(found: GaugeFile, number: int | None = None) -> dict[str, Any]:
    """Return the record of a configuration: its file, number, averages, checksums and hash."""
    return {
        "file": found.path,
        "number": number,
        "plaquettes": found.plaquettes._asdict(),
        "link_trace": found.link_trace,
        "checksums": _hexadecimal(found.checksums),
        "hash": found.sha256,
    }


def _hexadecimal(checksums: dict[str, int]) -> dict[str, str]:
    return {name: f"{value:08x}" for name, value in checksums.items()}


def _lines_of(ensemble: Ensemble, kept: list[int], group: Group) -> list[dict[str, Any]]:
    """Return the records of the configurations that are there, from their lines or else from the files. Collective.

    A line counts if it has the digest of its numbers, and the checksums in the header of its file.
    """
    lines: dict[int, dict[str, Any]] = {}
    path = Path(ensemble.folder) / LINES
    stored = ""
    with together(group), contextlib.suppress(BadInput):  # of a file that was altered
        if group.rank == 0 and path.is_file():
            stored = read_text(path, "records of configurations", _LONGEST * ensemble.keep)
    for text in stored.splitlines():
        try:
            line = json.loads(text)
            found = read_header(ensemble.file(line["number"])).checksums
            if line.pop("digest") == digest_of(line) and line["checksums"] == _hexadecimal(found):
                lines[line["number"]] = {**line, "file": ensemble.file(line["number"])}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError, BadInput):
            continue  # cut off when the run ended, or altered, as may be the file
    texts = group.allgather(json.dumps([lines.get(number) for number in kept]).encode())
    known: list[dict[str, Any]] = json.loads(texts[0])
    for at, number in enumerate(kept):
        if known[at] is None:
            _kept(ensemble, number, group, None)  # is it of this run?
            known[at] = configuration_of(read_gauge(ensemble.file(number), group)[1], number)
    return known


def _kept(ensemble: Ensemble, number: int, group: Group, grid: Any) -> tuple[Gauge, Checkpoint]:
    """Return the field and the progress of a configuration. Raises BadInput if it is another one. Collective."""
    path = ensemble.file(number)
    found = read_checkpoint(path, group, grid, ensemble.settings, None)
    if found is None or found[1].done != number:
        what = "none" if found is None else f"those after {found[1].done}"
        raise BadInput(
            f"{path}: expected the links after {number} updates of this run, found {what}; remove the file, and the "
            "run makes it again"
        )
    return found


def _begin(ensemble: Ensemble, kept: list[int], group: Group, grid: Any) -> tuple[Gauge, Checkpoint]:
    """Return the field and the progress with which a run goes on. Collective."""
    settings, unfinished = ensemble.settings, Path(ensemble.folder) / UNFINISHED
    if kept:
        gauge, state = _kept(ensemble, kept[-1], group, grid)
        return gauge, Checkpoint(settings, state.done)
    found = read_checkpoint(str(unfinished), group, grid, settings, ensemble.first)
    if found is not None:
        if found[1].done > ensemble.numbers[0]:
            raise BadInput(
                f"{unfinished}: expected a checkpoint after at most {ensemble.numbers[0]} updates, found one after "
                f"{found[1].done}; remove the file, or give the options of the first run"
            )
        return found[0], Checkpoint(settings, found[1].done, found[1].history)
    return _verified_start(settings, group, grid), Checkpoint(settings, ensemble.first)


def _verified_start(settings: dict[str, Any], group: Group, grid: Any) -> Gauge:
    """Return the initial field of a recipe. Raises BadInput if it is from another file. Collective."""
    gauge, file = start_field(settings, group, grid)
    if file is not None and file.sha256 != settings["start_sha256"]:
        raise BadInput(
            f"{file.path}: expected the initial links with the SHA-256 {settings['start_sha256']} of the recipe, found "
            f"{file.sha256}; it is another file than the one that the run began with"
        )
    return gauge


def make_ensemble(
    ensemble: Ensemble, group: Group, grid: Any = None, progress: Progress | None = None
) -> tuple[Gauge, list[dict[str, Any]], int]:
    """Generate the configurations of an ensemble, or those that are missing. Collective.

    Each configuration is written with its recipe, read again and verified; then its record is added to the file
    configurations.jsonl, one line each. A run that was interrupted goes on at its last configuration.

    Returns
    -------
    Gauge, list of dict, int
        The last field; the records of all configurations; and how many of them were there before.

    Raises
    ------
    BadInput
        The folder has configurations of another run, or one of them is missing.
    """
    advance = progress or (lambda _amount: None)
    folder = Path(ensemble.folder)
    with together(group, f"cannot write to {folder}"):
        if group.rank == 0:
            make_folder(folder, "-o")
    with together(group, f"cannot read {folder}"):
        kept = ensemble.kept()
    gauge, state = _begin(ensemble, kept, group, grid)
    require_memory_to_write(gauge)
    lines = _lines_of(ensemble, kept, group)
    if lines and lines[-1]["hash"] != gauge.sha256():
        raise BadInput(
            f"{ensemble.file(kept[-1])}: expected links with the hash {lines[-1]['hash']} of {LINES}, found "
            f"{gauge.sha256()}; the file was altered: remove it, and the run makes it again"
        )
    advance(state.done - ensemble.first)
    for number in ensemble.numbers[len(kept) :]:
        while state.done < number:
            count = min(number - state.done, number if lines else ensemble.save_every)
            state.history += update(gauge, ensemble.settings, state.done, count, advance)
            state.done += count
            if not lines and state.done < number:
                write_checkpoint(str(folder / UNFINISHED), gauge, state)
        write_checkpoint(ensemble.file(number), gauge, state)
        lines.append(configuration_of(read_gauge(ensemble.file(number), group, grid)[1], number))
        state.history = []
        with together(group, f"cannot write to {folder}"):
            if group.rank == 0:
                texts = [json.dumps({**line, "digest": digest_of(line)}) for line in lines]
                write_file(folder / LINES, "".join(f"{text}\n" for text in texts), "the configurations")
                remove_output(folder / UNFINISHED)
    return gauge, lines, len(kept)


@dataclass
class Reproduction:
    """A configuration that was made again.

    Attributes
    ----------
    recipe : dict
        The settings of the run that made the file.
    updates : int
        The number of sweeps or trajectories that were done again.
    expected, found : str
        SHA-256 of the links of the file and of those that were made.
    """

    recipe: dict[str, Any]
    updates: int
    expected: str
    found: str

    @property
    def same(self) -> bool:
        """Whether the links have the same bits."""
        return self.expected == self.found


def reproduce(path: str, group: Group, grid: Any = None, progress: Progress | None = None) -> Reproduction:
    """Make the links of a file again, from the recipe in its header. Collective; any number of ranks may do it.

    Raises
    ------
    BadInput
        The file has no recipe, or its recipe was altered; or the initial links, of a run that began with a file, are
        not there or differ.
    """
    with together(group, f"cannot read {path}"):
        check_regular(path)
        open_file(path).close()  # names a missing file as such
        try:
            state = read_state(path)
        except BadInput as error:
            raise BadInput(
                f"{path}: expected the recipe of its links, which `onehop lattice thermalize` writes into ILDG files, "
                "found none, or one that was altered"
            ) from error
    settings = state.settings
    first = settings.get("first", state.done - len(state.history))
    _, file = read_gauge(path, group, grid)
    try:
        gauge = _verified_start(settings, group, grid)
        update(gauge, settings, first, state.done - first, progress or (lambda _amount: None))
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: expected a recipe with {error}, found none; the file was altered") from error
    if file.precision == 32:
        gauge.set_links(gauge.links.astype(np.complex64))
    return Reproduction(settings, state.done - first, file.sha256, gauge.sha256())
