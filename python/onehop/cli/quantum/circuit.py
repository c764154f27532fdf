"""`onehop quantum circuit`: write common benchmark circuits as OpenQASM files."""

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
from onehop.text import counted

MOST_QUBITS = 62  # as a state has, and as many as a register may have that onehop reads
MOST_LAYERS = 1_000_000
QubitsOption = Annotated[
    int, typer.Option("--qubits", "-q", min=1, max=MOST_QUBITS, help="Number of qubits.")
]
OutputOption = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="OpenQASM file to write; - is stdout.")
]
VersionOption = Annotated[int, typer.Option("--openqasm", min=2, max=3, help="Version of OpenQASM.")]
MeasureOption = Annotated[bool, typer.Option("--measure/--no-measure", help="Measure all qubits at the end.")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Seed of the circuit. The same seed gives the same circuit.")
]
StateOption = Annotated[
    str | None,
    typer.Option(metavar="BITS", help="Initial basis state: bits with the last qubit first (0101), or neel."),
]
ExtentsOption = Annotated[
    str | None,
    typer.Option(metavar="LxM", help="Sites of the lattice, such as 20 or 4x5 (instead of --qubits)."),
]
LatticeOption = Annotated[str, typer.Option(help="Kind of lattice: grid or triangular.")]
PeriodicOption = Annotated[
    bool, typer.Option("--periodic/--open", help="Boundary conditions of the lattice.")
]
TimeOption = Annotated[float, typer.Option(help="Duration of the evolution.")]
StepsOption = Annotated[int, typer.Option(min=1, max=MOST_LAYERS, help="Number of Trotter steps.")]
OrderOption = Annotated[int, typer.Option(min=1, max=2, help="Order of the Trotter formula.")]
MirrorOption = Annotated[
    bool,
    typer.Option(
        "--mirror", help="Append the inverse circuit, so that the final state is the initial state."
    ),
]

circuits = typer.Typer(no_args_is_help=True, help="Write benchmark circuits as OpenQASM files.")


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
        print(f"{output}: {program.name}, {counted(gates, 'gate')}", file=sys.stderr)
    report = {"file": output, "name": program.name, "qubits": program.qubits, "clbits": program.clbits}
    write_json(json_target, {**report, "gates": gates, "operations": dict(sorted(names.items()))})


def parse_extents(text: str) -> tuple[int, ...]:
    """Parse the extents of a lattice, such as `20` or `4x5`.

    Raises
    ------
    BadInput
        The text has another form, or an extent is 0.
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
    inverse: Annotated[bool, typer.Option("--inverse", help="Write the inverse transform.")] = False,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Quantum Fourier transform of a basis state (default: 1)."""
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
        float | None,
        typer.Option(help="Phase in [0, 1) (default: a value near 1/3 that is measured with certainty)."),
    ] = None,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Quantum phase estimation with measurements: the outcome divided by 2^(qubits-1) is the phase."""
    _write(generators.qpe(qubits, phase=phase), output, version, False, json_target)


@circuits.command()
def tfim(
    qubits: Annotated[
        int | None,
        typer.Option("--qubits", "-q", min=1, max=MOST_QUBITS, help="Number of qubits of a chain."),
    ] = None,
    extents: ExtentsOption = None,
    lattice: LatticeOption = "grid",
    periodic: PeriodicOption = False,
    coupling: Annotated[float, typer.Option(help="Strength of Z Z between neighbours.")] = 1.0,
    field: Annotated[float, typer.Option(help="Strength of X on each site.")] = 1.0,
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
    """Time evolution under the Ising model in a transverse field."""
    sites = _extents(qubits, extents)
    model = generators.tfim(sites, lattice=lattice, periodic=periodic, coupling=coupling, field=field)
    name = f"tfim on a {lattice} of {'x'.join(map(str, sites))}{', mirrored' if mirror else ''}"
    program = generators.evolution(
        model, _sites(sites), time=time, steps=steps, order=order, state=state or 0, mirror=mirror, name=name
    )
    _write(program, output, version, measure, json_target)


@circuits.command()
def heisenberg(
    qubits: Annotated[
        int | None,
        typer.Option("--qubits", "-q", min=1, max=MOST_QUBITS, help="Number of qubits of a chain."),
    ] = None,
    extents: ExtentsOption = None,
    lattice: LatticeOption = "grid",
    periodic: PeriodicOption = False,
    coupling: Annotated[float, typer.Option(help="Strength of X X + Y Y + Z Z between neighbours.")] = 1.0,
    field: Annotated[float, typer.Option(help="Strength of Z on each site.")] = 0.0,
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
    """Time evolution under the Heisenberg model."""
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
    """GHZ state: (|0...0> + |1...1>) / sqrt(2)."""
    _write(generators.ghz(qubits), output, version, measure, json_target)


@circuits.command()
def random(
    qubits: QubitsOption,
    output: OutputOption = "-",
    depth: Annotated[int, typer.Option(min=1, max=MOST_LAYERS, help="Number of layers.")] = 20,
    seed: SeedOption = 0,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Random circuit: layers of random one-qubit gates and of CZ gates on random pairs."""
    _write(generators.random_circuit(qubits, depth=depth, seed=seed), output, version, measure, json_target)


@circuits.command()
def qv(
    qubits: QubitsOption,
    output: OutputOption = "-",
    depth: Annotated[
        int | None, typer.Option(min=1, max=MOST_LAYERS, help="Number of layers (default: one per qubit).")
    ] = None,
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
    layers: Annotated[
        int, typer.Option(min=1, max=MOST_LAYERS, help="Number of pairs of cost and mixing layers.")
    ] = 2,
    degree: Annotated[
        int, typer.Option(min=1, max=MOST_QUBITS, help="Number of neighbours of each vertex of the graph.")
    ] = 3,
    seed: SeedOption = 0,
    measure: MeasureOption = False,
    version: VersionOption = 2,
    json_target: JsonOption = None,
) -> None:
    """Quantum approximate optimisation algorithm (QAOA) for the maximum cut of a random graph."""
    _write(
        generators.qaoa(qubits, layers=layers, degree=degree, seed=seed),
        output,
        version,
        measure,
        json_target,
    )


@circuits.command("hamlib")
def from_hamlib(
    file: Annotated[str, typer.Argument(metavar="FILE", help="HamLib file (HDF5).")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a Hamiltonian in the file.")],
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
    """Time evolution under a Hamiltonian of a HamLib file."""
    model, qubits = hamlib.read_hamlib(file, name)
    program = generators.evolution(
        model, qubits, time=time, steps=steps, order=order, state=state or 0, mirror=mirror, name=name
    )
    _write(program, output, version, measure, json_target)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(circuits, name="circuit")
