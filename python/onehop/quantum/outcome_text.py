"""Outcomes as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onehop.quantum.circuit import Register


def outcome_texts(bits: NDArray[np.uint8], registers: Sequence[Register]) -> list[str]:
    """Write outcomes as in Qiskit: the last classical bit first, and blanks between registers, the first one last.

    If a bit is in no register, the texts have all bits without blanks. NumPy does the work, because there may be
    millions.
    """
    number, width = bits.shape
    groups = [range(one.first, one.first + one.size) for one in registers]
    if len(groups) < 2 or set().union(*groups) != set(range(width)):
        groups = [range(width)]
    blank = np.full((number, 1), ord(" "), np.uint8)
    columns: list[NDArray[np.uint8]] = []
    for group in reversed(groups):
        columns += [blank, bits[:, group.start : group.stop][:, ::-1] + np.uint8(ord("0"))]
    rows = np.concatenate(columns[1:], axis=1)
    text, length = rows.tobytes().decode("ascii"), rows.shape[1]
    return [text[k * length : (k + 1) * length] for k in range(number)]
