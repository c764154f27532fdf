"""The machine file of this machine, from the times of messages between two of its cores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from onehop import _core
from onehop._core import __version__
from onehop.error import Error

__all__ = ["fit_messages", "machine_text", "memory_bandwidth", "multiply_adds"]

# Far beyond every cache.
_COPY_BYTES = 128 << 20


def fit_messages(messages: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Fit seconds = constant + bytes / bandwidth to messages, with the least errors of the logarithms.

    Parameters
    ----------
    messages : sequence of (int, float)
        Bytes of each message, and its microseconds one way.

    Returns
    -------
    (float, float)
        The constant in seconds and the bandwidth in bytes per second.

    Raises
    ------
    Error
        The times do not grow with the bytes.
    """
    sizes = np.array([size for size, _ in messages], dtype=float)
    seconds = np.array([us * 1e-6 for _, us in messages])
    if seconds[sizes.argmax()] <= seconds[sizes.argmin()]:
        raise Error(
            "expected times that grow with the size of a message, found that they do not; measure again on a quiet "
            "machine"
        )
    # Gauss-Newton on the logarithms of both parameters and of the times.
    parts = np.log([seconds.min() / 2, seconds.max() / sizes.max()])
    for _ in range(100):
        terms = np.exp(parts) * np.column_stack([np.ones(len(sizes)), sizes])
        predicted = terms.sum(axis=1)
        step, *_ = np.linalg.lstsq(terms / predicted[:, None], np.log(seconds / predicted), rcond=None)
        parts = parts + np.clip(step, -1, 1)
    constant, per_byte = np.exp(parts)
    return float(constant), float(1 / per_byte)


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
    return _core.bench_peak_gflops(precision == "single") * 1e9 / 2


def machine_text(messages: Sequence[tuple[int, float]], cores: int) -> str:
    """Return the TOML file of a host with this many cores; the figures of messages are those of two of them.

    Parameters
    ----------
    messages : sequence of (int, float)
        Bytes of each message, and its microseconds one way.
    cores : int
        Number of cores.
    """
    constant, bandwidth = fit_messages(messages)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / cores
    measured = 'basis = "measured", source = "tune"'
    return f"""\
title = "This machine: a host with {cores} cores"

[sources]
tune = "onehop {__version__}, onehop tune --machine-file"

[memory] # of one core
bandwidth = {{ value = {memory_bandwidth():.4g}, {measured}, note = "copies of {_COPY_BYTES >> 20} MiB" }}
size = {{ value = {memory:.4g}, {measured}, note = "the memory of the host over its cores" }}

[arithmetic] # real multiply-adds per second of one core
double = {{ value = {multiply_adds("double"):.4g}, {measured}, note = "fused multiply-adds on registers" }}
single = {{ value = {multiply_adds("single"):.4g}, {measured}, note = "fused multiply-adds on registers" }}

[[level]]
name = "host"
of = "processor"
routing = "all_to_all"
extents = [{cores}]
topology = {{ {measured} }}
# A message takes overhead + latency + overhead + bytes / bandwidth. Only the sum of the first three is measured.
latency = {{ value = {constant / 2:.4g}, {measured}, note = "half of the constant part of a message" }}
overhead = {{ value = {constant / 4:.4g}, {measured}, note = "a quarter of the constant part of a message" }}
bandwidth = {{ value = {bandwidth:.4g}, {measured}, note = "messages of {messages[0][0]} to {messages[-1][0]} bytes" }}
"""
