"""`onehop bench allreduce --link 1Gbit`: two emulated hosts, with a link of that rate between them.

A host is a network namespace with a host name of its own. The link is a pair of virtual network cards whose sending
sides are limited (`tc`, tbf). Everything is removed after the measurement. Run as a module, this is one rank.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.table import Table

from onehop import _core
from onehop.bench.allreduce import AllReduceRow
from onehop.bench.result import Bench, Samples, make_row
from onehop.bench.table import empty_table, number
from onehop.collectives import Collectives
from onehop.cores import machine_cores
from onehop.doctor import host
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.launch.interpreter import python_module
from onehop.launch.mpi import find_mpi_launcher, mpi_command
from onehop.text import bytes_text

LINK_SIZES = (64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20)
HOSTS = 2
PREFIX = "onehop-link-"
_SUBNET = "10.213.77"


@dataclass(frozen=True)
class LinkRow(AllReduceRow):
    """One size and codec between two hosts.

    Attributes
    ----------
    wire_bytes : int
        Bytes that a rank sends, without headers.
    fewer_bytes, faster : float
        The bytes and the time of raw over those of the codec.
    """

    wire_bytes: int
    fewer_bytes: float
    faster: float


# The hosts


def _tool(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise Error(f"cannot emulate hosts on this machine: `{' '.join(command)}` failed: {said}")


def check_link(rate: str) -> None:
    """Raise BadInput unless hosts can be emulated here with a link of this rate, such as "1Gbit"."""
    if not re.fullmatch(r"\d+(\.\d+)?[kmg]bit", rate.lower()):
        raise BadInput(f"expected --link as a rate such as 1Gbit or 100Mbit, found {rate!r}")
    missing = [tool for tool in ("ip", "tc", "unshare") if shutil.which(tool) is None]
    if missing:
        raise BadInput(
            f"--link needs {' and '.join(missing)}, not found in PATH: `apt install iproute2 util-linux`"
        )
    if os.geteuid() != 0:
        raise BadInput("--link makes network namespaces, which only root may do: run it with sudo")


def _forget(name: str) -> None:
    with suppress(Error):
        _tool("ip", "netns", "del", name)


def leftovers() -> list[str]:
    """Names of emulated hosts that a killed measurement has left behind."""
    try:
        names = [path.name for path in Path("/run/netns").iterdir()]
    except OSError:
        return []
    mine = [re.fullmatch(re.escape(PREFIX) + r"(\d+)-\d+", name) for name in names]
    return [one.string for one in mine if one and not Path("/proc", one[1]).exists()]


@dataclass(frozen=True)
class Host:
    """One emulated host: its network namespace, which is also its name, and its address."""

    name: str
    address: str

    def enter(self) -> list[str]:
        """The words to put before a command so that it runs on this host."""
        rename = ["sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", *rename]


@contextmanager
def emulated_hosts(rate: str) -> Generator[list[Host], None, None]:
    """Two hosts with a link between them. They are removed at the end, also after an error, Ctrl-C or SIGTERM."""
    check_link(rate)
    for name in leftovers():
        _forget(name)
    hosts = [Host(f"{PREFIX}{os.getpid()}-{i}", f"{_SUBNET}.{i + 1}") for i in range(HOSTS)]

    def end(*_: Any) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        for one in hosts:
            _tool("ip", "netns", "add", one.name)
        first, second = hosts
        _tool(*f"ip link add e0 netns {first.name} type veth peer name e0 netns {second.name}".split())
        for one in hosts:
            inside = ["ip", "-n", one.name]
            _tool(*inside, "addr", "add", f"{one.address}/24", "dev", "e0")
            _tool(*inside, "link", "set", "lo", "up")
            _tool(*inside, "link", "set", "e0", "up")
            # The bucket fills while the link is idle: with a large one, short messages would exceed the rate.
            limit = f"tc qdisc add dev e0 root tbf rate {rate} burst 8kb latency 20ms"
            _tool("ip", "netns", "exec", one.name, *limit.split())
            _tool(*inside, "link", "set", "e0", "gso_max_size", "4096")
        yield hosts
    finally:
        for one in hosts:
            _forget(one.name)
        signal.signal(signal.SIGTERM, before)


def _agent(hosts: Sequence[Host], folder: Path) -> Path:
    """A script that Open MPI calls instead of ssh; it enters the host with the given address."""
    path = folder / "agent"
    cases = [f'{one.address}) host="{one.name}" ;;' for one in hosts]
    lines = [
        "#!/bin/sh",
        "address=$1; shift",
        f'case "$address" in {" ".join(cases)} *) exit 1 ;; esac',
        'exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"',
    ]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o700)
    return path


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


def _rank_main(out: Path, sizes: list[int], codecs: list[str], seconds: float) -> None:
    group = Group.world()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) >= group.size:
        os.sched_setaffinity(0, {cores[group.rank]})
    collectives = Collectives(group, "mpi")
    measured = [_measure(group, collectives, size, codecs, seconds / len(sizes)) for size in sizes]
    version = _core.bench_mpi_version()  # collective
    if group.rank == 0:
        out.write_text(json.dumps({"mpi": version, "cases": measured}))
    collectives.barrier()


# The launcher's part


def _rows(case: dict[str, Any]) -> list[LinkRow]:
    us = {name: np.array(one) for name, one in zip(case["names"], case["us"], strict=True)}
    sent = dict(zip(case["names"], case["sent"], strict=True))
    rows = []
    for place, codec in enumerate(name for name in case["names"] if name != "MPI_Allreduce"):
        samples = [Samples(codec, "ours", us[codec])]
        if "MPI_Allreduce" in us:
            samples.append(Samples("MPI_Allreduce", "peer", us["MPI_Allreduce"]))
        row = make_row(f"{bytes_text(case['size'], exact=True)} {codec}", case["size"], HOSTS, samples)
        reference = "raw" if "raw" in us else case["names"][0]
        rows.append(
            LinkRow(
                **vars(row),
                count=case["size"] // 4,
                type="float32",
                codec=codec,
                algbw=row.gigabytes_per_second,
                busbw=row.gigabytes_per_second * 2 * (HOSTS - 1) / HOSTS,
                wrong=case["wrong"][place],
                error=case["errors"][place],
                wire_bytes=sent[codec],
                fewer_bytes=sent[reference] / sent[codec],
                faster=float(np.median(us[reference] / us[codec])),
            )
        )
    return rows


def _run_on(hosts: Sequence[Host], mpi: str | None, arguments: Sequence[str], folder: Path) -> None:
    launcher = find_mpi_launcher(mpi)
    if launcher.kind != "openmpi":
        raise BadInput(f"--link starts its ranks with Open MPI's mpiexec, found {launcher.version}")
    where = ",".join(f"{one.address}:1" for one in hosts)
    command, environment = mpi_command(
        launcher, HOSTS, python_module("onehop.bench.link", *arguments), bind=False
    )
    options = ["--prtemca", "plm_ssh_agent", str(_agent(hosts, folder)), "--host", where]
    # Otherwise Open MPI finds shared memory "between hosts".
    options += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
    line = [*hosts[0].enter(), command[0], *options, *command[1:]]
    process = subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL)
    try:
        code = process.wait()
    except BaseException:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        raise
    if code != 0:
        raise Error(f"the ranks on the emulated hosts ended with exit code {code}; see their messages above")


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
        The user is not root, iproute2 or Open MPI is missing, or the rate is invalid.
    """
    with emulated_hosts(rate) as hosts, tempfile.TemporaryDirectory(prefix="onehop-link-") as name:
        out = Path(name) / "out.json"
        arguments = [str(out), ",".join(map(str, sizes)), ",".join(codecs), str(seconds)]
        _run_on(hosts, mpi, arguments, Path(name))
        measured = json.loads(out.read_text())
    about = host(measured["mpi"])
    about["cores"] = machine_cores()
    result = Bench("allreduce, link", about)
    result.notes.append(f"two emulated hosts, a link of {rate} between them, over MPI (TCP)")
    for case in measured["cases"]:
        result.rows += _rows(case)
    return result


