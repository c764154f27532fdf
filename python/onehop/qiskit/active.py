"""The qubits of a circuit that instructions act on: the others stay |0> and are not simulated."""

from __future__ import annotations

from qiskit import ClassicalRegister, QuantumCircuit

from onehop.quantum.io.qiskit_blocks import instructions_of, kind_of
from onehop.quantum.io.qiskit_steps import SAVES


def active_qubits(circuit: QuantumCircuit) -> list[int] | None:
    """List the qubits that instructions other than barriers act on.

    A circuit of a large device, of which it uses a few qubits, then needs memory for these only. None: all qubits are
    active, or none is.
    """
    places = {qubit: place for place, qubit in enumerate(circuit.qubits)}
    found: set[int] = set()
    for instruction in circuit.data:
        if kind_of(instruction.operation) != "barrier":
            found.update(places[qubit] for qubit in instruction.qubits)
    return sorted(found) if 0 < len(found) < circuit.num_qubits else None


def with_measurements(circuit: QuantumCircuit, *, noisy: bool) -> QuantumCircuit:
    """Return the circuit; if it has no classical bits and saves nothing, with a measurement of all qubits at its end.

    Without noise, the bits of idle qubits are 0 and need no measurement.
    """
    saves = any(one.operation.name in SAVES for one in instructions_of(circuit))
    if circuit.num_clbits or not circuit.num_qubits or saves:
        return circuit
    active = None if noisy else active_qubits(circuit)
    measured = list(range(circuit.num_qubits) if active is None else active)
    register = ClassicalRegister(circuit.num_qubits, "meas")
    circuit = circuit.copy()
    circuit.add_register(register)
    circuit.measure(measured, [register[qubit] for qubit in measured])
    return circuit
