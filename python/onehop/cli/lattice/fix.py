"""`onehop lattice fix`: a gauge field in Coulomb or Landau gauge."""

from __future__ import annotations

from dataclasses import dataclass

from onehop.cli.common import console, own_rank, progress, since_last, write_json
from onehop.cli.lattice.common import FileOptions, GaugeOptions, averages, note_of, say_about
from onehop.group import Group
from onehop.lattice import fix_gauge, read_gauge, write_gauge
from onehop.lattice.files import check_gauge_target
from onehop.lattice.fixing import CONDITIONS, FixingOptions
from onehop.launch import ensure_ranks
from onehop.options import option


@dataclass(kw_only=True)
class Fix(FixingOptions, FileOptions, GaugeOptions):
    output: str = option(
        ..., "Write the fixed field to FILE.", "-o", "--output", metavar="FILE", writes="the field"
    )
    gauge: str = option("coulomb", "Gauge: all directions (landau), or all but time.", choices=CONDITIONS)


def fix(options: Fix) -> None:
    """Fix a gauge field to Coulomb or Landau gauge by over-relaxation, and write it.

    If theta does not become small enough, the command fails and writes nothing.
    """
    check_gauge_target(options.output, **options.how())
    ensure_ranks(options.ranks)
    gauge, found = read_gauge(
        options.file, Group.world(), options.grid, tolerance=options.tolerance, **options.reading()
    )
    say_about(found, options.json)
    with progress("sweeps") as advance:
        tell = since_last(advance)
        how = options.part(FixingOptions)
        state = fix_gauge(gauge, options.gauge, progress=lambda now: tell(now.sweeps), **how)
    plaquettes, trace = gauge.plaquettes(), gauge.link_trace()
    write_gauge(options.output, gauge, **options.how(), note=note_of(found))
    if own_rank() != 0:
        return
    console(options.json).print(
        f"{options.output}: {options.gauge} gauge after {state.sweeps} sweeps, theta {state.theta:.3g}, mean trace "
        f"{state.functional:.9g}"
    )
    report = {"file": options.file, "output": options.output, "gauge": options.gauge}
    write_json(options.json, report | state._asdict() | averages(plaquettes, trace))
