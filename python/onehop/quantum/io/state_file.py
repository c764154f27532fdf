"""States in HDF5 files: amplitudes and what they mean, with checksums, written by all ranks at once.

The file holds a data set `amplitudes` of 2^qubits complex numbers in the order of their places, a data set `checksums`
(SHA-256 of each block of amplitudes), further data sets in `more`, and attributes: `qubits`, `precision`, `bits` (the
bit of each qubit in a place), `flips` (bits of a place that hold the opposite), `about` (JSON), `digest` (SHA-256 of
everything but the amplitudes).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.io.hdf5 import ask, require_h5py
from onehop.quantum.io.hdf5_child import digest
from onehop.quantum.io.stored_state import BLOCK, StoredState, stored_state

__all__ = [
    "StoredState",
    "check_state_file",
    "load_state",
    "read_state",
    "read_state_together",
    "save_state",
    "write_state",
]


def check_state_file(file: str | Path) -> None:
    """Find out before a run whether its state could be saved.

    Raises
    ------
    BadInput
        There is no such folder, something else than a file has this name, or h5py is missing.
    """
    require_h5py()
    if Path(file).exists() and not Path(file).is_file():
        kind = "a folder" if Path(file).is_dir() else "no regular file, and is left alone"
        raise BadInput(f"cannot save the state to {file}: it is {kind}")
    folder = Path(file).resolve().parent
    if not folder.is_dir():
        raise BadInput(f"cannot save the state to {file}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise BadInput(f"cannot save the state to {file}: the folder {folder} cannot be written")


def agree(group: Group, wrong: str) -> None:
    """Raise BadInput on every rank if one of them found something wrong; collective."""
    told = [one.decode() for one in group.allgather(wrong.encode())]
    for text in told:
        if text:
            raise BadInput(text)


# -- writing -----------------------------------------------------------------------------------------------------------


def save_state(
    file: str | Path, state: _core.State, group: Group, attributes: Mapping[str, Any] | None = None
) -> None:
    """Write all amplitudes of a state, by index. Collective; the file appears when it is complete.

    Parameters
    ----------
    file : path
        HDF5: data set `amplitudes`, 2^qubits complex numbers, qubit 0 the least significant bit of the index. All
        ranks must see its folder.
    state : State
        Of the ranks of `group`, or some of them. Its qubits are brought in order.
    group : Group
        Everybody who calls.
    attributes : mapping, optional
        What else the file says about the state.

    Raises
    ------
    BadInput
        On every rank: the file cannot be written.
    """
    state.restore_order()
    write_state(file, state._core, group, attributes or {}, {})


def write_state(
    file: str | Path,
    state: _core.State,
    group: Group,
    about: Mapping[str, Any],
    more: Mapping[str, NDArray[Any]],
) -> None:
    """Write a state as it lies, with more data. Collective over `group`, of which the state's ranks are the first.

    A file of this name is replaced when the new one is complete and on the disk.

    Raises
    ------
    BadInput
        On every rank: the file cannot be written, or some rank does not see it.
    """
    wrong = ""
    try:
        check_state_file(file)
    except BadInput as error:
        wrong = str(error)
    agree(group, wrong)
    temporary = Path(f"{file}.part")
    own = group.rank < state.ranks  # the others repeat what these do
    try:
        try:
            offset = _create(temporary, state, about, more) if group.rank == 0 else 0
            wrong = ""
        except OSError as error:
            offset, wrong = 0, f"cannot write {file}: {error}"
        agree(group, wrong)
        offset = int(group.allgather(str(offset).encode())[0])
        sums = b""
        try:
            if own:
                sums = _write_share(temporary, state, offset)
        except OSError as error:
            wrong = f"rank {group.rank} cannot write {file}: {error}; all ranks must see its folder"
        agree(group, wrong)
        everything = group.allgather(sums)
        try:
            if group.rank == 0:
                _complete(temporary, Path(file), np.frombuffer(b"".join(everything), np.uint8))
        except OSError as error:
            wrong = f"cannot write {file}: {error}"
        agree(group, wrong)
    except BaseException:
        if group.rank == 0:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        raise


def _create(
    file: Path, state: _core.State, about: Mapping[str, Any], more: Mapping[str, NDArray[Any]]
) -> int:
    """A file with everything but amplitudes and checksums; where the amplitudes begin in it."""
    import h5py

    size = 1 << state.qubits
    kind = np.dtype(np.complex64 if state.precision == "single" else np.complex128)
    # A new file, never one that lies there already: that may be a link to something else, or somebody else's.
    file.unlink(missing_ok=True)
    with h5py.File(file, "x") as stored:
        wanted = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        wanted.set_layout(h5py.h5d.CONTIGUOUS)
        wanted.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        wanted.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((size,))
        data = h5py.h5d.create(
            stored.id, b"amplitudes", h5py.h5t.py_create(kind, logical=True), space, wanted
        )
        block = min(BLOCK, 1 << state.local_bits)
        stored.create_dataset("checksums", (size // block, 32), np.uint8)
        for name, values in more.items():
            stored[f"more/{name}"] = values
        stored.attrs.update(
            {
                **{name: value for name, value in about.items() if isinstance(value, (str, int, float))},
                "qubits": state.qubits,
                "precision": state.precision,
                "bits": np.array(state.bits, np.int64),
                "flips": np.uint64(state.flips),
                "about": json.dumps(dict(about)),
            }
        )
        stored.flush()
        return int(data.get_offset())


def _write_share(file: Path, state: _core.State, offset: int) -> bytes:
    """Write the amplitudes of this rank at their place in the file; return the checksums of its blocks."""
    local = state.local()
    block = min(BLOCK, len(local))
    sums = []
    handle = os.open(file, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        position = offset + state.rank * local.nbytes
        for first in range(0, len(local), block):
            data = memoryview(local[first : first + block]).cast("B")
            sums.append(hashlib.sha256(data).digest())
            while data:
                written = os.pwrite(handle, data, position)
                position += written
                data = data[written:]
        os.fsync(handle)
    finally:
        os.close(handle)
    return b"".join(sums)


def _complete(temporary: Path, file: Path, sums: NDArray[np.uint8]) -> None:
    import h5py

    with h5py.File(temporary, "r+") as stored:
        stored["checksums"][...] = sums.reshape(-1, 32)
        stored.attrs["digest"] = digest(stored)
    for path, flags in ((temporary, os.O_RDONLY), (file.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)):
        if path is not temporary:
            temporary.replace(file)
        handle = os.open(path, flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# -- reading -----------------------------------------------------------------------------------------------------------


def read_state(file: str | Path) -> StoredState:
    """What a file of `write_state` says, checked; its amplitudes are not read yet.

    Raises
    ------
    BadInput
        No such file, no state in it, cut short, or altered.
    """
    return stored_state(file, *_ask(file))


def read_state_together(file: str | Path, group: Group) -> StoredState:
    """The same on every rank; rank 0 reads for all. Collective.

    Raises
    ------
    BadInput
        On every rank: as for `read_state`.
    """
    wrong, told = "", b""
    if group.rank == 0:
        try:
            answer, data = _ask(file)
            told = json.dumps(answer).encode() + b"\n" + data
        except BadInput as error:
            wrong = str(error)
    agree(group, wrong)
    line, _, data = group.allgather(told)[0].partition(b"\n")
    return stored_state(file, json.loads(line), data)


def _ask(file: str | Path) -> tuple[dict[str, Any], bytes]:
    return ask(file, "a state", {"kind": "state"})


def load_state(file: str | Path) -> tuple[NDArray[np.complexfloating], dict[str, Any]]:
    """The amplitudes of a file of `save_state` by index, and what else it says.

    Raises
    ------
    BadInput
        No such file, no state in it, cut short, or altered.
    """
    stored = read_state(file)
    places = np.empty(1 << stored.qubits, stored.dtype)
    stored.fill(places, 0)
    about = {**stored.about, "qubits": stored.qubits, "precision": stored.precision}
    if stored.bits == tuple(range(stored.qubits)):
        return places, about
    place_of = np.zeros(len(places), np.int64)
    for qubit, bit in enumerate(stored.bits):
        place_of |= (np.arange(len(places)) >> qubit & 1) << bit
    return places[place_of], about
