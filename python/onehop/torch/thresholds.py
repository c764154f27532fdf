"""When compressing pays on the ranks of a process group, by the measurements of `onehop tune`."""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.distributed as dist

from onehop import _core
from onehop.codec import tuned_rate as codec_rate
from onehop.group import Group
from onehop.links import link_rate
from onehop.lossless import tuned_rate
from onehop.torch.agreement import gather_rows
from onehop.torch.store import group_from_process_group

_NEVER = sys.maxsize
_known: WeakKeyDictionary[Any, dict[str, int]] = WeakKeyDictionary()


def measured_threshold(process_group: Any, codec: str) -> int:
    """Return the bytes from which a reduction with a codec takes less time than raw. The first call is collective.

    Between hosts that is never so on links that are faster than the rate of `onehop tune` (measured now if there is
    none). All ranks return the number of rank 0, so that they choose alike if their tuning files differ.
    """
    known = _known.setdefault(process_group or dist.group.WORLD, {})
    if codec not in known:
        group = group_from_process_group(process_group)
        in_memory = len(group.local_ranks) == group.size
        mine = _core.compress_above(codec, in_memory, group.size)
        above = int(group.allgather(str(_NEVER if mine is None else mine).encode())[0])
        if not in_memory and "cpu:" in str(dist.get_backend_config(process_group)):
            above = above if _pays_on_links(process_group, group, codec_rate(codec)) else _NEVER
        known[codec] = above
    return known[codec]


def lossless_pays(process_group: Any, dtype: torch.dtype) -> bool:
    """Whether lossless compression takes less time than raw on the links of a group. The first call is collective.

    It does on links that are slower than the rate of `onehop tune` (measured now if there is none). All ranks return
    the same: the rate of the slowest link counts, and the tuning of rank 0.
    """
    known = _known.setdefault(process_group or dist.group.WORLD, {})
    kind = str(dtype).removeprefix("torch.")
    if kind not in known:
        known[kind] = int(
            _pays_on_links(process_group, group_from_process_group(process_group), tuned_rate(kind))
        )
    return bool(known[kind])


def _pays_on_links(process_group: Any, group: Group, rate: float) -> bool:
    """Whether the slowest link of a group is below the rate of rank 0, in Gbit/s. Collective."""

    def exchange(source: np.ndarray, result: np.ndarray) -> None:
        dist.all_to_all_single(torch.from_numpy(result), torch.from_numpy(source), group=process_group)

    link = link_rate(group, lambda: dist.barrier(group=process_group), exchange)
    rows = gather_rows(torch.tensor([link, rate]), process_group)
    return min(float(row[0]) for row in rows) < float(rows[0][1])
