"""`onehop quantum circuit`: write common benchmark circuits as OpenQASM files."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from onehop._core import __version__
from onehop.cli.common import JsonOptions, console, write_json
from onehop.error import BadInput
from onehop.options import Options, argument, option
from onehop.output import write_file
from onehop.quantum import Circuit, generators
from onehop.quantum.io import hamlib
from onehop.text import counted

MOST_QUBITS = 62  # as a state has, and as many as a register may have that onehop reads
MOST_LAYERS = 1_000_000


@dataclass(kw_only=True)
class WriteOptions(JsonOptions):
    """How a circuit is written."""

    output: str = option(
        "-",
        "OpenQASM file to write; - is stdout.",
        *("-o", "--output"),
        metavar="FILE",
        writes="the circuit",
    )
    openqasm: int = option(2, "Version of OpenQASM.", low=2, high=3)


@dataclass(kw_only=True)
class MeasureOptions(WriteOptions):
    """How a circuit is written that may be measured."""

    measure: bool = option(False, "Measure all qubits at the end.", "--measure", off="--no-measure")


@dataclass(kw_only=True)
class QubitsOptions(Options):
    """The size of a circuit."""

    qubits: int = option(..., "Number of qubits.", "-q", "--qubits", low=1, high=MOST_QUBITS)


@dataclass(kw_only=True)
class SeedOptions(Options):
    """The seed of a random circuit."""

    seed: int = option(0, "Seed of the circuit. The same seed gives the same circuit.", low=0)


@dataclass(kw_only=True)
class EvolutionOptions(Options):
    """The evolution in time under a Hamiltonian, as `generators.evolution` takes them."""

    title = "Evolution"

    time: float = option(1.0, "Duration of the evolution.")
    steps: int = option(10, "Number of Trotter steps.", low=1, high=MOST_LAYERS)
    order: int = option(2, "Order of the Trotter formula.", low=1, high=2)
    state: str | None = option(
        None, "Initial basis state: bits with the last qubit first (0101), or neel.", metavar="BITS"
    )
    mirror: bool = option(False, "Append the inverse circuit, so that the final state is the initial state.")

    def program(self, model: Any, qubits: int, name: str) -> Circuit:
        """Return the circuit of the evolution."""
        keywords = self.part(EvolutionOptions) | {"state": self.state or 0}
        return generators.evolution(model, qubits, name=name, **keywords)


@dataclass(kw_only=True)
class LatticeOptions(EvolutionOptions):
    """A lattice of spins."""

    title = "Lattice"

    qubits: int | None = option(
        None, "Number of qubits of a chain.", "-q", "--qubits", low=1, high=MOST_QUBITS
    )
    extent: tuple[int, ...] | None = option(
        None, "Sites of the lattice, such as 20 or 4x5 (instead of --qubits).", metavar="LxM"
    )
    lattice: str = option("grid", "Kind of lattice.", choices=("grid", "triangular"))
    periodic: tuple[bool, ...] = option(
        (False,),
        "Boundaries of the lattice: periodic (1, or alone) or open (0).",
        metavar="0|1",
        alone="1",
        length=1,
    )
    coupling: float = option(1.0, "Strength of the coupling of neighbours.")

    @property
    def sites(self) -> tuple[int, ...]:
        """The extents of the lattice."""
        if (self.qubits is None) == (self.extent is None):
            raise BadInput("expected either --qubits for a chain or --extent for a lattice, for example 4x5")
        return self.extent or (self.qubits or 0,)


@dataclass(kw_only=True)
class Qft(QubitsOptions, MeasureOptions):
    state: str | None = option(
        None,
        "Initial basis state: bits with the last qubit first (0101), or neel.",
        metavar="BITS",
        default="1",
    )
    inverse: bool = option(False, "Write the inverse transform.")


@dataclass(kw_only=True)
class Qpe(QubitsOptions, WriteOptions):
    phase: float | None = option(
        None, "Phase in [0, 1).", default="a value near 1/3 that is measured with certainty"
    )


@dataclass(kw_only=True)
class Tfim(LatticeOptions, MeasureOptions):
    coupling: float = option(1.0, "Strength of Z Z between neighbours.")
    field: float = option(1.0, "Strength of X on each site.")
    state: str | None = option(
        "neel", "Initial basis state: bits with the last qubit first (0101), or neel.", metavar="BITS"
    )


@dataclass(kw_only=True)
class Heisenberg(LatticeOptions, MeasureOptions):
    coupling: float = option(1.0, "Strength of X X + Y Y + Z Z between neighbours.")
    field: float = option(0.0, "Strength of Z on each site.")
    state: str | None = option(
        "neel", "Initial basis state: bits with the last qubit first (0101), or neel.", metavar="BITS"
    )


@dataclass(kw_only=True)
class Ghz(QubitsOptions, MeasureOptions):
    """The options of `onehop quantum circuit ghz`."""


@dataclass(kw_only=True)
class Random(QubitsOptions, SeedOptions, MeasureOptions):
    depth: int = option(20, "Number of layers.", low=1, high=MOST_LAYERS)


@dataclass(kw_only=True)
class Volume(QubitsOptions, SeedOptions, MeasureOptions):
    depth: int | None = option(None, "Number of layers.", low=1, high=MOST_LAYERS, default="one per qubit")


@dataclass(kw_only=True)
class Qaoa(QubitsOptions, SeedOptions, MeasureOptions):
    layers: int = option(2, "Number of pairs of cost and mixing layers.", low=1, high=MOST_LAYERS)
    degree: int = option(3, "Number of neighbours of each vertex of the graph.", low=1, high=MOST_QUBITS)


@dataclass(kw_only=True)
class OfHamlib(EvolutionOptions, MeasureOptions):
    file: str = argument("FILE", "HamLib file (HDF5).")
    name: str = argument("NAME", "Name of a Hamiltonian in the file.")


def _write(circuit: Circuit, options: WriteOptions) -> None:
    output = options.output
    if output == "-" and options.json == "-":
        raise BadInput(
            "the circuit and the JSON cannot both go to stdout; name a file for the circuit: -o FILE"
        )
    if isinstance(options, MeasureOptions) and options.measure:
        circuit = generators.measured(circuit)
    names = circuit.count_ops()
    gates = sum(number for name, number in names.items() if name not in ("measure", "barrier", "reset"))
    text = f"// {circuit.name}, made by onehop {__version__}\n{circuit.to_qasm(options.openqasm)}"
    if output == "-":
        sys.stdout.write(text)
    else:
        write_file(output, text, "the circuit")
        console("-").print(f"{circuit.name}, {counted(gates, 'gate')}")
    report = {"file": output, "name": circuit.name, "qubits": circuit.qubits, "clbits": circuit.clbits}
    write_json(options.json, {**report, "gates": gates, "operations": dict(sorted(names.items()))})


def qft(options: Qft) -> None:
    """Quantum Fourier transform of a basis state."""
    state = 1 if options.state is None else options.state
    _write(generators.qft(options.qubits, state=state, inverse=options.inverse), options)


def qpe(options: Qpe) -> None:
    """Quantum phase estimation with measurements: the outcome divided by 2^(qubits-1) is the phase."""
    _write(generators.qpe(options.qubits, phase=options.phase), options)


def _evolve(make: Any, model: str, options: Tfim | Heisenberg) -> None:
    """Write the evolution of a lattice of spins."""
    sites = options.sites
    terms = make(
        sites,
        lattice=options.lattice,
        periodic=options.periodic[0],
        coupling=options.coupling,
        field=options.field,
    )
    mirrored = ", mirrored" if options.mirror else ""
    name = f"{model} on a {options.lattice} of {'x'.join(map(str, sites))}{mirrored}"
    _write(options.program(terms, math.prod(sites), name), options)


def tfim(options: Tfim) -> None:
    """Time evolution under the Ising model in a transverse field."""
    _evolve(generators.tfim, "tfim", options)


def heisenberg(options: Heisenberg) -> None:
    """Time evolution under the Heisenberg model."""
    _evolve(generators.heisenberg, "heisenberg", options)


def ghz(options: Ghz) -> None:
    """GHZ state: (|0...0> + |1...1>) / sqrt(2)."""
    _write(generators.ghz(options.qubits), options)


def random(options: Random) -> None:
    """Random circuit: layers of random one-qubit gates and of CZ gates on random pairs."""
    _write(generators.random_circuit(options.qubits, depth=options.depth, seed=options.seed), options)


def qv(options: Volume) -> None:
    """Quantum volume: layers of random two-qubit unitaries on random pairs."""
    _write(generators.quantum_volume(options.qubits, depth=options.depth, seed=options.seed), options)


def qaoa(options: Qaoa) -> None:
    """Quantum approximate optimisation algorithm (QAOA) for the maximum cut of a random graph."""
    program = generators.qaoa(options.qubits, layers=options.layers, degree=options.degree, seed=options.seed)
    _write(program, options)


def from_hamlib(options: OfHamlib) -> None:
    """Time evolution under a Hamiltonian of a HamLib file."""
    model, qubits = hamlib.read_hamlib(options.file, options.name)
    _write(options.program(model, qubits, options.name), options)
