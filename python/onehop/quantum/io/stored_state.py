"""`StoredState`: the checked contents of a state file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.text import counted

BLOCK = 1 << 18  # maximum number of amplitudes per checksum
_PRECISIONS = {"single": np.dtype(np.complex64), "double": np.dtype(np.complex128)}
_MORE = {np.dtype(kind).str: np.dtype(kind) for kind in (np.uint8, np.uint64, np.complex128)}


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
    precision: str  # "double" or "single"
    bits: tuple[int, ...]  # bit of each qubit in an amplitude's place
    flips: int  # bits of a place that hold the opposite of their qubit
    about: dict[str, Any]
    more: dict[str, NDArray[Any]]
    offset: int  # position of the amplitudes in the file in bytes
    checksums: NDArray[np.uint8]  # SHA-256 of each block of amplitudes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of an amplitude: complex64 or complex128."""
        return np.dtype(np.complex64 if self.precision == "single" else np.complex128)

    def fill(self, local: NDArray[np.complexfloating], rank: int) -> None:
        """Read the amplitudes of the places from rank * len(local) on into an array, and undo the flips."""
        block = (1 << self.qubits) // len(self.checksums)
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
                stored.seek(self.offset + number * bytes_each)
                data = stored.read(bytes_each)
        except OSError as error:
            raise BadInput(f"cannot read {self.file}: {error}") from error
        if hashlib.sha256(data).digest() != self.checksums[number].tobytes():
            raise damaged(self.file, f"block {number} of its amplitudes does not match its checksum")
        amplitudes = np.frombuffer(data, self.dtype)
        if not np.isfinite(amplitudes).all():
            raise damaged(self.file, f"block {number} of its amplitudes holds numbers that are not finite")
        return amplitudes


def stored_state(file: str | Path, answer: dict[str, Any], data: bytes) -> StoredState:
    """Check the answer of `hdf5_child` about a state file."""
    attributes, sets = answer["attributes"], answer["data_sets"]
    strange = [name for name in sets if name not in ("amplitudes", "checksums") and name[:5] != "more/"]
    if strange:
        raise damaged(file, f"it has a data set {strange[0]!r:.40}, which no state of onehop has")
    arrays = _arrays(file, sets, answer["read"], data)
    qubits, precision, flips = (attributes.get(name) for name in ("qubits", "precision", "flips"))
    if answer["digest"] != attributes["digest"]:
        raise damaged(file, "its contents do not match their digest")
    require(file, type(qubits) is int and 1 <= qubits <= 62, "1 to 62 qubits", f"{qubits!r:.40}")
    is_known = isinstance(precision, str) and precision in _PRECISIONS
    require(file, is_known, "single or double precision", f"{precision!r:.40}")
    amplitudes = sets["amplitudes"]
    shape, kind = amplitudes["shape"], amplitudes["dtype"]
    fits = shape == [1 << qubits] and kind == _PRECISIONS[precision].str
    expected = f"2^{qubits} amplitudes in {precision} precision"
    require(file, fits, expected, f"an array of shape {tuple(shape)} and type {kind}")
    bits = attributes.get("bits")
    is_order = isinstance(bits, list) and sorted(map(repr, bits)) == sorted(map(repr, range(qubits)))
    require(file, is_order, f"each bit from 0 to {qubits - 1} once", f"{bits!r:.80}")
    are_flips = type(flips) is int and 0 <= flips < 1 << qubits
    require(file, are_flips, f"flips of {counted(qubits, 'bit')}", f"{flips!r:.40}")
    return StoredState(
        file=Path(file),
        qubits=qubits,
        precision=precision,
        bits=tuple(bits),
        flips=flips,
        about=_about(file, attributes.get("about")),
        more={name[5:]: array for name, array in arrays.items() if name.startswith("more/")},
        offset=amplitudes["offset"],
        checksums=_checksums(file, arrays, qubits),
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


def _checksums(file: str | Path, arrays: dict[str, NDArray[Any]], qubits: int) -> NDArray[np.uint8]:
    found = arrays.get("checksums")
    size = 1 << qubits
    if found is None or found.dtype != np.uint8 or found.ndim != 2 or found.shape[1] != 32:
        raise damaged(file, "expected checksums of 32 bytes, found none")
    blocks = found.shape[0]
    fits = 1 <= blocks <= size and size % blocks == 0 and size // blocks <= BLOCK
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
