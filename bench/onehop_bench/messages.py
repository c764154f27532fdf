"""`onehop bench pingpong`, `channel`, `poisson`, `ring` and `codec`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from onehop import _core
from onehop.codec import CODECS, decode, encode
from onehop.error import BadInput
from onehop.group import Group
from onehop.options import option
from onehop.schedule import ArraySpec, Place, Round, Schedule, Slice, Transfer
from onehop.text import bytes_text
from onehop_bench import native
from onehop_bench.measure import Benchmark, Run, run, slices_if_shared
from onehop_bench.options import (
    BenchOptions,
    HostsOptions,
    PlotOptions,
    RanksBenchOptions,
    names_option,
    parse_sizes,
    seconds_option,
    sizes_option,
)
from onehop_bench.result import Row, make_row, samples_of
from onehop_bench.wire import between_hosts

_SIZES = "Bytes per message; 0 is a bare flag."
RING_BYTES = 64
CODEC_STEPS = {"encode": True, "decode_add": False}


@dataclass(kw_only=True)
class PingPong(HostsOptions, PlotOptions, RanksBenchOptions):
    sizes: list[int] | None = sizes_option(_SIZES)
    get: bool = option(False, "Also receive with get(), into an array.")


def pingpong(options: PingPong) -> Benchmark:
    """A ping-pong of one message; the time is half a round trip."""
    sizes = options.sizes or parse_sizes("0,8,64,256,1K,4K,16K,64K,256K,1M,4M")

    def rows(on: Run) -> Iterator[Row]:
        for size in on.cases:
            measured = native.ping_pong(on.group, size, on.effort, options.get, on.peers)
            row = make_row(bytes_text(size, exact=True) if size else "flag", size, 2, samples_of(measured))
            yield between_hosts(row, on.group, _round_trip(on.group, size), [size, size])

    return Benchmark(name="pingpong", cases=sizes, rows=rows, exactly=2, across=True)


def _round_trip(group: Group, size: int) -> Callable[[], None]:
    """A function that sends a message of `size` bytes from rank 0 to rank 1 and one back."""
    message = np.zeros(size, np.uint8)
    peer = 1 - group.rank
    channels = group.channels(send={peer: size}, receive={peer: size})
    sender, receiver = channels.send[peer], channels.receive[peer]

    def step() -> None:
        for turn in range(2):
            sender.put(message) if group.rank == turn else receiver.get(message)

    return step


def bench_pingpong(options: PingPong) -> None:
    """Send one message back and forth between two ranks; times are half a round trip."""
    run(options, pingpong(options))


@dataclass(kw_only=True)
class Channel(PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(15)
    sizes: list[int] | None = sizes_option(_SIZES)
    messages: int = option(10, "Messages in each direction at once.", low=1, high=10000)


def bench_channel(options: Channel) -> None:
    """Send several messages at once in each direction between two ranks."""
    count = options.messages

    def rows(on: Run) -> Iterator[Row]:
        for size in on.cases:
            measured = native.exchange(on.group, size, count, on.effort, on.peers)
            yield make_row(f"{count} x {bytes_text(size, exact=True)}", size * count, 2, samples_of(measured))

    sizes = options.sizes or parse_sizes("64,256,1K,4K,16K,64K,256K")
    run(options, Benchmark(name="channel", cases=sizes, rows=rows, exactly=2))


@dataclass(kw_only=True)
class PoissonBench(PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(12)
    enlarge: list[int] | None = sizes_option("Factors by which messages are lengthened.", "1,16,...")
    local: int = option(60, "Sites of a rank's block in each dimension.", low=1, high=1 << 20)


def bench_poisson(options: PoissonBench) -> None:
    """Run one iteration of the Poisson solver. Its computation alone is beside it."""
    factors = options.enlarge or [1, 16, 256, 1024]
    if min(factors) < 1:
        raise BadInput(f"expected --enlarge of at least 1, found {min(factors)}")

    def rows(on: Run) -> Iterator[Row]:
        for factor in on.cases:
            measured = _core.measure_poisson(on.group, options.local, factor, on.effort, on.peers)
            # On two ranks two faces cross; the others stay inside.
            yield make_row(f"x{factor}", 16 * options.local * factor, on.group.size, samples_of(measured))

    run(options, Benchmark(name="poisson", cases=factors, rows=rows))


@dataclass(kw_only=True)
class Ring(PlotOptions, RanksBenchOptions):
    seconds: float = seconds_option(10)


def _ring_schedule(ranks: int) -> Schedule:
    numbers = RING_BYTES // 8
    everything = Slice.range(0, numbers)
    transfers = [
        Transfer(Place(rank, 0, everything), Place((rank + 1) % ranks, 1, everything))
        for rank in range(ranks)
    ]
    return Schedule(
        "ring", ranks, [ArraySpec(name, numbers, 8) for name in ("out", "in")], [Round(transfers)]
    )


def bench_ring(options: Ring) -> None:
    """Send 64 bytes from every rank to the next one, also with more ranks than cores."""

    def rows(on: Run) -> Iterator[Row]:
        ranks = on.group.size
        for computing in on.cases:
            memory = [_core.Memory(np.zeros(RING_BYTES // 8, np.int64), True, "array") for _ in range(2)]
            measured = native.ring(on.group, _ring_schedule(ranks), memory, on.effort, on.peers, computing)
            name = f"{ranks} ranks" + (f", each computing {computing:g} µs" if computing else "")
            yield make_row(name, RING_BYTES, ranks, samples_of(measured))

    run(options, Benchmark(name="ring", cases=(0.0, 10.0), rows=rows, block_us=slices_if_shared), default=4)


@dataclass(kw_only=True)
class CodecBench(PlotOptions, BenchOptions):
    seconds: float = seconds_option(15)
    sizes: list[int] | None = sizes_option("Bytes of the float32 arrays.", "64K,64M,...")
    codecs: list[str] = names_option(list(CODECS[1:]), "Codecs.", choices=CODECS[1:])


def _codec_errors() -> str:
    """A note with the relative error (root mean square) of each codec for normally distributed numbers."""
    numbers = np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)
    errors = []
    for codec in CODECS[1:]:
        back = decode(codec, encode(codec, numbers), np.empty_like(numbers))
        errors.append(f"{codec} {np.sqrt(np.mean((back - numbers) ** 2) / np.mean(numbers**2)):.1e}")
    return "relative error (root mean square) for normally distributed numbers: " + ", ".join(errors)


def bench_codec(options: CodecBench) -> None:
    """Encode and decode on one core. A copy of the same numbers is beside it."""

    def rows(on: Run) -> Iterator[Row]:
        on.result.notes.append(_codec_errors())
        for size, codec, step in on.cases:
            measured = native.codec(on.group, codec, CODEC_STEPS[step], size, on.effort)
            yield make_row(f"{codec} {step}, {bytes_text(size, exact=True)}", size, 1, samples_of(measured))

    sizes = options.sizes or parse_sizes("64K,64M")
    cases = [(size, codec, step) for size in sizes for codec in options.codecs for step in CODEC_STEPS]
    run(options, Benchmark(name="codec", cases=cases, rows=rows, exactly=1, mpi=False), default=1, flag=False)
