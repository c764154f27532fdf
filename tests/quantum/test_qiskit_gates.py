"""Every gate of Qiskit's library, and gates that only look like one, against Qiskit's own matrices on random states."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from onehop import BadInput
from onehop.quantum import State, simulate

pytest.importorskip("qiskit")
from qiskit import QuantumCircuit
from qiskit.circuit import (
    AnnotatedOperation,
    ControlledGate,
    ControlModifier,
    Gate,
    Instruction,
    InverseModifier,
    Parameter,
    PowerModifier,
)
from qiskit.circuit import library as lib
from qiskit.exceptions import QiskitError
from qiskit.quantum_info import Clifford, Operator, Pauli, SparsePauliOp, random_unitary
from qiskit.synthesis import LieTrotter, QDrift

from onehop.quantum.io.from_qiskit import from_qiskit

_COMMUTING = SparsePauliOp(["XX", "ZZ", "II"], [0.3, -0.4, 0.2])
# Values by the name of a constructor's argument, and all arguments of the classes for which names do not suffice.
_BY_NAME: dict[str, Any] = {
    **{name: 0.3 + 0.4 * k for k, name in enumerate(["theta", "phi", "lam", "gamma", "v_x", "v_y", "v_z"])},
    "phase": 1.1,
    "angle": 0.7,
    "angle_list": [0.3, 0.7, -0.4, 1.1],
    "pauli": Pauli("XZY"),
    "num_qubits": 3,
    "num_state_qubits": 2,
    "num_ctrl_qubits": 3,
    "num_variable_qubits": 3,
}
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "BitFlipOracleGate": ("x & ~y",),
    "BitwiseXorGate": (3, 5),
    "DiagonalGate": (np.exp(1j * np.arange(8)),),
    "ExactReciprocalGate": (2, 0.3),
    "GraphStateGate": (np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]),),
    "HamiltonianGate": (np.array([[0.3, 0.2j], [-0.2j, 0.5]]), 0.7),
    "IntegerComparatorGate": (2, 2),
    "Isometry": (random_unitary(4, seed=3).data[:, :2], 0, 0),
    "LinearAmplitudeFunctionGate": (2, 0.3, 0.1, (0, 1), (0, 1)),
    "LinearFunction": ([[1, 1, 0], [0, 1, 0], [1, 0, 1]],),
    "MCGupDiag": (random_unitary(2, seed=4).data, 2, 0, 0),
    "MCMTGate": (lib.XGate(), 1, 2),
    "MSGate": (3, 0.4),
    "PauliEvolutionGate": (_COMMUTING, 0.7),
    "PauliGate": ("XYZ",),
    "PermutationGate": ([2, 0, 1],),
    "PhaseOracleGate": ("x & ~y",),
    "PiecewiseChebyshevGate": (lambda x: 0.3 + 0.2 * x, 2, 2, [0, 2]),
    "PiecewiseLinearPauliRotationsGate": (2, [0, 2], [0.3, 0.4], [0.1, 0.2]),
    "PiecewisePolynomialPauliRotationsGate": (2, [0, 2], [[0.3, 0.1], [0.4]]),
    "PolynomialPauliRotationsGate": (2, [0.3, 0.2, 0.1]),
    "QuadraticFormGate": (2, [[1, 0], [1, 1]], [1, 2], 1),
    "StatePreparation": ([0.5, 0.5j, -0.5, 0.5],),
    "UCGate": ([random_unitary(2, seed=5).data, random_unitary(2, seed=6).data],),
    "UCPauliRotGate": ([0.3, 0.7], "X"),
    "UniformSuperpositionGate": (3, 2),
    "UnitaryGate": (random_unitary(4, seed=7),),
    "WeightedSumGate": (2, [1, 2]),
}
# More instances of a class: sizes, states of controls and modes that its definition tells apart.
_MORE: dict[str, list[dict[str, Any]]] = {
    "MCMTGate": [{"gate": lib.RYGate(0.4), "num_ctrl_qubits": 2, "num_target_qubits": 2, "ctrl_state": 1}],
    "MCXGate": [{"num_ctrl_qubits": 5, "ctrl_state": 18}],
    "MCXVChain": [
        {"num_ctrl_qubits": 2, "relative_phase": True},
        {"num_ctrl_qubits": 3, "action_only": True},
    ],
    "LinearPauliRotationsGate": [{"num_state_qubits": 2, "slope": 0.3, "offset": 0.2, "basis": "X"}],
    "MSGate": [{"num_qubits": 3, "theta": [[0, 0.3, 0.4], [0.3, 0, 0.5], [0.4, 0.5, 0]]}],
    "UCGate": [{"gate_list": [random_unitary(2, seed=k).data for k in range(4)], "up_to_diagonal": True}],
}
_NO_UNITARIES = {"Initialize", "PauliProductMeasurement"}


def _classes() -> list[str]:
    found = [
        name
        for name, one in vars(lib).items()
        if inspect.isclass(one)
        and issubclass(one, Instruction)
        and one.__module__.startswith("qiskit.circuit.library")
    ]
    return sorted(set(found) - _NO_UNITARIES)


def _instances(name: str) -> Iterator[Any]:
    """Make gates of a class: closed and open controls where it has controls."""
    kind = getattr(lib, name)
    if name in _ARGUMENTS:
        yield kind(*_ARGUMENTS[name])
    else:
        arguments = inspect.signature(kind.__init__).parameters
        needed = [one for one in list(arguments.values())[1:] if one.default is one.empty]
        unknown = [one.name for one in needed if one.name not in _BY_NAME]
        if unknown:
            pytest.skip(f"{name} is new: add values for its arguments {', '.join(unknown)} to this test")
        given = {one.name: _BY_NAME[one.name] for one in needed}
        yield kind(**given)
        if issubclass(kind, ControlledGate) and "ctrl_state" in arguments:
            yield kind(**given, ctrl_state=0)
    for options in _MORE.get(name, ()):
        yield kind(**options)


def _variants(gate: Any) -> Iterator[Any]:
    """Yield a gate, its inverse, powers and controls, as far as Qiskit can make them in a short time."""
    size = gate.num_qubits
    makers: list[Callable[[], Any]] = [lambda: gate]
    if isinstance(gate, Gate) and size < 6:
        makers.append(gate.inverse)
    if isinstance(gate, Gate) and size < 5:
        makers += [
            lambda: gate.control(1, ctrl_state=0, annotated=False),
            lambda: AnnotatedOperation(gate, [PowerModifier(0.5), ControlModifier(1, 1), InverseModifier()]),
        ]
    if isinstance(gate, Gate) and size < 3:
        makers += [
            lambda: gate.power(3),
            lambda: _nested(gate.control(2, ctrl_state=1, annotated=False).inverse()),
        ]
    for make in makers:
        try:
            made = make()
            Operator(made)
        except (QiskitError, AttributeError):
            continue
        yield made


def _nested(gate: Gate) -> Gate:
    """Put a gate into a circuit with a phase, and control that."""
    inside = QuantumCircuit(gate.num_qubits, global_phase=0.4)
    inside.append(gate, range(gate.num_qubits)[::-1])
    return inside.to_gate().control(1, annotated=False)


def _assert_equal(gate: Any, seed: int, matrix: Any = None) -> None:
    """Compare a gate on permuted qubits of a random state with its matrix."""
    random = np.random.default_rng(seed)
    size = gate.num_qubits + 1
    state = [1, 1j] @ random.normal(size=(2, 1 << size))
    state /= np.linalg.norm(state)
    qubits = random.permutation(size)[: gate.num_qubits].tolist()
    circuit = QuantumCircuit(size)
    circuit.append(gate, qubits)
    axes = [size - 1 - qubit for qubit in reversed(qubits)]
    matrix = (Operator(gate) if matrix is None else Operator(matrix)).data.reshape((2,) * (2 * len(qubits)))
    expected = np.tensordot(matrix, state.reshape((2,) * size), (range(len(qubits), 2 * len(qubits)), axes))
    expected = np.moveaxis(expected, range(len(qubits)), axes).reshape(-1)
    ours = State(size, threads=1).set_amplitudes(state)
    ours.run(from_qiskit(circuit))
    np.testing.assert_allclose(ours.vector(), expected, atol=1e-9, err_msg=repr(gate))


@pytest.mark.parametrize("name", _classes())
def test_every_gate_of_the_library(name: str) -> None:
    for seed, gate in enumerate(one for made in _instances(name) for one in _variants(made)):
        _assert_equal(gate, seed)


def _circuit(name: str, gate: str, *qubits: int) -> QuantumCircuit:
    """Make a circuit of one gate."""
    circuit = QuantumCircuit(max(qubits) + 1, name=name, global_phase=0.3)
    getattr(circuit, gate)(*qubits)
    return circuit


def _own_control(count: int, base: Gate, definition: QuantumCircuit, **options: Any) -> ControlledGate:
    return ControlledGate(
        "own",
        definition.num_qubits,
        base.params,
        num_ctrl_qubits=count,
        base_gate=base,
        definition=definition,
        **options,
    )


def _fanout(**options: Any) -> ControlledGate:
    """A controlled X on each of two targets, whose base gate has one qubit."""
    definition = QuantumCircuit(3)
    definition.cx(0, 1)
    definition.cx(0, 2)
    return _own_control(1, lib.XGate(), definition, **options)


class _OwnControls(Gate):
    """A gate whose controls are defined with another phase."""

    def __init__(self) -> None:
        super().__init__("own", 1, [])

    def _define(self) -> None:
        self.definition = _circuit("own", "h", 0)

    def control(self, *arguments: Any, **options: Any) -> ControlledGate:
        return _own_control(1, self, _circuit("own", "ch", 0, 1))


class _OnlyMatrix(Gate):
    """A gate that Qiskit cannot invert."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return random_unitary(2, seed=3).data


