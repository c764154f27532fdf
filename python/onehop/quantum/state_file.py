"""States in HDF5 files: amplitudes and what they mean, with checksums, written by all ranks at once.

The file holds a data set `amplitudes` of 2^qubits complex numbers in the order of their places, a data set `checksums`
(SHA-256 of each block of amplitudes), further data sets in `more`, and attributes: `qubits`, `precision`, `bits` (the
bit of each qubit in a place), `flips` (bits of a place that hold the opposite), `about` (JSON), `digest` (SHA-256 of
everything but the amplitudes).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group

if TYPE_CHECKING:
    from onehop.quantum.state import State

__all__ = ["StoredState", "check_state_file", "load_state", "read_state", "save_state", "write_state"]

_BLOCK = 1 << 18  # amplitudes with one checksum


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
        There is no such folder, something else than a file has this name, or h5py is missing.
    """
    _h5py()
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
    file: str | Path, state: State, group: Group, attributes: Mapping[str, Any] | None = None
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
            temporary.unlink(missing_ok=True)
        raise


def _create(
    file: Path, state: _core.State, about: Mapping[str, Any], more: Mapping[str, NDArray[Any]]
) -> int:
    """A file with everything but amplitudes and checksums; where the amplitudes begin in it."""
    h5py = _h5py()
    size = 1 << state.qubits
    kind = np.dtype(np.complex64 if state.precision == "single" else np.complex128)
    with h5py.File(file, "w") as stored:
        wanted = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        wanted.set_layout(h5py.h5d.CONTIGUOUS)
        wanted.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        wanted.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((size,))
        data = h5py.h5d.create(
            stored.id, b"amplitudes", h5py.h5t.py_create(kind, logical=True), space, wanted
        )
        block = min(_BLOCK, 1 << state.local_bits)
        stored.create_dataset("checksums", (size // block, 32), np.uint8)
        for name, values in more.items():
            stored[f"more/{name}"] = values
        stored.attrs.update(
            {
                "qubits": state.qubits,
                "precision": state.precision,
                "bits": np.array(state.bits, np.int64),
                "flips": np.uint64(state.flips),
                "about": json.dumps(dict(about)),
                **{name: value for name, value in about.items() if isinstance(value, (str, int, float))},
            }
        )
        stored.flush()
        return int(data.get_offset())


def _write_share(file: Path, state: _core.State, offset: int) -> bytes:
    """Write the amplitudes of this rank at their place in the file; return the checksums of its blocks."""
    local = state.local()
    block = min(_BLOCK, len(local))
    sums = []
    handle = os.open(file, os.O_WRONLY)
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
    with _h5py().File(temporary, "r+") as stored:
        stored["checksums"][...] = sums.reshape(-1, 32)
        stored.attrs["digest"] = _digest(stored)
    for path, flags in ((temporary, os.O_RDONLY), (file.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)):
        if path is not temporary:
            temporary.replace(file)
        handle = os.open(path, flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(stored: Any) -> str:
    """Of everything but the amplitudes, which have the checksums."""
    digest = hashlib.sha256()
    for name in sorted(stored.attrs):
        if name != "digest":
            value = stored.attrs[name]
            digest.update(repr((name, value.tolist() if hasattr(value, "tolist") else value)).encode())
    names: list[str] = []
    stored.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
    for name in sorted(names):
        item = stored[name]
        digest.update(repr((name, item.shape, str(item.dtype))).encode())
        if name != "amplitudes":
            digest.update(item[()].tobytes())
    return digest.hexdigest()


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredState:
    """What a file says; its amplitudes are read later, by each rank its own."""

    file: Path
    qubits: int
    precision: str
    bits: tuple[int, ...]
    flips: int
    about: dict[str, Any]
    more: dict[str, NDArray[Any]]
    _offset: int
    _checksums: NDArray[np.uint8]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its amplitudes."""
        return np.dtype(np.complex64 if self.precision == "single" else np.complex128)

    def fill(self, local: NDArray[np.complexfloating], rank: int) -> None:
        """Write the amplitudes of the places from rank * len(local) on, flips undone, into an array.

        Raises
        ------
        BadInput
            The file cannot be read, or a checksum does not fit.
        """
        block = (1 << self.qubits) // len(self._checksums)
        step = min(block, len(local))
        first = rank * len(local)
        for at in range(0, len(local), step):
            place = (first + at) ^ self.flips
            low = place & (step - 1)
            number, inside = (place - low) // block, (place - low) % block
            part = self._block(number, block)[inside : inside + step]
            # Flips below the size of a step are a permutation inside it.
            local[at : at + step] = part if low == 0 else part[np.arange(step) ^ low]

    def _block(self, number: int, block: int) -> NDArray[np.complexfloating]:
        bytes_each = block * self.dtype.itemsize
        try:
            with self.file.open("rb") as stored:
                stored.seek(self._offset + number * bytes_each)
                data = stored.read(bytes_each)
        except OSError as error:
            raise BadInput(f"cannot read {self.file}: {error}") from error
        if hashlib.sha256(data).digest() != self._checksums[number].tobytes():
            raise BadInput(
                f"{self.file} is damaged: block {number} of its amplitudes does not fit its checksum; take another copy"
            )
        return np.frombuffer(data, self.dtype)


def read_state(file: str | Path) -> StoredState:
    """What a file of `write_state` says, checked; its amplitudes are not read yet.

    Raises
    ------
    BadInput
        No such file, no state in it, cut short, or altered.
    """
    h5py = _h5py()
    try:
        with h5py.File(file, "r") as stored:
            if _digest(stored) != stored.attrs["digest"]:
                raise BadInput(f"{file} is damaged: its contents do not fit their digest; take another copy")
            return StoredState(
                file=Path(file),
                qubits=int(stored.attrs["qubits"]),
                precision=str(stored.attrs["precision"]),
                bits=tuple(int(bit) for bit in stored.attrs["bits"]),
                flips=int(stored.attrs["flips"]),
                about=json.loads(stored.attrs["about"]),
                more={name: item[()] for name, item in stored["more"].items()} if "more" in stored else {},
                _offset=int(stored["amplitudes"].id.get_offset()),
                _checksums=stored["checksums"][()],
            )
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"cannot read a state from {file}: {_why(error)}; take another copy, or remove it to begin anew"
        ) from error


def _why(error: Exception) -> str:
    """What is wrong with a file, without the names that the HDF5 library has for it."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    known = {
        "truncated file": "it is cut short",
        "signature not found": "it is no HDF5 file",
    }
    for words, meaning in known.items():
        if words in str(error):
            return meaning
    return "it holds no state of onehop" if isinstance(error, KeyError) else "it is damaged"


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
    about = {"qubits": stored.qubits, "precision": stored.precision, **stored.about}
    if stored.bits == tuple(range(stored.qubits)):
        return places, about
    place_of = np.zeros(len(places), np.int64)
    for qubit, bit in enumerate(stored.bits):
        place_of |= (np.arange(len(places)) >> qubit & 1) << bit
    return places[place_of], about
