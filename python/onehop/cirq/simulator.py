"""`OnehopSimulator`: Cirq's interfaces for samples, final states, amplitudes and expectation values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import cirq
import numpy as np
from numpy.typing import NDArray

from onehop.cirq.conversion import Converted, convert, pauli_sum
from onehop.error import BadInput
from onehop.group import Group, group_or_alone
from onehop.quantum import State, simulate
from onehop.quantum.foreign import check_precision
from onehop.quantum.noise.core_program import run_program
from onehop.quantum.simulation_options import common_seed
from onehop.quantum.simulator import shot_bits
from onehop.quantum.steps import Save

__all__ = ["OnehopSimulator"]


class OnehopSimulator(
    cirq.SimulatesSamples,
    cirq.SimulatesAmplitudes,
    cirq.SimulatesFinalState[cirq.StateVectorTrialResult],
    cirq.SimulatesExpectationValues,
):
    """State vectors of onehop as a Cirq simulator.

    Amplitudes and expectation values are computed where the state is. `simulate` gathers the final state on every
    rank. Channels are sampled, one Kraus operator for each repetition. Collective inside a launch, with a group.

    Parameters
    ----------
    group : Group, optional
        Ranks that hold the state. Default: this process alone.
    seed : int, optional
        Seed of the samples. Default: a random seed for each call.
    precision : str
        "double" or "single".

    Examples
    --------
    >>> import cirq
    >>> from onehop.cirq import OnehopSimulator
    >>> a, b = cirq.LineQubit.range(2)
    >>> bell = cirq.Circuit(cirq.H(a), cirq.CNOT(a, b), cirq.measure(a, b, key="m"))
    >>> counts = OnehopSimulator(seed=1).run(bell, repetitions=100).histogram(key="m")
    """

    def __init__(
        self, group: Group | None = None, *, seed: int | None = None, precision: str = "double"
    ) -> None:
        self.group = group_or_alone(group)
        self.precision = check_precision(precision)
        self._seed = seed
        self._calls = 0

    def _next_seed(self) -> int:
        """Return a seed that differs from call to call and is the same on all ranks."""
        self._calls += 1
        return common_seed(None if self._seed is None else self._seed + self._calls - 1, self.group)

    # -- samples -------------------------------------------------------------------------------------------------------

    def _run(
        self, circuit: cirq.AbstractCircuit, param_resolver: cirq.ParamResolver, repetitions: int
    ) -> dict[str, NDArray[np.uint8]]:
        resolved = cirq.resolve_parameters(circuit, param_resolver)
        converted = convert(resolved, sorted(resolved.all_qubits()))
        if repetitions == 0:
            return _records(converted, np.zeros((0, converted.program.circuit.clbits), np.uint8))
        options: dict[str, Any] = {
            "shots": repetitions,
            "seed": self._next_seed(),
            "precision": self.precision,
        }
        if converted.program.is_plain:
            outcomes = simulate(converted.program.circuit, self.group, **options).outcomes
        else:
            outcomes = run_program(converted.program, self.group, **options)[0].outcomes
        return _records(converted, shot_bits(outcomes))

    # -- final states --------------------------------------------------------------------------------------------------

    def simulate_sweep_iter(
        self,
        program: cirq.AbstractCircuit,
        params: cirq.Sweepable,
        qubit_order: cirq.QubitOrderOrList = cirq.QubitOrder.DEFAULT,
        initial_state: Any = None,
    ) -> Iterator[cirq.StateVectorTrialResult]:
        """Simulate a circuit for several values of its parameters; yield the final states with the measurements.

        Parameters
        ----------
        program : cirq.AbstractCircuit
            Circuit.
        params : cirq.Sweepable
            Values of its parameters.
        qubit_order : cirq.QubitOrderOrList
            Order of the qubits; the first one is the most significant bit of an amplitude's index.
        initial_state : int or array, optional
            Index of a basis state, or amplitudes. Default: |0...0>.

        Raises
        ------
        BadInput
            The circuit or the initial state cannot be simulated.
        """
        qubits = cirq.QubitOrder.as_qubit_order(qubit_order).order_for(program.all_qubits())
        for resolver in cirq.to_resolvers(params):
            start = None if initial_state is None else _vector(initial_state, len(qubits))
            converted = convert(cirq.resolve_parameters(program, resolver), qubits, start=start)
            converted.program.save(Save("statevector", "final"), range(len(qubits)))
            result, saved = run_program(
                converted.program, self.group, seed=self._next_seed(), precision=self.precision
            )
            records = {
                key: values[0, -1] for key, values in _records(converted, shot_bits(result.outcomes)).items()
            }
            final = saved["final"].groups[""][0]
            state = cirq.StateVectorSimulationState(
                initial_state=final / np.linalg.norm(final), qubits=qubits, dtype=np.complex128
            )
            yield cirq.StateVectorTrialResult(resolver, records, state)

    # -- amplitudes and expectation values -----------------------------------------------------------------------------

    def compute_amplitudes_sweep_iter(
        self,
        program: cirq.AbstractCircuit,
        bitstrings: Sequence[int],
        params: cirq.Sweepable,
        qubit_order: cirq.QubitOrderOrList = cirq.QubitOrder.DEFAULT,
    ) -> Iterator[Sequence[complex]]:
        """Yield the amplitudes of some basis states for each of the values of the parameters.

        Parameters
        ----------
        program, params, qubit_order
            As for `simulate_sweep_iter`. Measurements at the end do not matter.
        bitstrings : sequence of int
            Indices of the basis states.

        Raises
        ------
        BadInput
            An index is out of range, or the circuit has channels or measurements inside.
        """
        qubits = cirq.QubitOrder.as_qubit_order(qubit_order).order_for(program.all_qubits())
        wanted = [int(one) for one in bitstrings]
        if any(not 0 <= one < 1 << len(qubits) for one in wanted):
            raise BadInput(f"expected indices from 0 to {(1 << len(qubits)) - 1}, found {wanted}")
        for resolver in cirq.to_resolvers(params):
            yield self._state(program, resolver, qubits, None).amplitudes(wanted).tolist()

    def simulate_expectation_values_sweep_iter(
        self,
        program: cirq.AbstractCircuit,
        observables: Any,
        params: cirq.Sweepable,
        qubit_order: cirq.QubitOrderOrList = cirq.QubitOrder.DEFAULT,
        initial_state: Any = None,
        permit_terminal_measurements: bool = False,
    ) -> Iterator[list[float]]:
        """Yield the expectation values of observables for each of the values of the parameters.

        Parameters
        ----------
        program, params, qubit_order, initial_state
            As for `simulate_sweep_iter`.
        observables : cirq.PauliSumLike or list of them
            Sums of Pauli strings.
        permit_terminal_measurements : bool
            Whether the circuit may end with measurements, which do not matter.

        Raises
        ------
        BadInput
            An observable is no Hermitian sum of Pauli strings, or the circuit has channels or measurements.
        """
        if not permit_terminal_measurements and program.has_measurements():
            raise BadInput("expected a circuit without measurements, or permit_terminal_measurements=True")
        qubits = cirq.QubitOrder.as_qubit_order(qubit_order).order_for(program.all_qubits())
        sums = [
            pauli_sum(one, qubits)
            for one in (observables if isinstance(observables, list) else [observables])
        ]
        for resolver in cirq.to_resolvers(params):
            found = self._state(program, resolver, qubits, initial_state).expectations(sums)
            yield [float(np.real(one)) for one in found]

    def _state(
        self,
        program: cirq.AbstractCircuit,
        resolver: cirq.ParamResolver,
        qubits: Sequence[cirq.Qid],
        initial_state: Any,
    ) -> State:
        circuit = convert(cirq.resolve_parameters(program, resolver), qubits, measured=False).program.circuit
        if initial_state is None:
            return simulate(circuit, self.group, precision=self.precision).state
        state = State(len(qubits), self.group, precision=self.precision)
        state.set_amplitudes(_vector(initial_state, len(qubits)))
        state.run(circuit)
        return state


def _vector(initial_state: Any, qubits: int) -> NDArray[np.complex128]:
    """Return the amplitudes of an initial state."""
    size = 1 << qubits
    if isinstance(initial_state, (int, np.integer)):
        if not 0 <= initial_state < size:
            raise BadInput(f"expected an initial state from 0 to {size - 1}, found {initial_state}")
        return np.eye(1, size, int(initial_state), dtype=complex)[0]
    values = np.asarray(initial_state, np.complex128).reshape(-1)
    if values.shape != (size,):
        raise BadInput(f"expected {size} amplitudes of {qubits} qubits, found {values.size}")
    if not abs(np.linalg.norm(values) - 1) < 1e-5:
        raise BadInput(f"expected an initial state of norm 1, found {np.linalg.norm(values):.6g}")
    return values


def _records(converted: Converted, rows: NDArray[np.uint8]) -> dict[str, NDArray[np.uint8]]:
    """Return the outcomes of each key, shape (repetitions, measurements of the key, qubits)."""
    found = {}
    for key, instances in converted.keys.items():
        if len({len(bits) for bits, _ in instances}) != 1:
            raise BadInput(f"measurements of {key!r}: expected as many qubits in each of them")
        columns = [
            rows[:, bits] ^ np.array([inverted >> k & 1 for k in range(len(bits))], np.uint8)
            for bits, inverted in instances
        ]
        found[key] = np.stack(columns, axis=1)
    return found
