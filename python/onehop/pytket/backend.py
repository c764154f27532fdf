"""`OnehopBackend`: shots, counts, state vectors and expectation values for pytket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from pytket.backends import Backend, CircuitStatus, ResultHandle, StatusEnum
from pytket.backends.backend_exceptions import CircuitNotRunError
from pytket.backends.backendinfo import BackendInfo
from pytket.backends.backendresult import BackendResult
from pytket.circuit import Circuit as TketCircuit
from pytket.circuit import OpType
from pytket.passes import AutoRebase, BasePass, DecomposeBoxes, SequencePass, SynthesiseTket
from pytket.predicates import NoSymbolsPredicate, Predicate
from pytket.utils.outcomearray import OutcomeArray

from onehop._core import __version__
from onehop.group import Group, group_or_alone
from onehop.pytket.conversion import converted, pauli_sum
from onehop.quantum import simulate
from onehop.quantum.foreign import check_precision
from onehop.quantum.simulation_options import common_seed
from onehop.quantum.simulator import shot_bits
from onehop.quantum.steps import require_certain

__all__ = ["OnehopBackend"]


class OnehopBackend(Backend):
    """State vectors of onehop as a pytket backend.

    Jobs are done when `process_circuit` returns. Circuits need no compilation. Collective inside a launch, with a
    group.

    Parameters
    ----------
    group : Group, optional
        Ranks that hold the state. Default: this process alone.
    precision : str
        "double" or "single".
    """

    _supports_shots = True
    _supports_counts = True
    _supports_state = True
    _supports_expectation = True
    _expectation_allows_nonhermitian = False
    _persistent_handles = False

    def __init__(self, group: Group | None = None, *, precision: str = "double") -> None:
        super().__init__()
        self.group = group_or_alone(group)
        self.precision = check_precision(precision)

    # -- what the backend can do -------------------------------------------------------------------------------------

    @property
    def required_predicates(self) -> list[Predicate]:
        """Conditions on circuits: no symbols."""
        return [NoSymbolsPredicate()]

    @property
    def backend_info(self) -> BackendInfo:
        """Name, version and gates."""
        gates = {OpType.TK1, OpType.CX, OpType.Measure, OpType.Reset, OpType.Conditional}
        return BackendInfo("OnehopBackend", None, __version__, None, gates)

    def rebase_pass(self) -> BasePass:
        """Return a pass to the gates TK1 and CX."""
        return AutoRebase({OpType.CX, OpType.TK1})

    def default_compilation_pass(self, optimisation_level: int = 2) -> BasePass:
        """Return a pass that replaces boxes by gates and, from level 1, joins gates."""
        passes: list[BasePass] = [DecomposeBoxes()]
        if optimisation_level > 0:
            passes.append(SynthesiseTket())
        return SequencePass(passes)

    @property
    def _result_id_type(self) -> tuple[type, ...]:
        return (str,)

    # -- running -----------------------------------------------------------------------------------------------------

    def process_circuits(
        self,
        circuits: Sequence[TketCircuit],
        n_shots: int | Sequence[int] | None = None,
        valid_check: bool = True,
        **kwargs: Any,
    ) -> list[ResultHandle]:
        """Run circuits.

        Parameters
        ----------
        circuits : sequence of pytket.Circuit
            Circuits.
        n_shots : int or sequence of int, optional
            Number of shots. Default: none; the result has the state vector. In a circuit without bits, all qubits are
            measured at the end.
        valid_check : bool
            Whether to check `required_predicates` first.
        **kwargs
            `seed`: seed of the first circuit; circuit k takes this plus k.

        Returns
        -------
        list of ResultHandle
            A handle for each circuit, for `get_result`.

        Raises
        ------
        BadInput
            A circuit cannot be simulated, or has measurements before other operations but no shots.
        """
        circuits = list(circuits)
        shots = Backend._get_n_shots_as_list(n_shots, len(circuits), optional=True)
        if valid_check:
            self._check_all_circuits(circuits, nomeasure_warn=any(one is not None for one in shots))
        seed = common_seed(kwargs.get("seed"), self.group)
        handles = []
        for k, (circuit, number) in enumerate(zip(circuits, shots, strict=True)):
            handle = ResultHandle(str(uuid4()))
            self._cache[handle] = {"result": self._run(circuit, number, seed + k)}
            handles.append(handle)
        return handles

    def _run(self, circuit: TketCircuit, shots: int | None, seed: int) -> BackendResult:
        if shots and not circuit.n_bits:
            circuit = circuit.copy().measure_all()
        ours = converted(circuit)
        if not shots:
            require_certain(ours)
        result = simulate(ours, self.group, shots=shots or 0, seed=seed, precision=self.precision)
        if shots:
            rows = shot_bits(result.outcomes)
            return BackendResult(c_bits=circuit.bits, shots=OutcomeArray.from_readouts(rows))
        return BackendResult(q_bits=circuit.qubits, state=result.state.vector())

    def circuit_status(self, handle: ResultHandle) -> CircuitStatus:
        """Return that the circuit has run.

        Raises
        ------
        CircuitNotRunError
            The handle is none of this backend's.
        """
        self._check_handle_type(handle)
        if handle in self._cache:
            return CircuitStatus(StatusEnum.COMPLETED)
        raise CircuitNotRunError(handle)

    # -- expectation values --------------------------------------------------------------------------------------------

    def get_pauli_expectation_value(self, state_circuit: TketCircuit, pauli: Any) -> complex:
        """Return the expectation value of a `QubitPauliString` in the final state of a circuit."""
        return self.get_operator_expectation_value(state_circuit, pauli)

    def get_operator_expectation_value(self, state_circuit: TketCircuit, operator: Any) -> complex:
        """Return the expectation value of a `QubitPauliOperator` in the final state of a circuit.

        Raises
        ------
        BadInput
            The operator is not Hermitian, or the circuit cannot be simulated or has resets or measurements inside.
        """
        observable = pauli_sum(operator, state_circuit.qubits)
        circuit = converted(state_circuit)
        require_certain(circuit)
        result = simulate(circuit, self.group, precision=self.precision, observables=[observable])
        return complex(result.expectations[0])
