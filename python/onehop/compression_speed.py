"""How fast one core compresses numbers, and the rate of a link below which that saves time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from onehop import _core

_MEASURED_NUMBERS = 1 << 17
_PASSES = 9


@dataclass(frozen=True)
class Speed:
    """How fast one core compresses gradients: 10^9 bytes of numbers per second, and bytes after over bytes before."""

    encode_gb_per_s: float
    decode_gb_per_s: float
    share: float

    @property
    def pays_below_gbit_per_s(self) -> float:
        """The rate of a link, in 10^9 bits per second of each rank, below which compression takes less time than raw.

        In an all-reduce each byte is encoded once, decoded once and sent once.
        """
        seconds_per_gb = 1 / self.encode_gb_per_s + 1 / self.decode_gb_per_s
        return 8 * max(0.0, 1 - self.share) / seconds_per_gb


def numbers() -> np.ndarray:
    """Return normally distributed numbers of float32, of the size of gradients."""
    return (np.random.default_rng(0).normal(size=_MEASURED_NUMBERS) * 1e-4).astype(np.float32)


def measure(encode: Callable[[], int], decode: Callable[[int], None], raw_bytes: int) -> Speed:
    """Time both directions in turn, which takes some milliseconds.

    `encode` encodes `raw_bytes` bytes of numbers and returns the bytes on the wire; `decode` decodes so many.
    """
    encoding, decoding = [], []
    for _ in range(_PASSES):
        begin = perf_counter()
        used = encode()
        middle = perf_counter()
        decode(used)
        decoding.append(perf_counter() - middle)
        encoding.append(middle - begin)
    gigabytes = raw_bytes / 1e9
    return Speed(gigabytes / median(encoding), gigabytes / median(decoding), used / raw_bytes)


def tuned_rate(section: str, name: str, measured: Callable[[], Speed]) -> float:
    """Return the rate of a link, in Gbit/s, below which compression pays: that of `onehop tune`, else measured now.

    The tuning file has it in a section, "codecs" or "lossless", under the name of the codec or type.
    """
    try:
        # A file that the library refuses counts as none.
        text = _core.tuning_text() or ""
        _core.check_tuning(text)
        found = json.loads(text)[section][name]["pays_below_gbit_per_s"]
        if isinstance(found, (int, float)) and 0 <= found <= sys.float_info.max:
            return float(found)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    return measured().pays_below_gbit_per_s
