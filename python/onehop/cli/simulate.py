"""`onehop simulate`: predict how long a schedule takes on a machine."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onehop.cli.common import JsonOptions, RowsOptions, console, progress, since_last, write_json
from onehop.cli.schedule import halo_keywords, load_schedule, parse_dtype
from onehop.cli.screen import Table, coloured
from onehop.cli.waiting import waiting
from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.input_file import read_json
from onehop.machine import (
    Machine,
    RailAssignment,
    Simulation,
    Traffic,
    allreduce_traffic,
    broadcast_traffic,
    goal,
    halo_traffic,
    load_machine,
    permutation_traffic,
    simulate,
    trace_rounds,
    traffic_of,
)
from onehop.machine.reader import machine_path, parse_machine
from onehop.machine.simulate import SimulateOptions
from onehop.machine.traffic_rails import RAIL_RULES, host_level, hosts_of_ranks, rails_from_json
from onehop.options import LARGEST_INT, LARGEST_SIZE, argument, file_option, option
from onehop.output import write_file
from onehop.schedule import HaloOptions
from onehop.text import bytes_text, counted, rate_text, seconds_text

# The options of each pattern.
_PATTERNS = {
    "halo": ("grid", "extents", "width", "periodic", "corners", "fields", "dtype", "codec"),
    "allreduce": ("allreduce_ranks", "elements", "algorithm", "dtype"),
    "broadcast": ("allreduce_ranks", "elements", "dtype"),
    "permutation": ("bits", "local", "swap", "permutation", "dtype", "codec"),
    "trace": ("trace", "allreduce_ranks", "algorithm", "dtype", "codec"),
}
_LARGEST_BITS = 62


@dataclass(kw_only=True)
class Simulate(SimulateOptions, HaloOptions, RowsOptions, JsonOptions):
    what: str = argument(
        "FILE|halo|allreduce|broadcast|permutation|trace",
        "Schedule as JSON (- reads stdin), a pattern that the options below describe, or the word trace.",
    )
    trace: str | None = argument(
        "TRACE",
        "trace: file in GOAL or of Chakra (.et or JSON); NAME.0.et stands for those of all ranks.",
        None,
    )
    machine: str | None = option(
        None,
        "Machine; `onehop machines` lists those installed.",
        metavar="NAME|FILE.toml",
        default="this one, as `onehop tune --machine-file` has measured it, or with the cores of two-core",
    )
    extents: tuple[int, ...] | None = option(
        None, "halo: shape of the global array.", "--extent", high=LARGEST_SIZE
    )
    grid: tuple[int, ...] | None = option(None, "halo: number of ranks per dimension.", high=LARGEST_INT)
    allreduce_ranks: int | None = option(
        None,
        "allreduce, broadcast, trace: number of ranks.",
        "-n",
        "--ranks",
        metavar="RANKS",
        low=1,
        high=LARGEST_INT,
    )
    elements: int | None = option(
        None, "allreduce, broadcast: length of the array.", low=0, high=LARGEST_SIZE
    )
    algorithm: str = option(
        "auto",
        "allreduce, trace: algorithm; auto: the one that onehop takes on these hosts.",
        choices=("auto", "by_host", "two_shot", "one_shot"),
    )
    bits: int | None = option(None, "permutation: bits of the index.", low=1, high=_LARGEST_BITS)
    local: int | None = option(
        None,
        "permutation: lowest bits of the index, which number elements within a rank.",
        low=0,
        high=_LARGEST_BITS,
    )
    swap: str | None = option(None, "permutation: pairs of bits that change places.", metavar="A:B,C:D")
    permutation: list[int] = option(
        [],
        "permutation: the bit that each bit of the index goes to.",
        metavar="A,B,...",
        separator=",",
        high=_LARGEST_BITS,
    )
    dtype: str | None = option(
        None,
        "NumPy dtype of an element: by default float64 (halo), float32, or complex128 (permutation). trace: of the "
        "numbers that --codec encodes.",
        metavar="TYPE",
    )
    map_file: str | None = option(
        None,
        "Place of every rank, from `onehop map -o` or as a list in JSON.",
        "--map",
        metavar="FILE",
    )
    rails: str | None = option(
        None,
        "Interface of each message: by_rank, round_robin, longest_first, optimum, cut, or a file of `onehop rails -o`. "
        "By default messages take the interfaces in turn.",
        metavar="RULE|FILE",
    )
    plot: str | None = file_option("Draw the time line of each rank and the load of each link.", "the plot")
    goal: str | None = file_option("Also write the schedule as GOAL, for LogGOPSim.", "the schedule as GOAL")


def _needed(options: Simulate, *names: str) -> None:
    """Check that the options that a pattern needs are given."""
    missing = [
        "--ranks" if name == "allreduce_ranks" else "--extent" if name == "extents" else f"--{name}"
        for name in names
        if getattr(options, name) is None
    ]
    if missing:
        raise BadInput(f"onehop simulate {options.what}: expected {' and '.join(missing)}, found none")


def _refuse_others(options: Simulate) -> None:
    """Refuse the options of other patterns."""
    own = _PATTERNS.get(options.what, ())
    for name in sorted({name for names in _PATTERNS.values() for name in names if name not in own}):
        for given in options.given([name]):
            patterns = " or ".join(pattern for pattern, names in _PATTERNS.items() if name in names)
            raise BadInput(f"expected {given} with the pattern {patterns} only, found it with {options.what}")


def _targets(options: Simulate, bits: int) -> list[int]:
    """Return the place that each bit goes to."""
    if (options.swap is None) == (not options.permutation):
        found = "neither" if options.swap is None else "both"
        raise BadInput(f"onehop simulate permutation: expected either --swap or --permutation, found {found}")
    if options.permutation:
        return options.permutation
    targets = list(range(bits))
    for pair in (options.swap or "").split(","):
        parts = pair.split(":")
        if len(parts) != 2 or not all(part.strip().isdecimal() and int(part) < bits for part in parts):
            raise BadInput(
                f"expected --swap as pairs of bits below {bits}, such as 0:17,1:18, found {options.swap!r}"
            )
        a, b = (int(part) for part in parts)
        targets[a], targets[b] = targets[b], targets[a]
    return targets


def _halo(options: Simulate) -> Traffic:
    _needed(options, "grid", "extents")
    keywords = halo_keywords(options, "float64")
    return halo_traffic(**{name: keywords[name] for name in _PATTERNS["halo"]})


def _collective(
    options: Simulate, machine: Machine, places: Sequence[int] | None, processors: int | None
) -> Traffic:
    _needed(options, "allreduce_ranks", "elements")
    ranks = options.allreduce_ranks or 0
    job = machine if places is not None and processors is None else machine.job(processors or ranks)
    hosts = hosts_of_ranks(job, range(ranks) if places is None else places)
    dtype = parse_dtype(options.dtype, "float32")
    if options.what == "broadcast":
        return broadcast_traffic(options.elements or 0, hosts=hosts[:ranks], dtype=dtype)
    return allreduce_traffic(
        ranks, options.elements or 0, dtype=dtype, algorithm=options.algorithm, hosts=hosts
    )


def _permutation(options: Simulate) -> Traffic:
    _needed(options, "bits", "local")
    return permutation_traffic(
        options.bits,
        local=options.local,
        permutation=_targets(options, options.bits or 0),
        dtype=parse_dtype(options.dtype, "complex128"),
        codec=options.codec,
    )


def _trace(options: Simulate, machine: Machine) -> tuple[Traffic, list[float]]:
    """Return the messages of a trace, and the times of its calculations."""
    if options.compute is not None:
        raise BadInput("expected no --compute with a trace, which has times of its own")
    if options.trace is None:
        raise BadInput("onehop simulate trace: expected the file of the trace, found none")
    return trace_rounds(
        options.trace,
        options.allreduce_ranks,
        codec=options.codec,
        dtype=parse_dtype(options.dtype, "float32"),
        algorithm=options.algorithm,
        machine=machine,
    )


def _traffic(
    options: Simulate, machine: Machine, places: Sequence[int] | None, processors: int | None
) -> Traffic:
    """Return the messages of a pattern with the command's options, or of the schedule in a file."""
    if options.what == "halo" and options.grid is not None:
        ranks = math.prod(options.grid)
        if ranks > machine.processors:
            machine.job(ranks)  # which refuses them, before millions of messages are listed
    if options.what in ("allreduce", "broadcast"):
        return _collective(options, machine, places, processors)
    patterns = {"halo": _halo, "permutation": _permutation}
    make = patterns.get(options.what)
    return traffic_of(load_schedule(options.what)) if make is None else make(options)


