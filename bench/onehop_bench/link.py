"""`onehop bench allreduce --link 1Gbit`: two emulated hosts, with a link of that rate between them.

`onehop_bench.hosts` makes the hosts. Run as a module, this is one rank. Rows have the keys of `onehop bench
allreduce`, and `wire_bytes` that a rank sends, without headers; `fewer_bytes` and `faster`: the bytes and the time of
raw over those of the codec.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onehop import _core
from onehop.cli.screen import Table
from onehop.collectives import Collectives
from onehop.cores import machine_cores, usable_processors
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.exit_code import INTERRUPTED
from onehop.group import Group
from onehop.launch.interpreter import python_module
from onehop.launch.mpi import find_mpi_launcher
from onehop.text import bytes_text
from onehop_bench import native
from onehop_bench.hosts import EmulatedHosts, emulated_hosts, launch_on_hosts
from onehop_bench.result import Bench, Row, Samples, make_row
from onehop_bench.table import Columns, machine_caption, table_of, time_columns

HOSTS = 2


def bandwidth_keys(row: Row, codec: str, error: float, wrong: int = 0) -> dict[str, Any]:
    """The further keys of a row of an all-reduce."""
    rate = row.gigabytes_per_second
    busbw = rate * 2 * (row.ranks - 1) / row.ranks
    more = {"count": row.bytes // 4, "type": "float32", "codec": codec, "algbw": rate, "busbw": busbw}
    return {**more, "wrong": wrong, "error": error}


# One rank's part


def _candidates(
    collectives: Collectives, size: int, codecs: Sequence[str]
) -> tuple[list[str], list[Callable[[np.ndarray, np.ndarray], None]], list[int]]:
    """Names of the candidates, functions that run them, and the bytes that a rank sends in each."""
    names, candidates, sent = [], [], []
    for codec in codecs:
        operation = collectives.allreduce(size // 4, "float32", "sum", codec, "auto")

        def run(source: np.ndarray, result: np.ndarray, operation: Any = operation) -> None:
            operation.run(_core.Memory(source), _core.Memory(result, True))

        before = collectives.counters[1]
        run(np.zeros(size // 4, np.float32), np.zeros(size // 4, np.float32))
        names.append(codec)
        candidates.append(run)
        sent.append(collectives.counters[1] - before)
    try:
        from mpi4py import MPI
    except ImportError:
        return names, candidates, sent

    def peer(source: np.ndarray, result: np.ndarray) -> None:
        MPI.COMM_WORLD.Allreduce(source, result)

    return [*names, "MPI_Allreduce"], [*candidates, peer], [*sent, 0]


def _measure(group: Group, collectives: Collectives, size: int, codecs: Sequence[str], seconds: float) -> Any:
    names, candidates, sent = _candidates(collectives, size, codecs)
    sources = [
        np.random.default_rng(rank).standard_normal(size // 4).astype(np.float32)
        for rank in range(group.size)
    ]
    exact = np.add(*sources, dtype=np.float64)
    in_order = np.add(*sources)
    mine = sources[group.rank].copy()
    results = [np.zeros(size // 4, np.float32) for _ in candidates]

    def once(number: int) -> float:
        collectives.barrier()
        begin = perf_counter()
        candidates[number](mine, results[number])
        return (perf_counter() - begin) * 1e6

    total = sum(once(number) for number in range(len(candidates)))
    largest = np.abs(exact).max()
    errors = [float(np.abs(result - exact).max() / largest) for result in results]
    wrong = [
        int(
            np.count_nonzero(
                result != in_order if name == "raw" else ~(np.abs(result - exact) <= largest / 4)
            )
        )
        for name, result in zip(names, results, strict=True)
    ]
    wanted = int(np.clip(seconds * 1e6 / max(total, 1.0), 5, 2000))
    rounds = int(group.allgather(str(wanted).encode())[0])
    us = np.zeros((rounds, len(candidates)))
    for i in range(rounds):
        for turn in range(len(candidates)):
            number = (turn + i) % len(candidates)
            us[i, number] = once(number)
    # The time of an operation is that of the slowest rank.
    everywhere = [np.frombuffer(part).reshape(us.shape) for part in group.allgather(us.tobytes())]
    us = np.max(everywhere, axis=0)
    return {
        "size": size,
        "names": names,
        "us": us.T.tolist(),
        "sent": [int(one) for one in sent],
        "errors": errors,
        "wrong": wrong,
    }


def _rank_main(sizes: list[int], codecs: list[str], seconds: float) -> None:
    group = Group.world()
    cores = sorted(usable_processors())
    if len(cores) >= group.size:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cores[group.rank]})
    collectives = Collectives(group, "mpi")
    measured = [_measure(group, collectives, size, codecs, seconds / len(sizes)) for size in sizes]
    version = native.mpi_version()  # collective
    if group.rank == 0:
        print(json.dumps({"mpi": version, "cases": measured}), flush=True)
    collectives.barrier()


# The launcher's part


def _rows(case: dict[str, Any]) -> list[Row]:
    us = {name: np.array(times) for name, times in zip(case["names"], case["us"], strict=True)}
    sent = dict(zip(case["names"], case["sent"], strict=True))
    mpi = us.pop("MPI_Allreduce", None)
    reference = "raw" if "raw" in us else case["names"][0]
    rows = []
    for codec, error, wrong in zip(us, case["errors"], case["wrong"], strict=False):
        samples = [Samples(codec, "ours", us[codec])]
        if mpi is not None:
            samples.append(Samples("MPI_Allreduce", "peer", mpi))
        row = make_row(f"{bytes_text(case['size'], exact=True)} {codec}", case["size"], HOSTS, samples)
        row.update(bandwidth_keys(row, codec, error, wrong))
        row["wire_bytes"] = sent[codec]
        row["fewer_bytes"] = sent[reference] / sent[codec]
        row["faster"] = float(np.median(us[reference] / us[codec]))
        rows.append(row)
    return rows


def _run_on(hosts: EmulatedHosts, mpi: str | None, arguments: Sequence[str]) -> Any:
    """Run the ranks, and return what rank 0 prints."""
    launcher = find_mpi_launcher(mpi)
    if launcher.kind != "openmpi":
        raise BadInput(f"--link starts its ranks with Open MPI's mpiexec, found {launcher.version}")
    words = python_module("onehop_bench.link", *arguments)
    options = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
    with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
        descriptors = (null.fileno(), out.fileno(), 2)
        code = launch_on_hosts(hosts, 1, words, mpi=mpi, options=options, descriptors=descriptors)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code != 0:
            raise Error(
                f"the ranks on the emulated hosts ended with exit code {code}; see their messages above"
            )
        out.seek(0)
        return json.load(out)


def link(rate: str, sizes: Sequence[int], codecs: Sequence[str], seconds: float, mpi: str | None) -> Bench:
    """Measure sums of float32 over two emulated hosts with a link between them, each codec and MPI_Allreduce in turn.

    Parameters
    ----------
    rate : str
        Rate of the link in each direction, as `tc` reads it, such as "1Gbit".
    sizes : sequence of int
        Sizes of the array, bytes.
    codecs : sequence of str
        Codecs for the numbers that are sent.
    seconds : float
        Time for all cases together.
    mpi : str or None
        The MPI, as for `find_mpi_launcher`.

    Raises
    ------
    BadInput
        Open MPI is missing, or the rate is invalid.
    Unavailable
        Hosts cannot be emulated here.
    """
    with emulated_hosts(HOSTS, rate) as hosts:
        measured = _run_on(hosts, mpi, [",".join(map(str, sizes)), ",".join(codecs), str(seconds)])
    about = host(measured["mpi"])
    about["cores"] = machine_cores()
    result = Bench("allreduce, link", about)
    result.notes.append(f"two emulated hosts, a link of {rate} between them, over MPI (TCP)")
    for case in measured["cases"]:
        result.rows += _rows(case)
    return result


def make_link_table(result: Bench) -> Table:
    """A table with the columns of `onehop bench allreduce` and the savings of each codec."""
    columns: Columns = {
        "size": lambda row: bytes_text(row.bytes, exact=True),
        "codec": "codec",
        **time_columns(),
        "algbw GB/s": lambda row: f"{row.algbw:.3f}",
        "busbw GB/s": lambda row: f"{row.busbw:.3f}",
        "#wrong": "wrong",
        "error": lambda row: f"{row.error:.0e}",
        "bytes sent": "wire_bytes",
        "fewer": lambda row: f"{row.fewer_bytes:.2f}",
        "faster": lambda row: f"{row.faster:.2f}",
    }
    caption = f"{machine_caption(result.host)}\nfewer, faster: bytes and time of raw over those of the codec"
    return table_of(result.rows, f"onehop bench {result.bench}", caption, columns)


if __name__ == "__main__":
    _rank_main([int(one) for one in sys.argv[1].split(",")], sys.argv[2].split(","), float(sys.argv[3]))
