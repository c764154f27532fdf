"""Cores and caches of the machine, from /sys."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from onehop.cores import machine_cores
from onehop.text import bytes_text, counted


@dataclass(frozen=True)
class Topology:
    """The processors and caches of a machine: of each level of data or unified cache the bytes of one, and how many."""

    packages: int
    numa_nodes: int
    cores: int
    threads: int
    caches: tuple[tuple[int, int, int], ...]

    @property
    def processors(self) -> str:
        """For example "8 cores, 16 threads, 1 package, 1 NUMA node"."""
        return ", ".join(
            (
                counted(self.cores, "core"),
                counted(self.threads, "thread"),
                counted(self.packages, "package"),
                counted(self.numa_nodes, "NUMA node"),
            )
        )

    @property
    def cache_text(self) -> str:
        """For example "L1 8 x 32 KiB, L2 8 x 1 MiB, L3 1 x 32 MiB"."""
        return (
            ", ".join(f"L{level} {count} x {bytes_text(size)}" for level, size, count in self.caches)
            or "unknown"
        )


def _bytes_of(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def topology(root: Path = Path("/sys/devices/system")) -> Topology:
    """Return the topology from Linux's files; numbers that the files do not contain are taken as one."""
    packages, core_ids, caches, threads = set(), set(), set(), 0

    def read(path: Path, default: str = "0") -> str:
        try:
            return path.read_text().strip()
        except OSError:
            return default

    for cpu in sorted((root / "cpu").glob("cpu[0-9]*")):
        if not (cpu / "topology").is_dir():
            continue  # offline
        threads += 1
        package = read(cpu / "topology/physical_package_id")
        packages.add(package)
        core_ids.add((package, read(cpu / "topology/core_id", cpu.name)))
        for cache in (cpu / "cache").glob("index[0-9]*"):
            if read(cache / "type") != "Instruction":
                shared = read(cache / "shared_cpu_list", cpu.name)
                caches.add((int(read(cache / "level")), _bytes_of(read(cache / "size")), shared))
    counted = Counter((level, size) for level, size, _ in caches)
    nodes = len(list((root / "node").glob("node[0-9]*")))
    ordered = tuple((level, size, count) for (level, size), count in sorted(counted.items()))
    processors = threads or machine_cores()
    return Topology(max(1, len(packages)), max(1, nodes), len(core_ids) or processors, processors, ordered)
