"""Permutations of the bits of a distributed index: `permute_bits`, and the same one swap at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Schedule
from onehop.codec import element_type
from onehop.error import BadInput

__all__ = ["permute_bits", "permute_bits_one_swap_at_a_time"]


def permute_bits(
    bits: int,
    *,
    local: int,
    pairs: Iterable[tuple[int, int]] | None = None,
    permutation: Sequence[int] | None = None,
    element_bytes: int = 16,
    dtype: Any = None,
    codec: str = "raw",
    rank: int | None = None,
) -> Schedule:
    """The schedule that permutes the bits of the index of a state of 2^bits elements over 2^(bits - local) ranks.

    Bits of an element's index below `local` number it within its rank's array, the others are the rank's number. One
    round, in place in array 0: every element goes straight to its final place, and one that keeps its place is in no
    transfer.

    Parameters
    ----------
    bits : int
        Bits of the index.
    local : int
        How many of them number the element within its rank.
    pairs : iterable of (int, int)
        Pairs of bits that change places; no bit in two of them.
    permutation : sequence of int
        Instead of `pairs`, any permutation: bit i of the index goes to bit permutation[i], that is, what lies at x
        before lies afterwards at the index y whose bit permutation[i] is bit i of x.
    element_bytes : int
        Bytes of one element; 16 is a complex double.
    dtype : dtype, optional
        Instead of `element_bytes`, and needed for a codec: what an element is, "complex128" for example.
    codec : str
        What the bytes look like on the wire (docs/reference/codecs.md): all but "raw" round what crosses between ranks.
    rank : int, optional
        Build only the part of this rank.

    Returns
    -------
    Schedule
        Its one array is the state, of 2^local elements on every rank.

    Raises
    ------
    BadInput
        That is no permutation of the bits, or there is no such rank.

    Examples
    --------
    >>> schedule = onehop.permute_bits(20, local=17, pairs=[(0, 17), (1, 18), (2, 19)])
    >>> onehop.count(schedule).ranks[0].bytes_sent == (2**17 - 2**14) * 16
    True
    """
    size, kind = _element(element_bytes, dtype)
    return _core.permute_bits(bits, local, _targets(bits, pairs, permutation), size, codec, rank, kind)


def permute_bits_one_swap_at_a_time(
    bits: int,
    *,
    local: int,
    pairs: Iterable[tuple[int, int]] | None = None,
    permutation: Sequence[int] | None = None,
    element_bytes: int = 16,
    dtype: Any = None,
    codec: str = "raw",
    rank: int | None = None,
) -> Schedule:
    """The same result as `permute_bits`, with one round for each exchange of two bits: what it is measured against.

    Parameters, result and errors as for `permute_bits`.
    """
    targets = _targets(bits, pairs, permutation)
    size, kind = _element(element_bytes, dtype)
    return _core.permute_bits_one_swap_at_a_time(bits, local, targets, size, codec, rank, kind)


def _element(element_bytes: int, dtype: Any) -> tuple[int, str]:
    if dtype is None:
        return element_bytes, "bytes"
    kind = element_type(dtype)
    return (2 if kind == "bfloat16" else np.dtype(dtype).itemsize), kind


def _targets(
    bits: int, pairs: Iterable[tuple[int, int]] | None, permutation: Sequence[int] | None
) -> list[int]:
    if (pairs is None) == (permutation is None):
        raise BadInput("permute_bits: expected either pairs or a permutation, found both or neither")
    if permutation is not None:
        return [int(bit) for bit in permutation]
    assert pairs is not None
    targets = list(range(bits))
    for pair in pairs:
        a, b = (int(bit) for bit in pair)
        for bit in (a, b):
            if not 0 <= bit < bits:
                raise BadInput(f"permute_bits: expected bits from 0 to {bits - 1} in pairs, found {bit}")
            if targets[bit] != bit:
                raise BadInput(
                    f"permute_bits: expected every bit in one pair at most, found bit {bit} in two"
                )
        targets[a], targets[b] = b, a
    return targets
