"""State files: HDF5 files with amplitudes, their layout and checksums, written by all ranks at once.

The file holds a data set `amplitudes` of 2^qubits complex numbers in the order of their places, a data set `checksums`
(SHA-256 of each block of amplitudes), further data sets in the group `more`, and attributes: `qubits`, `precision`,
`bits` (the bit of each qubit in a place), `flips` (bits of a place that hold the opposite of their qubit), `about`
(JSON), and `digest` (SHA-256 of everything but the amplitudes).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import instance, quoted
from onehop.error import BadInput
from onehop.group import Group, together
from onehop.output import check_file_target, open_unfinished, unfinished_file
from onehop.quantum.io.hdf5 import ask, require_h5py
from onehop.quantum.io.hdf5_child import digest
from onehop.quantum.io.stored_state import BLOCK, StoredState, stored_state


def check_state_file(file: str | Path) -> None:
    """Check before a run that its state can be saved."""
    require_h5py()
    check_file_target(file, "cannot save the state", replaces=True)


# -- writing -----------------------------------------------------------------------------------------------------------


def save_state(
    file: str | Path, state: _core.State, group: Group, attributes: Mapping[str, Any] | None = None
) -> None:
    """Write all amplitudes of a state in the order of their index. Collective; the file appears when it is complete."""
    state.restore_order()
    write_state(file, state._core, group, attributes or {}, {})


def write_state(
    file: str | Path,
    state: _core.State,
    group: Group,
    about: Mapping[str, Any],
    more: Mapping[str, NDArray[Any]],
) -> None:
    """Write a state in its current layout, with further data. Collective.

    A file of this name is replaced when the new one is complete and on the disk.
    """
    with together(group):
        check_state_file(file)
        _check_attributes(about)
    # Rank 0 owns the temporary file: closing `output` renames it, and an exception removes it.
    with contextlib.ExitStack() as output:
        share: tuple[int, str, int] | None = None
        with together(group, f"cannot write {file}"):
            if group.rank == 0:
                handle = output.enter_context(unfinished_file(file)).fileno()
                offset = _create(_same_file(handle), state, about, more)
                share = offset, _same_file(handle).readlink().name, os.fstat(handle).st_uid
        offset, name, owner = json.loads(group.allgather(json.dumps(share).encode())[0])
        sums = b""
        with together(group, f"rank {group.rank} cannot write {file}", "; all ranks must see its folder"):
            if group.rank < state.ranks:  # the other ranks hold copies of the same state
                mine = os.dup(handle) if group.rank == 0 else open_unfinished(file, name, owner)
                sums = _write_share(mine, state, offset)
        everything = group.allgather(sums)
        with together(group, f"cannot write {file}"):
            if group.rank == 0:
                _complete(_same_file(handle), np.frombuffer(b"".join(everything), np.uint8))
                output.close()


def _check_attributes(about: Any) -> None:
    """Raise BadInput unless a file can hold these attributes."""
    for name, value in instance(about, Mapping, "attributes").items():  # type: ignore[type-abstract]
        try:
            if not re.fullmatch("[^\0]+", name):
                raise ValueError
            json.dumps({name: value}, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(
                f"attributes: expected names and values that JSON can store, found {quoted(name)}: {quoted(value)}"
            ) from error


def _same_file(handle: int) -> Path:
    """Return a path that leads to an open file, whatever has its name meanwhile: HDF5 takes paths only."""
    return Path(f"/proc/self/fd/{handle}")


def _refused_number(error: BaseException | None) -> int:
    """Return the number of the system's error that an error of the HDF5 library, or one before it, quotes; else 0."""
    while error is not None:
        if found := re.search(r"errno = (\d+)", str(error)):
            return int(found[1])
        error = error.__context__
    return 0


@contextlib.contextmanager
def _written(file: Path, mode: str) -> Iterator[Any]:
    """Open an HDF5 file to write it.

    The library writes its buffers to the disk in the end. If the disk is full then, h5py raises RuntimeError, which
    becomes the system's error here.
    """
    import h5py

    try:
        # `unfinished_file` holds a lock on the file; HDF5's own lock would wait for it.
        with h5py.File(file, mode, locking=False) as stored:
            yield stored
    except RuntimeError as error:
        if number := _refused_number(error):
            raise OSError(number, os.strerror(number)) from error
        raise


def _create(
    file: Path, state: _core.State, about: Mapping[str, Any], more: Mapping[str, NDArray[Any]]
) -> int:
    """Fill an empty file with everything but amplitudes and checksums; return the offset of the amplitudes."""
    import h5py

    size = 1 << state.qubits
    kind = np.dtype(np.complex64 if state.precision == "single" else np.complex128)
    with _written(file, "w") as stored:
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


def _write_share(handle: int, state: _core.State, offset: int) -> bytes:
    """Write the amplitudes of this rank and close the file; return the checksums of its blocks, 32 bytes each."""
    local = state.local()
    block = min(BLOCK, len(local))
    sums = []
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


def _complete(file: Path, sums: NDArray[np.uint8]) -> None:
    """Add the checksums and the digest."""
    with _written(file, "r+") as stored:
        stored["checksums"][...] = sums.reshape(-1, 32)
        stored.attrs["digest"] = digest(stored)


# -- reading -----------------------------------------------------------------------------------------------------------


def read_state_together(file: str | Path, group: Group) -> StoredState:
    """Read and check a file of `write_state` on rank 0, without its amplitudes; every rank gets it. Collective."""
    message = b""
    with together(group):
        if group.rank == 0:
            answer, data = ask(file, "a state", {"kind": "state"})
            message = json.dumps(answer).encode() + b"\n" + data
    line, _, data = group.allgather(message)[0].partition(b"\n")
    return stored_state(file, json.loads(line), data)
