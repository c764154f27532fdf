"""Permutations of the bits of a distributed index: `permute_bits`, and the same in one round per swap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from onehop import _core
from onehop._core import Schedule
from onehop.arguments import whole_numbers
from onehop.codec import element_type
from onehop.error import BadInput, explain_public

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
    """Build the schedule that permutes the index bits of a state of 2^bits elements on 2^(bits - local) ranks.

    The low `local` bits of an element's index number it within its rank's array; the other bits are the rank's number.
    The schedule has one round and works in place in array 0: every element moves directly to its final place, and
    elements that keep their place are in no transfer.

    Parameters
    ----------
    bits : int
        Number of index bits.
    local : int
        Number of index bits that number an element within its rank.
    pairs : iterable of (int, int)
        Pairs of bits to swap. Each bit may be in one pair only.
    permutation : sequence of int
        Instead of `pairs`, any permutation: bit i of the index moves to bit permutation[i]. The element at index x
        moves to the index y whose bit permutation[i] is bit i of x.
    element_bytes : int
        Bytes of one element; 16 is a complex double.
    dtype : dtype, optional
        Type of an element, for example "complex128". It replaces `element_bytes`, and a codec needs it.
    codec : str
        Format on the wire (docs/reference/codecs.md). Every codec but "raw" rounds the elements that change ranks.
    rank : int, optional
        Build only the part of this rank.

    Returns
    -------
    Schedule
        Its only array is the state, with 2^local elements on every rank.

    Raises
    ------
    BadInput
        The arguments do not describe a permutation of the bits, or there is no such rank.

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
    """Build a schedule with the result of `permute_bits` that needs one round per swap of two bits.

    It serves as the baseline of benchmarks. Parameters, result and errors are those of `permute_bits`.
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
        found = "neither" if pairs is None else "both"
        raise BadInput(f"permute_bits: expected either pairs or a permutation, found {found}")
    if permutation is not None:
        return whole_numbers(permutation, "permutation")
    assert pairs is not None
    targets = list(range(bits))
    for pair in pairs:
        a, b = whole_numbers(pair, "pairs")
        for bit in (a, b):
            if not 0 <= bit < bits:
                raise BadInput(f"permute_bits: expected bits from 0 to {bits - 1} in pairs, found {bit}")
            if targets[bit] != bit:
                raise BadInput(
                    f"permute_bits: expected every bit in at most one pair, found bit {bit} in two"
                )
        targets[a], targets[b] = b, a
    return targets


explain_public(globals())
