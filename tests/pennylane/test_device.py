"""The PennyLane device against PennyLane's own state vector."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import onehop

qml = pytest.importorskip("pennylane", reason="there is no PennyLane; pip install pennylane")

from pennylane import numpy as np  # noqa: E402

from onehop.error import BadInput  # noqa: E402
from onehop.pennylane import OnehopQubit  # noqa: E402
from ranks import completed  # noqa: E402


def _circuit(x: Any, y: Any) -> Any:
    qml.RX(x, 0)
    qml.Rot(x, y, 0.3, wires=1)
    qml.CNOT([0, 1])
    qml.IsingXY(y, wires=[1, 2])
    qml.QFT(wires=[0, 2])
    qml.PauliRot(2 * x, "XYZ", wires=[2, 0, 1])
    qml.CRY(y, [2, 0])
    qml.PhaseShift(y, 2)
    return qml.expval(qml.Z(0) @ qml.X(1)), qml.expval(qml.Hamiltonian([0.5, 2.0], [qml.Y(2), qml.Z(1)]))


@pytest.mark.parametrize("method", ["adjoint", "best", "parameter-shift"])
def test_values_and_derivatives(method: str) -> None:
    x, y = np.array(0.4, requires_grad=True), np.array(0.7, requires_grad=True)
    ours = qml.QNode(_circuit, OnehopQubit(wires=3), diff_method=method)
    theirs = qml.QNode(_circuit, qml.device("default.qubit", wires=3))
    assert np.allclose(ours(x, y), theirs(x, y), rtol=0, atol=1e-12)
    for expected, found in zip(
        *(qml.jacobian(lambda *z, node=node: qml.math.stack(node(*z)))(x, y) for node in (theirs, ours)),
        strict=True,
    ):
        assert np.allclose(expected, found, rtol=0, atol=1e-10)


def test_other_measurements() -> None:
    def circuit() -> Any:
        qml.StatePrep(np.array([0.6, 0, 0, 0.8]), wires=[0, 1])
        qml.Hadamard(1)
        return (
            qml.state(),
            qml.var(qml.Z(1)),
            qml.purity(wires=0),
            qml.probs(wires=[1]),
            qml.expval(qml.Projector([1], [0])),
        )

    ours = qml.QNode(circuit, OnehopQubit(wires=2))()
    theirs = qml.QNode(circuit, qml.device("default.qubit", wires=2))()
    for one, other in zip(ours, theirs, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-12)


def test_shots_and_measurements_inside() -> None:
    @qml.set_shots(2000)
    @qml.qnode(OnehopQubit(wires=3, seed=3))
    def circuit() -> Any:
        qml.Hadamard(0)
        bit = qml.measure(0)
        qml.cond(bit, qml.X)(1)
        return qml.counts(wires=[0, 1])

    counts = circuit()
    assert set(counts) == {"00", "11"}
    assert abs(counts["00"] - 1000) < 5 * np.sqrt(500)


def _inside(shots: int | None, method: str, name: str) -> Any:
    device = (
        OnehopQubit(wires=6, seed=3) if name == "onehop" else qml.device("default.qubit", wires=6, seed=4)
    )

    @qml.set_shots(shots)
    @qml.qnode(device, mcm_method=method)
    def circuit() -> Any:
        qml.StatePrep(np.array([0.6, 0, 0, 0.8]), wires=[0, 1])
        qml.RX(0.7, 2)
        first = qml.measure(0)
        qml.cond(first, qml.RY)(0.9, wires=1)
        qml.CNOT([1, 2])
        second = qml.measure(2, reset=True)
        third = qml.measure(1, postselect=1)
        qml.cond(first + second == 1, qml.Hadamard)(0)
        qml.CRX(0.4, [0, 2])
        kept = (
            qml.expval(qml.Z(0) @ qml.X(2)),
            qml.var(qml.Z(0)),
            qml.probs(wires=[2, 0]),
            qml.expval(first + 2 * second),
            qml.var(second),
            qml.probs(op=[first, second]),
        )
        return (
            kept if shots is None else (*kept, qml.counts(wires=[0, 2]), qml.counts(third), qml.sample(first))
        )

    return circuit()


def test_measurements_inside_as_a_tree() -> None:
    expected = _inside(None, "deferred", "default")
    found = _inside(None, "tree-traversal", "onehop")
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-12)
    sampled = _inside(20000, "tree-traversal", "onehop")
    for one, other in zip(sampled[:6], expected, strict=True):
        assert np.allclose(one, other, rtol=0, atol=0.06)
    number = sum(sampled[6].values())
    assert sampled[7] == {1: number}
    assert len(sampled[8]) == number < 20000
    assert abs(sampled[6].get("00", 0) / number - expected[2][0]) < 0.03


def test_the_tree_counts_outcomes_that_do_not_occur() -> None:
    @qml.set_shots(shots=10)
    @qml.qnode(OnehopQubit(wires=2, seed=1), mcm_method="tree-traversal")
    def circuit() -> Any:
        qml.X(0)
        one, two = qml.measure(0), qml.measure(1)
        return [qml.counts(value, all_outcomes=True) for value in (one, [one, two], one + 2 * two)]

    assert circuit() == [{0: 0, 1: 10}, {"00": 0, "01": 0, "10": 10, "11": 0}, {0: 0, 1: 10, 2: 0, 3: 0}]


def test_the_tree_refuses_what_it_cannot() -> None:
    @qml.qnode(OnehopQubit(wires=1), mcm_method="tree-traversal", diff_method=None)
    def circuit() -> Any:
        qml.measure(0)
        return qml.purity(wires=0)

    with pytest.raises(qml.exceptions.DeviceError, match="cannot compute PurityMP"):
        circuit()


def _kept(shots: int | None, mode: str | None, device: Any, method: str = "deferred") -> Any:
    @qml.set_shots(shots)
    @qml.qnode(device, mcm_method=method, postselect_mode=mode)
    def circuit() -> Any:
        qml.RX(1.1, 0)
        qml.CRY(0.8, [0, 1])
        qml.measure(1, postselect=1)
        qml.Hadamard(2)
        first = qml.measure(2, postselect=0, reset=True)
        qml.cond(first == 0, qml.CNOT)([1, 2])
        qml.RY(0.3, 1)
        if shots:
            return qml.sample(wires=[1, 2])
        return qml.expval(qml.Z(1) @ qml.X(2)), qml.var(qml.Y(1)), qml.probs(wires=[0, 1, 2])

    return circuit()


def test_postselection() -> None:
    expected = _kept(None, None, qml.device("default.qubit", wires=5))
    for one, other in zip(_kept(None, None, OnehopQubit(wires=5)), expected, strict=True):
        assert np.allclose(one, other, rtol=0, atol=1e-12)
    chance = np.sin(0.55) ** 2 * np.sin(0.4) ** 2 / 2
    samples = _kept(40000, None, OnehopQubit(wires=5, seed=2))
    assert abs(len(samples) - 40000 * chance) < 5 * np.sqrt(40000 * chance)
    assert len(_kept(50, "fill-shots", OnehopQubit(wires=5, seed=2))) == 50
    with pytest.raises(qml.exceptions.DeviceError, match="'fill-shots' needs mcm_method 'deferred'"):
        _kept(50, "fill-shots", OnehopQubit(wires=5), "tree-traversal")
    with pytest.raises(qml.exceptions.DeviceError, match="none in 1 shots, each kept with probability 0"):
        _kept(1, None, OnehopQubit(wires=5, seed=2))


def test_postselection_of_what_never_occurs_is_an_error() -> None:
    @qml.qnode(OnehopQubit(wires=2))
    def circuit() -> Any:
        qml.measure(1, postselect=1)
        return qml.expval(qml.Z(0))

    with pytest.raises(qml.exceptions.DeviceError, match="found none: their probability is 0"):
        circuit()


def _kept_energy(x: Any) -> Any:
    qml.RX(x, 0)
    qml.CNOT([0, 1])
    qml.RY(x, 1)
    qml.measure(0, postselect=1)
    return qml.expval(qml.Z(1))


def _weighted_energy(x: Any) -> Any:
    qml.RX(x, 0)
    return qml.expval(qml.Hamiltonian(qml.math.stack([x, 2 * x]), [qml.Z(0), qml.Y(0)]))


def _energy_after_measurement(x: Any) -> Any:
    qml.RX(x, 0)
    qml.measure(0)
    qml.RX(x, 0)
    return qml.expval(qml.Z(0))


@pytest.mark.parametrize(
    ("circuit", "options"),
    [
        (_kept_energy, {}),
        (_weighted_energy, {}),
        (_energy_after_measurement, {"mcm_method": "tree-traversal"}),
    ],
)
def test_the_best_method_shifts_where_the_adjoint_method_cannot(circuit: Any, options: Any) -> None:
    x = np.array(0.4, requires_grad=True)
    found = qml.grad(qml.QNode(circuit, OnehopQubit(wires=3), **options))(x)
    expected = qml.grad(qml.QNode(circuit, qml.device("default.qubit", wires=3)))(x)
    assert abs(found - expected) < 1e-10


def test_second_derivatives() -> None:
    node = qml.QNode(_weighted_energy, OnehopQubit(wires=1), max_diff=2)
    x = np.array(0.4, requires_grad=True)
    expected = -2 * np.sin(x) - x * np.cos(x) - 4 * np.cos(x) + 2 * x * np.sin(x)
    assert abs(qml.jacobian(qml.grad(node))(x) - expected) < 1e-9


def test_the_adjoint_method_refuses_postselection() -> None:
    with pytest.raises(qml.exceptions.QuantumFunctionError, match="the postselection of operation 3"):
        qml.QNode(_kept_energy, OnehopQubit(wires=3), diff_method="adjoint")(np.array(0.4))


@pytest.mark.parametrize("found", [0.3 + 1j, "x", None])
def test_an_angle_is_a_real_number(found: Any) -> None:
    @qml.qnode(OnehopQubit(wires=1))
    def circuit() -> Any:
        qml.RX(found, 0)
        return qml.expval(qml.Z(0))

    with pytest.raises(BadInput, match=r"\(RX on wires 0\): expected a real number as parameter 0, found"):
        circuit()


def test_refuses_another_precision() -> None:
    with pytest.raises(BadInput, match="expected precision 'single' or 'double', found 'half'"):
        OnehopQubit(wires=1, precision="half")


def test_refuses_other_methods() -> None:
    @qml.qnode(OnehopQubit(wires=1), mcm_method="one-shot")
    def circuit() -> Any:
        return qml.expval(qml.Z(0))

    with pytest.raises(qml.exceptions.DeviceError, match="expected 'deferred'"):
        circuit()


def test_the_adjoint_method_takes_no_shots() -> None:
    def circuit(x: Any) -> Any:
        qml.RX(x, 0)
        return qml.expval(qml.Z(0))

    x, device = np.array(0.3, requires_grad=True), OnehopQubit(wires=1, seed=1)
    node = qml.set_shots(qml.QNode(circuit, device, diff_method="adjoint"), 100)
    message = r"by parameter 0 of operation 0 \(RX on wires 0\): expected exact results.*found 100 shots"
    for call in (node, qml.grad(node)):
        with pytest.raises(qml.exceptions.QuantumFunctionError, match=message):
            call(x)
    node = qml.set_shots(qml.QNode(circuit, device, diff_method="best"), 10000)
    assert abs(qml.grad(node)(x) + np.sin(0.3)) < 5 / 100


def test_errors_name_the_operator() -> None:
    @qml.qnode(OnehopQubit(wires=["a", "b"]), diff_method="adjoint")
    def circuit(x: Any, weight: Any = 1.0) -> Any:
        qml.RY(0.1, "b")
        qml.RX(x, "a")
        return qml.expval(weight * qml.Z("a"))

    bad = np.array(float("nan"), requires_grad=True)
    for call in (circuit, qml.grad(circuit)):
        with pytest.raises(
            BadInput, match=r"operation 1 \(RX on wires a\): expected a finite parameter 0, found nan"
        ):
            call(bad)
        with pytest.raises(BadInput, match=r"expected a Hermitian observable, found 2j \* Z\('a'\)"):
            call(np.array(0.3, requires_grad=True), 2j)


def test_the_adjoint_method_names_what_it_cannot() -> None:
    class Mystery(qml.operation.Operation):
        num_params, num_wires = 1, 1

        @staticmethod
        def compute_matrix(x: Any) -> Any:
            return np.diag([1, np.exp(1j * x)])

    def strange(x: Any) -> Any:
        Mystery(x, wires=0)
        return qml.expval(qml.Z(0))

    def squared(x: Any) -> Any:
        qml.RX(x, 0)
        return qml.expval(qml.X(0)), qml.var(qml.Z(0))

    def skew(x: Any) -> Any:
        qml.RX(x, 0)
        return qml.expval(qml.Z(1) + 2 * qml.Hermitian(np.eye(2, k=1, requires_grad=False), 0))

    x = np.array(0.3, requires_grad=True)
    device = OnehopQubit(wires=2)
    with pytest.raises(qml.exceptions.DeviceError, match=r"Mystery on wires 0: parameter 0: expected a gate"):
        qml.grad(qml.QNode(strange, device, diff_method="adjoint"))(x)
    with pytest.raises(qml.exceptions.QuantumFunctionError, match=r"found var\(Z\(0\)\) as measurement 1"):
        qml.QNode(squared, device, diff_method="adjoint")(x)
    with pytest.raises(BadInput, match="found Hermitian on wires 0 with a matrix that is not"):
        qml.QNode(skew, device)(x)


@pytest.mark.parametrize("interface", ["autograd", "jax", "torch"])
def test_interfaces(interface: str) -> None:
    """The derivatives of a cost that mixes two expectation values, through each interface."""
    values = [0.4, 0.7]

    def circuit(x: Any, y: Any) -> Any:
        qml.RX(x, 0)
        qml.CRY(y, [0, 1])
        qml.IsingXX(x * y, [0, 1])
        return qml.expval(qml.Z(0)), qml.expval(qml.X(1) @ qml.Y(0))

    node = qml.QNode(circuit, OnehopQubit(wires=2), diff_method="adjoint", interface=interface)

    def cost(x: Any, y: Any) -> Any:
        first, second = node(x, y)
        return first**2 + 3 * second

    expected = qml.QNode(circuit, qml.device("default.qubit", wires=2), interface="autograd")
    x, y = (np.array(one, requires_grad=True) for one in values)
    slope = qml.grad(lambda x, y: expected(x, y)[0] ** 2 + 3 * expected(x, y)[1])(x, y)
    if interface == "autograd":
        found = qml.grad(cost)(x, y)
    elif interface == "jax":
        jax = pytest.importorskip("jax", reason="there is no JAX; pip install jax")
        jax.config.update("jax_enable_x64", True)
        found = jax.grad(cost, argnums=(0, 1))(*(jax.numpy.array(one) for one in values))
    else:
        torch = pytest.importorskip("torch", reason="there is no PyTorch; make setup-torch")
        inputs = [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in values]
        cost(*inputs).backward()
        found = [one.grad.item() for one in inputs]
    assert np.allclose(np.array([float(one) for one in found]), slope, rtol=0, atol=1e-10)


def _environment(folder: Path) -> dict[str, str]:
    """Make the device known to programs that find PennyLane's plug-ins, also where onehop is not installed."""
    about = folder / "onehop_for_tests-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: onehop-for-tests\nVersion: 0\n")
    (about / "entry_points.txt").write_text(
        "[pennylane.plugins]\nonehop.qubit = onehop.pennylane:OnehopQubit\n"
    )
    paths = [str(Path(onehop.__file__).parents[1]), str(folder), os.environ.get("PYTHONPATH", "")]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PATH": programs}


