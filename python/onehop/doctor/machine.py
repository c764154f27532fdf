"""The machine's processor, cores, caches, SIMD instruction sets and memory, as reported by Linux."""

from __future__ import annotations

import functools
import platform
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop._core import memory_left_to_control_groups
from onehop.cores import machine_cores, usable_cores
from onehop.text import bytes_text, counted

# Name of each SIMD instruction set in /proc/cpuinfo, and its usual name; the widest first.
_SIMD = (
    ("avx512f", "AVX-512"),
    ("avx2", "AVX2"),
    ("avx", "AVX"),
    ("sse4_2", "SSE4.2"),
    ("sve2", "SVE2"),
    ("sve", "SVE"),
    ("asimd", "NEON"),
    ("vsx", "VSX"),
)
# Further features that matter for codecs and for moving cache lines.
_FEATURES = (
    "fma",
    "f16c",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "amx_bf16",
    "cldemote",
    "3dnowprefetch",
    "movdir64b",
)


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """Return the entries of the first processor in /proc/cpuinfo."""
    entries: dict[str, str] = {}
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return entries
    for line in text.split("\n\n", 1)[0].splitlines():
        name, _, value = line.partition(":")
        entries[name.strip()] = value.strip()
    return entries


def cpu_name() -> str:
    """Return the name of the processor."""
    entries = _cpuinfo()
    return entries.get("model name") or entries.get("cpu") or entries.get("Hardware") or platform.machine()


def simd() -> tuple[str, list[str]]:
    """Return the widest SIMD instruction set, and the further features that matter for onehop."""
    flags = set((_cpuinfo().get("flags") or _cpuinfo().get("Features") or "").split())
    widest = next((name for flag, name in _SIMD if flag in flags), "none known")
    return widest, [feature for feature in _FEATURES if feature in flags]


def _meminfo() -> dict[str, int]:
    """Return the entries of /proc/meminfo in bytes."""
    entries = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        entries[name] = int(value.split()[0]) * (1024 if value.endswith("kB") else 1)
    return entries


def memory() -> dict[str, int | None]:
    """Return bytes of memory: total, available, left to the control groups, and total and free in /dev/shm.

    The shared memory of onehop comes from the available memory, not from /dev/shm.
    """
    entries = _meminfo()
    try:
        shm = shutil.disk_usage("/dev/shm")
        shm_total, shm_free = shm.total, shm.free
    except OSError:
        shm_total = shm_free = None
    return {
        "total": entries.get("MemTotal"),
        "available": entries.get("MemAvailable"),
        "group_limit": memory_left_to_control_groups(),
        "dev_shm": shm_total,
        "dev_shm_free": shm_free,
    }


def host(mpi: str | None = None) -> dict[str, Any]:
    """Describe this machine as benchmarks write it into their results; `mpi` is the version of the MPI measured."""
    widest, features = simd()
    return {
        "name": platform.node(),
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "simd": widest,
        "features": features,
        "memory": memory()["total"],
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "mpi": mpi,
    }


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
    numbers = Counter((level, size) for level, size, _ in caches)
    nodes = len(list((root / "node").glob("node[0-9]*")))
    ordered = tuple((level, size, count) for (level, size), count in sorted(numbers.items()))
    processors = threads or machine_cores()
    return Topology(max(1, len(packages)), max(1, nodes), len(core_ids) or processors, processors, ordered)
