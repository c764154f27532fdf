"""`compile`: a circuit with parameters, planned once and run with many values of them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop import _core
from onehop.arguments import instance, items, whole_number
from onehop.error import BadInput
from onehop.group import Group, group_or_alone
from onehop.quantum.circuit import Circuit
from onehop.quantum.observables import core_sum, real_where_real, sums_of
from onehop.quantum.parameters import Bindings, rows_of, values_of
from onehop.quantum.simulation_options import common_seed, core_options
from onehop.quantum.simulator import Result, pure_result
from onehop.quantum.state import State
from onehop.refusals import collective
from onehop.text import counted

__all__ = ["CompiledCircuit", "GradientResult", "compile"]

# The most ranks for which results have the same bits if no number is asked for.
REPRODUCIBLE_RANKS = 8


@dataclass
class GradientResult:
    """Expectation values and their derivatives; the same on every rank.

    Attributes
    ----------
    parameters : tuple of str
        Names of the parameters.
    values : array of float, shape (observables,)
        Expectation values, or variances if these were asked for.
    derivatives : array of float, shape (observables, parameters)
        Derivatives; with weights shape (parameters,), of the weighted sum of the values.
    method : str
        "adjoint" or "parameter-shift".
    forward_seconds, backward_seconds : float
        Time from |0...0> to the final state, and time of everything after it.
    backward_passes, backward_multiply_adds : float
        Number of passes over ket and bra on a rank, and of their real multiply-adds per amplitude.
    """

    parameters: tuple[str, ...]
    values: NDArray[np.float64]
    derivatives: NDArray[np.float64]
    method: str = "adjoint"
    forward_seconds: float = field(default=0.0, repr=False)
    backward_seconds: float = field(default=0.0, repr=False)
    backward_passes: float = field(default=0.0, repr=False)
    backward_multiply_adds: float = field(default=0.0, repr=False)

    def by_name(self) -> dict[str, Any]:
        """Return the derivatives by name: a float for each parameter, or a list of one for each observable."""
        return dict(zip(self.parameters, np.moveaxis(self.derivatives, -1, 0).tolist(), strict=True))


class CompiledCircuit:
    """A circuit that is placed on ranks once; `compile` makes it.

    Other values of the parameters change numbers in tables only. All methods are collective: every rank of the group
    calls them with the same arguments and gets the same result.
    """

    def __init__(self, core: _core.Compiled, circuit: Circuit, group: Group) -> None:
        self._core = core
        self._circuit = circuit
        self._operations = len(circuit)
        self._group = group

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, in the order in which a sequence of values gives them."""
        return self._core.parameters

    @property
    def ranks(self) -> int:
        """Number of ranks over which a state is split."""
        return self._core.ranks

    @property
    def placement(self) -> _core.Placement:
        """Stages of the execution."""
        return self._core.placement

    def __repr__(self) -> str:
        what = f"{counted(self._circuit.qubits, 'qubit')}, {counted(len(self.parameters), 'parameter')}"
        return f"<{type(self).__name__}: {what}, {counted(self.ranks, 'rank')}>"

    def _values(self, bindings: Bindings) -> list[float]:
        self._require_unchanged()
        return values_of(self._circuit, bindings)

    def _require_unchanged(self) -> None:
        if len(self._circuit) != self._operations or self._circuit.parameters != self.parameters:
            raise BadInput(
                f"expected the circuit as it was compiled, with {counted(self._operations, 'operation')} and the "
                f"parameters {', '.join(self.parameters) or 'none'}, found one that has changed since; compile it again"
            )

    def run(self, bindings: Bindings = ()) -> State:
        """Run the circuit from |0...0>, without its final measurements; return the final state.

        The next call of any method overwrites the state.

        Parameters
        ----------
        bindings : mapping from str or Parameter to float, or sequence of float
            Values by name, or in the order of `parameters`.

        Raises
        ------
        BadInput
            A parameter has no value, a name is unknown, a value is not a finite number, or the circuit has changed
            since it was compiled.
        """
        return State._of(self._core.run(self._values(bindings)))

    def expectations(self, bindings: Bindings, observables: Sequence[Any]) -> list[float | complex]:
        """Run the circuit; return the expectation value of each observable. Errors are those of `run`."""
        sums = sums_of(observables, self._circuit.qubits)
        values = self._values(bindings)
        return real_where_real(sums, self._core.expectations(values, [core_sum(one) for one in sums]))

    def simulate(
        self,
        bindings: Bindings = (),
        *,
        shots: int = 0,
        seed: int | None = None,
        observables: Sequence[Any] = (),
    ) -> Result:
        """Run the circuit with its measurements, resets and conditions, as the function `simulate` does.

        Parameters and errors are those of `run` and of that function. The state of the result is not that of `run`:
        this method needs memory for another one.
        """
        sums = sums_of(observables, self._circuit.qubits)
        values = self._values(bindings)
        seed = common_seed(seed, self._group)
        options = core_options(shots=shots, seed=seed, observables=[core_sum(one) for one in sums])
        core = self._core.simulate(values, options)
        return pure_result(core, self._circuit, sums, shots, seed)

    def run_many(
        self, bindings: Sequence[Bindings] | NDArray[Any], observables: Sequence[Any]
    ) -> NDArray[Any]:
        """Return the expectation values for many bindings.

        States of up to 16 qubits are divided over the ranks and threads: each computes whole runs.

        Parameters
        ----------
        bindings : array of float, shape (runs, parameters), or sequence of mappings
            Values of the parameters of each run.
        observables : sequence of PauliSum or str
            Observables.

        Returns
        -------
        array of float, shape (runs, observables)
            Complex if an observable is not Hermitian.

        Raises
        ------
        BadInput
            As for `run`; the array has another shape.
        """
        sums = sums_of(observables, self._circuit.qubits)
        count = len(self.parameters)
        self._require_unchanged()
        if isinstance(bindings, np.ndarray) and (bindings.ndim != 2 or bindings.shape[1] != count):
            raise BadInput(f"expected bindings of shape (runs, {count}), found shape {bindings.shape}")
        plain = isinstance(bindings, np.ndarray) and bindings.dtype.kind in "biuf"
        # The check of single values names the binding, the gate and the parameter.
        if not plain or not np.isfinite(bindings).all():
            rows = rows_of(self._circuit, bindings)
            bindings = np.array(rows, np.float64).reshape(len(rows), count)
        values = self._core.run_many(
            np.ascontiguousarray(bindings, np.float64), [core_sum(one) for one in sums]
        ).reshape(len(bindings), len(sums))
        return values.real if all(one.is_hermitian for one in sums) else values

    def gradients(
        self,
        bindings: Bindings,
        observables: Sequence[Any],
        weights: Sequence[float] | None = None,
        *,
        variance: bool = False,
    ) -> GradientResult:
        """Compute expectation values and all their derivatives by the adjoint method.

        Parameters
        ----------
        bindings
            As for `run`.
        observables : sequence of PauliSum or str
            Hermitian observables.
        weights : sequence of float, optional
            One for each observable: computes the derivatives of the weighted sum of the values in one sweep, however
            many observables there are (a vector-Jacobian product).
        variance : bool
            Compute the variances of the observables and their derivatives instead of the expectation values.

        Raises
        ------
        BadInput
            As for `run`; an observable is not Hermitian, or the weights are not a finite number for each
            observable.
        """
        sums = sums_of(observables, self._circuit.qubits, hermitian=True)
        check_weights(weights, len(sums))
        values = self._values(bindings)
        listed = [] if weights is None else [float(one) for one in weights]
        found = self._core.gradients(values, [core_sum(one) for one in sums], listed, variance)
        shape = (len(sums), len(values)) if weights is None or not listed else (len(values),)
        return GradientResult(
            parameters=self.parameters,
            values=np.array(found.values),
            derivatives=np.array(found.derivatives).reshape(shape),
            forward_seconds=found.forward_seconds,
            backward_seconds=found.backward_seconds,
            backward_passes=found.backward_passes,
            backward_multiply_adds=found.backward_multiply_adds,
        )


