"""QuickReduce: all-reduce of float16 on 2, 4 and 8 MI300X, raw and compressed, against the size."""

from __future__ import annotations

from onehop.codec import encoded_bytes
from onehop.machine import Machine, allreduce_traffic, simulate
from onehop_bench.papers.study import Curve, Study, changed_machine, published

_RANKS = (2, 4, 8)
_HALF = 2  # bytes of a float16
# Rows of the report: the smallest size, one in the middle and the largest.
_ROWS_KIB = (32, 1024, 8192, 65536)
# Those to which the numbers are fitted: codec, ranks and KiB.
_FITTED = {("raw", 2, 32), ("raw", 4, 32), ("q8", 2, 32), ("q8", 2, 65536)}


def all_reduce_seconds(
    machine: Machine | str, ranks: int, size: int, *, codec: str = "raw", algorithm: str = "two_shot"
) -> float:
    """Return the seconds of an all-reduce of `size` bytes of float16, without the work of a codec."""
    wire = encoded_bytes(codec, "float16", size // _HALF)
    traffic = allreduce_traffic(ranks, wire // _HALF, dtype="float16", algorithm=algorithm)
    return simulate(traffic, machine).seconds


def quickreduce() -> Study:
    """Predict the table of latencies of QuickReduce's README."""
    figures = published()["quickreduce"]
    study = Study.of("quickreduce", columns=3)
    overhead, latency, constant, rate = study.fitted()
    machine = changed_machine("mi300x", {0: {"overhead": overhead * 1e-6, "latency": latency * 1e-6}})
    sizes = [kib << 10 for kib in figures["kib"]]
    compressed: list[tuple[str, list[Curve]]] = []
    for ranks in _RANKS:
        raw: list[Curve] = []
        packed: list[Curve] = []
        for number, codec in enumerate(figures["codecs"]):
            paper = figures["us"][str(ranks)][codec]
            model = [all_reduce_seconds(machine, ranks, size, codec=codec) * 1e6 for size in sizes]
            if codec != "raw":
                model = [us + constant + 1e-3 / rate * size for us, size in zip(model, sizes, strict=True)]
            for kib, us, measured in zip(figures["kib"], model, paper, strict=True):
                if kib in _ROWS_KIB:
                    fitted = (codec, ranks, kib) in _FITTED
                    study.compare(f"{ranks} ranks, {codec}, {kib} KiB", "µs", us, [measured], fitted=fitted)
            curves = raw if codec == "raw" else packed
            if codec != "fp8":  # its messages are as long as those of q8
                name = "fp8 and q8" if codec == "q8" else codec
                curves.append(Curve(f"{name}, model", sizes, model, style=number))
            curves.append(Curve(f"{codec}, QuickReduce", sizes, paper, paper=True, style=number))
        one_shot = [all_reduce_seconds(machine, ranks, size, algorithm="one_shot") * 1e6 for size in sizes]
        raw.append(Curve("one-shot, model", sizes, one_shot, style=5))
        study.draw(f"{ranks} ranks, raw", "size of the array", "time in µs", raw)
        compressed.append((f"{ranks} ranks, compressed", packed))
    for title, curves in compressed:
        study.draw(title, "size of the array", "time in µs", curves)
    return study
