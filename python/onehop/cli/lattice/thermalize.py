"""`onehop lattice thermalize`: a gauge field of the Wilson action, by heat bath or hybrid Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from onehop.cli.common import (
    LARGEST_INT,
    LARGEST_SEED,
    JsonOption,
    RanksOption,
    console,
    own_rank,
    progress,
    refuse_both,
    say_renamed,
    write_json,
)
from onehop.cli.lattice.common import (
    GridOption,
    OptionalExtentOption,
    numbers,
    refuse_without_effect,
    say_unverified,
    was_given,
)
from onehop.cli.lattice.convert import FormatOption, OverwriteOption, PrecisionOption
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, hybrid_monte_carlo, read_gauge, write_gauge
from onehop.lattice import thermalize as sweep
from onehop.lattice.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from onehop.lattice.files import check_gauge_target, check_target, require_memory_to_write
from onehop.launch import ensure_ranks
from onehop.text import counted

ALGORITHMS = ("heatbath", "hmc")


@dataclass
class _Run:
    """A run: `settings` holds everything that the links depend on."""

    settings: dict[str, Any]
    last: int
    checkpoint: str | None
    every: int

    def some(self, gauge: Gauge, first: int, count: int, advance: Callable[[float], None]) -> list[Any]:
        """Do sweeps or trajectories [first, first + count) and return one record of each."""
        given = self.settings
        common = {"seed": given["seed"], "first": first, "progress": lambda _number: advance(1)}
        if given["algorithm"] == "heatbath":
            return sweep(gauge, given["beta"], count, over_relaxations=given["over_relaxations"], **common)
        moved = hybrid_monte_carlo(
            gauge,
            given["beta"],
            count,
            length=given["length"],
            steps=given["steps"],
            integrator=given["integrator"],
            **common,
        )
        return [one._asdict() for one in moved]

    def finish(self, gauge: Gauge, state: Checkpoint, advance: Callable[[float], None]) -> None:
        """Do all remaining updates, with a checkpoint every `every` updates and at the end."""
        while state.done < self.last:
            count = min(self.every if self.checkpoint else self.last, self.last - state.done)
            state.history += self.some(gauge, state.done, count, advance)
            state.done += count
            if self.checkpoint:
                write_checkpoint(self.checkpoint, gauge, state)


def _check_places(
    extents: tuple[int, ...] | None,
    output: str | None,
    checkpoint: str | None,
    file_format: str | None,
    precision: int | None,
    overwrite: bool,
) -> None:
    """Check before any work that the files can be written."""
    wanted = [name for name, file in (("--output", output), ("--checkpoint", checkpoint)) if file is not None]
    if wanted and extents is not None and len(extents) != 4:
        raise BadInput(
            f"expected four directions for {wanted[0]}, because files have four, found {len(extents)}"
        )
    if output is not None:
        check_gauge_target(output, file_format, precision, overwrite)
    if checkpoint is not None:
        check_target(checkpoint, overwrite=True)


def _begin(
    start: str,
    extents: tuple[int, ...] | None,
    group: Group,
    cut: tuple[int, ...] | None,
    seed: int,
    json_target: str | None,
) -> Gauge:
    if extents is None:
        read, found = read_gauge(start, group, cut)
        say_unverified(start, found.has_checksum, json_target)
        return read
    gauge = Gauge(group, extents, cut)
    if start == "random":
        gauge.set_random(seed)
    return gauge


def _error_of_mean(values: list[float]) -> float | None:
    """Estimate the error from ten blocks, which should be longer than the autocorrelation time."""
    if len(values) < 20:
        return None
    blocks = [np.mean(block) for block in np.array_split(np.array(values), 10)]
    return float(np.std(blocks, ddof=1) / np.sqrt(len(blocks)))


def _report(gauge: Gauge, state: Checkpoint, first: int, resumed: int | None) -> dict[str, Any]:
    plaquettes = gauge.plaquettes()
    hmc = state.settings["algorithm"] == "hmc"
    history = [one["plaquette"] for one in state.history] if hmc else state.history
    later = history[len(history) // 2 :]
    report: dict[str, Any] = {
        "extent": list(gauge.geometry.extents),
        "grid": list(gauge.geometry.grid),
        **{name: value for name, value in state.settings.items() if name not in ("start", "extent")},
        "trajectories" if hmc else "sweeps": state.done - first,
        "resumed_from": resumed,
        "history": history,
        "plaquette": plaquettes.all,
        "plaquette_space": plaquettes.space,
        "plaquette_time": plaquettes.time,
        "link_trace": gauge.link_trace(),
        "mean_plaquette": float(np.mean(later)) if later else None,
        "mean_plaquette_error": _error_of_mean(later),
    }
    if hmc:
        changes = [one["delta_h"] for one in state.history]
        report["delta_h"] = changes
        report["acceptance"] = float(np.mean([one["accepted"] for one in state.history])) if changes else None
        report["exp_minus_delta_h"] = float(np.mean(np.exp(-np.array(changes)))) if changes else None
    return report


def _updates(
    algorithm: str, sweeps: int, trajectories: int, output: str | None, checkpoint: str | None
) -> int:
    """Return the number of sweeps or trajectories; refuse options without effect."""
    if algorithm == "hmc":
        refuse_without_effect(("--over-relaxations",), "is for --algorithm heatbath")
        if was_given("--sweeps"):
            if was_given("--trajectories"):
                refuse_both("--sweeps", "--trajectories")
            say_renamed("--sweeps with --algorithm hmc", "--trajectories")
            trajectories = sweeps
    else:
        refuse_without_effect(
            ("--trajectories", "--length", "--steps", "--integrator"), "is for --algorithm hmc"
        )
    if output is None:
        refuse_without_effect(("--format", "--precision", "--overwrite"), "is for --output")
    if checkpoint is None:
        refuse_without_effect(("--every",), "is for --checkpoint")
    return trajectories if algorithm == "hmc" else sweeps


def _show(screen: Console, report: dict[str, Any], what: str) -> None:
    """Print the plaquette and the acceptance."""
    screen.print(f"{what}: plaquette {report['plaquette']:.6f}", markup=False)
    if report.get("acceptance") is not None:
        screen.print(
            f"accepted {report['acceptance']:.1%}, mean of exp(-dH) {report['exp_minus_delta_h']:.4f}",
            markup=False,
        )
    if report["mean_plaquette"] is not None:
        error = report["mean_plaquette_error"]
        width = "" if error is None else f" ± {error:.6f}"
        screen.print(f"mean of the second half: {report['mean_plaquette']:.6f}{width}", markup=False)


def thermalize(
    extent: OptionalExtentOption = None,
    beta: Annotated[float, typer.Option(min=0, help="Inverse coupling 6 / g².")] = 6.0,
    sweeps: Annotated[int, typer.Option(min=0, max=LARGEST_INT, help="Number of heat bath sweeps.")] = 100,
    trajectories: Annotated[
        int,
        typer.Option(min=0, max=LARGEST_INT, help="Number of hybrid Monte Carlo trajectories (hmc only)."),
    ] = 100,
    algorithm: Annotated[
        str, typer.Option(metavar="heatbath|hmc", help="Update algorithm: heat bath or hybrid Monte Carlo.")
    ] = "heatbath",
    over_relaxations: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_INT, help="Number of over-relaxation sweeps after each heat bath sweep."
        ),
    ] = 4,
    length: Annotated[float, typer.Option(help="Length of a trajectory, above 0 (hmc only).")] = 1.0,
    steps: Annotated[
        int,
        typer.Option(min=1, max=LARGEST_INT, help="Number of integrator steps per trajectory (hmc only)."),
    ] = 20,
    integrator: Annotated[
        str, typer.Option(metavar="omelyan|leapfrog", help="Integrator of the trajectories (hmc only).")
    ] = "omelyan",
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_SEED, help="Random seed. The same seed gives the same field on every grid."
        ),
    ] = 1,
    start: Annotated[str, typer.Option(metavar="unit|random|FILE", help="Initial gauge field.")] = "unit",
    first: Annotated[
        int,
        typer.Option(
            min=0, max=LARGEST_INT, help="Number of the first sweep or trajectory, to continue from a FILE."
        ),
    ] = 0,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Save progress to FILE periodically. If FILE exists, resume from it."
        ),
    ] = None,
    every: Annotated[
        int,
        typer.Option(
            min=1, max=LARGEST_INT, help="Number of sweeps or trajectories between two checkpoints."
        ),
    ] = 10,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write the gauge field to FILE.")
    ] = None,
    format_name: FormatOption = None,
    precision: PrecisionOption = None,
    overwrite: OverwriteOption = False,
    grid: GridOption = None,
    ranks: RanksOption = None,
    json_target: JsonOption = None,
) -> None:
    """Generate a quenched gauge field of the Wilson action, by heat bath with over-relaxation or by hybrid Monte Carlo.

    The same seed gives the same field, bit for bit, on every grid of ranks. With --checkpoint an interrupted run
    resumes when the same command is given again, and ends with the same field as an uninterrupted run.
    """
    extents, cut = numbers(extent, "--extent"), numbers(grid, "--grid")
    if (extents is None) != (start not in ("unit", "random")):
        raise BadInput("expected either --extent, or --start with a file, which has its own extents")
    if algorithm not in ALGORITHMS:
        raise BadInput(f"expected --algorithm {' or '.join(ALGORITHMS)}, found {algorithm!r}")
    updates = _updates(algorithm, sweeps, trajectories, output, checkpoint)
    if not (np.isfinite(length) and length > 0):
        raise BadInput(f"expected --length above 0 and finite, found {length}")
    _check_places(extents, output, checkpoint, format_name, precision, overwrite)
    ensure_ranks(ranks)
    group = Group.world()
    settings: dict[str, Any] = {"algorithm": algorithm, "beta": beta, "seed": seed}
    if algorithm == "heatbath":
        settings |= {"over_relaxations": over_relaxations}
    else:
        settings |= {"length": length, "steps": steps, "integrator": integrator}
    settings |= {"start": start, "extent": None if extents is None else list(extents)}
    kept = read_checkpoint(checkpoint, group, cut, settings, first) if checkpoint else None
    gauge, state = kept or (
        _begin(start, extents, group, cut, seed, json_target),
        Checkpoint(settings, first),
    )
    resumed = state.done if kept else None
    if state.done > first + updates:
        raise BadInput(
            f"{checkpoint}: expected a checkpoint after at most {first + updates} updates "
            f"(--first plus {'--trajectories' if algorithm == 'hmc' else '--sweeps'}), found one after {state.done}; "
            "ask for more, or name another file"
        )
    if output is not None or checkpoint is not None:
        require_memory_to_write(gauge)
    with progress(
        "trajectories" if algorithm == "hmc" else "sweeps", total=max(first + updates - state.done, 0)
    ) as advance:
        _Run(settings, first + updates, checkpoint, every).finish(gauge, state, advance)
    if output is not None:
        write_gauge(output, gauge, format_name, precision=precision, overwrite=overwrite)
    report = _report(gauge, state, first, resumed)
    if own_rank() != 0:
        return
    screen = console(json_target)
    if resumed is not None:
        left = state.done - resumed
        screen.print(f"resumed from {checkpoint}: {resumed} done before, {left} now", markup=False)
    what = counted(state.done - first, "sweep" if algorithm == "heatbath" else "trajectory")
    _show(screen, report, f"{what} at beta = {beta:g}")
    if output is not None:
        screen.print(f"written to {output}", markup=False)
    write_json(json_target, report)
