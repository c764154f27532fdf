"""`onehop quantum plan`: the memory, exchanges and time that a circuit would take, without running it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from onehop._core import __version__
from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.quantum.choices import choices_of, choices_table
from onehop.cli.quantum.memory import (
    GRADIENT_STATES,
    GRADIENT_SWEEPS,
    one_line,
    plan_run,
    remedy,
    with_gradient,
)
from onehop.cli.quantum.profile import forms
from onehop.cli.screen import Screen, Table, coloured
from onehop.cli.waiting import waiting
from onehop.error import BadInput
from onehop.group import Group
from onehop.machine import Machine, load_machine
from onehop.options import argument, option
from onehop.predict import CircuitPrediction, predict_circuit
from onehop.predict.common import check_ranks, ranks_per_host, ranks_per_unit
from onehop.quantum import Circuit, CircuitPlan, NoiseModel
from onehop.quantum.circuit_plan import LARGEST_STATE, lower_bounds, predict
from onehop.quantum.precision import PRECISIONS, require_plain
from onehop.quantum.run.serialization import read_circuit
from onehop.quantum.simulation_options import SimulationOptions
from onehop.quantum.simulator import clifford_of
from onehop.text import bytes_text, counted, digits_text, ranges, seconds_text


@dataclass(kw_only=True)
class Plan(JsonOptions):
    file: str = argument("FILE", "OpenQASM 2 or 3 file.")
    ranks: int = option(
        1,
        "Number of ranks to plan for, a power of two. No rank is started.",
        *("-n", "--ranks"),
        metavar="RANKS",
        low=1,
    )
    per_host: int | None = option(
        None, "Number of ranks that share one machine.", metavar="RANKS", low=1, default="all"
    )
    hosts: int | None = option(
        None,
        "Number of hosts over which the ranks are divided equally: exchanges then stay inside a host where possible.",
        low=1,
        default="one, or those of --machine",
    )
    precision: str = option(
        "double",
        "Precision of an amplitude, as for `run`.",
        choices=PRECISIONS,
    )
    density: bool = option(False, "Plan for a density matrix: 4^n numbers instead of 2^n.")
    noise: str | None = option(
        None,
        "Noise model as for `run`, on a density matrix unless --trajectories is given.",
        metavar="SPEC",
    )
    trajectories: int | None = option(
        None, "Number of noisy state vectors, simulated one after the other.", low=1
    )
    gradient: bool = option(
        False,
        "Plan for derivatives by the adjoint method: up to three states of memory, and each pass and exchange three "
        "times.",
    )
    machine: str | None = option(
        None,
        "Predict the time on another machine, one rank a processor; `onehop machines` lists those installed.",
        metavar="NAME|FILE.toml",
    )
    passes: bool = option(False, "Also list the passes over memory, and the stages on --machine.")
    rows: int = option(20, "With --passes: largest number of rows of a table.", low=1)

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.trajectories is not None and (self.density or self.noise is None):
            raise BadInput("--trajectories needs --noise and does not work with --density")
        if self.gradient and (self.density or self.noise is not None or self.machine is not None):
            raise BadInput(
                "--gradient is for state vectors on this machine: leave out --density, --noise and --machine"
            )
        for name in ("density", "noise", "gradient"):
            if getattr(self, name):
                require_plain(self.precision, f"--{name}")
        if self.machine is not None and self.per_host is not None:
            raise BadInput("--per-host is for this machine; with --machine every processor has one rank")
        if self.hosts is None:
            return
        if self.per_host is not None:
            raise BadInput("--hosts and --per-host both divide the ranks; leave one of them out")
        if self.hosts > self.ranks or self.hosts & (self.hosts - 1):
            raise BadInput(
                f"expected --hosts to be a power of two of at most {counted(self.ranks, 'rank')}, found {self.hosts}"
            )


def _head(
    circuit_plan: CircuitPlan, circuit: Circuit, bounds: dict[str, float], seconds: float, machine: str | None
) -> str:
    """Say in three lines what a run needs, whether it fits, and how near it is to the bounds."""
    where = "" if machine is None else f" on {machine}"
    available = bytes_text(circuit_plan.memory_available)
    fits = f"it fits on this machine, which has {available}"
    if machine is not None:
        fits = f"it fits on {machine}, with {bytes_text(circuit_plan.memory_in_all)} in all"
    elif not circuit_plan.fits:
        fits = coloured("it does not fit", "bold red") + f" on this machine: {remedy(circuit_plan)}"
    gates = sum(one.kind not in ("measure", "reset") for one in circuit.operations)
    passes = f"{digits_text(circuit_plan.passes)} pass{'' if circuit_plan.passes == 1 else 'es'}"
    return (
        f"{one_line(circuit_plan, seconds, passes=False)}{where}\n{fits}\n"
        f"{counted(gates, 'gate')} in {passes} over memory (bound "
        f"{digits_text(bounds['passes_at_least'])}) and {counted(circuit_plan.exchanges, 'exchange')} (bound "
        f"{digits_text(bounds['exchanges_at_least'])})"
    )


def _table(circuit_plan: CircuitPlan, name: str, bounds: dict[str, float], here: bool) -> Table:
    """Tabulate a plan, with the bounds beside it; `here`: also what concerns this machine."""
    title = f"{name}: simulated as a {circuit_plan.kind}"
    if circuit_plan.parts:
        title += f", in {len(circuit_plan.parts)} separate states"
    table = Table("", ">predicted", ">bound", title=title)
    rows: dict[str, tuple[float, ...]] = {
        "exchanges": (circuit_plan.exchanges, bounds["exchanges_at_least"]),
        "passes over a rank's memory": (circuit_plan.passes, bounds["passes_at_least"]),
    }
    for what, numbers in rows.items():
        table.add_row(what, *map(digits_text, numbers))
    table.add_row("memory of a rank", bytes_text(circuit_plan.memory_per_rank))
    table.add_row("memory in all", bytes_text(circuit_plan.memory_in_all))
    sizes = {"bytes sent by each rank": circuit_plan.bytes_per_rank}
    if here and circuit_plan.ranks_per_host < circuit_plan.ranks:
        sizes |= {f"bytes {level}, all ranks": n for level, n in circuit_plan.bytes_by_level.items()}
    if circuit_plan.exchanges > 1:
        sizes["bytes in the largest exchange"] = max(circuit_plan.bytes_per_exchange)
    sizes["bytes if exchanged gate by gate"] = circuit_plan.baseline_bytes_per_rank
    if circuit_plan.one_swap_at_a_time_bytes_per_rank != circuit_plan.baseline_bytes_per_rank:
        sizes["bytes if swapped one at a time"] = circuit_plan.one_swap_at_a_time_bytes_per_rank
    for what, number in sizes.items() if circuit_plan.ranks > 1 else ():
        table.add_row(what, bytes_text(number))
    return table


def _folded(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield rows that begin with their number; neighbours that are equal otherwise become one, as "3-7"."""
    for cells, same in itertools.groupby(enumerate(rows, 1), lambda one: one[1]):
        numbers = [number for number, _ in same]
        yield ranges(numbers), *cells


