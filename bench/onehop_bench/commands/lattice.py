"""`onehop bench` of the kernels and solvers of lattice QCD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onehop.error import BadInput
from onehop.group import Group
from onehop.options import option
from onehop_bench.bars import save_rate_plot, save_solver_plot
from onehop_bench.commands.options import (
    BenchOptions,
    Block,
    PlotOptions,
    RanksBenchOptions,
    ThreadsOptions,
    names_option,
    precisions_option,
    seconds_option,
    sizes_option,
)
from onehop_bench.commands.start import run
from onehop_bench.dslash import DSLASH_BLOCKS, dslash, improvements
from onehop_bench.lattice_solver import SOLVER_BLOCKS, lattice_solver
from onehop_bench.result import Bench
from onehop_bench.run import Advance, Settings
from onehop_bench.smearing import SMEARING_BLOCKS, SMEARING_KINDS, smearing
from onehop_bench.su3 import SU3_OPERATIONS, SU3_SITES, su3
from onehop_bench.wilson import WILSON_LATTICES, WILSON_VARIANTS, wilson

_BLOCKS = "Lattice blocks of a rank. The lattice is divided along the last direction."
Blocks = Sequence[tuple[int, ...]]


def blocks_option(text: str, metavar: str = "12x12x12x12,...") -> list[str] | None:
    """The field of a list of blocks; None stands for those of the benchmark."""
    return option(None, text, metavar=metavar, separator=",", kind=list[Block])  # type: ignore[no-any-return]


def _blocks(given: list[str] | None, default: Blocks, name: str = "--blocks") -> Blocks:
    """The extents of blocks of four directions; `default` for None."""
    if given is None:
        return default
    blocks = [block.extents for block in given]  # type: ignore[attr-defined]
    if any(len(block) != 4 for block in blocks):
        raise BadInput(f"expected {name} of four directions, found {','.join(given)}")
    return blocks


@dataclass(kw_only=True)
class Dslash(ThreadsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench dslash`."""

    seconds: float = seconds_option(16)
    blocks: list[str] | None = blocks_option(_BLOCKS)
    precisions: list[str] = precisions_option(["single", "double"])
    improvements: bool = option(
        False, "Measure all combinations of SIMD, direct put, mapping and ordering instead."
    )


def bench_dslash(options: Dslash) -> None:
    """Apply the HISQ hopping term to the sites of one parity.

    The speed of light is the time to read as many bytes as it must move.
    """
    blocks = _blocks(options.blocks, DSLASH_BLOCKS)

    def measure(group: Group, settings: Settings, advance: Advance) -> Bench:
        if options.improvements:
            block = (12, 12, 12, 12) if options.blocks is None else blocks[0]
            return improvements(group, settings, advance, block, options.precisions[0])
        return dslash(group, settings, advance, blocks, options.precisions, options.threads)

    count = 1 if options.improvements else len(blocks) * len(options.precisions)
    run(options, measure, count, draw=save_rate_plot)


@dataclass(kw_only=True)
class Solver(ThreadsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench solver`."""

    seconds: float = seconds_option(60)
    blocks: list[str] | None = blocks_option(_BLOCKS)
    mass: float = option(0.05, "Quark mass of the solves for one mass.", above=0)
    tolerance: float = option(1e-10, "Relative residual |b - M x| / |b| at which a solve ends.", above=0)


def bench_solver(options: Solver) -> None:
    """Solve with the HISQ operator in half, single and double precision.

    Iterations are also compared with plain MPI and scalar code.
    """
    blocks = _blocks(options.blocks, SOLVER_BLOCKS)
    run(
        options,
        lambda *on: lattice_solver(*on, blocks, options.mass, options.tolerance, options.threads),
        len(blocks),
        draw=save_solver_plot,
    )


@dataclass(kw_only=True)
class AloneOptions(PlotOptions, BenchOptions):
    """The options of benchmarks without messages, which ranks may run side by side."""

    ranks: int | None = option(None, "Number of ranks to start.", "-n", "--ranks", metavar="RANKS")


@dataclass(kw_only=True)
class Su3(AloneOptions):
    """The options of `onehop bench su3`."""

    seconds: float = seconds_option(12)
    sites: list[int] | None = sizes_option("Numbers of sites of the arrays; multiples of 16.", "64,1K,...")
    operations: list[str] = names_option(
        ["vectors", "matrices"], "Operations.", choices=tuple(SU3_OPERATIONS)
    )


def bench_su3(options: Su3) -> None:
    """Multiply 3x3 matrices by vectors and matrices.

    The peer is code for one site; the speed of light is the processor's.
    """
    sites = options.sites or SU3_SITES
    if any(count < 16 or count % 16 for count in sites):
        raise BadInput(f"expected --sites as multiples of 16, found {','.join(map(str, sites))}")
    count = len(sites) * len(options.operations) * 2
    run(options, lambda *on: su3(*on, sites, options.operations), count, default=1, draw=save_rate_plot)


@dataclass(kw_only=True)
class Smearing(AloneOptions):
    """The options of `onehop bench smearing`."""

    seconds: float = seconds_option(16)
    blocks: list[str] | None = blocks_option(_BLOCKS)
    kinds: list[str] = names_option(list(SMEARING_KINDS), "Kinds of links.", choices=SMEARING_KINDS)
    precisions: list[str] = precisions_option(["single", "double"])


def bench_smearing(options: Smearing) -> None:
    """Compute the fat and long links of staggered quarks.

    The speed of light is the time to read and write all links once.
    """
    blocks = _blocks(options.blocks, SMEARING_BLOCKS)
    if any(extent < 2 or extent % 2 for block in blocks for extent in block):
        raise BadInput(f"expected --blocks of even extents, found {','.join(options.blocks or ())}")
    run(
        options,
        lambda *on: smearing(*on, blocks, options.kinds, options.precisions),
        len(blocks) * len(options.kinds) * len(options.precisions),
        default=1,
        draw=save_rate_plot,
    )


@dataclass(kw_only=True)
class Wilson(ThreadsOptions, PlotOptions, RanksBenchOptions):
    """The options of `onehop bench wilson`."""

    seconds: float = seconds_option(16)
    lattices: list[str] | None = blocks_option("Lattices, shared by all ranks.", "16x16x16x16,...")
    local: bool = option(
        False, "Read --lattices as those of one rank. The lattice is divided along the last direction."
    )
    variants: list[str] = names_option(
        ["single", "single-12", "double", "double-12"],
        "Variants: precision or clover term, with -12 for 12 real numbers per link instead of 18.",
        metavar="double,single-12,...",
        choices=tuple(WILSON_VARIANTS),
    )


def bench_wilson(options: Wilson) -> None:
    """Apply the Wilson hopping term to the sites of one parity.

    The speed of light is the time to move as many bytes as the term must move.
    """
    lattices = _blocks(options.lattices, WILSON_LATTICES, "--lattices")
    run(
        options,
        lambda *on: wilson(*on, lattices, options.variants, options.local, options.threads),
        len(lattices) * len(options.variants),
        default=1,
        draw=save_rate_plot,
    )
