"""`onehop quantum circuit`: circuits that everybody measures with, as OpenQASM files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from onehop.cli.common import JsonOption, write_json
from onehop.error import BadInput
from onehop.quantum import generators
from onehop.quantum.io import hamlib
from onehop.quantum.io.program import Program

QubitsOption = Annotated[int, typer.Option("--qubits", "-q", min=1, help="How many.")]
OutputOption = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="The OpenQASM file; - is stdout.")
]
VersionOption = Annotated[int, typer.Option("--openqasm", min=2, max=3, help="Version of the language.")]
MeasureOption = Annotated[bool, typer.Option("--measure/--no-measure", help="Measure all qubits at the end.")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same circuit.")]
StateOption = Annotated[
    str | None,
    typer.Option(metavar="BITS", help="Basis state at the beginning, last qubit first: 0101; or neel."),
]
ExtentsOption = Annotated[
    str | None, typer.Option(metavar="LxM", help="Sites of the lattice, 20 or 4x5, instead of --qubits.")
]
LatticeOption = Annotated[str, typer.Option(help="grid or triangular.")]
PeriodicOption = Annotated[bool, typer.Option("--periodic/--open", help="Whether the ends are neighbours.")]
TimeOption = Annotated[float, typer.Option(help="How long the evolution lasts.")]
StepsOption = Annotated[int, typer.Option(min=1, help="Trotter steps.")]
OrderOption = Annotated[int, typer.Option(min=1, max=2, help="Of the Trotter formula.")]
MirrorOption = Annotated[
    bool, typer.Option("--mirror", help="Followed by its inverse: it must end as it began.")
]

circuits = typer.Typer(no_args_is_help=True, help="Make circuits as OpenQASM files.")


def _write(program: Program, output: str, version: int, measure: bool, json_target: str | None) -> None:
    if output == "-" and json_target == "-":
        raise BadInput(
            "the circuit and the JSON cannot both go to stdout; name a file for the circuit: -o FILE"
        )
    if measure:
        program.measure_all()
    names = Counter(step.name for step in program.steps)
    gates = sum(number for name, number in names.items() if name not in ("measure", "barrier", "reset"))
    if output == "-":
        sys.stdout.write(program.to_qasm(version))
    else:
        program.save(output, version)
        print(f"{output}: {program.name}, {gates} gates", file=sys.stderr)
    report = {"file": output, "name": program.name, "qubits": program.qubits, "clbits": program.clbits}
    write_json(json_target, {**report, "gates": gates, "operations": dict(sorted(names.items()))})


def parse_extents(text: str) -> tuple[int, ...]:
    """`20` or `4x5`.

    Raises
    ------
    BadInput
        Something else.
    """
    parts = text.lower().split("x")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise BadInput(f"expected a lattice as 20 or 4x5, found {text!r}")
    return tuple(map(int, parts))


def _extents(qubits: int | None, extents: str | None) -> tuple[int, ...]:
    if (qubits is None) == (extents is None):
        raise BadInput("expected either --qubits for a chain or --extents for a lattice, for example 4x5")
    return (qubits,) if extents is None else parse_extents(extents)


def _sites(extents: Sequence[int]) -> int:
    sites = 1
    for extent in extents:
        sites *= extent
    return sites


@circuits.command()
def qft(
    qubits: QubitsOption,
    output: OutputOption = "-",
    state: StateOption = None,
    inverse: Annotated[bool, typer.Option("--inverse", help="The inverse transform.")] = False,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """The quantum Fourier transform of a basis state (of 1, unless told otherwise)."""
    _write(
        generators.qft(qubits, state=1 if state is None else state, inverse=inverse),
        output,
        version,
        measure,
        json_target,
    )


@circuits.command()
def qpe(
    qubits: QubitsOption,
    output: OutputOption = "-",
    phase: Annotated[
        float | None, typer.Option(help="In [0, 1); by default one near 1/3 that is found with certainty.")
    ] = None,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Phase estimation, measured: the counts' number over 2^(qubits-1) is the phase."""
    _write(generators.qpe(qubits, phase=phase), output, version, False, json_target)


