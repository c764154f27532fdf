"""Read a rank's block of an array in a file. Files are never mapped, so that one that shrinks is no crash."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput
from onehop.output import file_path


def check_regular(path: str) -> None:
    """Refuse a folder, pipe or device before it is opened: opening a pipe would wait for its other end."""
    file_path(path, "cannot read the file")
    try:
        regular = Path(path).is_file() or not Path(path).exists()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not regular:
        raise BadInput(f"cannot read {path}: expected a file, found a folder, a pipe or a device")


def open_file(path: str) -> BinaryIO:
    """Open a regular file to read it, also if another one takes its place meanwhile."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise BadInput(f"cannot read {path}: expected a file, found a folder, a pipe or a device")
    return file


def first_bytes(path: str) -> bytes:
    """Return the bytes by which the kind of a file is recognised."""
    check_regular(path)
    try:
        with open_file(path) as file:
            return file.read(512)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _fill(file: int, target: memoryview, at: int, path: str) -> None:
    """Read bytes from an offset until `target` is full."""
    done = 0
    while done < len(target):
        try:
            count = os.preadv(file, [target[done:]], at + done)
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror}") from error
        if count == 0:
            raise BadInput(
                f"{path} was cut off while it was read: expected {len(target)} bytes at byte {at}, found {done}; "
                "copy it again"
            )
        done += count


def read_block(
    path: str, dtype: Any, offset: int, shape: Sequence[int], slices: Sequence[slice]
) -> NDArray[Any]:
    """Return a block of an array that a file holds in C order.

    `offset` is that of the array in bytes, `shape` that of the whole array. `slices` select the block in its first
    dimensions; they have both ends and no steps. Raises BadInput if the file ends before the block does.
    """
    counts = [one.stop - one.start for one in slices] + list(shape[len(slices) :])
    firsts = [one.start for one in slices] + [0] * (len(shape) - len(slices))
    block = np.empty(counts, dtype)
    # The dimensions from `inner` on are complete, so that one more makes a contiguous run.
    inner = len(shape)
    while inner > 1 and counts[inner - 1] == shape[inner - 1]:
        inner -= 1
    strides = [math.prod(shape[d + 1 :]) * block.itemsize for d in range(len(shape))]
    run = counts[inner - 1] * strides[inner - 1]
    target = memoryview(block.reshape(-1).view(np.uint8))
    with open_file(path) as file:
        for number, place in enumerate(np.ndindex(*counts[: inner - 1])):
            at = [first + one for first, one in zip(firsts, (*place, 0), strict=False)]
            start = sum(one * stride for one, stride in zip(at, strides, strict=False))
            _fill(file.fileno(), target[number * run : (number + 1) * run], offset + start, path)
    return block
