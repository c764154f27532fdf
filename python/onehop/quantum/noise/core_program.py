"""Programs of the library, made of circuits with noise and of programs; `run_program` runs one on either state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group, group_or_alone
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.observables import PauliSum, core_sum, sums_of
from onehop.quantum.simulation_options import core_options
from onehop.quantum.steps import Program, Save

SAVED_KINDS = {
    "amplitudes_sq": "weights",
    "density_matrix": "density_matrix",
    "expval": "expectations",
    "expval_var": "variances",
    "probabilities": "probabilities",
    "probabilities_dict": "probabilities",
    "state": "state",
}


def core_program(program: Program, *, mixed: bool) -> _core.Program:
    """Return a program of the library."""
    channels = []
    for name, kraus in program.channels:
        channel = Channel(kraus, name)
        known = [] if channel.probabilities is None else channel.probabilities.tolist()
        operators = [matrix.reshape(-1).tolist() for matrix in channel.kraus]
        channels.append(_core.Channel(name, operators, known))
    errors = {qubit: (zero, one) for qubit, zero, one in program.readout}
    readout = [errors.get(qubit, (0.0, 0.0)) for qubit in range(program.circuit.qubits)] if errors else []
    return _core.Program(
        program.circuit, channels, [_data(save, program, mixed) for save in program.saves], readout
    )


def _data(save: Save, program: Program, mixed: bool) -> tuple[str, list[int], list[_core.PauliSum]]:
    """Return the kind of data that the library saves, the indices and the observables."""
    sums: list[PauliSum] = []
    if save.kind == "expval":
        sums = [PauliSum.of(save.observable)]
    elif save.kind == "expval_var":
        sums = sums_of([save.observable], program.circuit.qubits, hermitian=True)
        sums += [sums[0].squared()] if mixed else []
    kind = SAVED_KINDS.get(save.kind, "amplitudes")
    return kind, save.indices.tolist(), [core_sum(one) for one in sums]


def noisy_program(circuit: Circuit, noise: NoiseModel | None) -> _core.Program:
    """Return a circuit with the noise that follows each gate, under the condition of the gate."""
    program = Program(circuit)
    if noise is not None:
        errors = [(qubit, *noise.misread(qubit)) for qubit in range(circuit.qubits)]
        program = replace(with_noise(program, noise), readout=[one for one in errors if any(one[1:])])
    return core_program(program, mixed=False)


def with_noise(
    program: Program,
    noise: NoiseModel,
    name: Callable[[Channel, Operation], str] = lambda channel, _: channel.name,
) -> Program:
    """Return a program with the noise that follows each gate, under the condition of the gate.

    `name` returns the name of the channel after a gate.
    """
    circuit = Circuit._like(program.circuit, [])
    found = replace(program, circuit=circuit)
    for operation in program.circuit.operations:
        circuit.add(operation)
        for channel, qubits in noise.after(operation):
            found.channel(channel.kraus, qubits, name(channel, operation), operation.condition)
    return found


METHODS = ("statevector", "density_matrix")


@dataclass
class Saved:
    """The data of one label."""

    kind: str  # of `Save`, but "statevector" or "density_matrix" instead of "state"
    mode: str
    conditional: bool
    # values by the classical bits as a hexadecimal number; "" without conditions. One value, or in mode "list" one
    # for each shot
    groups: dict[str, list[NDArray[Any]]] = field(default_factory=dict)


def run_program(
    program: Program,
    group: Group | None = None,
    *,
    method: str = "statevector",
    shots: int = 1,
    seed: int = 0,
    precision: str = "double",
    device: str = "cpu",
) -> tuple[_core.SimulationResult, dict[str, Saved]]:
    """Run a program from |0...0>; return the result of the library, and the saved data by label. Collective.

    Shots whose random choices agree share a run. On a density matrix only the outcomes of measurements inside the
    program are random.
    """
    if method not in METHODS:
        raise BadInput(f"expected the method {' or '.join(METHODS)}, found {method!r}")
    mixed = method == "density_matrix"
    options = core_options(
        mixed=mixed,
        shots=shots,
        seed=seed,
        precision=precision,
        histories=bool(program.kinds),
        device=device,
    )
    core = _core.run_program(core_program(program, mixed=mixed), group_or_alone(group), options)
    return core, _merge_saved(core.made, program, mixed=mixed)


def run_tree(
    program: Program,
    shots: int,
    split: Callable[[int, float], int],
    *,
    precision: str,
    threads: int,
    device: str,
) -> list[tuple[float, list[bool], NDArray[np.complex128]]]:
    """Run a program once for each record of outcomes; return weight, classical bits and saved data of each run.

    The runs are in the order of a tree whose branch of outcome 0 comes first. The program saves data at its end.
    `split` draws how many of some shots have the outcome 1, of a probability. Without shots the weights are
    probabilities, and every outcome that has one is followed.
    """
    options = core_options(
        trajectories=max(shots, 1), precision=precision, threads=threads, device=device, exact=not shots
    )
    if shots:
        options.split = split
    core = _core.run_program(core_program(program, mixed=False), Group.alone(), options)
    return [(run.count if shots else run.weight, run.clbits, run.saved[-1][2]) for run in core.made]


def _merge_saved(runs: Iterable[_core.Run], program: Program, *, mixed: bool) -> dict[str, Saved]:
    """Merge what the runs of a program have saved."""
    state = "density_matrix" if mixed else "statevector"
    clbits = program.circuit.clbits
    collected: dict[str, tuple[Saved, dict[str, list[tuple[NDArray[np.uint64], NDArray[Any]]]]]] = {}
    for run in runs:
        for number, bits, data in run.saved:
            save = program.saves[number]
            kind = state if save.kind == "state" else save.kind
            label = state if save.label == "_method_" else save.label
            saved, groups = collected.setdefault(label, (Saved(kind, save.mode, save.conditional), {}))
            if (saved.kind, saved.mode, saved.conditional) != (kind, save.mode, save.conditional):
                raise BadInput(f"expected one kind of data under the label {label!r}, found two")
            key = (
                hex(sum(bit << place for place, bit in enumerate(bits[:clbits]))) if save.conditional else ""
            )
            groups.setdefault(key, []).append((run.shots, _saved_value(save, data, mixed=mixed)))
    for saved, groups in collected.values():
        for key in sorted(groups):
            saved.groups[key] = _merged(saved.mode, groups[key])
    return {label: saved for label, (saved, _) in collected.items()}


def _merged(mode: str, found: list[tuple[NDArray[np.uint64], NDArray[Any]]]) -> list[NDArray[Any]]:
    if mode == "list":
        pairs = [(shot, place) for place, (shots, _) in enumerate(found) for shot in shots.tolist()]
        return [found[place][1] for _, place in sorted(pairs)]
    if mode == "single":
        return [max(found, key=lambda pair: pair[0].max())[1]]
    total = sum(len(shots) * value for shots, value in found)
    return [np.asarray(total if mode == "accum" else total / sum(len(shots) for shots, _ in found))]


def _saved_value(save: Save, data: NDArray[np.complex128], *, mixed: bool) -> NDArray[Any]:
    """Convert the data that the library has saved."""
    if save.kind == "density_matrix" or (save.kind == "state" and mixed):
        return data.reshape(math.isqrt(len(data)), -1)
    if save.kind == "expval":
        return np.array(data[0].real)
    return data if SAVED_KINDS.get(save.kind, "state") == "state" else data.real
