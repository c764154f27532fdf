"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re

from onehop.error import BadInput

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """Read a size such as "8", "64B", "1K", "4KiB" or "1M", in bytes.

    Raises
    ------
    BadInput
        The text is no size.
    """
    found = re.fullmatch(r"(\d+)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise BadInput(f"expected a size such as 8, 64, 1K or 4M, found {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def parse_sizes(text: str) -> list[int]:
    """Read a list of sizes such as "8,1K,4M", in bytes."""
    return [parse_size(part) for part in text.split(",")]
