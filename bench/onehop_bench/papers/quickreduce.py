"""QuickReduce: all-reduce of float16 on 2, 4 and 8 MI300X, raw and compressed, against the size."""

from __future__ import annotations

from onehop.codec import encoded_bytes
from onehop.machine import Machine, allreduce_traffic, simulate
from onehop_bench.papers.study import (
    Curve,
    Panel,
    Parameter,
    Row,
    Study,
    changed_machine,
    published,
    solve_two,
)

__all__ = ["all_reduce_seconds", "quickreduce"]

_RANKS = (2, 4, 8)
_HALF = 2  # bytes of a float16
# Rows of the report: the smallest size, one in the middle and the largest.
_ROWS_KIB = (32, 1024, 8192, 65536)


def all_reduce_seconds(
    machine: Machine | str, ranks: int, size: int, *, codec: str = "raw", algorithm: str = "two_shot"
) -> float:
    """Return the seconds of an all-reduce of `size` bytes of float16, without the work of a codec."""
    wire = encoded_bytes(codec, "float16", size // _HALF)
    traffic = allreduce_traffic(ranks, wire // _HALF, dtype="float16", algorithm=algorithm)
    return simulate(traffic, machine).seconds


def _fitted_machine(study: Study, link: float) -> Machine:
    """Fit overhead and latency to the smallest raw size on 2 and 4 ranks. The bandwidth is a published one."""
    figures = published()["quickreduce"]
    size = figures["kib"][0] << 10
    targets = [figures["us"][str(ranks)]["raw"][0] * 1e-6 for ranks in (2, 4)]

    def machine(overhead: float, latency: float) -> Machine:
        return changed_machine("mi300x", {0: {"overhead": overhead, "latency": latency, "bandwidth": link}})

    def error(overhead: float, latency: float) -> list[float]:
        described = machine(overhead, latency)
        pairs = zip((2, 4), targets, strict=True)
        return [all_reduce_seconds(described, ranks, size) - target for ranks, target in pairs]

    overhead, latency = solve_two(error, (0.5e-6, 3e-6))
    on = "QR-FP16, 32 KiB, 2 and 4 ranks"
    study.parameters.append(Parameter("overhead of a message", overhead * 1e6, "µs", on))
    study.parameters.append(Parameter("latency", latency * 1e6, "µs", on))
    return machine(overhead, latency)


def _codec_cost(study: Study, machine: Machine) -> tuple[float, float]:
    """Fit the time of a codec, a constant and seconds per byte, to the ends of the column Q8 on 2 ranks."""
    figures = published()["quickreduce"]
    sizes = [kib << 10 for kib in figures["kib"]]
    column = figures["us"]["2"]["q8"]
    extra = [
        column[end] * 1e-6 - all_reduce_seconds(machine, 2, sizes[end], codec="q8")
        for end in (0, len(sizes) - 1)
    ]
    per_byte = (extra[1] - extra[0]) / (sizes[-1] - sizes[0])
    constant = extra[0] - per_byte * sizes[0]
    on = "QR-Q8, 2 ranks, 32 KiB and 64 MiB"
    study.parameters.append(Parameter("constant time of a codec", constant * 1e6, "µs", on))
    study.parameters.append(Parameter("rate of a codec", 1e-9 / per_byte, "GB/s", on))
    return constant, per_byte


def _fitted(codec: str, ranks: int, kib: int) -> bool:
    if codec == "raw":
        return kib == 32 and ranks in (2, 4)
    return codec == "q8" and ranks == 2 and kib in (32, 65536)


def quickreduce() -> Study:
    """Predict the table of latencies of QuickReduce's README."""
    figures = published()["quickreduce"]
    study = Study("quickreduce", figures["source"], columns=3)
    machine = _fitted_machine(study, figures["link"]["bytes_per_second"])
    constant, per_byte = _codec_cost(study, machine)
    sizes = [kib << 10 for kib in figures["kib"]]
    compressed: list[Panel] = []
    for ranks in _RANKS:
        raw: list[Curve] = []
        packed: list[Curve] = []
        for number, codec in enumerate(figures["codecs"]):
            paper = figures["us"][str(ranks)][codec]
            model = [all_reduce_seconds(machine, ranks, size, codec=codec) * 1e6 for size in sizes]
            if codec != "raw":
                model = [us + (constant + per_byte * n) * 1e6 for us, n in zip(model, sizes, strict=True)]
            for kib, us, measured in zip(figures["kib"], model, paper, strict=True):
                case = f"{ranks} ranks, {codec}, {kib} KiB"
                if kib in _ROWS_KIB:
                    study.rows.append(Row(case, "µs", us, measured, measured, _fitted(codec, ranks, kib)))
            curves = raw if codec == "raw" else packed
            if codec != "fp8":  # its messages are as long as those of q8
                name = "fp8 and q8" if codec == "q8" else codec
                curves.append(Curve(f"{name}, model", sizes, model, style=number))
            curves.append(Curve(f"{codec}, QuickReduce", sizes, paper, paper=True, style=number))
        one_shot = [all_reduce_seconds(machine, ranks, size, algorithm="one_shot") * 1e6 for size in sizes]
        raw.append(Curve("one-shot, model", sizes, one_shot, style=5))
        study.panels.append(Panel(f"{ranks} ranks, raw", "size of the array", "time in µs", "bytes", raw))
        compressed.append(
            Panel(f"{ranks} ranks, compressed", "size of the array", "time in µs", "bytes", packed)
        )
    study.panels += compressed
    return study
