"""The machine's processor, SIMD instruction sets and memory, as reported by Linux."""

from __future__ import annotations

import functools
import platform
import shutil
from pathlib import Path
from typing import Any

from onehop._core import memory_left_to_control_groups
from onehop.cores import usable_cores

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
