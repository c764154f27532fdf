"""From samples to rows: medians, spread, and ratios of the same round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onehop._core import __version__
from onehop.text import rate_text, seconds_text


@dataclass(frozen=True)
class Samples:
    """The times of one candidate in microseconds, one per round.

    Entry r of all candidates of a case belongs to the same round. `role` is "ours", "variant" (another variant of
    onehop), "peer" or "speed_of_light".
    """

    name: str
    role: str
    us: np.ndarray


def samples_of(measured: Iterable[tuple[Any, ...]]) -> list[Samples]:
    """The samples of each candidate that the native module has measured, from its name, role and times."""
    return [Samples(name, role, np.array(us)) for name, role, us, *_ in measured]


class Row(dict[str, Any]):
    """One case of a benchmark, as JSON has it; its keys are attributes as well.

    Every row has `case`, the operation and its parameters; `bytes` that one rank sends; and `ranks`. onehop's time is
    `ours_us`, the median over the rounds, with the percentiles `p10_us` and `p90_us`. `peers` and `variants` (of
    onehop) have medians by name, `best_peer` and `best_peer_us` those of the peer with the largest ratio (None without
    peers), and `limit_us` that of bare code that does the least, or None where it is not measured.
    `ratio`, `ratios` and `limit_ratio` are onehop's time over that of the best peer, of each peer and of the
    limit: the median of the rounds' ratios. Benchmarks add further keys, which their modules describe.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes over time, in 10^9 per second; 0 where nothing moves."""
        return float(self.bytes / self.ours_us / 1e3)

    def gflops(self, us: float) -> float:
        """The rate in GFLOP/s per rank of a candidate that takes `us`, where `flop` counts a rank's arithmetic."""
        return float(self.flop / us / 1e3)


@dataclass
class Bench:
    """The result of a benchmark, as `--json` writes it, with a row for each case.

    `host` is the machine: `cpu`, `cores`, `simd`, `mpi`; and its state where it was measured: `flag_us`, the time of a
    flag between two cores before and after the benchmark, and `memory_gb_s`, the memory bandwidth of a rank. `version`
    is that of onehop, and `notes` are remarks for people.
    """

    bench: str
    host: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    version: str = __version__
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The result as an object for JSON."""
        return {**vars(self), "rows": [_rounded(row) for row in self.rows]}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Bench:
        """Read what `to_dict` made; raise LookupError or TypeError if it is something else."""
        rows = [Row(row) for row in stored["rows"]]
        for row in rows:
            if missing := {"case", "bytes", "ranks", "ours_us", "peers", "ratios", "variants"} - row.keys():
                raise KeyError(min(missing))
        return cls(stored["bench"], stored["host"], rows, stored["version"], stored["notes"])


def machine_text(host: dict[str, Any]) -> str:
    """The processor, the MPI that onehop was compared with, and the state of the machine, as far as they are known."""
    parts = [host["cpu"], host["mpi"]]
    if "flag_us" in host:
        low, high = min(host["flag_us"]), max(host["flag_us"])
        spread = " to ".join(
            seconds_text(us * 1e-6, 2) for us in ([low] if high < 1.25 * low else [low, high])
        )
        parts.append(f"a flag takes {spread}")
    if "memory_gb_s" in host:
        parts.append(f"memory {rate_text(host['memory_gb_s'] * 1e9, digits=3)} per rank")
    return "; ".join(part for part in parts if part)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def _ratio(ours: Samples, other: Samples) -> float:
    return float(np.median(ours.us / other.us))


def make_row(case: str, size: int, ranks: int, samples: Sequence[Samples], **more: Any) -> Row:
    """Summarize one case; `more` are further keys."""
    ours = next(candidate for candidate in samples if candidate.role == "ours")
    peers = [candidate for candidate in samples if candidate.role == "peer"]
    limit = next((candidate for candidate in samples if candidate.role == "speed_of_light"), None)
    medians = {candidate.name: float(np.median(candidate.us)) for candidate in samples}
    ratios = {peer.name: _ratio(ours, peer) for peer in peers}
    best = max(ratios, key=ratios.__getitem__, default=None)
    low, middle, high = (float(value) for value in np.percentile(ours.us, (10, 50, 90)))
    return Row(
        case=case,
        bytes=size,
        ranks=ranks,
        ours_us=middle,
        p10_us=low,
        p90_us=high,
        peers={name: medians[name] for name in ratios},
        best_peer=best,
        best_peer_us=None if best is None else medians[best],
        limit_us=None if limit is None else medians[limit.name],
        ratio=None if best is None else ratios[best],
        ratios=ratios,
        limit=None if limit is None else limit.name.removeprefix("speed of light: "),
        limit_ratio=None if limit is None else _ratio(ours, limit),
        variants={other.name: medians[other.name] for other in samples if other.role == "variant"},
        rounds=len(ours.us),
        **more,
    )
