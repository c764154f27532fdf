"""Programs of the library, made of circuits with noise and of programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onehop import _core
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.quantum.noise.model import NoiseModel
from onehop.quantum.observables import PauliSum, core_sum, sums_of
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
