"""`OnehopQubit`: PennyLane's device interface on the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pennylane import math
from pennylane.devices import Device, ExecutionConfig
from pennylane.devices.default_qubit import accepted_analytic_measurement, accepted_sample_measurement
from pennylane.devices.modifiers import simulator_tracking, single_tape_support
from pennylane.devices.preprocess import (
    decompose,
    no_sampling,
    validate_adjoint_trainable_params,
    validate_device_wires,
    validate_measurements,
    validate_observables,
)
from pennylane.devices.qubit.simulate import measure_final_state
from pennylane.devices.qubit_mixed import measure_final_state as measure_mixed_state
from pennylane.exceptions import DeviceError, QuantumFunctionError
from pennylane.measurements import ExpectationMP
from pennylane.operation import StatePrepBase
from pennylane.ops import Conditional, MidMeasure, Projector
from pennylane.tape import QuantumScript
from pennylane.transforms import broadcast_expand, defer_measurements
from pennylane.transforms.core import CompilePipeline

from onehop import quantum
from onehop.pennylane.adjoint import (
    has_pauli_form,
    needs_shifts,
    why_not_adjoint,
    why_not_expectations,
)
from onehop.pennylane.operations import (
    append,
    append_channel,
    is_channel,
    is_differentiable,
    is_known,
    kept_shots,
    named,
    pauli_sum,
    postselects,
    project,
    require_valid,
)
from onehop.pennylane.tree import measured_tree
from onehop.quantum import Circuit, DensityMatrix, Parameter, State
from onehop.quantum.foreign import check_precision
from onehop.quantum.steps import Program

__all__ = ["OnehopQubit"]


def _supported(operator: Any) -> bool:
    return isinstance(operator, StatePrepBase) or is_known(operator)


def _supported_in_tree(operator: Any) -> bool:
    inner = operator.base if isinstance(operator, Conditional) else operator
    return isinstance(operator, MidMeasure) or _supported(inner)


def _differentiable(operator: Any) -> bool:
    trained = [number for number, one in enumerate(operator.data) if math.requires_grad(one)]
    if not trained or is_differentiable(operator):
        return is_known(operator)
    if not operator.has_decomposition:
        raise DeviceError(
            f"{operator.name} on wires {', '.join(map(str, operator.wires))}: parameter {trained[0]}: expected a gate "
            "that has a derivative by the adjoint method, or a decomposition into such gates; use "
            "diff_method='finite-diff' or 'parameter-shift'"
        )
    return False


@simulator_tracking
@single_tape_support
class OnehopQubit(Device):
    """State vectors of onehop as a PennyLane device, `qml.device("onehop.qubit", wires=4)`.

    A circuit with channels runs on a density matrix, which has the memory of a state vector of twice as many qubits.

    Expectation values of Pauli strings and their derivatives by the adjoint method are computed on the state where it
    is. All other measurements, and shots, take the whole state vector. Measurements inside a circuit are deferred, or,
    with `mcm_method="tree-traversal"`, followed on every branch that occurs.

    Parameters
    ----------
    wires : int or sequence, optional
        Wires of the device. Default: those of each circuit.
    shots : int, optional
        Number of samples. Default: exact results.
    seed : int, optional
        Seed of the samples. Default: a random seed.
    precision : str
        "double" or "single".
    threads : int
        Threads of the simulator; 0: one for each core.
    device : str
        Where states are, as for `onehop.quantum.State`: "cpu", or on a card, "cuda" or "hip".

    Raises
    ------
    BadInput
        There is no such precision.
    """

    name = "onehop.qubit"

    def __init__(
        self,
        wires: Any = None,
        shots: int | None = None,
        *,
        seed: Any = None,
        precision: str = "double",
        threads: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(wires=wires, shots=shots)
        self._rng = np.random.default_rng(seed)
        self._options = {"precision": check_precision(precision), "threads": threads, "device": device}

    # -- what the device can do --------------------------------------------------------------------------------------

    def supports_derivatives(
        self, execution_config: ExecutionConfig | None = None, circuit: QuantumScript | None = None
    ) -> bool:
        """Check that derivatives are those of expectation values of Pauli strings, without shots and postselection.

        If the configuration asks for the best method, the answer is also no for trees of measurements, for second
        derivatives and for derivatives by weights of observables. PennyLane then takes parameter shifts.

        Raises
        ------
        QuantumFunctionError
            The configuration asks for the adjoint method by its name, and the circuit is one that it cannot take.
            PennyLane would raise this error for a plain `False`, without the reason.
        """
        method = "adjoint" if execution_config is None else execution_config.gradient_method
        if method not in ("adjoint", "best"):
            return False
        reason = None if circuit is None else why_not_adjoint(circuit)
        if reason is not None and execution_config is not None and method == "adjoint":
            raise QuantumFunctionError(f"{reason}; use diff_method='parameter-shift' or 'best'")
        if execution_config is not None and method == "best" and needs_shifts(execution_config, circuit):
            return False
        return reason is None

    supports_vjp = supports_derivatives

    def setup_execution_config(
        self, config: ExecutionConfig | None = None, circuit: QuantumScript | None = None
    ) -> ExecutionConfig:
        """Choose the adjoint method as the best one, and defer measurements."""
        config = config or ExecutionConfig()
        if config.device_options:
            raise DeviceError(f"onehop.qubit has no device options, found {sorted(config.device_options)}")
        method = config.mcm_config.mcm_method
        if method not in (None, "deferred", "tree-traversal"):
            raise DeviceError(
                f"mcm_method {method!r} is not supported on onehop.qubit: expected 'deferred' or 'tree-traversal'"
            )
        tree = method == "tree-traversal"
        if tree and config.mcm_config.postselect_mode == "fill-shots":
            raise DeviceError(
                "postselect_mode='fill-shots' needs mcm_method 'deferred', found 'tree-traversal'"
            )
        if tree and config.gradient_method == "adjoint":
            raise DeviceError("the adjoint method needs mcm_method 'deferred', found 'tree-traversal'")
        own = not tree and self._is_own_method(config, circuit)
        values: dict[str, Any] = {
            "mcm_config": replace(config.mcm_config, mcm_method="tree-traversal" if tree else "deferred")
        }
        if own:
            values["gradient_method"] = "adjoint"
        for option in ("use_device_gradient", "use_device_jacobian_product", "grad_on_execution"):
            if getattr(config, option) is None:
                values[option] = own
        return replace(config, **values)

    def _is_own_method(self, config: ExecutionConfig, circuit: QuantumScript | None) -> bool:
        return config.gradient_method == "adjoint" or (
            config.gradient_method == "best" and self.supports_derivatives(config, circuit)
        )

    def preprocess_transforms(self, execution_config: ExecutionConfig | None = None) -> CompilePipeline:
        """Return the transforms that bring circuits into the form that the device takes."""
        config = execution_config or ExecutionConfig()
        program = CompilePipeline()
        program.add_transform(validate_device_wires, self.wires, name=self.name)
        tree = config.mcm_config.mcm_method == "tree-traversal"
        if not tree:
            program.add_transform(defer_measurements, allow_postselect=True)
        stop = _supported_in_tree if tree else _supported
        program.add_transform(decompose, stopping_condition=stop, name=self.name)
        program.add_transform(
            validate_measurements,
            analytic_measurements=accepted_analytic_measurement,
            sample_measurements=accepted_sample_measurement,
            name=self.name,
        )
        program.add_transform(broadcast_expand)
        if config.gradient_method == "adjoint":
            name = "adjoint + onehop.qubit"
            program.add_transform(no_sampling, name=name)
            program.add_transform(
                decompose, stopping_condition=_differentiable, name=name, skip_initial_state_prep=False
            )
            program.add_transform(validate_observables, has_pauli_form, name=name)
            program.add_transform(
                validate_measurements,
                analytic_measurements=lambda one: isinstance(one, ExpectationMP),
                name=name,
            )
            program.add_transform(validate_adjoint_trainable_params)
        return program

    # -- execution ---------------------------------------------------------------------------------------------------

    def execute(self, circuits: Any, execution_config: ExecutionConfig | None = None) -> Any:
        """Run circuits; return the results of their measurements."""
        mode = None if execution_config is None else execution_config.mcm_config.postselect_mode
        return tuple(self._execute(one, mode) for one in circuits)

    def _execute(self, script: QuantumScript, postselect_mode: str | None) -> Any:
        require_valid(script)
        script = script.map_to_standard_wires()
        mixed = any(map(is_channel, script.operations))
        if any(isinstance(one, MidMeasure) for one in script.operations):
            if mixed:
                raise DeviceError("channels need mcm_method 'deferred', found 'tree-traversal'")
            return self._tree(script)
        state, chance = (self._mixed(script), 1.0) if mixed else self._state(script)
        if script.shots and any(map(postselects, script.operations)):
            script = kept_shots(script, chance, postselect_mode, self._rng)
        if why_not_expectations(script) is None:
            sums = [pauli_sum(one.obs, _places(script)) for one in script.measurements]
            found = tuple(np.array(np.real(one)) for one in state.expectations(sums))
            return found[0] if len(found) == 1 else found
        shape = (2,) * len(script.wires)
        if isinstance(state, DensityMatrix):
            return measure_mixed_state(script, state.matrix().reshape(2 * shape), False, rng=self._rng)
        return measure_final_state(script, state.vector().reshape(shape), False, rng=self._rng)

    def _mixed(self, script: QuantumScript) -> DensityMatrix:
        """Return the final density matrix of a circuit with channels."""
        start, operations = _split(script)
        matrix = DensityMatrix(len(script.wires), **self._options)
        if start is not None:
            matrix.set_vector(start)
        program = Program(Circuit(matrix.qubits))
        for index, one in enumerate(operations):
            if postselects(one):
                raise DeviceError(
                    f"expected a circuit with channels and without postselection, found {named(index, one)}"
                )
            if is_channel(one):
                append_channel(program, one, _places(script))
            else:
                _append_number(program.circuit, one, _places(script))
        matrix.run_program(program)
        return matrix

    def _tree(self, script: QuantumScript) -> Any:
        start, operations = _split(script)
        places = _places(script)
        return measured_tree(
            script.copy(operations=operations),
            start,
            lambda circuit, operation: _append_number(circuit, operation, places),
            places,
            self._rng,
            self._options,
        )

    def _state(self, script: QuantumScript) -> tuple[State, float]:
        """Return the final state, and the probability that postselection keeps it."""
        start, operations = _split(script)
        state = State(max(len(script.wires), 1), **self._options)
        if start is not None:
            state.set_amplitudes(start)
        circuit, chance = Circuit(state.qubits), 1.0
        for operation in operations:
            if isinstance(operation, Projector):
                state.run(circuit)
                chance *= project(state, operation, _places(script))
                circuit = Circuit(state.qubits)
            else:
                _append_number(circuit, operation, _places(script))
        state.run(circuit)
        return state, chance

    # -- derivatives ---------------------------------------------------------------------------------------------------

    def _gradients(self, script: QuantumScript, weights: Sequence[float] | None = None) -> Any:
        """Return values and derivatives by the trainable parameters."""
        require_valid(script)
        script = script.map_to_standard_wires()
        trained = {place: number for number, place in enumerate(script.trainable_params)}
        circuit = Circuit(max(len(script.wires), 1))
        circuit.parameters = [f"t{number}" for number in range(len(trained))]
        values = [0.0] * len(trained)
        place = 0
        for operation in script.operations:
            angles: list[Any] = []
            for one in operation.data:
                if place in trained:
                    values[trained[place]] = float(np.real(one))
                    angles.append(Parameter(f"t{trained[place]}"))
                elif is_differentiable(operation):
                    angles.append(float(np.real(one)))
                place += 1
            append(circuit, operation, _places(script), angles)
        sums = [pauli_sum(one.obs, _places(script)) for one in script.measurements]
        return quantum.compile(circuit, **self._options).gradients(values, sums, weights)

    def compute_derivatives(self, circuits: Any, execution_config: ExecutionConfig | None = None) -> Any:
        """Return the Jacobian of each circuit."""
        return tuple(_jacobian(self._gradients(one).derivatives) for one in circuits)

    def execute_and_compute_derivatives(
        self, circuits: Any, execution_config: ExecutionConfig | None = None
    ) -> Any:
        """Run circuits; return the results and the Jacobians."""
        found = [self._gradients(one) for one in circuits]
        return tuple(_single(one.values) for one in found), tuple(_jacobian(one.derivatives) for one in found)

    def compute_vjp(
        self, circuits: Any, cotangents: Any, execution_config: ExecutionConfig | None = None
    ) -> Any:
        """Return the product of each cotangent with the Jacobian of its circuit."""
        return tuple(self._vjp(*both)[1] for both in zip(circuits, cotangents, strict=True))

    def execute_and_compute_vjp(
        self, circuits: Any, cotangents: Any, execution_config: ExecutionConfig | None = None
    ) -> Any:
        """Run circuits; return the results and the products of cotangents and Jacobians."""
        found = [self._vjp(*both) for both in zip(circuits, cotangents, strict=True)]
        return tuple(values for values, _ in found), tuple(product for _, product in found)

    def _vjp(self, script: QuantumScript, cotangent: Any) -> tuple[Any, Any]:
        stacked = math.stack(cotangent) if isinstance(cotangent, (tuple, list)) else cotangent
        weights = np.real(np.asarray(math.toarray(stacked))).reshape(len(script.measurements), -1)
        if weights.shape[1] == 1:
            found = self._gradients(script, weights[:, 0].tolist())
            return _single(found.values), tuple(np.array(one) for one in found.derivatives)
        found = self._gradients(script)
        return _single(found.values), tuple(weights.T @ column for column in found.derivatives.T)


def _split(script: QuantumScript) -> tuple[Any, list[Any]]:
    """Return the amplitudes of the initial state, None for |0...0>, and the operations after it."""
    operations = list(script.operations)
    if not operations or not isinstance(operations[0], StatePrepBase):
        return None, operations
    wires = list(range(max(len(script.wires), 1)))
    first = operations.pop(0).state_vector(wire_order=wires)
    return np.asarray(first, complex).reshape(-1), operations


def _append_number(circuit: Circuit, operation: Any, places: Any) -> None:
    """Append an operator whose parameters are numbers."""
    if isinstance(operation, StatePrepBase):
        raise DeviceError(f"{operation.name} is only possible at the beginning of a circuit")
    angles = [float(np.real(one)) for one in operation.data] if is_differentiable(operation) else []
    append(circuit, operation, places, angles)


def _places(script: QuantumScript) -> Any:
    """Return the function from wires to qubits: PennyLane's first wire is the most significant bit."""
    last = max(len(script.wires), 1) - 1
    return lambda wire: last - int(wire)


def _single(values: Any) -> Any:
    found = tuple(np.array(one) for one in values)
    return found[0] if len(found) == 1 else found


def _jacobian(rows: Any) -> Any:
    found = tuple(_single(row) if len(row) else () for row in rows)
    return found[0] if len(found) == 1 else found