@pytest.mark.parametrize("shots", ["None", "10000"])
def test_the_device_tests_of_pennylane(shots: str, tmp_path: Path) -> None:
    for package in ("flaky", "pytest_mock"):
        pytest.importorskip(package, reason=f"pl-device-test needs {package}")
    if int(pytest.__version__.split(".")[0]) > 8:
        pytest.skip("pl-device-test passes an option of flaky that pytest 9 does not know")
    words = f"pl-device-test --device onehop.qubit --shots {shots} --tb=short -p no:cacheprovider".split()
    done = completed(words, env=_environment(tmp_path), cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_the_example(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = Path(__file__).parents[2] / "examples" / "pennylane_optimization.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "both.svg")],
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    above = float(done.stdout.splitlines()[0].split()[-1])
    cut, most = re.search(r"QAOA: ([\d.]+) of (\d+)", done.stdout).groups()
    assert -1e-9 < above < 1e-4
    assert 0.9 * int(most) < float(cut) <= int(most) == 10
    assert (tmp_path / "both.svg").stat().st_size > 5000


def test_states_on_a_device() -> None:
    x, y = np.array(0.4, requires_grad=True), np.array(0.7, requires_grad=True)
    nodes = [
        qml.QNode(_circuit, OnehopQubit(wires=3, device=name), diff_method="adjoint")
        for name in ("processor", "cpu")
    ]
    values = [node(x, y) for node in nodes]
    assert np.allclose(values[0], values[1])
    jacobians = [qml.jacobian(lambda *at, node=node: np.stack(node(*at)))(x, y) for node in nodes]
    assert np.allclose(jacobians[0], jacobians[1])
