"""`onehop simulate`: predict how long a schedule takes on a machine."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table

from onehop.cli.common import (
    LARGEST_INT,
    LARGEST_SIZE,
    JsonOption,
    check_plot,
    console,
    given,
    parse_numbers,
    progress,
    write_json,
)
from onehop.cli.map_file import naming, read_map, read_rails
from onehop.cli.schedule import load_schedule, parse_dtype, parse_periodic, parse_widths
from onehop.error import BadInput
from onehop.machine import (
    Machine,
    Simulation,
    Traffic,
    allreduce_traffic,
    goal,
    halo_traffic,
    load_machine,
    permutation_traffic,
    simulate,
    traffic_of,
)
from onehop.output import check_file_target, write_file
from onehop.text import bytes_text, counted, seconds_text

# The options of each pattern.
_PATTERNS = {
    "halo": ("grid", "extents", "width", "periodic", "corners", "fields", "dtype", "codec"),
    "allreduce": ("ranks", "elements", "algorithm", "dtype"),
    "permutation": ("bits", "local", "swap", "permutation", "dtype", "codec"),
}
_LARGEST_BITS = 62
_ALGORITHMS = ("two_shot", "one_shot")


def _needed(what: str, **options: Any) -> None:
    """Check that the options that a pattern needs are given."""
    missing = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is None]
    if missing:
        raise BadInput(f"onehop simulate {what}: expected {' and '.join(missing)}, found none")


def _refuse_others(context: typer.Context, what: str) -> None:
    """Refuse the options of patterns other than `what`."""
    own = _PATTERNS.get(what, ())
    others = sorted({f"--{name}" for names in _PATTERNS.values() for name in names if name not in own})
    for option in given(context, others):
        patterns = " or ".join(pattern for pattern, names in _PATTERNS.items() if option[2:] in names)
        raise BadInput(f"expected {option} with the pattern {patterns} only, found it with {what}")


def _permutation(bits: int, local: int, swap: str | None, permutation: str | None) -> list[int]:
    if (swap is None) == (permutation is None):
        found = "neither" if swap is None else "both"
        raise BadInput(f"onehop simulate permutation: expected either --swap or --permutation, found {found}")
    if permutation is not None:
        return parse_numbers(permutation, "--permutation", largest=_LARGEST_BITS)
    if not 0 < bits <= _LARGEST_BITS:
        raise BadInput(f"expected --bits from 1 to {_LARGEST_BITS}, found {bits}")
    targets = list(range(bits))
    for pair in (swap or "").split(","):
        parts = pair.split(":")
        if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) < bits for part in parts):
            raise BadInput(
                f"expected --swap as pairs of bits below {bits}, such as 0:17,1:18, found {swap!r}"
            )
        a, b = (int(part) for part in parts)
        targets[a], targets[b] = targets[b], targets[a]
    return targets


def _halo(options: Mapping[str, Any]) -> Traffic:
    _needed("halo", grid=options["grid"], extents=options["extents"])
    return halo_traffic(
        extents=parse_numbers(options["extents"], "--extents", "x"),
        grid=parse_numbers(options["grid"], "--grid", "x", LARGEST_INT),
        width=parse_widths(options["width"]),
        periodic=parse_periodic(options["periodic"]),
        corners=options["corners"],
        dtype=parse_dtype(options["dtype"], "float64"),
        fields=options["fields"],
        codec=options["codec"],
    )


def _allreduce(options: Mapping[str, Any]) -> Traffic:
    _needed("allreduce", ranks=options["ranks"], elements=options["elements"])
    algorithm = options["algorithm"]
    if algorithm not in _ALGORITHMS:
        raise BadInput(f"expected --algorithm {' or '.join(_ALGORITHMS)}, found {algorithm!r}")
    return allreduce_traffic(
        options["ranks"],
        options["elements"],
        dtype=parse_dtype(options["dtype"], "float32"),
        algorithm=algorithm,
    )


def _permutation_of_bits(options: Mapping[str, Any]) -> Traffic:
    bits, local = options["bits"], options["local"]
    _needed("permutation", bits=bits, local=local)
    return permutation_traffic(
        bits,
        local=local,
        permutation=_permutation(bits, local, options["swap"], options["permutation"]),
        dtype=parse_dtype(options["dtype"], "complex128"),
        codec=options["codec"],
    )


def _traffic(what: str, options: Mapping[str, Any], machine: Machine) -> Traffic:
    """Return the messages of a pattern with the command's options, or of the schedule in a file."""
    if what == "halo" and options["grid"] is not None:
        ranks = math.prod(parse_numbers(options["grid"], "--grid", "x", LARGEST_INT))
        if ranks > machine.processors:
            machine.job(ranks)  # which refuses them, before millions of messages are listed
    patterns = {"halo": _halo, "allreduce": _allreduce, "permutation": _permutation_of_bits}
    return patterns[what](options) if what in patterns else traffic_of(load_schedule(what))


