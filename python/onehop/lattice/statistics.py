"""Statistics of the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["acceptance", "mean_of_second_half"]


def mean_of_second_half(history: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean of the later half of a history and its error; None where there are too few numbers.

    The error is that of ten blocks, which should be longer than the autocorrelation time.
    """
    later = np.array(history[len(history) // 2 :])
    if not len(later):
        return None, None
    blocks = [np.mean(block) for block in np.array_split(later, 10)] if len(later) >= 20 else None
    error = None if blocks is None else float(np.std(blocks, ddof=1) / np.sqrt(len(blocks)))
    return float(np.mean(later)), error


def acceptance(trajectories: Sequence[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Return the accepted share of trajectories, and the mean of exp(-dH), which is 1 if the integration is correct."""
    if not trajectories:
        return None, None
    changes = np.array([trajectory["delta_h"] for trajectory in trajectories])
    accepted = [trajectory["accepted"] for trajectory in trajectories]
    return float(np.mean(accepted)), float(np.mean(np.exp(-changes)))
