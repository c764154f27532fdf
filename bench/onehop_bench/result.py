"""From samples to rows: medians, spread, and ratios of the same round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from onehop._core import __version__


@dataclass(frozen=True)
class Samples:
    """The times of one candidate.

    Attributes
    ----------
    name : str
        Its name.
    role : str
        "ours", "variant" (another variant of onehop), "peer" or "speed_of_light".
    us : np.ndarray
        Microseconds, one per round. Entry r of all candidates of a case belongs to the same round.
    """

    name: str
    role: str
    us: np.ndarray


def samples_of(measured: Iterable[tuple[Any, ...]]) -> list[Samples]:
    """The samples of each candidate that the native module has measured, from its name, role and times."""
    return [Samples(name, role, np.array(us)) for name, role, us, *_ in measured]


@dataclass(frozen=True)
class Row:
    """One case of a benchmark.

    Attributes
    ----------
    case : str
        The operation and its parameters.
    bytes : int
        Bytes that one rank sends.
    ranks : int
        The number of ranks.
    ours_us, p10_us, p90_us : float
        onehop's time: the median over the rounds, and the 10th and 90th percentiles.
    peers : dict
        The median of each peer, by name.
    best_peer : str or None
        The peer with the largest ratio, and its median in `best_peer_us`; None without peers.
    limit_us : float or None
        The speed of light: the least time that the hardware allows, where it is measured.
    ratio : float or None
        onehop's time over the best peer's: the median of the rounds' ratios.
    ratios : dict
        The same for each peer.
    limit_ratio : float or None
        The same for the speed of light.
    variants : dict
        Medians of other variants of onehop, by name.
    hosts : int
        The number of hosts.
    wire_bytes_per_host : float or None
        Bytes that a host sends in one operation of onehop, counted by its network interfaces, headers included: those
        of the host that sends most. None on one host.
    minimum_bytes_per_host : float or None
        The least bytes of data that this host must send. None on one host.
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
    hosts: int = field(default=1, kw_only=True)
    wire_bytes_per_host: float | None = field(default=None, kw_only=True)
    minimum_bytes_per_host: float | None = field(default=None, kw_only=True)

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes over time, in 10^9 per second; 0 where nothing moves."""
        return self.bytes / self.ours_us / 1e3


@dataclass(frozen=True)
class FlopRow(Row):
    """One case of a benchmark whose arithmetic is counted.

    Attributes
    ----------
    flop : float
        Floating-point operations of one rank.
    """

    flop: float

    def gflops(self, us: float) -> float:
        """The rate in GFLOP/s per rank of a candidate that takes `us` microseconds."""
        return self.flop / us / 1e3


AnyRow = TypeVar("AnyRow", bound=Row)


def extended(row: Row, kind: type[AnyRow], /, **more: Any) -> AnyRow:
    """A row of another kind: the attributes of `Row`, and those that the kind has besides."""
    return kind(**{one.name: getattr(row, one.name) for one in fields(Row)}, **more)


@dataclass
class Bench:
    """The result of a benchmark, as `--json` writes it.

    Attributes
    ----------
    bench : str
        The benchmark's name.
    host : dict
        The machine: `cpu`, `cores`, `simd`, `mpi`; and its state where it was measured: `flag_us`, the time of a flag
        between two cores before and after the benchmark, and `memory_gb_s`, the memory bandwidth of a rank.
    rows : list of Row
        One for each case.
    version : str
        The version of onehop.
    notes : list of str
        Remarks for people.
    """

    bench: str
    host: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    version: str = __version__
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The result as an object for JSON."""
        rows = [
            {
                key: _rounded(value)
                for key, value in row.items()
                if row.get("hosts", 1) > 1 or key not in _BETWEEN_HOSTS
            }
            for row in map(asdict, self.rows)
        ]
        return {
            "bench": self.bench,
            "version": self.version,
            "host": self.host,
            "notes": self.notes,
            "rows": rows,
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Bench:
        """Read what `to_dict` made.

        Raises
        ------
        KeyError, TypeError
            The object is no result of a benchmark.
        """
        rows = [_row_type(row)(**row) for row in stored["rows"]]
        return cls(stored["bench"], stored["host"], rows, stored["version"], stored["notes"])


# The keys that only rows of several hosts have in JSON.
_BETWEEN_HOSTS = ("hosts", "wire_bytes_per_host", "minimum_bytes_per_host")


def _row_type(row: dict[str, Any]) -> type[Row]:
    """The kind of row that has these keys."""
    kinds = [Row]
    for kind in kinds:
        kinds += kind.__subclasses__()

    def fits(kind: type[Row]) -> bool:
        names = {one.name for one in fields(kind)}
        needed = {one.name for one in fields(kind) if one.default is MISSING}
        return needed <= row.keys() <= names

    return next((kind for kind in kinds if fits(kind)), Row)


def machine_text(host: dict[str, Any]) -> str:
    """The processor, the MPI that onehop was compared with, and the state of the machine, as far as they are known."""
    parts = [host["cpu"], host["mpi"]]
    if "flag_us" in host:
        low, high = min(host["flag_us"]), max(host["flag_us"])
        spread = f"{low:.2g} µs" if high < 1.25 * low else f"{low:.2g} to {high:.2g} µs"
        parts.append(f"a flag takes {spread}")
    if "memory_gb_s" in host:
        parts.append(f"memory {host['memory_gb_s']:.3g} GB/s a rank")
    return "; ".join(part for part in parts if part)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return value


def _ratio(ours: Samples, other: Samples) -> float:
    return float(np.median(ours.us / other.us))


def make_row(case: str, size: int, ranks: int, samples: Sequence[Samples]) -> Row:
    """Summarize one case."""
    ours = next(one for one in samples if one.role == "ours")
    peers = [one for one in samples if one.role == "peer"]
    limit = next((one for one in samples if one.role == "speed_of_light"), None)
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
        limit=None if limit is None else limit.name.removeprefix("speed of light: "),
        limit_ratio=None if limit is None else _ratio(ours, limit),
        variants={one.name: float(np.median(one.us)) for one in samples if one.role == "variant"},
        rounds=len(ours.us),
    )
