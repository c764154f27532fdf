"""State files: HDF5 files with amplitudes, their layout and checksums, written by all ranks at once.

The file holds a data set `amplitudes` of 2^qubits complex numbers, or of their encoded bytes, in the order of their
places, a data set `checksums` (SHA-256 of each block of amplitudes), further data sets in the group `more`, and
attributes: `qubits`, `precision`, `bits` (the bit of each qubit in a place), `flips` (bits of a place that hold the
opposite of their qubit), `about` (JSON), and `digest` (SHA-256 of everything but the amplitudes). For a state on disk
the amplitudes stay in its own file beside this one, `NAME.0` or `NAME.1`; an attribute `number` says which.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import instance, quoted
from onehop.error import BadInput
from onehop.group import Group, together
from onehop.hdf5 import ask, require_h5py
from onehop.hdf5_child import digest
from onehop.output import check_file_target, check_name, open_unfinished, unfinished_file
from onehop.quantum.precision import BLOCK_BITS, PRECISIONS, is_encoded
from onehop.text import counted


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
    write_state(file, state._core, group, {} if attributes is None else attributes, {})


def write_state(
    file: str | Path,
    state: _core.State,
    group: Group,
    about: Mapping[str, Any],
    more: Mapping[str, NDArray[Any]],
    in_place: bool = False,
) -> None:
    """Write a state in its current layout, with further data. Collective.

    A file of this name is replaced when the new one is complete and on the disk. With `in_place`, the amplitudes of a
    state on disk are not copied: its own file is beside this one.
    """
    number = state.file_number if in_place else -1
    with together(group, f"cannot write {file}"):
        check_state_file(file)
        _check_attributes(about)
        if number >= 0:
            state.complete_file()
    if is_encoded(state.precision):
        about = {**about, "encoding": state.encoding()}
    # Rank 0 owns the temporary file: closing `output` renames it, and an exception removes it.
    with contextlib.ExitStack() as output:
        share: tuple[int, str, int] | None = None
        with together(group, f"cannot write {file}"):
            if group.rank == 0:
                handle = output.enter_context(unfinished_file(file)).fileno()
                offset = _create(_same_file(handle), state, about, more, number)
                share = offset, _same_file(handle).readlink().name, os.fstat(handle).st_uid
        offset, name, owner = json.loads(group.allgather(json.dumps(share).encode())[0])
        sums = b""
        with together(group, f"cannot write {file}", f" on rank {group.rank}; all ranks must see its folder"):
            if group.rank < state.ranks:  # the other ranks hold copies of the same state
                mine = os.dup(handle) if group.rank == 0 else open_unfinished(file, name, owner)
                sums = _write_share(mine, state, offset, writes=number < 0)
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
    file: Path, state: _core.State, about: Mapping[str, Any], more: Mapping[str, NDArray[Any]], number: int
) -> int:
    """Fill an empty file with everything but amplitudes and checksums; return the offset of the amplitudes."""
    import h5py

    size = 1 << state.qubits
    kind, each = _stored_as(state.precision)
    with _written(file, "w") as stored:
        wanted = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        wanted.set_layout(h5py.h5d.CONTIGUOUS)
        wanted.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        wanted.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        if number < 0:
            space = h5py.h5s.create_simple((int(size * each),))
            kept = h5py.h5t.py_create(kind, logical=True)
            data = h5py.h5d.create(stored.id, b"amplitudes", kept, space, wanted)
        else:
            data = None
            stored.attrs["number"] = number
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
        return 0 if data is None else int(data.get_offset())


def _write_share(handle: int, state: _core.State, offset: int, *, writes: bool) -> bytes:
    """Write the amplitudes of this rank and close the file; return the checksums of its blocks, 32 bytes each."""
    size = 1 << state.local_bits
    block = min(BLOCK, size)
    sums = []
    try:
        position = offset + state.rank * int(size * _core.bytes_per_amplitude(state.precision))
        for first in range(0, size, block):
            data = memoryview(state.kept(first, block))
            sums.append(hashlib.sha256(data).digest())
            while data and writes:
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
    with together(group, f"cannot read {file}"):
        if group.rank == 0:
            answer, data = ask(file, "a state", {"kind": "state"})
            message = json.dumps(answer).encode() + b"\n" + data
    line, _, data = group.allgather(message)[0].partition(b"\n")
    return stored_state(file, json.loads(line), data)


BLOCK = 1 << 18  # maximum number of amplitudes per checksum
_MORE = {np.dtype(kind).str: np.dtype(kind) for kind in (np.uint8, np.uint64, np.complex128)}


def _stored_as(precision: str) -> tuple[np.dtype[Any], float]:
    """Return the type of the numbers that a file stores for amplitudes of a precision, and how many for each."""
    if is_encoded(precision):
        return np.dtype(np.uint8), _core.bytes_per_amplitude(precision)
    return np.dtype(np.complex64 if precision == "single" else np.complex128), 1


def damaged(file: str | Path, why: str) -> BadInput:
    """Return the error for a damaged file."""
    return BadInput(f"{file} is damaged: {why}; take another copy, or remove it to begin anew")


def require(file: str | Path, holds: Any, expected: str, found: object = "others") -> None:
    """Raise the error for a damaged file unless something holds."""
    if not holds:
        raise damaged(file, f"expected {expected}, found {found}")


@dataclass(frozen=True)
class StoredState:
    """The contents of a state file without the amplitudes, of which each rank reads its share with `fill`."""

    file: Path
    qubits: int
    precision: str
    bits: tuple[int, ...]  # bit of each qubit in an amplitude's place
    flips: int  # bits of a place that hold the opposite of their qubit
    about: dict[str, Any]
    more: dict[str, NDArray[Any]]
    amplitudes: Path  # the file that holds them
    offset: int  # position of the amplitudes in that file in bytes
    number: int  # of that file, if it is one of a state on disk; else -1
    checksums: NDArray[np.uint8]  # SHA-256 of each block of amplitudes

    def fill(self, state: _core.State) -> None:
        """Read the amplitudes of a rank into a state with the layout of the file, and undo the flips.

        A state on disk whose own file it is goes on from there.
        """
        size, block = 1 << state.local_bits, (1 << self.qubits) // len(self.checksums)
        step, each = min(block, size), _core.bytes_per_amplitude(self.precision)
        adopts = self.number >= 0 and state.file_number == 1 - self.number
        if adopts:
            state.adopt_file()
        for at in range(0, size, step):
            number, inside = divmod((state.rank * size + at) ^ self.flips, block)
            if adopts:
                self._check(number, state.kept(at, step))
                continue
            data = self._block(number, int(block * each))
            begin = int(inside * each)
            state.set_kept(at, step, data[begin : begin + int(step * each)])
        if is_encoded(self.precision):
            state.set_encoding(*self.about["encoding"])

    def _block(self, number: int, count: int) -> bytes:
        try:
            with self.amplitudes.open("rb") as stored:
                stored.seek(self.offset + number * count)
                data = stored.read(count)
        except OSError as error:
            raise BadInput(f"cannot read {self.amplitudes}: {error}") from error
        self._check(number, data)
        return data

    def _check(self, number: int, data: bytes) -> None:
        """Check a block of amplitudes against its checksum."""
        if hashlib.sha256(data).digest() != self.checksums[number].tobytes():
            raise damaged(self.file, f"block {number} of its amplitudes does not match its checksum")
        if (
            not is_encoded(self.precision)
            and not np.isfinite(np.frombuffer(data, _stored_as(self.precision)[0])).all()
        ):
            raise damaged(self.file, f"block {number} of its amplitudes holds numbers that are not finite")


def stored_state(file: str | Path, answer: dict[str, Any], data: bytes) -> StoredState:
    """Check the answer of `hdf5_child` about a state file."""
    attributes, sets = answer["attributes"], answer["data_sets"]
    strange = [name for name in sets if name not in ("amplitudes", "checksums") and name[:5] != "more/"]
    if strange:
        raise damaged(file, f"it has a data set {strange[0]!r:.40}, which no state of onehop has")
    arrays = _arrays(file, sets, answer["read"], data)
    names = ("qubits", "precision", "flips", "number")
    qubits, precision, flips, own = (attributes.get(name) for name in names)
    if answer["digest"] != attributes["digest"]:
        raise damaged(file, "its contents do not match their digest")
    require(file, type(qubits) is int and 1 <= qubits <= 62, "1 to 62 qubits", f"{qubits!r:.40}")
    is_known = isinstance(precision, str) and precision in PRECISIONS
    require(file, is_known, f"a precision of {', '.join(PRECISIONS)}", f"{precision!r:.40}")
    place, offset = Path(file), 0
    if "amplitudes" in sets:
        shape, kind, offset = (sets["amplitudes"][name] for name in ("shape", "dtype", "offset"))
        wanted, each = _stored_as(precision)
        fits = shape == [int(each * (1 << qubits))] and kind == wanted.str and own is None
        expected = f"2^{qubits} amplitudes in {precision} precision"
        require(file, fits, expected, f"an array of shape {tuple(shape)} and type {kind}")
    else:
        require(file, type(own) is int and own in (0, 1), "the number 0 or 1 of a file", f"{own!r:.40}")
        place = Path(f"{check_name(file, 'a state')}.{own}")
        require(
            file, place.is_file() and not place.is_symlink(), f"its amplitudes in {place}", "no such file"
        )
    bits = attributes.get("bits")
    is_order = isinstance(bits, list) and sorted(map(repr, bits)) == sorted(map(repr, range(qubits)))
    require(file, is_order, f"each bit from 0 to {qubits - 1} once", f"{bits!r:.80}")
    checksums, about = _checksums(file, arrays, qubits, precision), _about(file, attributes.get("about"))
    are_flips = (
        type(flips) is int and 0 <= flips < 1 << qubits and flips % ((1 << qubits) // len(checksums)) == 0
    )
    require(
        file,
        are_flips and (own is None or flips == 0),
        f"flips of {counted(qubits, 'bit')}",
        f"{flips!r:.40}",
    )
    if is_encoded(precision):
        numbers = about.get("encoding")
        is_pair = isinstance(numbers, list) and [type(one) for one in numbers] == [float, float]
        fits = is_pair and 0 < numbers[0] < math.inf and 0 <= numbers[1] < math.inf
        require(file, fits, "the scale and the loss of encoded amplitudes", f"{numbers!r:.40}")
    return StoredState(
        file=Path(file),
        qubits=qubits,
        precision=precision,
        bits=tuple(bits),
        flips=flips,
        about=about,
        more={name[5:]: array for name, array in arrays.items() if name.startswith("more/")},
        amplitudes=place,
        offset=offset,
        number=-1 if own is None else own,
        checksums=checksums,
    )


def _arrays(file: str | Path, sets: dict[str, Any], names: list[str], data: bytes) -> dict[str, NDArray[Any]]:
    """Split `data` into the named arrays, whose bytes it holds one after the other."""
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name in names:
        shape, kind = sets[name]["shape"], _MORE.get(sets[name]["dtype"])
        if kind is None:
            raise damaged(file, f"{name} has the type {sets[name]['dtype']}")
        count = int(np.prod(shape, dtype=object))
        if len(data) - at < count * kind.itemsize:
            raise damaged(file, f"{name} is shorter than it claims")
        arrays[name] = np.frombuffer(data, kind, count, at).reshape(shape)
        at += count * kind.itemsize
    return arrays


def _checksums(
    file: str | Path, arrays: dict[str, NDArray[Any]], qubits: int, precision: str
) -> NDArray[np.uint8]:
    found = arrays.get("checksums")
    size = 1 << qubits
    if found is None or found.dtype != np.uint8 or found.ndim != 2 or found.shape[1] != 32:
        raise damaged(file, "expected checksums of 32 bytes, found none")
    blocks = found.shape[0]
    least = 1 << BLOCK_BITS if is_encoded(precision) else 1
    fits = 1 <= blocks <= size and size % blocks == 0 and least <= size // blocks <= BLOCK
    require(file, fits, f"a checksum for each block of at most {BLOCK} amplitudes", blocks)
    return found


def _about(file: str | Path, text: Any) -> dict[str, Any]:
    try:
        about = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(file, "its attribute `about` is no JSON") from error
    if not isinstance(about, dict):
        raise damaged(file, "its attribute `about` is no JSON object")
    return about