def make_link_table(result: Bench) -> Table:
    """A table with the columns of `onehop bench allreduce` and the savings of each codec."""
    about = result.host
    table = empty_table(
        f"onehop bench {result.bench}",
        f"{about['cpu']}; {about['mpi']}\nfewer, faster: bytes and time of raw over those of the codec",
    )
    for name in ("size", "codec"):
        table.add_column(name, justify="left" if name == "codec" else "right", no_wrap=True)
    for name in ("time µs", "p10", "p90", "algbw GB/s", "busbw GB/s", "#wrong", "error"):
        table.add_column(name, justify="right", min_width=5)
    for name in ("bytes sent", "fewer", "faster"):
        table.add_column(name, justify="right")
    for row in result.rows:
        table.add_row(
            bytes_text(row.bytes, exact=True),
            row.codec,
            *(number(us) for us in (row.ours_us, row.p10_us, row.p90_us)),
            f"{row.algbw:.3f}",
            f"{row.busbw:.3f}",
            str(row.wrong),
            f"{row.error:.0e}",
            str(row.wire_bytes),
            f"{row.fewer_bytes:.2f}",
            f"{row.faster:.2f}",
        )
    return table


if __name__ == "__main__":
    _rank_main(
        Path(sys.argv[1]),
        [int(one) for one in sys.argv[2].split(",")],
        sys.argv[3].split(","),
        float(sys.argv[4]),
    )
