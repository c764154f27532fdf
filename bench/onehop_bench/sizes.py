"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re

from onehop.error import BadInput

_LARGEST = 1 << 40
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """Read a size such as "8", "64B", "1K", "4KiB" or "1M", in bytes.

    Raises
    ------
    BadInput
        The text is no size, or one above 1 TiB.
    """
    found = re.fullmatch(r"([0-9]{1,13})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise BadInput(f"expected a size such as 8, 64, 1K or 4M, found {text!r}")
    size = int(found[1]) * _UNITS[found[2]]
    if size > _LARGEST:
        raise BadInput(f"expected a size of at most 1 TiB ({_LARGEST} bytes), found {text!r}")
    return size


def parse_sizes(text: str) -> list[int]:
    """Read a list of sizes such as "8,1K,4M", in bytes."""
    return [parse_size(part) for part in text.split(",")]
