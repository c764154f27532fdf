"""Options that benchmarks share, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import JsonOptions, MpiOptions
from onehop.error import BadInput
from onehop.options import Options, option
from onehop_bench.hosts.launch import ranks_of_hosts

_LARGEST = 1 << 40
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_size(text: str) -> int:
    """Read a size such as "8", "64B", "1K", "4KiB" or "1M", in bytes. Raise BadInput if it is none, or above 1 TiB."""
    found = re.fullmatch(r"([0-9]{1,13})\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise BadInput(f"expected a size such as 8, 64, 1K or 4M, found {text!r}")
    size = int(found[1]) * _UNITS[found[2]]
    if size > _LARGEST:
        raise BadInput(f"expected a size of at most 1 TiB ({_LARGEST} bytes), found {text!r}")
    return size


def parse_sizes(text: str) -> list[int]:
    """Read a list of sizes such as "8,1K,4M", in bytes."""
    return [parse_size(part) for part in text.split(",")]


class Size(int):
    """A size in bytes, as people write it."""

    rule = "as sizes such as 8, 64, 1K or 4M, with commas between them"

    def __new__(cls, text: str | int) -> Size:
        """Read a size; a number stands for itself, as where a copy is made."""
        return super().__new__(cls, parse_size(text) if isinstance(text, str) else text)


class Block(str):
    """Extents such as 64x32x32."""

    rule = "as extents such as 64x32x32, with commas between blocks"

    def __new__(cls, text: str) -> Block:
        """Read extents; raise ValueError if they are none."""
        if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8})*", text):
            raise ValueError(text)
        return super().__new__(cls, text)

    @property
    def extents(self) -> tuple[int, ...]:
        """The numbers."""
        return tuple(int(extent) for extent in self.split("x"))


def four_directions(given: Sequence[Block] | None, default: str, name: str = "--blocks") -> list[Block]:
    """The blocks that are given, by default those of the text; raise BadInput unless they have four directions."""
    blocks = list(given or map(Block, default.split(",")))
    if any(len(block.extents) != 4 for block in blocks):
        raise BadInput(f"expected {name} of four directions, found {','.join(blocks)}")
    return blocks


def seconds_option(default: float) -> Any:
    """The field of --seconds, whose default each benchmark chooses."""
    text = "Time to measure all cases together. Every case runs at least once."
    return option(float(default), text, metavar="SECONDS", above=0)


def names_option(default: list[str] | None, text: str, *names: str, **accepted: Any) -> Any:
    """A list of names with commas between them, among `choices`."""
    return option(default, text, *names, separator=",", **accepted)


def precisions_option(default: list[str]) -> Any:
    """The field of a list of precisions."""
    return names_option(default, "Precisions of the arithmetic.", choices=("single", "double"))


def sizes_option(text: str, metavar: str = "8,1K,...") -> Any:
    """A list of sizes with commas between them; None stands for those of the benchmark."""
    return option(None, text, metavar=metavar, separator=",", kind=list[Size])


def blocks_option(text: str, metavar: str = "12x12x12x12,...") -> Any:
    """A list of blocks with commas between them; None stands for those of the benchmark."""
    return option(None, text, metavar=metavar, separator=",", kind=list[Block])


def numbers_option(text: str, metavar: str, **accepted: Any) -> Any:
    """A list of numbers with commas between them; None stands for those of the benchmark."""
    return option(None, text, metavar=metavar, separator=",", low=1, **accepted)


@dataclass(kw_only=True)
class BenchOptions(JsonOptions):
    """The options of every benchmark."""

    title = "Measurement"
    seconds: float = seconds_option(20)
    quick: bool = option(False, "Measure as briefly as possible. The figures then mean little.")


@dataclass(kw_only=True)
class RanksBenchOptions(BenchOptions, MpiOptions):
    """The options of benchmarks on several ranks."""


@dataclass(kw_only=True)
class PlotOptions(Options):
    """The plot of a benchmark."""

    title = "Output"
    plot: str | None = option(
        None, "Draw the results and write the plot to FILE.", metavar="FILE.png", writes="the plot"
    )


@dataclass(kw_only=True)
class AloneOptions(PlotOptions, BenchOptions):
    """The options of benchmarks without messages, which ranks may run side by side."""

    ranks: int | None = option(None, "Number of ranks to start.", "-n", "--ranks", metavar="RANKS")


@dataclass(kw_only=True)
class ThreadsOptions(Options):
    """The threads of a rank."""

    title = "Ranks"
    threads: int = option(0, "Threads per rank. 0 uses all cores of the rank.", low=0, high=1024)


@dataclass(kw_only=True)
class HostsOptions(Options):
    """Emulated hosts."""

    title = "Emulated hosts"
    hosts: int | None = option(
        None,
        "Measure between this many emulated hosts (2 to 4; needs root). Exit code 77 where they cannot be made.",
        metavar="HOSTS",
    )
    per_host: list[int] | None = numbers_option(
        "Ranks on each emulated host, one number or one for each; 1 by default.", "RANKS,...", high=1024
    )
    by_node: bool = option(False, "Deal the ranks to the emulated hosts in turns.")
    rate: str | None = option(
        None, "Rate of each link between emulated hosts; 0, the default: no limit.", metavar="1gbit"
    )
    links: int | None = option(None, "Links of each emulated host, 1 to 3; 1 by default.", metavar="LINKS")

    def check_hosts(self, ranks: int | None, mpi: str | None) -> None:
        """Raise BadInput if the options do not fit together, or with `-n` and `--mpi`."""
        stray = self.given(("per_host", "by_node", "rate", "links"))
        if self.hosts is None:
            if stray:
                raise BadInput(f"{stray[0]} describes emulated hosts: say how many with --hosts 2")
            return
        ranks_of_hosts(self.hosts, self.per_host or 1)
        if ranks is not None:
            raise BadInput(f"expected --per-host beside --hosts {self.hosts}, found -n {ranks}")
        if mpi == "none":
            raise BadInput("ranks on several hosts are started with an MPI: leave out --mpi none")