def _show(simulation: Simulation, rows: int, json_target: str | None) -> None:
    screen = console(json_target)
    table = Table("round", "messages", "bytes", "predicted", title="Rounds")
    for number, one in enumerate(simulation.rounds[: rows or None]):
        table.add_row(number, f"{one.messages:,}", bytes_text(one.bytes), seconds_text(one.seconds))
    screen.print(table)
    if rows and len(simulation.rounds) > rows:
        screen.print(f"... and {len(simulation.rounds) - rows} more (--rows 0 shows all)")
    levels = Table("level", "bytes", title="Bytes by level")
    for name, number in simulation.bytes_by_level.items():
        levels.add_row(name, bytes_text(number))
    screen.print(levels)
    links = Table("link", "bytes", "bandwidth", "busy", "links like it", title="Busiest links")
    for link in simulation.links[: min(rows or 10, 10)]:
        busy = link.seconds / simulation.seconds if simulation.seconds else 0.0
        links.add_row(
            link.name,
            bytes_text(link.bytes),
            rate_text(link.bandwidth),
            f"{100 * busy:.0f} %",
            f"{link.alike:,}",
        )
    screen.print(links)
    screen.print(
        f"{simulation.schedule} of {counted(simulation.ranks, 'rank')} on {simulation.machine}: "
        f"{coloured(seconds_text(simulation.seconds), 'bold')} predicted; the simulation took "
        f"{seconds_text(simulation.seconds_to_simulate)}"
    )


