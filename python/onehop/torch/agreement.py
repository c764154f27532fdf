"""What the ranks of a process group tell each other about their calls, before they run them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from onehop.error import Mismatch

_TEXT_BYTES = 128


def gather_rows(row: torch.Tensor, group: Any) -> list[torch.Tensor]:
    """Return the rows of all ranks, which have one length. Collective."""
    rows = [torch.empty_like(row) for _ in range(dist.get_world_size(group))]
    dist.all_gather(rows, row, group=group)
    return rows


def compare_words(words: Sequence[str], does: str) -> None:
    """Raise Mismatch if the words of two ranks differ. `does`: what a rank does with what the words describe."""
    for rank, one in enumerate(words):
        if one != words[0]:
            raise Mismatch(
                f"rank 0 {does} {words[0]}, but rank {rank} {does} {one}; use the same on every rank"
            )


def compare_text(text: str, does: str, group: Any, device: torch.device) -> None:
    """Raise Mismatch on every rank if the texts of two ranks differ in what goes through the device. Collective."""
    mine = torch.zeros(_TEXT_BYTES, dtype=torch.uint8)
    told = text.encode()[:_TEXT_BYTES]
    mine[: len(told)] = torch.tensor(list(told), dtype=torch.uint8)
    rows = gather_rows(mine.to(device), group)
    compare_words([bytes(row.tolist()).rstrip(b"\0").decode() for row in rows], does)
