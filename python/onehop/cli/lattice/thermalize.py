"""`onehop lattice thermalize`: gauge fields of the Wilson action, by heat bath or hybrid Monte Carlo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import GridOptions, JsonOptions, RanksOptions, console, own_rank, progress, write_json
from onehop.cli.lattice.common import FileOptions, averages, say_about
from onehop.cli.screen import Screen
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, read_gauge, write_gauge
from onehop.lattice.checkpoint import Checkpoint, read_checkpoint, recipe_of, recipe_text, write_checkpoint
from onehop.lattice.ensemble import Ensemble, make_ensemble, start_field, update
from onehop.lattice.files import check_gauge_target, check_target, require_memory_to_write
from onehop.lattice.hmc import HmcOptions
from onehop.lattice.statistics import acceptance, mean_of_second_half
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, LARGEST_SEED, file_option, option
from onehop.text import counted


@dataclass(kw_only=True)
class Thermalize(HmcOptions, FileOptions, GridOptions, RanksOptions, JsonOptions):
    title = "Options"

    extent: tuple[int, ...] | None = option(
        None, "Number of sites in each direction (1 to 4 directions).", high=LARGEST_INT
    )
    beta: float = option(6.0, "Inverse coupling 6 / g².", low=0)
    sweeps: int = option(100, "Number of heat bath sweeps.", low=0, high=LARGEST_INT)
    trajectories: int = option(
        100, "Number of hybrid Monte Carlo trajectories (hmc only).", low=0, high=LARGEST_INT
    )
    algorithm: str = option(
        "heatbath", "Update algorithm: heat bath or hybrid Monte Carlo.", choices=("heatbath", "hmc")
    )
    over_relaxations: int = option(
        4, "Number of over-relaxation sweeps after each heat bath sweep.", low=0, high=LARGEST_INT
    )
    seed: int = option(
        1, "Random seed. The same seed gives the same field on every grid.", low=0, high=LARGEST_SEED
    )
    start: str = option("unit", "Initial gauge field.", metavar="unit|random|FILE")
    first: int = option(
        0, "Number of the first sweep or trajectory, to continue from a FILE.", low=0, high=LARGEST_INT
    )
    checkpoint: str | None = file_option(
        "Save progress to FILE periodically. If FILE exists, resume from it.", "checkpoint"
    )
    save_every: int = option(
        10, "Number of sweeps or trajectories between two checkpoints.", low=1, high=LARGEST_INT
    )
    keep: int = option(
        0,
        "Number of configurations to keep in the folder of --output; the first one after all sweeps or trajectories.",
        low=0,
        high=999_999,
    )
    every: int = option(
        10,
        "Number of sweeps or trajectories between two configurations (only with --keep).",
        low=1,
        high=999_999,
    )
    output: str | None = file_option(
        "Write the gauge field to FILE, or with --keep the configurations to FOLDER.",
        "the gauge field",
        *("-o", "--output"),
        metavar="FILE|FOLDER",
    )

    @property
    def is_hmc(self) -> bool:
        """Whether trajectories are counted, not sweeps."""
        return self.algorithm == "hmc"

    @property
    def last(self) -> int:
        """Number of the update after the last one."""
        return self.first + (self.trajectories if self.is_hmc else self.sweeps)

    def settings(self) -> dict[str, Any]:
        """Return everything that the links depend on."""
        found: dict[str, Any] = {"algorithm": self.algorithm, "beta": self.beta, "seed": self.seed}
        found |= self.part(HmcOptions) if self.is_hmc else {"over_relaxations": self.over_relaxations}
        extent = None if self.extent is None else list(self.extent)
        return found | {"start": self.start, "extent": extent}

    def check(self) -> None:
        """Check the options, and before any work that the files can be written."""
        if (self.extent is None) != (self.start not in ("unit", "random")):
            raise BadInput("expected either --extent, or --start with a file, which has its own extents")
        if self.is_hmc:
            self.refuse(("over_relaxations",), "is for --algorithm heatbath")
        else:
            self.refuse(("trajectories", "length", "steps", "integrator"), "is for --algorithm hmc")
        if self.output is None:
            self.refuse(("file_format", "precision", "overwrite", "keep"), "is for --output")
        if self.checkpoint is None and not self.keep:
            self.refuse(("save_every",), "is for --checkpoint")
        if self.keep:
            self.refuse(
                ("file_format", "precision", "overwrite", "checkpoint"),
                "is for one field: the configurations of --keep are ILDG files of 64 bits, never overwritten, and a "
                "run goes on at the last one",
            )
        else:
            self.refuse(("every",), "is for --keep")
        for name, file in (("--output", self.output), ("--checkpoint", self.checkpoint)):
            if file is not None and self.extent is not None and len(self.extent) != 4:
                raise BadInput(
                    f"expected four directions for {name}, because files have four, found {len(self.extent)}"
                )
        if self.output is not None and not self.keep:
            check_gauge_target(self.output, **self.how())
        if self.checkpoint is not None:
            check_target(self.checkpoint, overwrite=True)


def _finish(options: Thermalize, gauge: Gauge, state: Checkpoint, advance: Callable[[float], None]) -> None:
    """Do all remaining updates, with a checkpoint every `save_every` updates and at the end."""
    while state.done < options.last:
        count = min(options.save_every if options.checkpoint else options.last, options.last - state.done)
        state.history += update(gauge, state.settings, state.done, count, advance)
        state.done += count
        if options.checkpoint:
            write_checkpoint(options.checkpoint, gauge, state)


def _report(gauge: Gauge, state: Checkpoint, first: int, resumed: int | None) -> dict[str, Any]:
    hmc = state.settings["algorithm"] == "hmc"
    history = [one["plaquette"] for one in state.history] if hmc else state.history
    mean, error = mean_of_second_half(history)
    report: dict[str, Any] = {
        "extent": list(gauge.geometry.extents),
        "grid": list(gauge.geometry.grid),
        **{name: value for name, value in state.settings.items() if name not in ("start", "extent")},
        "trajectories" if hmc else "sweeps": state.done - first,
        "resumed_from": resumed,
        "history": history,
        **averages(gauge.plaquettes(), gauge.link_trace()),
        "sha256": gauge.sha256(),
        "mean_plaquette": mean,
        "mean_plaquette_error": error,
    }
    if hmc:
        report["delta_h"] = [trajectory["delta_h"] for trajectory in state.history]
        report["acceptance"], report["exp_minus_delta_h"] = acceptance(state.history)
    return report


def _show(screen: Screen, report: dict[str, Any], what: str) -> None:
    """Print the plaquette and the acceptance."""
    screen.print(f"{what}: plaquette {report['plaquette']:.6f}")
    if report.get("acceptance") is not None:
        screen.print(
            f"accepted {100 * report['acceptance']:.1f} %, mean of exp(-dH) {report['exp_minus_delta_h']:.4f}"
        )
    if report["mean_plaquette"] is not None:
        error = report["mean_plaquette_error"]
        width = "" if error is None else f" ± {error:.6f}"
        screen.print(f"mean of the second half: {report['mean_plaquette']:.6f}{width}")


def _keep(options: Thermalize, group: Group) -> None:
    """Generate an ensemble. Collective."""
    folder, settings = options.output or "", options.settings()
    start = None if options.extent is not None else read_gauge(options.start, group, options.grid)[1]
    updates = options.last - options.first
    recipe = recipe_of(settings, options.first, start)
    ensemble = Ensemble(
        folder, recipe, options.first, updates, options.keep, options.every, options.save_every
    )
    what = "trajectory" if options.is_hmc else "sweep"
    total = ensemble.numbers[-1] - options.first
    with progress(counted(2, what)[2:], total=total) as advance:
        gauge, lines, before = make_ensemble(ensemble, group, options.grid, advance)
    plaquettes = [line["plaquettes"]["all"] for line in lines]
    report = _report(gauge, Checkpoint(settings, options.first + total), options.first, None)
    report |= {"history": plaquettes, "resumed_from": before or None, "configurations": lines}
    report["mean_plaquette"], report["mean_plaquette_error"] = mean_of_second_half(plaquettes)
    if own_rank() != 0:
        return
    screen = console(options.json)
    if before:
        screen.print(f"resumed from {folder}: {counted(before, 'configuration')} there before")
    _show(screen, report, f"{counted(len(lines), 'configuration')} in {folder}, the last one")
    write_json(options.json, report)


def thermalize(options: Thermalize) -> None:
    """Generate a quenched gauge field of the Wilson action, by heat bath with over-relaxation or by hybrid Monte Carlo.

    The same seed gives the same field, bit for bit, on every grid of ranks. With --checkpoint an interrupted run
    resumes when the same command is given again, and ends with the same field as an uninterrupted run. With --keep the
    command makes an ensemble, and resumes it, too: a folder of configurations, with a line of JSON for each in
    configurations.jsonl. The header of an ILDG file is its recipe for `onehop lattice reproduce`.
    """
    options.check()
    ensure_ranks(options.ranks)
    group = Group.world()
    if options.keep:
        _keep(options, group)
        return
    settings, file = options.settings(), options.checkpoint
    kept = read_checkpoint(file, group, options.grid, settings, options.first) if file else None
    start = None
    if kept is None:
        gauge, start = start_field(settings, group, options.grid)
        state = Checkpoint(settings, options.first)
        if start is not None:
            say_about(start, options.json)
    else:
        gauge, state = kept
    resumed = state.done if kept else None
    if state.done > options.last:
        raise BadInput(
            f"{file}: expected a checkpoint after at most {options.last} updates (--first plus "
            f"{'--trajectories' if options.is_hmc else '--sweeps'}), found one after {state.done}; ask for more, or "
            "name another file"
        )
    if options.output is not None or file is not None:
        require_memory_to_write(gauge)
    what = "trajectory" if options.is_hmc else "sweep"
    with progress(counted(2, what)[2:], total=max(options.last - state.done, 0)) as advance:
        _finish(options, gauge, state, advance)
    if options.output is not None:
        is_ildg = check_gauge_target(options.output, **options.how()) == "ildg"
        recipe = recipe_of(settings, options.first, start)
        note = recipe_text(Checkpoint(recipe, state.done)) if is_ildg and (start or options.extent) else ""
        write_gauge(options.output, gauge, **options.how(), note=note)
    report = _report(gauge, state, options.first, resumed)
    if own_rank() != 0:
        return
    screen = console(options.json)
    if resumed is not None:
        screen.print(f"resumed from {file}: {resumed} done before, {state.done - resumed} now")
    _show(screen, report, f"{counted(state.done - options.first, what)} at beta = {options.beta:g}")
    write_json(options.json, report)
