"""States in HDF5 files: all amplitudes by index, with what made them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.group import Group

if TYPE_CHECKING:
    from onehop.quantum.state import State

__all__ = ["check_state_file", "load_state", "save_state"]

_CHUNK = 1 << 18


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise BadInput(
            "states in files need h5py: `pip install 'onehop[quantum]'`, or `pip install h5py`"
        ) from error
    return h5py


def check_state_file(file: str | Path) -> None:
    """Find out before a run whether its state could be saved.

    Raises
    ------
    BadInput
        There is no such folder, or h5py is missing.
    """
    _h5py()
    folder = Path(file).resolve().parent
    if not folder.is_dir():
        raise BadInput(f"cannot save the state to {file}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot save the state to {file}: the folder {folder} cannot be written")


def save_state(
    file: str | Path, state: State, group: Group, attributes: Mapping[str, Any] | None = None
) -> None:
    """Write all amplitudes of a state. Collective; rank 0 writes, the file appears when it is complete.

    Parameters
    ----------
    file : path
        HDF5: data set `amplitudes`, 2^qubits complex numbers, qubit 0 the least significant bit of the index.
    state : State
        Of the ranks of `group`, or some of them.
    group : Group
        Everybody who calls.
    attributes : mapping, optional
        What else the file says about the state.

    Raises
    ------
    BadInput
        On every rank: the file cannot be written.
    """
    h5py = _h5py()
    wrong = ""
    temporary = Path(f"{file}.{os.getpid()}.part")
    kind = np.complex64 if state.precision == "single" else np.complex128
    size = 1 << state.qubits
    with contextlib.ExitStack() as stack:
        data = None
        if group.rank == 0:
            try:
                stored = stack.enter_context(h5py.File(temporary, "w"))
                data = stored.create_dataset("amplitudes", (size,), kind)
                stored.attrs.update(
                    {"qubits": state.qubits, "precision": state.precision, **(attributes or {})}
                )
            except OSError as error:
                wrong = str(error)
        for first in range(0, size, _CHUNK):
            part = state.amplitudes(np.arange(first, min(first + _CHUNK, size)))
            if data is not None and not wrong:
                try:
                    data[first : first + len(part)] = part
                except OSError as error:
                    wrong = str(error)
    if group.rank == 0:
        if wrong:
            temporary.unlink(missing_ok=True)
        else:
            temporary.replace(file)
    told = group.allgather(wrong.encode())[0].decode()
    if told:
        raise BadInput(f"cannot save the state to {file}: {told}")


def load_state(file: str | Path) -> tuple[NDArray[np.complexfloating], dict[str, Any]]:
    """The amplitudes of a file of `save_state`, and what else it says.

    Raises
    ------
    BadInput
        No such file, or no state in it.
    """
    h5py = _h5py()
    try:
        with h5py.File(file, "r") as stored:
            return stored["amplitudes"][()], dict(stored.attrs)
    except (OSError, KeyError) as error:
        raise BadInput(f"cannot read a state from {file}: {error}") from error