def _steps(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Return a function of the fraction that is done; it calls `advance` with what was added."""
    done = 0.0

    def report(fraction: float) -> None:
        nonlocal done
        advance(fraction - done)
        done = fraction

    return report


def _show(simulation: Simulation, rows: int, json_target: str | None) -> None:
    screen = console(json_target)
    table = Table("round", "messages", "bytes", "predicted", title="Rounds", title_justify="left")
    for number, one in enumerate(simulation.rounds[: rows or None]):
        table.add_row(str(number), f"{one.messages:,}", bytes_text(one.bytes), seconds_text(one.seconds))
    screen.print(table)
    if rows and len(simulation.rounds) > rows:
        screen.print(f"... and {len(simulation.rounds) - rows} more (--rows 0 shows all)")
    levels = Table("level", "bytes", title="Bytes by level", title_justify="left")
    for name, number in simulation.bytes_by_level.items():
        levels.add_row(name, bytes_text(number))
    screen.print(levels)
    links = Table(
        "link", "bytes", "bandwidth", "busy", "links like it", title="Busiest links", title_justify="left"
    )
    for link in simulation.links[: min(rows or 10, 10)]:
        busy = link.seconds / simulation.seconds if simulation.seconds else 0.0
        links.add_row(
            link.name,
            bytes_text(link.bytes),
            f"{link.bandwidth / 1e9:.4g} GB/s",
            f"{busy:.0%}",
            f"{link.alike:,}",
        )
    screen.print(links)
    screen.print(
        f"{simulation.schedule} of {counted(simulation.ranks, 'rank')} on {simulation.machine}: "
        f"[bold]{seconds_text(simulation.seconds)}[/] predicted, in {seconds_text(simulation.seconds_to_simulate)}"
    )


def simulate_command(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|halo|allreduce|permutation",
            help="Schedule as JSON (- reads stdin), or a pattern that the options below describe.",
        ),
    ],
    machine: Annotated[
        str, typer.Option(metavar="NAME|FILE.toml", help="Machine; `onehop machines` lists those installed.")
    ],
    grid: Annotated[
        str | None, typer.Option(metavar="AxBxC", help="halo: number of ranks per dimension.")
    ] = None,
    extents: Annotated[
        str | None, typer.Option(metavar="AxBxC", help="halo: shape of the global array.")
    ] = None,
    width: Annotated[
        str, typer.Option(metavar="W", help="halo: number of ghost layers, as for schedule halo.")
    ] = "1",
    periodic: Annotated[str, typer.Option(metavar="YES|NO", help="halo: periodic boundaries.")] = "yes",
    corners: Annotated[
        bool, typer.Option("--corners", help="halo: also exchange edges and corners.")
    ] = False,
    fields: Annotated[
        int, typer.Option(min=1, max=1024, help="halo: number of arrays that are exchanged together.")
    ] = 1,
    ranks: Annotated[
        int | None, typer.Option("-n", "--ranks", min=1, max=LARGEST_INT, help="allreduce: number of ranks.")
    ] = None,
    elements: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SIZE, help="allreduce: length of the array.")
    ] = None,
    algorithm: Annotated[
        str, typer.Option(metavar="|".join(_ALGORITHMS), help="allreduce: algorithm.")
    ] = "two_shot",
    bits: Annotated[int | None, typer.Option(help="permutation: bits of the index.")] = None,
    local: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=_LARGEST_BITS,
            help="permutation: lowest bits of the index, which number elements within a rank.",
        ),
    ] = None,
    swap: Annotated[
        str | None, typer.Option(metavar="A:B,C:D", help="permutation: pairs of bits that change places.")
    ] = None,
    permutation: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="permutation: the bit that each bit of the index goes to."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="NumPy dtype of an element: by default float64 (halo), float32, or complex128 (permutation)."
        ),
    ] = None,
    codec: Annotated[str, typer.Option(help="halo, permutation: encoding of the messages.")] = "raw",
    map_file: Annotated[
        str | None,
        typer.Option(
            "--map", metavar="FILE", help="Place of every rank, from `onehop map -o` or as a list in JSON."
        ),
    ] = None,
    rails: Annotated[
        str | None,
        typer.Option(
            metavar="RULE|FILE",
            help="Interface of each message: by_rank, round_robin, longest_first, optimum, cut, or a file of `onehop "
            "rails -o`. By default messages take the interfaces in turn.",
        ),
    ] = None,
    compute: Annotated[
        float,
        typer.Option(
            min=0,
            max=1e6,
            metavar="SECONDS",
            help="Time that every rank computes between start and finish of a round.",
        ),
    ] = 0,
    chunk: Annotated[
        int,
        typer.Option(
            min=0,
            max=LARGEST_SIZE,
            metavar="BYTES",
            help="Pack and unpack messages in chunks of this size; 0: do not model packing.",
        ),
    ] = 0,
    slot: Annotated[
        int,
        typer.Option(
            min=0,
            max=LARGEST_SIZE,
            metavar="BYTES",
            help="Size of a slot, through which longer messages move; 0: no limit.",
        ),
    ] = 0,
    slots: Annotated[int, typer.Option(min=1, max=LARGEST_INT, help="Number of slots of a channel.")] = 2,
    contention: Annotated[
        bool,
        typer.Option(
            "--contention/--no-contention", help="Let messages share links, or let each flow by itself."
        ),
    ] = True,
    accuracy: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.5,
            help="Largest relative time step between updates of the rates when thousands of messages are in "
            "flight; 0: update at every change.",
        ),
    ] = 0.01,
    rows: Annotated[int, typer.Option(min=0, help="Maximum number of rows to show; 0 shows all.")] = 20,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw the time line of each rank and the load of each link."),
    ] = None,
    goal_file: Annotated[
        str | None,
        typer.Option("--goal", metavar="FILE", help="Also write the schedule as GOAL, for LogGOPSim."),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Predict how long a schedule takes on a machine, without a network."""
    _refuse_others(context, what)
    check_plot(plot)
    if goal_file is not None:
        check_file_target(goal_file, "--goal")
    described = load_machine(machine)
    places, processors = (None, None) if map_file is None else read_map(map_file, described)
    traffic = _traffic(what, context.params, described)
    if processors is not None:
        with naming(map_file):
            described = described.job(processors)
    program = None if goal_file is None else goal(traffic, compute_ns=round(compute * 1e9))
    assignments = read_rails(rails, described, traffic.ranks, mapped=places is not None)
    with progress("simulating", 1) as advance, naming(map_file):
        result = simulate(
            traffic,
            described,
            ranks=places,
            rails=assignments,
            compute=compute,
            chunk_bytes=chunk,
            slot_bytes=slot,
            slots=slots,
            contention=contention,
            accuracy=accuracy,
            progress=_steps(advance),
        )
    _show(result, rows, json_target)
    if goal_file is not None and program is not None:
        write_file(goal_file, program, "the schedule as GOAL")
    if plot is not None:
        from onehop.machine.plot import plot_simulation

        plot_simulation(result, plot)
    write_json(json_target, json.loads(result.to_json()))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate_command)