class _Reversed(LieTrotter):
    """A product formula that defines its circuits otherwise than by `expand`."""

    def synthesize(self, evolution: Any) -> QuantumCircuit:
        return super().synthesize(evolution).reverse_bits()


def _renamed(gate: Gate, name: str) -> Gate:
    gate = gate.to_mutable()
    gate.name = name
    return gate


def _bound(controlled: bool) -> Gate:
    """A gate with a definition whose parameter has got its value in a circuit."""
    angle = Parameter("angle")
    inside = QuantumCircuit(2)
    inside.rx(2 * angle, 0)
    inside.rzz(angle, 0, 1)
    gate = inside.to_gate().control(1, ctrl_state=0, annotated=False) if controlled else inside.to_gate()
    outside = QuantumCircuit(gate.num_qubits)
    outside.append(gate, range(gate.num_qubits))
    return outside.assign_parameters({angle: 0.7}).data[0].operation


_NAMES = (
    "h barrier box delay for_loop if_else kraus measure pauli permutation reset save_state superop unitary"
)
OWN: dict[str, Callable[[], Any]] = {
    "fanout": _fanout,
    "open fanout": lambda: _fanout(ctrl_state=0),
    "fanout in a gate": lambda: _nested(_fanout()),
    "other definition": lambda: _own_control(1, lib.XGate(), _circuit("own", "cz", 0, 1)),
    "other phase": lambda: _own_control(1, lib.RZGate(0.4), _cp()),
    "own controls": lambda: _OwnControls().control(),
    "own synthesis": lambda: lib.PauliEvolutionGate(SparsePauliOp(["XY"], [0.3]), 0.7, synthesis=_Reversed()),
    "own evolution of a term": lambda: lib.PauliEvolutionGate(
        SparsePauliOp(["XY"], [0.3]),
        0.7,
        synthesis=LieTrotter(atomic_evolution=lambda circuit, *_, **__: circuit.h(0)),
    ),
    "random order": lambda: lib.PauliEvolutionGate(
        SparsePauliOp(["XY", "ZI", "YY"]), 0.7, synthesis=QDrift(2, seed=1)
    ),
    "bound definition": lambda: _bound(False),
    "bound control": lambda: _bound(True),
    "renamed x": lambda: _renamed(lib.XGate(), "y"),
    "renamed u1": lambda: _renamed(lib.U1Gate(0.3), "rz"),
    "label": lambda: lib.XGate(label="z"),
    "root beyond pi": lambda: AnnotatedOperation(lib.RXGate(7), PowerModifier(0.5)),
    "root of a square": lambda: AnnotatedOperation(lib.SGate(), [PowerModifier(3), PowerModifier(0.5)]),
    "negative power": lambda: AnnotatedOperation(_circuit("own", "h", 0).to_gate(), PowerModifier(-2)),
    "inverse clifford": lambda: AnnotatedOperation(
        Clifford(_circuit("own", "cx", 0, 1)), [InverseModifier(), ControlModifier(1, 0)]
    ),
    "inverse of a multiplexer": lambda: AnnotatedOperation(
        lib.UCGate([random_unitary(2, seed=k).data for k in (1, 2)]).repeat(2), InverseModifier()
    ),
    "inverse of a matrix": lambda: AnnotatedOperation(_OnlyMatrix("own", 1, []), InverseModifier()),
    "inverse of own controls": lambda: AnnotatedOperation(_OwnControls().control(), InverseModifier()),
    "inverse of a fanout": lambda: AnnotatedOperation(_fanout(), [ControlModifier(1, 1), InverseModifier()]),
    "quadratic": lambda: lib.QFTGate(2).control(1, annotated=True).power(2).inverse(),
    **{f"named {name}": lambda name=name: _circuit(name, "iswap", 0, 1).to_gate() for name in _NAMES.split()},
}

