"""The simulator's random numbers: Philox4x32-10 (Salmon et al., SC 2011), a function of seed, shot and event."""

from __future__ import annotations

import operator
import secrets
from typing import Any

import numpy as np

from onehop.error import BadInput
from onehop.group import Group

__all__ = ["common_seed", "require_seed", "uniform"]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def common_seed(seed: int | None, group: Group) -> int:
    """Return the seed, or if it is None a random one of 48 bits, the same on every rank. Collective if it is None."""
    if seed is None:
        return int.from_bytes(group.allgather(secrets.token_bytes(6))[0], "little")
    return require_seed(seed)


def require_seed(seed: Any, name: str = "seed") -> int:
    """Return a seed as an int. Raises BadInput unless it is a whole number of 64 bits."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise BadInput(f"{name}: expected a whole number from 0 to 2^64 - 1, found {seed!r}")
    return number


def uniform(seed: int, shots: Any, event: int) -> Any:
    """Return a random number in [0, 1), a multiple of 2^-53, for each shot.

    Parameters
    ----------
    seed : int
        Seed of 64 bits.
    shots : int or array of int
        Numbers of the shots.
    event : int
        Number of the random event in each shot.

    Returns
    -------
    float64 or array of float64
        One number for each shot.
    """
    is_scalar = np.ndim(shots) == 0
    shots = np.atleast_1d(np.asarray(shots, np.uint64))
    full = np.full_like(shots, 0)
    counter = [
        shots & _LOW,
        shots >> _HALF,
        full + np.uint64(event & 0xFFFFFFFF),
        full + np.uint64(event >> 32),
    ]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a = np.uint64(0xD2511F53) * counter[0]
        b = np.uint64(0xCD9E8D57) * counter[2]
        counter = [
            b >> _HALF ^ counter[1] ^ np.uint64(key[0]),
            b & _LOW,
            a >> _HALF ^ counter[3] ^ np.uint64(key[1]),
            a & _LOW,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    numbers = ((counter[0] << _HALF | counter[1]) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers[0] if is_scalar else numbers
