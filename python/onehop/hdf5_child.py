"""The child process of `onehop.hdf5`, which reads an HDF5 file and may crash over a damaged one.

It runs as a script in Python's isolated mode and imports nothing of onehop. The question is JSON on stdin. The answer
on stdout is a line of JSON, followed by the bytes of the arrays that the line lists.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

DIGEST = b"\nonehop sha256 "  # of measurements: behind the HDF5 data, whose readers ignore it
ROOM = 64 << 20  # bytes of memory beyond a multiple of the file's size
MAX_QUBITS = 10**6  # the text of a Pauli string can name as many


class Refused(Exception):
    """The file does not hold what the question asks for; the text says why."""


def digest(stored: Any) -> str:
    """Return the SHA-256 of an open state file without the amplitudes, which have their own checksums."""
    found = hashlib.sha256()
    for name in sorted(stored.attrs):
        if name != "digest":
            value = stored.attrs[name]
            found.update(repr((name, value.tolist() if hasattr(value, "tolist") else value)).encode())
    names: list[str] = []
    stored.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
    for name in sorted(names):
        item = stored[name]
        found.update(repr((name, item.shape, str(item.dtype))).encode())
        if name != "amplitudes":
            found.update(item[()].tobytes())
    return found.hexdigest()


# -- states ------------------------------------------------------------------------------------------------------------


def _bytes_of(shape: Any, itemsize: int) -> int:
    """Multiply in Python's integers, because a damaged file may claim any extents."""
    count = itemsize
    for extent in shape:
        count *= int(extent)
    return count


def _offset(h5py: Any, name: str, item: Any, size: int) -> int:
    """Return the offset of a data set, which must lie in the file as plain numbers of the type that it claims."""
    if item.shape is None or len(item.shape) not in (1, 2):
        raise Refused(f"{name} is no array of one or two dimensions")
    needed = _bytes_of(item.shape, item.dtype.itemsize)
    properties = item.id.get_create_plist()
    is_contiguous = properties.get_layout() == h5py.h5d.CONTIGUOUS
    if not is_contiguous or properties.get_nfilters() or properties.get_external_count():
        raise Refused(f"{name} is compressed, cut into chunks or in another file")
    if item.id.get_type().get_size() != item.dtype.itemsize or item.dtype.hasobject:
        raise Refused(f"{name} is not made of plain numbers")
    offset = item.id.get_offset() if needed else 0
    if offset is None or offset < 0 or offset + needed > size:
        raise Refused(f"{name} claims {needed} bytes, which a file of {size} does not have")
    return int(offset)


def _data_sets(h5py: Any, stored: Any, size: int) -> dict[str, Any]:
    """Return all data sets of the root and of the group `more`."""
    found: dict[str, Any] = {}
    total = 0
    for place, group in (("", stored), ("more/", stored.get("more"))):
        for name in group or ():
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise Refused(f"{place}{name} is a link")
            item = group[name]
            if place == "" and name == "more" and isinstance(item, h5py.Group):
                continue
            if not isinstance(item, h5py.Dataset):
                raise Refused(f"{place}{name} is no data set")
            total += _bytes_of(item.shape or (), item.dtype.itemsize)
            if total > size:
                raise Refused(f"its data sets claim more bytes than the {size} of the file")
            found[place + name] = item
    return found


