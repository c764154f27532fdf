"""`onehop lattice smear`: smooth a gauge field, or compute the fat and long links of improved staggered quarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onehop.cli.common import console, own_rank, progress, write_json
from onehop.cli.lattice.common import (
    FileOptions,
    GaugeOptions,
    averages,
    boundary_option,
    flow_action_option,
    naik_epsilon_option,
    note_of,
    phases_option,
    projection_option,
    say_about,
)
from onehop.error import BadInput
from onehop.group import Group
from onehop.lattice import Gauge, field_strength, gradient_flow, read_gauge, smearing, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.lattice.flow import FLOW_STEP, flow_steps
from onehop.lattice.phases import PHASES, with_staggered_phases
from onehop.launch import ensure_ranks
from onehop.options import LARGEST_INT, file_option, option
from onehop.text import alternatives

SMOOTH = ("stout", "ape", "hyp", "flow")
TAKEN_BY: dict[str, tuple[str, ...]] = {
    "rho": ("stout",),
    "alpha": ("ape", "hyp"),
    "steps": ("stout", "ape", "hyp"),
    "space_only": ("stout", "ape", "hyp"),
    "time": ("flow",),
    "flow_action": ("flow",),
    "u0": tuple(kind for kind in smearing.FAT_LINKS if kind != "hisq"),
    "naik_epsilon": ("hisq",),
    "projection": ("hisq",),
    "phases": tuple(smearing.FAT_LINKS),
    "boundary": tuple(smearing.FAT_LINKS),
}

# Up to these weights no mode of a smooth field grows: alpha of ape, rho of stout, in three and four directions.
STABLE = {"ape": "between 0 and 0.66", "stout": "between 0 and 0.125", "hyp": f"such as {smearing.HYP_ALPHA}"}
ROUNDING = 1e-9

NO_PHASES = "links without the phases of staggered quarks"


@dataclass(kw_only=True)
class Smear(FileOptions, GaugeOptions):
    kind: str = option("stout", "Kind of smearing, or of fat links.", choices=(*SMOOTH, *smearing.FAT_LINKS))
    rho: float = option(0.1, "Weight of the staples (stout only).")
    alpha: list[float] | None = option(
        None,
        "Weight of the staples: one for ape; for hyp three, of the outermost level first.",
        default="0.5 for ape, 0.75,0.6,0.3 for hyp",
        metavar="A,B,...",
        separator=",",
    )
    steps: int = option(1, "Number of smearing steps (stout, ape and hyp only).", low=0, high=LARGEST_INT)
    time: float = option(1.0, "Flow time (flow only).", low=0)
    flow_action: str = flow_action_option()
    space_only: bool = option(
        False, "Smear only spatial links, with spatial staples (stout, ape and hyp only)."
    )
    u0: float = option(1.0, "Tadpole factor u0 (asqtad, fat7, fat5 and fat3 only).")
    naik_epsilon: float = naik_epsilon_option()
    projection: str = projection_option()
    phases: str | None = phases_option(
        None,
        "Multiply fat and long links with the staggered phases and the boundary in time, as `solve --fat` expects.",
        alone=PHASES[0],
    )
    boundary: str = boundary_option("Boundary in time (only with --phases).")
    output: str | None = file_option(
        "Write the smoothed field to FILE (stout, ape, hyp and flow only).", "the field", "-o", "--output"
    )
    fat: str | None = file_option("Write the fat links to FILE.", "the fat links")
    long: str | None = file_option("Write the long links to FILE.", "the long links")

    @property
    def weight(self) -> Any:
        """The argument of the function that smears."""
        if self.kind == "stout":
            return self.rho
        weights = self.alpha or ([0.5] if self.kind == "ape" else list(smearing.HYP_ALPHA))
        if len(weights) != (1 if self.kind == "ape" else 3):
            wanted = "one number" if self.kind == "ape" else "three numbers"
            raise BadInput(f"expected {wanted} in --alpha for {self.kind}, found {len(weights)}")
        return weights[0] if self.kind == "ape" else weights

    @property
    def files(self) -> list[str]:
        """The files that are written."""
        return [file for file in (self.output, self.fat, self.long) if file is not None]

    def check(self) -> None:
        """Check the options before anything is read."""
        self._check_files()
        for name, kinds in TAKEN_BY.items():
            if self.kind not in kinds:
                self.refuse((name,), f"is for --kind {alternatives(kinds)}, found {self.kind!r}")
        if not self.files:
            self.refuse(("file_format", "precision", "overwrite"), "is for a file that is written")
        if self.phases is None:
            self.refuse(
                ("boundary",), "goes with --phases, because links without phases contain no boundary signs"
            )
        if self.kind in ("ape", "hyp"):
            _ = self.weight
        if self.kind == "flow":
            flow_steps(self.time, FLOW_STEP)
        for file in self.files:
            check_gauge_target(file, **self.how())

    def _check_files(self) -> None:
        """Refuse files for links that this kind does not compute."""
        makes_fat = self.kind in smearing.FAT_LINKS
        if makes_fat and self.output is not None:
            raise BadInput(
                f"{self.kind} computes fat and long links: expected --fat and --long for its files, found --output"
            )
        if not makes_fat and (self.fat is not None or self.long is not None):
            raise BadInput(
                f"{self.kind} computes one smooth field: expected --output for its file, found --fat or --long"
            )
        files = [Path(file).resolve() for file in (self.fat, self.long) if file is not None]
        if len(set(files)) < len(files):
            raise BadInput(f"expected two files for fat and long links, found {self.fat} for both")


def _write_fat_links(gauge: Gauge, options: Smear) -> dict[str, float]:
    kind, phases = options.kind, options.phases
    if kind == "hisq":
        how: dict[str, Any] = {"naik_epsilon": options.naik_epsilon, "projection": options.projection}
        made = smearing.hisq_links(gauge, **how)
    else:
        made = smearing.fat_links(gauge, kind, u0=options.u0)
    holder = Gauge(
        gauge.group, gauge.geometry.extents, gauge.geometry.grid, map=gauge.geometry.rank_at or None
    )
    traces = {}
    for name, links, file, length in (
        ("fat", made.fat, options.fat, 1),
        ("long", made.long_links, options.long, 3),
    ):
        holder.set_links(links)
        traces[f"{name}_link_trace"] = holder.link_trace()
        if file is None:
            continue
        note = NO_PHASES
        if phases is not None:
            holder.set_links(
                with_staggered_phases(
                    links,
                    gauge.geometry,
                    gauge.group.rank,
                    length=length,
                    antiperiodic=options.boundary == "antiperiodic",
                    phases=phases,
                )
            )
            note = f"links with {phases} phases, {options.boundary} in time"
        is_ildg = check_gauge_target(file, **options.how()) == "ildg"
        write_gauge(file, holder, **options.how(), note=note if is_ildg else "")
    return traces


def _smooth(gauge: Gauge, options: Smear) -> None:
    kind = options.kind
    if kind == "flow":
        with progress("flow", total=flow_steps(options.time, FLOW_STEP)) as advance:
            how = {"every": 1 << 30, "action": options.flow_action}
            flow, _ = gradient_flow(gauge, options.time, **how, progress=lambda _n: advance(1))
            flow.copy_to(gauge)
        return
    weight = options.weight
    smear_once = {"ape": smearing.ape, "hyp": smearing.hyp, "stout": smearing.stout}[kind]
    text = ",".join(f"{one:g}" for one in (weight if kind == "hyp" else [weight]))
    before = gauge.plaquettes()
    with progress("steps", total=options.steps) as advance:
        for _ in range(options.steps):
            smear_once(gauge, weight, space_only=options.space_only)
            advance(1)
    value, site, direction = gauge.deviation()
    if not value <= max(1e-3, 10 * options.tolerance):
        raise BadInput(
            f"expected smeared links in SU(3), found one that deviates by {value:.2g} at (x, y, z, t) = {site} in "
            f"direction {'xyzt'[direction]} with a weight of {text}; take a smaller weight"
        )
    after = gauge.plaquettes()
    old, new = (before.space, after.space) if options.space_only else (before.all, after.all)
    if new < old - ROUNDING:
        raise BadInput(
            f"expected {kind} smearing to smooth the field, so that its {'spatial ' if options.space_only else ''}"
            f"plaquette grows, found that it fell from {old:.6g} to {new:.6g} with a weight of {text}; take a "
            f"weight {STABLE[kind]}"
        )


def smear(options: Smear) -> None:
    """Smooth a gauge field (stout, ape, hyp, flow), or compute its fat and long links (hisq, asqtad, fat7 ...).

    Fat and long links contain no staggered phases unless --phases is given. `onehop lattice solve` computes the links
    of its actions itself.
    """
    options.check()
    ensure_ranks(options.ranks)
    gauge, found = read_gauge(
        options.file, Group.world(), options.grid, tolerance=options.tolerance, **options.reading()
    )
    say_about(found, options.json)
    report: dict[str, object] = {
        "file": options.file,
        "kind": options.kind,
        "extent": list(found.extents),
        "verified": list(found.verified),
    }
    if options.kind in smearing.FAT_LINKS:
        report |= _write_fat_links(gauge, options)
    else:
        _smooth(gauge, options)
        report["plaquette_before"] = found.plaquettes.all
        report |= averages(gauge.plaquettes(), gauge.link_trace())
        report["charge"] = field_strength(gauge).charge
        if options.output is not None:
            write_gauge(options.output, gauge, **options.how(), note=note_of(found))
    if own_rank() != 0:
        return
    screen = console(options.json)
    for name, value in report.items():
        if isinstance(value, float):
            screen.print(f"{name.replace('_', ' ')}: {value:.9g}")
    write_json(options.json, report)