@circuits.command()
def tfim(
    qubits: Annotated[int | None, typer.Option("--qubits", "-q", min=1, help="Of a chain.")] = None,
    extents: ExtentsOption = None,
    lattice: LatticeOption = "grid",
    periodic: PeriodicOption = False,
    coupling: Annotated[float, typer.Option(help="Of Z Z between neighbours.")] = 1.0,
    field: Annotated[float, typer.Option(help="Of X on every site.")] = 1.0,
    time: TimeOption = 1.0,
    steps: StepsOption = 10,
    order: OrderOption = 2,
    state: StateOption = "neel",
    mirror: MirrorOption = False,
    output: OutputOption = "-",
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Evolution by the Ising model in a transverse field."""
    sites = _extents(qubits, extents)
    model = generators.tfim(sites, lattice=lattice, periodic=periodic, coupling=coupling, field=field)
    name = f"tfim on a {lattice} of {'x'.join(map(str, sites))}{', mirrored' if mirror else ''}"
    program = generators.evolution(
        model, _sites(sites), time=time, steps=steps, order=order, state=state or 0, mirror=mirror, name=name
    )
    _write(program, output, version, measure, json_target)


@circuits.command()
def heisenberg(
    qubits: Annotated[int | None, typer.Option("--qubits", "-q", min=1, help="Of a chain.")] = None,
    extents: ExtentsOption = None,
    lattice: LatticeOption = "grid",
    periodic: PeriodicOption = False,
    coupling: Annotated[float, typer.Option(help="Of X X + Y Y + Z Z between neighbours.")] = 1.0,
    field: Annotated[float, typer.Option(help="Of Z on every site.")] = 0.0,
    time: TimeOption = 1.0,
    steps: StepsOption = 10,
    order: OrderOption = 2,
    state: StateOption = "neel",
    mirror: MirrorOption = False,
    output: OutputOption = "-",
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Evolution by the Heisenberg model."""
    sites = _extents(qubits, extents)
    model = generators.heisenberg(sites, lattice=lattice, periodic=periodic, coupling=coupling, field=field)
    name = f"heisenberg on a {lattice} of {'x'.join(map(str, sites))}{', mirrored' if mirror else ''}"
    program = generators.evolution(
        model, _sites(sites), time=time, steps=steps, order=order, state=state or 0, mirror=mirror, name=name
    )
    _write(program, output, version, measure, json_target)


@circuits.command()
def ghz(
    qubits: QubitsOption,
    output: OutputOption = "-",
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """(|0...0> + |1...1>) / sqrt(2)."""
    _write(generators.ghz(qubits), output, version, measure, json_target)


@circuits.command()
def random(
    qubits: QubitsOption,
    output: OutputOption = "-",
    depth: Annotated[int, typer.Option(min=1, help="Layers.")] = 20,
    seed: SeedOption = 0,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Layers of random one-qubit gates and of CZ on random pairs."""
    _write(generators.random_circuit(qubits, depth=depth, seed=seed), output, version, measure, json_target)


@circuits.command()
def qv(
    qubits: QubitsOption,
    output: OutputOption = "-",
    depth: Annotated[int | None, typer.Option(min=1, help="Layers; by default one per qubit.")] = None,
    seed: SeedOption = 0,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Quantum volume: layers of random two-qubit unitaries on random pairs."""
    _write(generators.quantum_volume(qubits, depth=depth, seed=seed), output, version, measure, json_target)


@circuits.command()
def qaoa(
    qubits: QubitsOption,
    output: OutputOption = "-",
    layers: Annotated[int, typer.Option(min=1, help="Pairs of cost and mixing layers.")] = 2,
    degree: Annotated[int, typer.Option(min=1, help="Neighbours of each site of the graph.")] = 3,
    seed: SeedOption = 0,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """The quantum approximate optimisation algorithm for the largest cut of a random graph."""
    _write(
        generators.qaoa(qubits, layers=layers, degree=degree, seed=seed),
        output,
        version,
        measure,
        json_target,
    )


@circuits.command("hamlib")
def from_hamlib(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A HamLib file (HDF5).")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of a Hamiltonian in it.")],
    time: TimeOption = 1.0,
    steps: StepsOption = 10,
    order: OrderOption = 2,
    state: StateOption = None,
    mirror: MirrorOption = False,
    output: OutputOption = "-",
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Evolution by a Hamiltonian of a HamLib file."""
    model, qubits = hamlib.read_hamlib(file, name)
    program = generators.evolution(
        model, qubits, time=time, steps=steps, order=order, state=state or 0, mirror=mirror, name=name
    )
    _write(program, output, version, measure, json_target)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(circuits, name="circuit")