# Qiskit's definitions of these controls go by the names of what is inside; definitions decide.
OWN |= {
    "control of one named h": lambda: _circuit("h", "iswap", 0, 1).to_gate().control(1, annotated=False),
    "controls of one named cx": lambda: (
        _circuit("cx", "iswap", 0, 1).to_gate().control(2, ctrl_state=1, annotated=False)
    ),
    "controls of h named z": lambda: _renamed(lib.HGate(), "z").control(2, annotated=False),
    "control of one with one named h inside": lambda: _nested(_circuit("h", "sx", 0).to_gate()),
}


def _cp() -> QuantumCircuit:
    circuit = QuantumCircuit(2)
    circuit.cp(0.4, 0, 1)
    return circuit


@pytest.mark.parametrize("name", OWN)
def test_gates_that_only_look_like_one_of_the_library(name: str) -> None:
    gate = OWN[name]()
    _assert_equal(gate, 1, gate.definition if isinstance(gate, lib.PauliEvolutionGate) else None)


def test_powers_of_unbound_gates_are_refused() -> None:
    for power in (2, 0.5):
        circuit = QuantumCircuit(1)
        circuit.append(AnnotatedOperation(lib.U2Gate(Parameter("a"), 0.3), PowerModifier(power)), [0])
        with pytest.raises(BadInput, match="bind its parameters first"):
            from_qiskit(circuit)


