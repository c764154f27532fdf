"""The qubits of a circuit that instructions act on: the others stay |0> and are not simulated."""

from __future__ import annotations

from qiskit import QuantumCircuit

from onehop.quantum.io.qiskit_blocks import kind_of

__all__ = ["active_qubits"]


def active_qubits(circuit: QuantumCircuit) -> list[int] | None:
    """List the qubits that instructions other than barriers act on.

    A circuit of a large device, of which it uses a few qubits, then needs memory for these only.

    Parameters
    ----------
    circuit : QuantumCircuit
        Circuit.

    Returns
    -------
    list of int or None
        The qubits in ascending order; None if all are active, or none is.
    """
    places = {qubit: place for place, qubit in enumerate(circuit.qubits)}
    found: set[int] = set()
    for instruction in circuit.data:
        if kind_of(instruction.operation) != "barrier":
            found.update(places[qubit] for qubit in instruction.qubits)
    return sorted(found) if 0 < len(found) < circuit.num_qubits else None
