"""Wrong input of parameters and gradients is refused before anything runs; large and steep angles."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop import quantum
from onehop.cli import main
from onehop.cli.quantum.memory import memory_of_gradient, with_gradient
from onehop.error import BadInput
from onehop.group import Group
from onehop.quantum import Circuit, DensityMatrix, NoiseModel, Parameter, PauliSum, PauliTerm
from onehop.quantum.circuit_plan import plan_memory, predict
from threads import run_threads

A = Parameter("a")
ONE = Circuit(2, 1).rx(A, 0)
COMPILED = quantum.compile(ONE)
TWO_LETTERS = PauliSum((PauliTerm(1.0, ((0, "X"), (0, "Z"))),))


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    "second", [0.01, 3.12]
)  # a flat layer, and one that alone shrinks the scale to 1e-32
def test_layers_of_steep_rotations(precision: str, second: float) -> None:
    a, b = Parameter("a"), Parameter("b")
    circuit = Circuit(16)
    for angle in (a, b, a):
        for qubit in range(16):
            circuit.ry(angle, qubit)
    compiled = quantum.compile(circuit, precision=precision)
    # Rotations about the same axis add up.
    for values in ([2.7, second], [0.3, second], [3.12, second]):
        total = 2 * values[0] + values[1]
        found = compiled.run_many([values], ["Z3", "Z0 Z15"])
        np.testing.assert_allclose(found, [[np.cos(total), np.cos(total) ** 2]], rtol=0, atol=1e-4)
        slopes = compiled.gradients(values, ["Z3"]).derivatives
        np.testing.assert_allclose(slopes, [[-2 * np.sin(total), -np.sin(total)]], rtol=0, atol=1e-3)


def test_two_steep_layers() -> None:
    circuit = Circuit(16)
    for name in ("a", "b"):
        for qubit in range(16):
            circuit.ry(Parameter(name), qubit)
    found = quantum.compile(circuit, precision="single").run_many([[2.7, 3.12]], ["Z0"])
    np.testing.assert_allclose(found, [[np.cos(5.82)]], rtol=0, atol=1e-4)


def _repeated() -> None:
    circuit = Circuit(2).rx(A, 0)
    circuit.parameters = ["a", "a"]
    circuit.validate()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: DensityMatrix(2).run(ONE), r"operation 0 \(rx\): parameter 'a' has no value"),
        (lambda: quantum.State(2).entropy([0, 0]), "expected distinct qubits"),
        (lambda: quantum.State(2).entropy([0], base=1), "expected a base above 1, found 1"),
        (lambda: quantum.State(2).sample(3, seed=-1), "seed: expected a whole number"),
        (lambda: quantum.State(2).run(Circuit(2), seed=-1), "seed: expected a whole number"),
        (
            lambda: NoiseModel.parse(" ; "),
            "expected noise as NAME=NUMBERS or NAME=NUMBERS:GATES, found ' ; '",
        ),
        (lambda: NoiseModel.parse("readout=1,1,1"), "one number, two for readout, three for pauli"),
        (_repeated, "expected parameters of different names, found 'a' twice"),
        (lambda: ONE.bind([10**400]), "parameter 'a': expected a number below"),
        (lambda: COMPILED.run_many(np.array([[0.1 + 1j]]), ["Z0"]), "expected a finite number"),
        (lambda: COMPILED.run_many(np.array([["b"]]), ["Z0"]), "expected a finite number"),
        (lambda: COMPILED.run_many([["b"]], ["Z0"]), "expected a finite number"),
        (
            lambda: COMPILED.run_many(np.array([[0.1], [np.inf]]), ["Z0"]),
            r"binding 1: operation 0 \(rx\): parameter 'a': expected a finite number, found inf",
        ),
        (
            lambda: COMPILED.run([]),
            r"operation 0 \(rx\): parameter 'a' has no value: expected a value for each of 1",
        ),
        (lambda: COMPILED.run_many([[1], [1, 2]], ["Z0"]), "binding 1: expected a value for each of 1"),
        (lambda: COMPILED.run_many({"a": [1, 2]}, ["Z0"]), "found one mapping; put it in a list"),
        (
            lambda: A * Parameter("b"),
            r"expected a linear expression of parameters, found the product of \(a\)",
        ),
        (lambda: NoiseModel().add([np.eye(2)]), "expected the name of a channel or a Channel, found list"),
        (
            lambda: NoiseModel().add("bit_flip", 0.1, gates="cx"),
            r"expected a list of names, .* write \['cx'\]",
        ),
        (
            lambda: ONE.bind([1e308]).rx(2 * A, 0).bind([1e308]),
            r"operation 1 \(rx\): parameter 'a': expected a finite angle, found inf",
        ),
        (
            lambda: quantum.compile(Circuit(1).rx(2 * A, 0)).run([1e308]),
            "a gate rx: parameter 'a': expected a finite angle, found inf",
        ),
        (
            lambda: Circuit(1).generated([[np.inf, 0], [0, 0]], A, [0]),
            "Hermitian generator of finite numbers",
        ),
        (lambda: quantum.gradients(ONE, [1], "Z0"), "expected a list of observables, found 'Z0'; put"),
        (lambda: quantum.gradients(ONE, [1], None), "expected a list of observables, found None"),
        (lambda: quantum.gradients(ONE, [1], ["Z0"], weights=[np.nan]), "weight 0: expected a finite number"),
        (lambda: quantum.gradients(ONE, [1], ["Z0"], weights="1"), "weight 0: expected a finite number"),
        (lambda: quantum.simulate(ONE.bind([1]), shots=1, seed=-1), r"from 0 to 2\^64 - 1, found -1"),
        (lambda: COMPILED.simulate([1], shots=1, seed=1.5), "seed: expected a whole number"),
        (
            lambda: quantum.simulate_density(ONE.bind([1]), shots=1, seed=1 << 64),
            "seed: expected a whole number",
        ),
    ],
)
def test_wrong_input(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        wrong()


def test_a_circuit_that_has_changed_is_not_the_compiled_one() -> None:
    circuit = Circuit(1).rx(A, 0)
    compiled = quantum.compile(circuit)
    compiled.run([0.3])
    circuit.rx(0.1, 0)
    for call in (
        lambda: compiled.run([0.3]),
        lambda: compiled.run_many(np.array([[0.3]]), ["Z0"]),
        lambda: compiled.gradients([0.3], ["Z0"]),
    ):
        with pytest.raises(
            BadInput, match="with 1 operation and the parameters a, found one that has changed since"
        ):
            call()


def test_no_runs_have_no_values() -> None:
    assert COMPILED.run_many([], ["Z0", "X0"]).shape == (0, 2)
    assert COMPILED.run_many(np.zeros((0, 1)), ["Z0"]).shape == (0, 1)
    assert COMPILED.run_many(np.zeros((3, 1)), []).shape == (3, 0)


def test_an_expression_without_parameters_is_a_number() -> None:
    angle = quantum.Expression({}, 1.0)
    circuit = Circuit(1).pauli_rotation("X", angle, [0]).global_phase(angle)
    expected = np.exp(1j) * np.array([np.cos(0.5), -1j * np.sin(0.5)])
    assert circuit.parameters == ()
    assert np.allclose(quantum.simulate(circuit).state.vector(), expected, rtol=0, atol=1e-12)


def test_arrays_of_other_types() -> None:
    for values in (np.array([[1]]), np.array([[1.0]], object), np.array([[1]], np.float32), [[1]]):
        np.testing.assert_allclose(COMPILED.run_many(values, ["Z0"]), [[np.cos(1)]], rtol=0, atol=1e-12)


def test_an_operation_of_another_circuit_takes_indices() -> None:
    other = Circuit(1).rx(Parameter("x"), 0).rx(Parameter("y"), 0)
    circuit = Circuit(1).rx(Parameter("b"), 0).rx(Parameter("c"), 0)
    circuit.add(other.operation(1))
    assert circuit.bind([0.1, 0.2]) == Circuit(1).rx(0.1, 0).rx(0.2, 0).rx(0.2, 0)
    assert "index" in str(Circuit.add.__doc__)


@pytest.mark.parametrize("ranks", [1, 2])
def test_all_ranks_refuse_the_same(ranks: int) -> None:
    """One run keeps one rank busy; the others must not wait for it."""
    huge = Circuit(2).rx(1e200 * A, 0)

    def refused(group: Group) -> list[str]:
        messages = []
        compiled = quantum.compile(ONE, group)
        for call in (
            lambda: compiled._core.run_many(np.array([[0.3]]), [quantum.observables.core_sum(TWO_LETTERS)]),
            lambda: compiled._core.gradients([0.3], [quantum.observables.core_sum(TWO_LETTERS)], []),
            lambda: quantum.compile(huge, group).run_many([[1e200]], ["Z0"]),
            lambda: quantum.compile(huge, group).run([1e200]),
            lambda: quantum.compile(huge, group).gradients([1e200], ["Z0"]),
        ):
            with pytest.raises(BadInput) as error:
                call()
            messages.append(str(error.value))
        return messages

    for messages in run_threads(ranks, refused):
        assert all("found two on qubit 0" in one for one in messages[:2])
        assert all("expected a finite angle, found inf" in one for one in messages[2:])


def test_qiskit_expressions() -> None:
    pytest.importorskip("qiskit")
    from qiskit import QuantumCircuit
    from qiskit.circuit import Parameter as QiskitParameter
    from qiskit.circuit.library import UGate

    t, u = QiskitParameter("t"), QiskitParameter("u")
    for angle in (t.sign(), 1j * t, t * t, t.log()):
        theirs = QuantumCircuit(1)
        theirs.rx(angle, 0)
        with pytest.raises(
            BadInput, match=r"rx on qubit 0: expected .*linear expressions of parameters, found"
        ):
            quantum.from_qiskit(theirs)
    theirs = QuantumCircuit(1)
    theirs.append(UGate(t, u, 0.1).power(0.5, annotated=True), [0])
    with pytest.raises(BadInput, match=r"raise to the power 0.5; bind its parameters first"):
        quantum.from_qiskit(theirs)


HEAD = """OPENQASM 3.0;
include "stdgates.inc";
input float theta;
bit[1] c;
"""
INSIDE = HEAD + "qubit[3] q;\nrx(theta) q[0];\nc[0] = measure q[0];\nh q[0];\n"
RESET = HEAD + "qubit[24] q;\nrx(theta) q;\nreset q[0];\n"
LARGE = HEAD + "qubit[24] q;\nrx(theta) q;\ncx q[0], q[1];\n"


@pytest.mark.parametrize("ranks", [[], ["-n", "2"]])
@pytest.mark.parametrize(
    ("text", "more", "code", "message"),
    [
        (INSIDE, [], 2, "--gradient: operation 2 (h): expected no operation after a measurement"),
        (RESET, [], 1, "the gradient of circuit circuit of 24 qubits does not fit"),
        (
            LARGE,
            ["--noise", "depolarizing=0.01", "--trajectories", "1"],
            1,
            "the gradient of circuit circuit of 24 qubits does not fit",
        ),
    ],
)
def test_the_command_checks_gradients_first(
    text: str,
    more: list[str],
    code: int,
    message: str,
    ranks: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    file = tmp_path / "circuit.qasm"
    file.write_text(text)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("something runs")

    run = importlib.import_module("onehop.cli.quantum.run")
    for name in ("simulate", "simulate_trajectories", "predict", *(["ensure_ranks"] if ranks else [])):
        monkeypatch.setattr(run, name, never)
    words = ["--bind", "theta=0.3", "--observable", "Z0", "--gradient"]
    assert main(["run", str(file), *words, *more, *ranks]) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_memory_of_gradients() -> None:
    pure = Circuit(10, 1).rx(0.3, 0).cx(0, 1).measure(0, 0)
    for qubit in range(2, 10):
        pure.h(qubit)
    one = plan_memory(pure, 2, "double", 2)
    for observables, states in ((1, 2), (2, 3), (5, 3)):
        found = memory_of_gradient(pure, 2, None, observables, "double", 2)
        assert (found.ranks, found.memory_per_rank) == (2, states * one.memory_per_rank)
    noisy = memory_of_gradient(pure, 2, NoiseModel.parse("depolarizing=0.1"), 1, "double", 2)
    assert noisy.memory_in_all >= 16 * 4**10


def test_the_prediction_of_a_gradient() -> None:
    plan = quantum.plan(Circuit(4).h(0).cx(0, 1))
    assert with_gradient(plan).passes == 3 * plan.passes > 0
    assert 2 * predict(plan) < predict(with_gradient(plan)) < 3 * predict(plan)
