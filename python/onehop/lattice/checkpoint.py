"""Generating gauge fields with rests: files that say how far they are, and runs that go on from them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice.files.read import read_gauge, read_note
from onehop.lattice.files.write import write_gauge
from onehop.lattice.gauge import Gauge

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]


@dataclass
class Checkpoint:
    """How far a run is.

    Attributes
    ----------
    settings : dict
        What the run's field depends on: algorithm, beta, seed and so on, all of which JSON keeps exactly.
    done : int
        Sweeps or trajectories.
    history : list
        What was noted after each of them.
    """

    settings: dict[str, Any]
    done: int = 0
    history: list[Any] = field(default_factory=list)


def write_checkpoint(path: str, gauge: Gauge, state: Checkpoint) -> None:
    """Write links in double precision and how far they are, in one ILDG file, in place of the one before.

    All or nothing: whoever is stopped in the midst leaves the file before. Collective.
    """
    write_gauge(path, gauge, "ildg", precision=64, overwrite=True, note=json.dumps(asdict(state)))


def read_checkpoint(
    path: str, group: Group, grid: Any, settings: dict[str, Any]
) -> tuple[Gauge, Checkpoint] | None:
    """Links and how far they are; None if there is no such file. Collective.

    Raises
    ------
    BadInput
        The file is no checkpoint, or one of a run with other settings; it is left as it is.
    """
    if not Path(path).exists():
        return None
    note = read_note(path)
    try:
        state = Checkpoint(**json.loads(note))
        whole = isinstance(state.settings, dict) and isinstance(state.history, list)
        if not whole or type(state.done) is not int or state.done < 0:
            raise ValueError("its note was altered")
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"{path} exists, but is no checkpoint; name another file, or start from it with --start"
        ) from error
    different = [
        f"{name} {state.settings.get(name)!r} instead of {value!r}"
        for name, value in settings.items()
        if state.settings.get(name) != value
    ]
    if different:
        raise BadInput(
            f"{path} is a checkpoint of another run, of {', '.join(different)}; name another file, or remove this one"
        )
    gauge, _ = read_gauge(path, group, grid)
    return gauge, state