def this_machine() -> Machine:
    """Return the machine on which this process runs, as `tune` has kept it, or with the numbers of two-core."""
    from onehop.tune.machine_file import kept_file

    cores = usable_cores()
    with contextlib.suppress(BadInput, OSError, RuntimeError):
        kept = load_machine(kept_file())
        if kept.processors == cores:
            return kept
    text = (
        machine_path("two-core").read_text(encoding="utf-8").replace("extents = [2]", f"extents = [{cores}]")
    )
    return parse_machine(text, "this machine (cores as of two-core)", "this machine")


def simulate_command(options: Simulate) -> None:
    """Predict how long a schedule takes on a machine, without a network."""
    _refuse_others(options)
    described = this_machine() if options.machine is None else load_machine(options.machine)
    file = options.map_file
    places, processors = (None, None) if file is None else read_map(file, described)
    with waiting("listing messages"), naming(file):
        times: Any = options.compute
        if options.what == "trace":
            traffic, times = _trace(options, described)
        else:
            traffic = _traffic(options, described, places, processors)
        if processors is not None:
            described = described.job(processors)
    program = None
    if options.goal is not None:
        listed = times if isinstance(times, list) else [times or 0] * traffic.rounds
        program = goal(traffic, compute_ns=[round(time * 1e9) for time in listed])
    keywords: dict[str, Any] = options.part(SimulateOptions) | {
        "ranks": places,
        "compute": times,
        "rails": read_rails(options.rails, described, traffic.ranks, mapped=places is not None),
    }
    with waiting(None), progress("simulating", 1) as advance, naming(file):
        result = simulate(traffic, described, **keywords, progress=since_last(advance))
    _show(result, options.rows, options.json)
    if options.goal is not None and program is not None:
        write_file(options.goal, program, "the schedule as GOAL")
    if options.plot is not None:
        from onehop.machine.plot import plot_simulation

        plot_simulation(result, options.plot)
    write_json(options.json, json.loads(result.to_json()))


