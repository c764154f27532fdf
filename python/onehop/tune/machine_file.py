"""The machine file of this machine, from times between two of its cores."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

import numpy as np

from onehop import _core
from onehop._core import __version__
from onehop.doctor.machine import cpu_name
from onehop.output import date_text
from onehop.text import counted
from onehop.tune.machine_times import MachineTimes, Table

# Far beyond every cache.
_COPY_BYTES = 128 << 20
_MEASURED = 'basis = "measured", source = "tune"'


def memory_bandwidth() -> float:
    """Bytes per second that one core reads and writes in memory, from copies of a large array."""
    source = np.ones(_COPY_BYTES // 8)
    target = np.zeros_like(source)
    times = []
    for _ in range(5):
        begin = perf_counter()
        np.copyto(target, source)
        times.append(perf_counter() - begin)
    return 2 * _COPY_BYTES / float(np.median(times))


def multiply_adds(precision: str) -> float:
    """Real multiply-adds per second of one thread, in single or double precision."""
    return _core.peak_gflops(precision == "single") * 1e9 / 2


def _figure(value: float, note: str) -> str:
    return f'{{ value = {value:.4g}, {_MEASURED}, note = "{note}" }}'


def _plain(text: str) -> str:
    """Return a text without letters that mean something in a TOML string."""
    return "".join(letter for letter in text if letter.isprintable() and letter not in '"\\\\')


def _points(table: Table, note: str) -> str:
    points = ", ".join(f"[{size}, {us * 1e-6:.4g}]" for size, us in table)
    return f'{{ points = [{points}], {_MEASURED}, note = "{note}" }}'


def _link_bandwidth(one_way: Table) -> float:
    """The highest rate of a message beyond the time of the shortest one, bytes per second."""
    (_, least), *longer = one_way
    return max(size / max(us - least, 0.01 * us) for size, us in longer) * 1e6


def kept_file() -> Path:
    """Return the file in which `onehop tune --machine-file` keeps a copy of this machine, for `onehop simulate`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "onehop" / "machine.toml"


def machine_text(times: MachineTimes, cores: int, command: str = "onehop tune --machine-file") -> str:
    """Return the TOML file of a host with this many cores; the times are those of two of them.

    `command` is the one that has measured them.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / cores
    least = times.one_way[0][1] * 1e-6
    origin = (f"onehop {__version__}", command, date_text("%Y-%m-%d"), _plain(cpu_name()))
    return f"""\
title = "A host with {counted(cores, "core")}, measured between two of them"

[sources]
tune = "{", ".join(filter(None, origin))}"

[memory] # of one core
bandwidth = {_figure(memory_bandwidth(), f"copies of {_COPY_BYTES >> 20} MiB")}
size = {_figure(memory, "the memory of the host over its cores")}
copies = {_points(times.copies, "two cores copy at the same time")}
updates = {_points(times.updates, "two cores exchange two parts of their memory at the same time")}
shared_updates = {_points(times.shared_updates, "two cores exchange parts of arrays that they share")}
packed_pieces = {_points(times.packed_pieces, "two cores exchange faces in pieces of so many bytes")}
copied_piece = {_figure(times.copied_piece_us * 1e-6, "two cores copy pieces of 8 bytes at the same time")}
used_line = {_figure(times.used_line_us * 1e-6, "exchanges timed with and without the use of their data")}

[arithmetic] # real multiply-adds per second of one core
double = {_figure(multiply_adds("double"), "fused multiply-adds on registers")}
single = {_figure(multiply_adds("single"), "fused multiply-adds on registers")}

[[level]]
name = "host"
of = "processor"
routing = "all_to_all"
extents = [{cores}]
topology = {{ {_MEASURED} }}
# The shortest message takes overhead + latency + overhead. Only the sum is measured.
latency = {_figure(least / 2, "half of the time of the shortest message")}
overhead = {_figure(least / 4, "a quarter of the time of the shortest message")}
bandwidth = {_figure(_link_bandwidth(times.one_way), "the highest rate in one_way")}
one_way = {_points(times.one_way, "a ping-pong between two cores; the data is written before and read after")}
both_ways = {_points(times.both_ways, "two cores exchange arrays")}
in_collective = {_points(times.in_collective, "two cores exchange blocks in the rounds of all-reduces")}
"""
