"""Which circuits the adjoint method differentiates, and why not the others."""

from __future__ import annotations

from typing import Any

from pennylane import math
from pennylane.devices import ExecutionConfig
from pennylane.measurements import ExpectationMP
from pennylane.numpy import tensor
from pennylane.tape import QuantumScript

from onehop.pennylane.operations import is_channel, named, postselects


def has_pauli_form(observable: Any) -> bool:
    """Check whether an observable is a sum of Pauli strings."""
    return observable.pauli_rep is not None


def why_not_adjoint(circuit: QuantumScript) -> str | None:
    """Return why the adjoint method cannot differentiate a circuit, or None if it can."""
    for index, one in enumerate(circuit.operations):
        if postselects(one) or is_channel(one):
            found = "the channel" if is_channel(one) else "the postselection of"
            return (
                f"adjoint derivatives{_first_parameter(circuit)}: expected gates that keep a state pure and "
                f"normalised, found {found} {named(index, one)}"
            )
    return why_not_expectations(circuit)


def why_not_expectations(circuit: QuantumScript) -> str | None:
    """Return why the results of a circuit are no exact expectation values of Pauli strings, or None if they are."""
    if circuit.shots:
        return (
            f"adjoint derivatives{_first_parameter(circuit)}: expected exact results, because the adjoint method is "
            f"exact, found {circuit.shots.total_shots} shots"
        )
    for number, one in enumerate(circuit.measurements):
        if not isinstance(one, ExpectationMP) or one.obs is None or not has_pauli_form(one.obs):
            return (
                f"adjoint derivatives{_first_parameter(circuit)}: expected expectation values of Pauli strings, found "
                f"{' '.join(str(one).split())} as measurement {number}"
            )
    return None


def needs_shifts(config: ExecutionConfig, circuit: QuantumScript | None) -> bool:
    """Check for derivatives that the adjoint method would refuse or, with a warning, return as zero."""
    tree = config.mcm_config.mcm_method == "tree-traversal"
    return tree or config.derivative_order > 1 or (circuit is not None and _trains_observables(circuit))


def _trains_observables(circuit: QuantumScript) -> bool:
    """Check whether derivatives by weights of observables are asked for, which the adjoint method leaves out.

    Arrays of PennyLane's NumPy say that they are trainable even where nobody differentiates by them.
    """
    return any(
        math.requires_grad(weight) and not isinstance(weight, tensor)
        for one in circuit.measurements
        if one.obs is not None
        for weight in one.obs.data
    )


def _first_parameter(circuit: QuantumScript) -> str:
    """Name the first parameter by which a circuit is differentiated, with its gate."""
    if not circuit.trainable_params:
        return ""
    first = circuit.par_info[circuit.trainable_params[0]]
    return f" by parameter {first['p_idx']} of {named(first['op_idx'], first['op'])}"
