"""Numbers in the headers of gauge files, which are untrusted input."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from onehop.error import BadInput
from onehop.lattice.files.layout import HeaderAverage


def check_extents(path: str, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents. Raises BadInput unless there are four, of 1 or more, and at most 2^40 sites."""
    if len(extents) != 4 or min(extents) < 1 or np.prod([float(one) for one in extents]) > 2**40:
        raise BadInput(
            f"{path}: expected four extents of 1 or more in its header, found {extents}; it was altered"
        )
    return extents


def whole_number(path: str, text: str, name: str) -> int:
    """Parse an extent or a count of at most nine decimal digits. Raises BadInput for other text."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise BadInput(
            f"{path}: expected a number as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text)


def checksum_number(path: str, text: str, name: str) -> int:
    """Parse a 32-bit checksum in hexadecimal digits. Raises BadInput for other text."""
    if re.fullmatch(r"(?:0[xX])?0*[0-9a-fA-F]{1,8}", text) is None:
        raise BadInput(
            f"{path}: expected up to 8 hexadecimal digits as {name} in its header, found {text!r:.40}; it was altered"
        )
    return int(text, 16)


def averages_in(
    found: Iterable[tuple[str, str | None, tuple[float, ...]]],
) -> list[HeaderAverage]:
    """Return the averages of a header, given as name, text and normalisations, without those whose text is None."""
    return [HeaderAverage.of_text(what, text, scales) for what, text, scales in found if text is not None]