def test_controls_stay_controls() -> None:
    """A gate that Qiskit controls keeps its base gate, however it is built."""
    evolution = QuantumCircuit(3)
    evolution.append(lib.PauliEvolutionGate(SparsePauliOp(["XYZ"], [0.3]), 0.7), [0, 1, 2])
    evolution.unitary(random_unitary(4, seed=1), [0, 1])
    circuit = QuantumCircuit(5)
    circuit.append(evolution.to_gate().control(2, ctrl_state=1, annotated=False), range(5))
    circuit.append(lib.MCXGate(4), range(5))
    made = from_qiskit(circuit).operations
    assert [(one.kind, len(one.controls)) for one in made] == [
        ("pauli_rotation", 2),
        ("matrix", 2),
        ("matrix", 4),
    ]


def test_a_matrix_that_is_not_unitary_is_refused() -> None:
    wrong = lib.UnitaryGate(np.diag([1, 2]), check_input=False)
    for gate in (wrong, wrong.control(1, annotated=True)):
        circuit = QuantumCircuit(gate.num_qubits)
        circuit.append(gate, range(gate.num_qubits))
        with pytest.raises(BadInput, match="not unitary"):
            simulate(from_qiskit(circuit))


@pytest.mark.parametrize("how", ["__array__", "to_matrix", "_define"])
@pytest.mark.parametrize(
    "kind", [lib.RXGate, lib.XGate, lib.CRXGate, lib.CXGate, lib.RZZGate, lib.DiagonalGate]
)
def test_subclasses_of_library_gates_are_what_they_define(kind: type, how: str) -> None:
    arguments: Any = {lib.XGate: (), lib.CXGate: (), lib.DiagonalGate: ([1, -1],)}.get(kind, (0.3,))
    qubits = kind(*arguments).num_qubits
    matrix = random_unitary(2**qubits, seed=5).data

    def define(gate: Any) -> None:
        gate.definition = QuantumCircuit(qubits)
        gate.definition.unitary(matrix, range(qubits))

    member: Any = define if how == "_define" else lambda *_, **__: matrix
    mine = type("Mine", (kind,), {how: member})(*arguments)
    controlled = np.kron(matrix, np.diag([0, 1])) + np.kron(np.eye(2**qubits), np.diag([1, 0]))
    for gate, wanted in [
        (mine, matrix),
        (AnnotatedOperation(mine, InverseModifier()), matrix.conj().T),
        (AnnotatedOperation(mine, ControlModifier(1)), controlled),
    ]:
        circuit = QuantumCircuit(gate.num_qubits)
        circuit.append(gate, range(gate.num_qubits))
        numbers = np.random.default_rng(1).normal(size=len(wanted)) + 0j
        state = State(gate.num_qubits).set_amplitudes(numbers, normalize=True)
        state.run(from_qiskit(circuit))
        assert np.allclose(state.vector(), wanted @ numbers / np.linalg.norm(numbers))
