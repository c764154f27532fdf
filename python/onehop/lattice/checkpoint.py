"""Checkpoints of gauge field generation: gauge files that record the progress of a run, so that it can resume."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.group import Group, require_same
from onehop.lattice.files.read import GaugeFile, read_gauge, read_note
from onehop.lattice.files.write import write_gauge
from onehop.lattice.gauge import Gauge

_TRAJECTORY = {"delta_h": float, "accepted": bool, "plaquette": float}


@dataclass
class Checkpoint:
    """The progress of a run: what its gauge field depends on, its finished sweeps or trajectories, and their records.

    JSON stores all of `settings` exactly. A record is a plaquette, or the fields of a trajectory.
    """

    settings: dict[str, Any]
    done: int = 0
    history: list[Any] = field(default_factory=list)


def write_checkpoint(path: str, gauge: Gauge, state: Checkpoint) -> None:
    """Write the links in double precision and the progress to one ILDG file, replacing the previous checkpoint.

    The replacement is atomic: an interrupted write leaves the previous file. Collective.
    """
    try:
        note = recipe_text(state)
    except ValueError as error:
        raise BadInput(f"cannot write {path}: expected a history of finite numbers, found {error}") from error
    write_gauge(path, gauge, "ildg", precision=64, overwrite=True, note=note)


def recipe_text(state: Checkpoint) -> str:
    """Return the note of a file whose links a run with this progress has made. Raises ValueError for NaN."""
    return json.dumps({**asdict(state), "digest": digest_of(asdict(state))}, allow_nan=False)


def recipe_of(settings: dict[str, Any], first: int, start: GaugeFile | None) -> dict[str, Any]:
    """Return settings with which `reproduce` can begin a run: also its first update, and the hash of its start."""
    return {**settings, "first": first, **({} if start is None else {"start_sha256": start.sha256})}


def read_checkpoint(
    path: str, group: Group, grid: Any, settings: dict[str, Any], first: int | None = 0
) -> tuple[Gauge, Checkpoint] | None:
    """Read a checkpoint and return its gauge field and progress, or None if there is no such file. Collective.

    The run that resumes has these `settings`, and `first` is the number of its first sweep or trajectory, or None for a
    file whose records are not those of the whole run. Raise
    BadInput if the file is not a checkpoint, or it belongs to a run with other settings, or its links do not have the
    plaquette of its last record. The file is not changed.
    """
    exists = Path(path).exists()
    require_same(group, "read_checkpoint", path=path, exists=exists, settings=str(settings), first=first)
    if not exists:
        return None
    state = read_state(path)
    different = [
        f"{name} {state.settings.get(name)!r} instead of {value!r}"
        for name, value in settings.items()
        if state.settings.get(name) != value
    ]
    begun = state.done - len(state.history)
    if first is not None and begun != first:
        different.append(f"the first update {begun} instead of {first}")
    if different:
        raise BadInput(
            f"{path} is a checkpoint of another run, with {', '.join(different)}; name another file, or remove this one"
        )
    gauge, file = read_gauge(path, group, grid)
    extents = settings.get("extent")
    if file.precision != 64 or (extents is not None and tuple(extents) != tuple(file.extents)):
        raise BadInput(
            f"{path}: expected a checkpoint with 64-bit links of the lattice in its settings, found "
            f"{'x'.join(map(str, file.extents))} in {file.precision} bits; the file was altered, name another file"
        )
    if not file.has_checksum:
        raise BadInput(
            f"{path}: expected a checkpoint with the checksum of its links, found none; the file was altered, name "
            "another file"
        )
    last = state.history[-1] if state.history else file.plaquettes.all
    plaquette = last["plaquette"] if isinstance(last, dict) else last
    if not abs(plaquette - file.plaquettes.all) < 1e-9:
        raise BadInput(
            f"{path}: expected links with the plaquette {plaquette:.12g} of the last record, found "
            f"{file.plaquettes.all:.12g}; the file was altered, name another file"
        )
    return gauge, state


def read_state(path: str) -> Checkpoint:
    """Return the progress in a file, which is also the recipe of its links. Raises BadInput without a valid one."""
    note = read_note(path)
    try:
        fields = json.loads(note, parse_constant=_refuse)
        digest = fields.pop("digest", None) if isinstance(fields, dict) else None
        if digest not in (None, digest_of(fields)):  # older checkpoints have none
            raise ValueError("its note was altered")
        state = Checkpoint(**fields)
        if fields.keys() != asdict(state).keys() or not _is_valid(state):
            raise ValueError("its note was altered")
    except BadInput as error:
        raise BadInput(
            f"{path}: {error}; the file was altered, name another file, or start from it with --start"
        ) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise BadInput(
            f"{path} exists, but is not a checkpoint, or one that was altered; name another file, or start from it "
            "with --start"
        ) from error
    return state


def digest_of(fields: Any) -> str:
    """Return the SHA-256 of fields as JSON. Raises ValueError for NaN."""
    return hashlib.sha256(json.dumps(fields, allow_nan=False).encode()).hexdigest()


def _refuse(word: str) -> None:
    raise BadInput(f"expected a checkpoint with finite numbers, found {word}")


def _is_valid(state: Checkpoint) -> bool:
    """Whether a run can produce this state: a whole number of updates, with at most one valid record for each."""
    if not isinstance(state.settings, dict) or not isinstance(state.history, list):
        return False
    if type(state.done) is not int or not len(state.history) <= state.done < 1 << 63:
        return False
    if state.settings.get("algorithm") == "hmc":
        return all(
            isinstance(one, dict)
            and one.keys() == _TRAJECTORY.keys()
            and all(
                type(one[name]) is kind and math.isfinite(one[name]) for name, kind in _TRAJECTORY.items()
            )
            and _is_plaquette(one["plaquette"])
            for one in state.history
        )
    return all(_is_plaquette(one) for one in state.history)


def _is_plaquette(value: object) -> bool:
    return type(value) is float and abs(value) <= 1 + 1e-9  # of links in SU(3); False for NaN
