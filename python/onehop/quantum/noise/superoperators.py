"""Gates and channels on a density matrix of n qubits, written as operations on a state vector of 2n qubits.

The vector holds the matrix column by column: qubit i acts on the rows, qubit n + i on the columns. A gate U becomes U
on the row qubits and its complex conjugate on the column qubits. A channel becomes the sum of K (x) conj(K) over its
Kraus operators.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum.circuit import Circuit, Operation
from onehop.quantum.noise.channel import Channel
from onehop.text import counted

__all__ = ["moved", "on_rows_and_columns", "part_for", "usable_group"]


def on_rows_and_columns(items: Sequence[Operation | tuple[Channel, list[int]]], qubits: int) -> Circuit:
    """Convert gates and (channel, qubits) pairs on n qubits to a circuit on the vector of 2n qubits."""
    both = Circuit(2 * qubits)
    for item in items:
        if isinstance(item, Operation):
            both.add(moved(item, 0, conjugate=False))
            both.add(moved(item, qubits, conjugate=True))
        else:
            both.add(_superoperator(*item, above=qubits))
    return both


def _superoperator(channel: Channel, qubits: list[int], above: int) -> Operation:
    if channel.qubits != len(qubits):
        raise BadInput(
            f"{channel.name}: expected {counted(channel.qubits, 'qubit')}, found {len(qubits)}: {qubits}"
        )
    targets = [*qubits, *(qubit + above for qubit in qubits)]
    matrix = channel.superoperator()
    if np.count_nonzero(matrix - np.diag(np.diag(matrix))) == 0:  # a diagonal needs no exchange between ranks
        return Operation("diagonal", channel.name, targets, values=np.diag(matrix).copy())
    return Operation("matrix", channel.name, targets, values=matrix.reshape(-1))


def moved(o: Operation, by: int, *, conjugate: bool) -> Operation:
    """Return a copy of a gate without its condition, on qubits that are `by` higher, conjugated if asked for."""
    angle = o.angle
    if conjugate:
        # conj(exp(-i a/2 P)) = exp(i a/2 conj(P)), and conj(P) = -P for an odd number of Y in P.
        angle = angle if o.kind == "pauli_rotation" and o.paulis.count("Y") % 2 else -angle
    values = o.values
    return Operation(
        o.kind,
        o.name,
        [qubit + by for qubit in o.targets],
        controls=[qubit + by for qubit in o.controls],
        control_values=o.control_values,
        values=None if not len(values) else np.ascontiguousarray(values.conj() if conjugate else values),
        paulis=o.paulis,
        angle=angle,
    )


def usable_group(
    items: Sequence[Operation | tuple[Channel, list[int]]], qubits: int, group: Group, *, mixed: bool
) -> Group:
    """Return the group over which to split the state of some qubits that gates and channels act on.

    If the state is too small for all ranks, the group is cut into equal parts that repeat the same simulation.
    """
    if mixed:
        largest = on_rows_and_columns(items, qubits)
    else:
        largest = Circuit(qubits)
        for item in items:
            if isinstance(item, Operation):
                largest.add(moved(item, 0, conjugate=False))
            else:  # a Kraus operator may need all its qubits local
                largest.add(Operation("matrix", "channel", item[1], values=_full(item[0].qubits)))
    return part_for(largest, group)


def part_for(circuit: Circuit, group: Group) -> Group:
    """Return the equal part of a group over which the state of a circuit can be split; all of it if it can."""
    ranks = _core.usable_ranks(circuit, group.size)
    if ranks == group.size or group.size & (group.size - 1):
        return group
    return Group(group.split(group.rank // ranks, group.rank % ranks))


def _full(qubits: int) -> NDArray[np.complex128]:
    return np.ones(4**qubits, complex)
