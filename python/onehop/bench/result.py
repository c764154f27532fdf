"""From samples to rows: medians, spread, and ratios of the same round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from onehop._core import __version__


@dataclass(frozen=True)
class Samples:
    """What one contestant took.

    Attributes
    ----------
    name : str
        Who it is.
    role : str
        "ours", "variant" (also ours), "peer" or "limit".
    us : np.ndarray
        Microseconds, one per round. Entry r of all contestants of a case belongs to the same round.
    """

    name: str
    role: str
    us: np.ndarray


@dataclass(frozen=True)
class Row:
    """One case of a benchmark.

    Attributes
    ----------
    case : str
        What was measured.
    bytes : int
        Bytes that one rank sends.
    ranks : int
        How many ranks took part.
    ours_us, p10_us, p90_us : float
        onehop: median over the rounds, and the tenth and ninetieth percentile.
    peers : dict
        Median of every peer, by name.
    best_peer : str or None
        The peer that onehop beats least, and its median; None where there was no peer.
    limit_us : float or None
        The bare limit, where there is one.
    ratio : float or None
        onehop over the best peer: the median of the rounds' ratios.
    ratios : dict
        The same for every peer.
    limit_ratio : float or None
        The same for the limit.
    variants : dict
        Medians of other ways to do it with onehop.
    """

    case: str
    bytes: int
    ranks: int
    ours_us: float
    p10_us: float
    p90_us: float
    peers: dict[str, float]
    best_peer: str | None
    best_peer_us: float | None
    limit_us: float | None
    ratio: float | None
    ratios: dict[str, float]
    limit: str | None
    limit_ratio: float | None
    variants: dict[str, float]
    rounds: int

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes over time, in 10^9 per second; 0 where nothing moves."""
        return self.bytes / self.ours_us / 1e3


@dataclass
class Bench:
    """A whole benchmark, as `--json` writes it."""

    bench: str
    host: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    version: str = __version__
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The object for JSON."""
        rows = [{key: _rounded(value) for key, value in asdict(row).items()} for row in self.rows]
        return {
            "bench": self.bench,
            "version": self.version,
            "host": self.host,
            "notes": self.notes,
            "rows": rows,
        }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return value


def _ratio(ours: Samples, other: Samples) -> float:
    return float(np.median(ours.us / other.us))


def make_row(case: str, size: int, ranks: int, samples: Sequence[Samples]) -> Row:
    """Sum up one case."""
    ours = next(one for one in samples if one.role == "ours")
    peers = [one for one in samples if one.role == "peer"]
    limit = next((one for one in samples if one.role == "limit"), None)
    ratios = {peer.name: _ratio(ours, peer) for peer in peers}
    best = max(peers, key=lambda peer: ratios[peer.name], default=None)
    low, middle, high = (float(value) for value in np.percentile(ours.us, (10, 50, 90)))
    return Row(
        case=case,
        bytes=size,
        ranks=ranks,
        ours_us=middle,
        p10_us=low,
        p90_us=high,
        peers={peer.name: float(np.median(peer.us)) for peer in peers},
        best_peer=None if best is None else best.name,
        best_peer_us=None if best is None else float(np.median(best.us)),
        limit_us=None if limit is None else float(np.median(limit.us)),
        ratio=None if best is None else ratios[best.name],
        ratios=ratios,
        limit=None if limit is None else limit.name.removeprefix("limit: "),
        limit_ratio=None if limit is None else _ratio(ours, limit),
        variants={one.name: float(np.median(one.us)) for one in samples if one.role == "variant"},
        rounds=len(ours.us),
    )