def _show_prediction(screen: Screen, found: CircuitPrediction, machine: Machine, rows: int) -> None:
    """Print the predicted time on a machine: its parts, the bytes by level, and the stages."""
    share = 100 / found.predicted_seconds if found.predicted_seconds else 0
    table = Table("", ">", ">", title=f"on {machine.name}, one rank for each processor", show_header=False)
    table.add_row(
        counted(found.passes, "pass"), seconds_text(found.pass_seconds), f"{found.pass_seconds * share:.0f} %"
    )
    table.add_row(
        counted(found.exchanges, "exchange"),
        seconds_text(found.exchange_seconds),
        f"{found.exchange_seconds * share:.0f} %",
    )
    table.add_row("predicted time", seconds_text(found.predicted_seconds), "")
    table.add_row("bound", found.bound, "")
    table.add_section()
    table.add_row("bytes that a pass reads and writes", bytes_text(found.bytes_per_pass), "of each rank")
    for level, moved in found.bytes_by_level.items():
        table.add_row(f"bytes over level {level}", bytes_text(moved), "of all ranks")
    screen.print(table)
    if not found.counts_arithmetic:
        screen.print(
            f"only memory and messages count: the file of {machine.name} does not give the rate of multiply-adds",
        )
    if not rows:
        return
    headers = (">stage", ">exchange", "rank bits", "bound", ">passes", ">in passes")
    stages = Table(*headers, title="predicted stages")
    listed = list(
        _folded(
            (
                seconds_text(stage.exchange_seconds) if stage.rank_bits else "",
                ranges(list(stage.rank_bits)),
                stage.bound,
                str(stage.passes),
                seconds_text(stage.pass_seconds),
            )
            for stage in found.stages
        )
    )
    _print_rows(screen, stages, listed, rows)


def _print_rows(screen: Screen, table: Table, listed: list[tuple[str, ...]], rows: int) -> None:
    for cells in listed[:rows]:
        table.add_row(*cells)
    if len(listed) > rows:
        table.add_row("", f"{len(listed) - rows} more")
    screen.print(table)


def _show_passes(screen: Screen, stages: list[list[dict[str, Any]]], rows: int) -> None:
    """Print the groups of gates of each stage. The engine applies a group in one pass over the amplitudes."""
    title = "groups of gates on rank 0 (one pass over its memory for each group)"
    table = Table(">pass", ">stage", "as", "tile bits", ">sweeps", ">multiply-adds", title=title)
    table.caption = (
        "multiply-adds: per amplitude; gates are joined, and those that change no outcome left out"
    )
    cells = []
    for stage, groups in enumerate(stages, 1):
        for group in groups:
            what = forms(group) if group["tile_bits"] else "one operation in memory"
            work = (str(group["sweeps"]), digits_text(group["multiply_adds"]))
            cells.append((str(stage), what, ranges(group["tile_bits"]), *work))
    _print_rows(screen, table, list(_folded(cells)), rows)