def read_map(file: str, machine: Machine) -> tuple[list[int], int | None]:
    """Read the map of `--map`: the place of every rank, and the number of processors of the job.

    Places are counted on the part of the machine that a job of so many processors gets; None: on the whole machine. A
    map with hosts must be for this machine. Raises BadInput.
    """
    expected = (
        "a list of the places of all ranks, such as [0, 2, 1, 3], or a map that `onehop map -o` has written"
    )
    found = read_json(file, expected, f"--map {file}")
    places = found.get("places") if isinstance(found, dict) else found
    processors = found.get("processors") if isinstance(found, dict) else None
    if (
        not isinstance(places, list)
        or not places
        or not all(type(one) is int and 0 <= one <= LARGEST_SIZE for one in places)
    ):
        raise BadInput(f"--map {file}: expected {expected}, found {json.dumps(found)[:60]}")
    if processors is not None and (type(processors) is not int or not 0 < processors <= LARGEST_SIZE):
        raise BadInput(
            f"--map {file}: expected processors as a number above 0, found {json.dumps(processors)[:60]}"
        )
    if isinstance(found, dict):
        _check_hosts(found, file, machine)
    return places, processors


def _check_hosts(found: dict[str, Any], file: str, machine: Machine) -> None:
    """Check that a map is for hosts as the machine has them."""
    processors = found.get("processors")
    expected: dict[str, object] = {}
    if found.get("machine") is not None:
        expected["machine"] = machine.name
    elif processors is not None:
        with naming(file):
            job = machine.job(processors)
        size = host_level(job)[1]
        expected = {"hosts": job.processors // size, "per_host": size}
    for key, value in expected.items():
        if key in found and found[key] != value:
            raise BadInput(
                f"--map {file}: expected a map for {key} {value}, found {json.dumps(found[key])[:60]}; make it with "
                f"`onehop map --machine {machine.name}`"
            )


def read_rails(
    text: str | None, machine: Machine, ranks: int, *, mapped: bool
) -> str | list[list[RailAssignment]] | None:
    """Return the value of --rails: the name of a rule, or the assignments in a file.

    The file must be for this machine, or for hosts of as many ranks; `mapped` says that ranks have a map, so hosts are
    not compared. Raises BadInput.
    """
    if text is None or text in RAIL_RULES:
        return text
    wanted = f"a rule ({', '.join(RAIL_RULES)}), or rails that `onehop rails --schedule -o` has written"
    found = read_json(text, wanted, f"--rails {text}")
    if isinstance(found, dict):
        expected: dict[str, object] = {"ranks": ranks}
        if found.get("machine") is not None:
            expected["machine"] = machine.name
        if not mapped:
            expected["hosts"] = max(hosts_of_ranks(machine.job(ranks), range(ranks))) + 1
        for key, value in expected.items():
            if key in found and found[key] != value:
                raise BadInput(
                    f"--rails {text}: expected rails for {key} {value}, found {json.dumps(found[key])[:60]}; "
                    "make them with `onehop rails --schedule` and the options of this simulation"
                )
    return rails_from_json(found, f"--rails {text}")


@contextlib.contextmanager
def naming(map_file: str | None) -> Iterator[None]:
    """Name the file of --map in errors about the places of ranks."""
    try:
        yield
    except BadInput as error:
        about = ("the map of ranks: ", "expected 1 to ")
        if map_file is None or not str(error).startswith(about):
            raise
        raise BadInput(f"--map {map_file}: {str(error).removeprefix(about[0])}") from error
