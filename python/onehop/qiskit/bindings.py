"""`parameter_binds` of `OnehopBackend.run`: circuits with each of several lists of parameter values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from qiskit import QuantumCircuit

from onehop.error import BadInput
from onehop.text import counted


def bound_circuits(
    circuits: Sequence[QuantumCircuit], binds: Sequence[Mapping[Any, Any]] | None
) -> list[QuantumCircuit]:
    """Return each circuit with its parameters' first values, with the second ones, and so on."""
    if binds is None:
        for circuit in circuits:
            if circuit.parameters:
                names = [one.name for one in circuit.parameters]
                raise BadInput(
                    f"circuit {circuit.name}: {_first_use(circuit, names[0])} has no value; give `parameter_binds` "
                    f"with values for {', '.join(names)}"
                )
        return list(circuits)
    if isinstance(binds, Mapping) or len(binds) != len(circuits):
        found = "one mapping" if isinstance(binds, Mapping) else counted(len(binds), "mapping")
        raise BadInput(
            f"parameter_binds: expected a list of {counted(len(circuits), 'mapping')}, found {found}"
        )
    return [one for circuit, bind in zip(circuits, binds, strict=True) for one in _bound(circuit, bind)]


def _bound(circuit: QuantumCircuit, bind: Mapping[Any, Any]) -> list[QuantumCircuit]:
    if not isinstance(bind, Mapping):
        raise BadInput(
            f"parameter_binds of {circuit.name}: expected a mapping from parameters to lists of values, found {bind!r}"
        )
    values = {getattr(key, "name", key): value for key, value in bind.items()}
    names = [one.name for one in circuit.parameters]
    missing, unknown = sorted(set(names) - set(values)), sorted(set(values) - set(names), key=str)
    if missing or unknown:
        raise BadInput(
            f"parameter_binds of {circuit.name}: expected values for {', '.join(names) or 'no parameters'}; "
            + f"without value: {', '.join(_first_use(circuit, one) for one in missing) or 'none'}; "
            + f"unknown: {', '.join(map(str, unknown)) or 'none'}"
        )
    if not names:
        return [circuit]
    columns = {}
    for name in names:
        try:
            columns[name] = np.atleast_1d(np.asarray(values[name], float))
        except (TypeError, ValueError, OverflowError):
            raise BadInput(
                f"parameter_binds of {circuit.name}: {_first_use(circuit, name)}: expected numbers, "
                f"found {values[name]!r}"
            ) from None
        if not np.isfinite(columns[name]).all():
            raise BadInput(
                f"parameter_binds of {circuit.name}: {_first_use(circuit, name)}: expected finite numbers, "
                f"found {values[name]!r}"
            )
    lengths = {name: column.shape for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or len(next(iter(lengths.values()))) != 1:
        found = ", ".join(f"{name}: {shape}" for name, shape in lengths.items())
        raise BadInput(
            f"parameter_binds of {circuit.name}: expected lists of one length, found the shapes {found}"
        )
    rows = zip(*columns.values(), strict=True)
    return [circuit.assign_parameters(dict(zip(columns, map(float, row), strict=True))) for row in rows]


def require_finite(circuit: QuantumCircuit, values: Any) -> None:
    """Check the values of a primitive's circuit."""
    for names, array in values.data.items():
        for name, column in zip(names, np.moveaxis(np.asarray(array), -1, 0), strict=True):
            if not np.isfinite(column).all():
                found = column[~np.isfinite(column)].flat[0]
                raise BadInput(
                    f"circuit {circuit.name}: {_first_use(circuit, name)}: expected finite numbers, found {found}"
                )


def _first_use(circuit: QuantumCircuit, name: str) -> str:
    """Return the parameter with the first instruction that has it."""
    for instruction in circuit.data:
        if any(one.name == name for part in instruction.params for one in getattr(part, "parameters", ())):
            qubits = ", ".join(str(circuit.find_bit(qubit).index) for qubit in instruction.qubits)
            plural = "s" if len(instruction.qubits) > 1 else ""
            return f"{instruction.name} on qubit{plural} {qubits}: parameter {name!r}"
    return f"parameter {name!r}"
