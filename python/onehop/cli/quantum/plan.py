"""`onehop plan`: what a circuit would need and move, before anything runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from onehop._core import __version__
from onehop.cli.common import JsonOption, console, counted, write_json
from onehop.cli.quantum.profile import forms, ranges
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.quantum import Circuit, CircuitPlan, NoiseModel, plan_density
from onehop.quantum import plan as plan_circuit
from onehop.quantum.predict import predict
from onehop.quantum.run.serialization import read_circuit

PrecisionOption = Annotated[str, typer.Option(help="double (16 bytes an amplitude) or single (8).")]


def size(number: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1024 or unit == "PiB":
            return f"{number:.4g} {unit}"
        number /= 1024
    return ""


def plan_run(
    circuit: Circuit,
    ranks: int,
    here: int,
    noise: NoiseModel | None,
    trajectories: int | None,
    precision: str,
) -> CircuitPlan:
    """The plan of a run on so many ranks, `here` of them on this machine.

    Of a density matrix if there is noise and no trajectories.
    """
    if noise is not None:
        noise.check_names(circuit)
    if noise is not None and trajectories is None:
        return plan_density(circuit, ranks, precision, noise=noise, ranks_here=here)
    return plan_circuit(circuit, ranks, precision, ranks_here=here)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(planned: CircuitPlan, seconds: float, trajectories: int | None = None) -> str:
    """What `run` says before it begins."""
    each = f" for each of up to {trajectories} trajectories" if trajectories is not None else ""
    what = " as a density matrix" if planned.kind == "density matrix" else ""
    passes = f"{planned.passes:.4g} pass{'' if planned.passes == 1 else 'es'}"
    return (
        f"{_plural(planned.qubits, 'qubit')}{what} on {_plural(planned.ranks, 'rank')}: "
        f"{size(planned.memory_per_rank)} a rank, {_plural(planned.exchanges, 'exchange')}, "
        f"{size(planned.bytes_per_rank)} sent by each rank, {passes}, about {seconds:.2g} s{each}"
    )


def remedy(planned: CircuitPlan) -> str:
    """What would do where the memory does not suffice."""
    ranks = planned.ranks
    while planned.memory_in_all / ranks > planned.memory_available:
        ranks *= 2
    more = f"{ranks} machines like this one with a rank each" if ranks > 1 else "fewer ranks on this machine"
    single = "" if planned.precision == "single" else ", or half as much with --precision single"
    return f"{size(planned.memory_in_all)} in all would do, on {more}{single}"


def check_fits(planned: CircuitPlan, name: str) -> None:
    """Refuse what cannot fit.

    Raises
    ------
    Error
        With what is needed, what there is, and what would do.
    """
    if not planned.fits:
        need = "1 rank needs" if planned.ranks == 1 else f"{planned.ranks} ranks need"
        each = "" if planned.ranks == 1 else " each"
        raise Error(
            f"circuit {name} of {planned.qubits} qubits does not fit: {need} "
            f"{size(planned.memory_per_rank)}{each}, and there are {size(planned.memory_available)} on this machine; "
            f"{remedy(planned)}"
        )


def _table(planned: CircuitPlan, name: str, seconds: float) -> Table:
    table = Table(
        "",
        "",
        title=f"{name}: {counted(planned.qubits, 'qubit')} on {counted(planned.ranks, 'rank')}",
        show_header=False,
    )
    table.columns[1].justify = "right"
    table.add_row("simulated as a", planned.kind)
    table.add_row("memory of a rank", size(planned.memory_per_rank))
    table.add_row("memory in all", size(planned.memory_in_all))
    table.add_row("there is, on this machine", size(planned.memory_available))
    table.add_row("fits here", "yes" if planned.fits else "[bold red]no[/]")
    table.add_section()
    table.add_row("operations", str(planned.operations))
    table.add_row("stages", str(len(planned.placement.stages)))
    table.add_row("exchanges", str(planned.exchanges))
    table.add_row("bytes sent by each rank", size(planned.bytes_per_rank))
    if planned.bytes_per_exchange:
        largest = max(planned.bytes_per_exchange)
        table.add_row("in the largest exchange", size(largest))
    table.add_row("exchanged gate by gate", size(planned.baseline_bytes_per_rank))
    table.add_row("one swap at a time", size(planned.one_swap_at_a_time_bytes_per_rank))
    table.add_row("passes over a rank's memory", f"{planned.passes:.4g}")
    table.add_row("predicted time, about", f"{seconds:.3g} s")
    return table


def _groups(stages: list[list[dict[str, Any]]], rows: int) -> Table:
    """What the engine does together, stage by stage: a pass over the amplitudes each."""
    table = Table(title="groups of gates on rank 0: a pass over its memory each")
    for name in ("stage", "pass", "gates", "operations", "tile bits", "sweeps", "multiply-adds an amplitude"):
        table.add_column(name, justify="left" if name in ("operations", "tile bits") else "right")
    listed = [(stage, group) for stage, groups in enumerate(stages, 1) for group in groups]
    for number, (stage, group) in enumerate(listed[:rows], 1):
        what, tile = forms(group), ranges(group["tile_bits"])
        if not group["tile_bits"]:
            what, tile = "one operation in memory", ""
        table.add_row(
            str(stage),
            str(number),
            str(group["gates"]),
            what,
            tile,
            str(group["sweeps"]),
            f"{group['multiply_adds']:.4g}",
        )
    if len(listed) > rows:
        table.add_row("", f"{len(listed) - rows} more", "", "", "", "", "")
    return table


def _report(planned: CircuitPlan, name: str) -> dict[str, Any]:
    return {
        "version": __version__,
        "circuit": name,
        "qubits": planned.qubits,
        "ranks": planned.ranks,
        "precision": planned.precision,
        "kind": planned.kind,
        "fits": planned.fits,
        "memory_per_rank": planned.memory_per_rank,
        "memory_in_all": planned.memory_in_all,
        "memory_available": planned.memory_available,
        "operations": planned.operations,
        "stages": len(planned.placement.stages),
        "exchanges": planned.exchanges,
        "bytes_per_rank": planned.bytes_per_rank,
        "bytes_per_exchange": list(planned.bytes_per_exchange),
        "passes": planned.passes,
        "baseline_bytes_per_rank": planned.baseline_bytes_per_rank,
        "one_swap_at_a_time_bytes_per_rank": planned.one_swap_at_a_time_bytes_per_rank,
    }


def plan(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An OpenQASM 2 or 3 file.")],
    ranks: Annotated[
        int, typer.Option("-n", "--ranks", min=1, metavar="RANKS", help="A power of two; none is started.")
    ] = 1,
    here: Annotated[
        int | None,
        typer.Option(min=1, metavar="RANKS", help="How many of them share one machine; all unless given."),
    ] = None,
    precision: PrecisionOption = "double",
    density: Annotated[
        bool, typer.Option("--density", help="As a density matrix: 4^n numbers instead of 2^n.")
    ] = False,
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="As for `run`, on a density matrix unless --trajectories is given."
        ),
    ] = None,
    trajectories: Annotated[
        int | None, typer.Option(min=1, help="Noise on so many state vectors, one after the other.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many groups of gates the table shows.")] = 20,
    json_target: JsonOption = None,
) -> None:
    """Say what a circuit needs and moves on so many ranks, without running it."""
    if precision not in ("single", "double"):
        raise BadInput(f"expected --precision double or single, found {precision!r}")
    if trajectories is not None and (density or noise is None):
        raise BadInput("--trajectories needs --noise, and is instead of --density")
    model = NoiseModel() if noise is None else NoiseModel.parse(noise)
    circuit = read_circuit(file, Group.alone())
    model.check_names(circuit)
    if density or (noise is not None and trajectories is None):
        planned = plan_density(circuit, ranks, precision, noise=model, ranks_here=here)
    else:
        planned = plan_circuit(circuit, ranks, precision, ranks_here=here)
    screen = console(json_target)
    seconds = predict(planned)
    stages = planned.placement.groups()
    screen.print(_table(planned, circuit.name, seconds))
    if trajectories is not None:
        screen.print(f"this is for each of up to {trajectories} trajectories; equal ones run once")
    if planned.ranks < ranks:
        screen.print(f"the circuit is too small for more than {counted(planned.ranks, 'rank')}")
    if not planned.fits:
        screen.print(f"it does not fit on this machine: {remedy(planned)}", markup=False, soft_wrap=True)
    if any(stages):
        screen.print(_groups(stages, rows))
    write_json(
        json_target, {**_report(planned, circuit.name), "predicted_seconds": seconds, "groups": stages}
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)