def check_weights(weights: Sequence[float] | None, observables: int) -> None:
    """Raise BadInput unless there are no weights, or a finite number for each observable."""
    if weights is None:
        return
    weights = list(weights) if isinstance(weights, str) else items(weights, "weights")
    if len(weights) != observables:
        raise BadInput(
            f"expected a weight for each of {counted(observables, 'observable')}, found {len(weights)}"
        )
    for number, one in enumerate(weights):
        if not isinstance(one, numbers.Real) or not math.isfinite(one):
            raise BadInput(f"weight {number}: expected a finite number, found {one!r}")


@collective
def compile(  # noqa: A001
    circuit: Circuit,
    group: Group | None = None,
    *,
    precision: str = "double",
    threads: int = 0,
    staging: int = 0,
    search_seconds: float = 1,
    reproducible: bool | int = False,
    device: str = "cpu",
) -> CompiledCircuit:
    """Plan a circuit once, to run it with many values of its parameters. Collective.

    Parameters
    ----------
    circuit : Circuit
        Circuit to plan. Only `CompiledCircuit.simulate` takes measurements, resets and conditions before its end;
        the other methods leave measurements at the end out.
    group, precision, threads, staging, search_seconds, device
        As for `simulate`.
    reproducible : bool or int
        Compute amplitudes, expectation values and derivatives whose bits do not depend on the number of ranks, as long
        as it is at most this power of two; True: 8. The circuit is placed as on so many ranks.

    Raises
    ------
    BadInput
        The circuit is invalid, an angle of a gate has no form as a rotation, or there are more ranks than
        `reproducible`.
    Error
        The memory does not suffice.
    """
    instance(circuit, Circuit, "circuit")
    group = group_or_alone(group)
    core = _core.Compiled(
        circuit,
        group,
        precision=precision,
        threads=threads,
        staging=staging,
        search_seconds=search_seconds,
        reproducible=_reproducible_ranks(reproducible),
        device=device,
    )
    return CompiledCircuit(core, circuit, group)


def _reproducible_ranks(asked: bool | int) -> int:
    """Return the most ranks for which results are to have the same bits; 0: any may have others."""
    if isinstance(asked, bool | np.bool_):
        return REPRODUCIBLE_RANKS if asked else 0
    return whole_number(asked, "reproducible")