def _attributes(stored: Any, size: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in stored.attrs:
        one = stored.attrs.get_id(name)
        if one.shape is None or _bytes_of(one.shape, one.dtype.itemsize) > size:
            raise Refused(f"the attribute {name} claims more than the file has")
        value = stored.attrs[name]
        if isinstance(value, str):
            found[name] = value
        elif isinstance(value, (np.integer, np.ndarray)) and value.dtype.kind in "iu":
            found[name] = value.tolist()
    return found


def _state(h5py: Any, question: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Read everything in a state file but the amplitudes; return their offset instead."""
    size = question["size"]
    with h5py.File(question["file"], "r") as stored:
        items = _data_sets(h5py, stored, size)
        sets = {
            name: {
                "shape": [int(extent) for extent in item.shape],
                "dtype": item.dtype.str,
                "offset": _offset(h5py, name, item, size),
            }
            for name, item in items.items()
        }
        attributes = _attributes(stored, size)
        if "digest" not in attributes or not {"amplitudes", "number"} & {*sets, *attributes}:
            raise Refused("it holds no state of onehop")
        read = [name for name in sets if name != "amplitudes"]
        about = {"attributes": attributes, "data_sets": sets, "read": read, "digest": digest(stored)}
        return about, [items[name][()] for name in read]


# -- Hamiltonians ------------------------------------------------------------------------------------------------------


def _names(h5py: Any, stored: Any) -> list[str]:
    names: list[str] = []
    stored.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


def _text(h5py: Any, stored: Any, name: str, size: int) -> dict[str, Any]:
    """Read the text of a scalar data set and its attribute `nqubits`; list other names if it does not exist."""
    item = stored.get(name)
    if not isinstance(item, h5py.Dataset):
        return {"there": _names(h5py, stored)[:5]}
    kind = h5py.check_string_dtype(item.dtype)
    if item.shape != () or kind is None:
        raise Refused(f"expected text in {name}, found an array of {item.dtype} and shape {item.shape}")
    if item.dtype.itemsize > size:
        raise Refused(f"{name} claims more bytes than the file has")
    raw = item[()]
    text = raw.decode() if isinstance(raw, bytes) else str(raw)
    return {"text": text, "qubits": _qubits(item, name)}


def _qubits(item: Any, name: str) -> int | None:
    if "nqubits" not in item.attrs:
        return None
    one = item.attrs.get_id("nqubits")
    if one.shape != () or one.dtype.kind not in "iuf":
        raise Refused(
            f"expected a number as attribute nqubits of {name}, found {one.dtype} of shape {one.shape}"
        )
    qubits = item.attrs["nqubits"]
    if not 0 <= qubits <= MAX_QUBITS or qubits != int(qubits):
        raise Refused(f"expected 0 to {MAX_QUBITS} as attribute nqubits of {name}, found {qubits}")
    return int(qubits)


def _hamlib(h5py: Any, question: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    with h5py.File(question["file"], "r") as stored:
        names = question["names"]
        if names is None:
            return {"names": _names(h5py, stored)}, []
        texts: list[dict[str, Any]] = []
        left = question["size"]
        for name in names:
            texts.append(_text(h5py, stored, name, question["size"]))
            left -= len(texts[-1].get("text", ""))
            if left < 0:
                raise Refused("its Hamiltonians claim more bytes than the file has")
        return {"texts": texts}, []


# -- measurements of ensembles -----------------------------------------------------------------------------------------


def _check_digest(file: Any, size: int) -> None:
    """Refuse the first `size` bytes of a file that does not end with its digest, unless it never had one."""
    found, left = hashlib.sha256(), size - len(DIGEST) - 64
    beginning = file.read(48)
    file.seek(max(left, 0))
    _, mark, end = file.read(size - max(left, 0)).rpartition(DIGEST)
    file.seek(0)
    while mark and left > 0:
        piece = file.read(min(left, 1 << 20))
        found.update(piece)
        left -= len(piece) or left
    # Without a digest nothing lies behind the HDF5 data, whose length their first block has in its version 0.
    has_rest = (
        beginning.startswith(b"\x89HDF\r\n\x1a\n\0") and int.from_bytes(beginning[40:48], "little") < size
    )
    if found.hexdigest().encode() != end if mark else has_rest:
        raise Refused("expected measurements with their SHA-256, found others; the file was altered")


def _measurements(h5py: Any, question: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Read the attributes, the texts of the group `configurations`, the flow times and the numbers of all series."""
    left = question["size"]
    with Path(question["file"]).open("rb") as file:
        _check_digest(file, left)
        with h5py.File(file, "r") as stored:
            attributes = _attributes(stored, left)
            if attributes.get("kind") != question["format"]:
                raise Refused("expected a file of `onehop lattice measure -o`, found another HDF5 file")
            texts: dict[str, list[str]] = {}
            for name in question["texts"]:
                item = stored[f"configurations/{name}"]
                if h5py.check_string_dtype(item.dtype) is None or _bytes_of(item.shape, 1) > left:
                    raise Refused(f"expected texts in configurations/{name}")
                texts[name] = [text.decode() for text in item[()]]
                left -= sum(map(len, texts[name]))
            names: list[str] = []
            stored["series"].visit(names.append)
            items = {f"series/{name}": stored[f"series/{name}"] for name in names}
            items |= {"flow/time": stored["flow/time"]} if "flow" in stored else {}
            numbers = {name: item for name, item in items.items() if isinstance(item, h5py.Dataset)}
            for name, item in numbers.items():
                if item.dtype != np.float64 or item.shape is None:
                    raise Refused(f"expected numbers of 64 bits in {name}")
                _offset(h5py, name, item, question["size"])
                left -= item.nbytes
            if left < 0:
                raise Refused("it is damaged: its contents claim more bytes than the file has")
            shapes = {name: list(item.shape) for name, item in numbers.items()}
            arrays = [item[()] for item in numbers.values()]
            return {"attributes": attributes, "texts": texts, "numbers": shapes}, arrays


# -- question and answer -----------------------------------------------------------------------------------------------


_KINDS = {"state": _state, "hamlib": _hamlib, "measurements": _measurements}


def _limit(size: int, seconds: int) -> None:
    """Limit the memory of this process, and its time in case the parent has ended."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    wanted = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + ROOM + 4 * size,
        resource.RLIMIT_CPU: seconds + math.ceil(time.process_time()),  # the imports took some
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard))


def _why(error: BaseException) -> str:
    """Translate an error of the HDF5 library to plain words."""
    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, MemoryError):
        return "it is damaged: it asks for much more memory than it is long"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    known = {"truncated file": "it is cut short", "signature not found": "it is no HDF5 file"}
    return next((meaning for words, meaning in known.items() if words in str(error)), "it is damaged")


def reply(question: dict[str, Any], answers: Any) -> None:
    """Write the answer to a question. The limits on this process stay in force."""
    import h5py

    _limit(question["size"], question["seconds"])
    try:
        answer, arrays = _KINDS[question["kind"]](h5py, question)
        parts = [
            json.dumps(answer).encode() + b"\n",
            *(np.ascontiguousarray(one).tobytes() for one in arrays),
        ]
    except BaseException as error:
        parts = [json.dumps({"error": _why(error)}).encode() + b"\n"]
    for part in parts:
        answers.write(part)


def main() -> None:
    """Read one question from stdin and answer it on stdout."""
    question = json.loads(sys.stdin.buffer.read())
    sys.path += question["paths"]
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # other output goes to stderr, not into the answer
        reply(question, answers)


if __name__ == "__main__":
    main()