# The attributes of a plan that are keys of the JSON.
_KEYS = (
    *(
        "qubits",
        "largest_state_qubits",
        "ranks",
        "precision",
        "kind",
        "fits",
        "memory_per_rank",
        "memory_in_all",
        "memory_available",
    ),
    *("operations", "exchanges", "bytes_per_rank", "bytes_per_exchange", "bytes_by_level", "passes"),
    *("baseline_bytes_per_rank", "one_swap_at_a_time_bytes_per_rank"),
)


def _prediction(found: CircuitPrediction) -> dict[str, Any]:
    """Return the prediction for JSON, without the stages' number, which the plan has."""
    names = {"exchanges": None, "passes": None, "ranks": None, "stages": "predicted_stages"}
    return {
        new: value for name, value in found.to_dict().items() if (new := names.get(name, name)) is not None
    }


def _divided(options: Plan, machine: Machine | None) -> dict[str, int | None]:
    """Return the arguments of `onehop.quantum.plan` that say how the ranks are divided over hosts."""
    ranks, hosts = options.ranks, options.hosts
    if hosts is None:
        per_host = None if machine is None else ranks_per_host(machine, ranks)
        return {"ranks_per_node": options.per_host if machine is None else 1, "ranks_per_host": per_host}
    per_host = ranks // hosts
    if machine is None:
        return {"ranks_per_node": per_host, "ranks_per_host": per_host}
    if hosts > 1 and per_host not in (units := ranks_per_unit(machine, ranks)):
        listed = " or ".join(map(str, sorted({ranks // unit for unit in units if ranks % unit == 0})))
        raise BadInput(
            f"--hosts does not agree with --machine: {counted(ranks, 'rank')} of {machine.name} are on "
            f"{listed} hosts, found {hosts}; leave --hosts out"
        )
    return {"ranks_per_node": 1, "ranks_per_host": per_host}


def plan(options: Plan) -> None:
    """Show the memory, the exchanges and the time that a circuit would take, without running it."""
    options.check()
    ranks, noise = options.ranks, options.noise
    model = (NoiseModel() if options.density else None) if noise is None else NoiseModel.parse(noise)
    described = None if options.machine is None else load_machine(options.machine)
    if described is not None:
        check_ranks(ranks, described)
    divided = _divided(options, described)
    circuit = read_circuit(options.file, Group.alone())
    storage: dict[str, Any] = {"divide": not options.gradient}
    if described is not None:
        storage["largest"] = LARGEST_STATE
    with waiting("planning"):
        circuit_plan = plan_run(
            circuit, ranks, model, options.trajectories, options.precision, **storage, **divided
        )
    if options.gradient:
        circuit_plan = with_gradient(circuit_plan)
    screen = console(options.json)
    found = None if described is None else predict_circuit(circuit_plan, described)
    on_device = described is not None and described.device
    if found is not None and on_device:
        circuit_plan = replace(circuit_plan, passes=found.passes)
    sweeps = GRADIENT_SWEEPS if options.gradient else 1
    seconds = predict(circuit_plan) if found is None else None
    stages = [stage for one in circuit_plan.states for stage in one.placement.groups(on_device=on_device)]
    with waiting("searching for bounds"):
        bounds = lower_bounds(circuit_plan, sweeps)
    shown = predict(circuit_plan) if found is None else found.predicted_seconds
    screen.print(_head(circuit_plan, circuit, bounds, shown, None if described is None else described.name))
    screen.print(_table(circuit_plan, circuit.name, bounds, found is None))
    if options.trajectories is not None:
        screen.print(
            f"these numbers are for each of up to {counted(options.trajectories, 'trajectory')}; equal ones run once"
        )
    if model is None and clifford_of(circuit, Group.alone(), SimulationOptions()) is not None:
        screen.print("`run` takes stim instead of this state vector, because it is a Clifford circuit")
    if circuit_plan.ranks < ranks:
        screen.print(f"the circuit is too small for more than {counted(circuit_plan.ranks, 'rank')}")
    if found is not None and described is not None:
        _show_prediction(screen, found, described, options.rows if options.passes else 0)
    choices = []
    if circuit_plan.kind.endswith("state vector"):
        with waiting("planning in other precisions"):
            choices = choices_of(circuit_plan, described, **divided)
        screen.print(choices_table(choices))
    if any(stages) and options.passes:
        _show_passes(screen, stages, options.rows)
    elif any(stages):
        screen.print("--passes lists the passes and the stages")
    report = {
        "version": __version__,
        "circuit": circuit.name,
        "stages": len(stages),
        **{name: getattr(circuit_plan, name) for name in _KEYS},
        **bounds,
        "choices": choices,
    }
    if found is not None and described is not None:
        # The state fits there; the prediction has checked it.
        report |= {"fits": True, "memory_available": int(described.memory.value), **_prediction(found)}
    else:
        report["predicted_seconds"] = seconds
    if options.gradient:
        report["states"] = GRADIENT_STATES
    write_json(options.json, {**report, "groups": stages})
