"""Functions of `onehop.quantum` whose arguments are of another class: one line says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onehop
from onehop import BadInput, Group
from onehop import quantum as q

CALLS: dict[str, Callable[[Any], Any]] = {
    "barrier: qubits": lambda wrong: q.Circuit(1).barrier([wrong]),
    "channel: name": q.channel,
    "collapse: value": lambda wrong: q.DensityMatrix(1).collapse(0, wrong, 1.0),
    "collapse: probability": lambda wrong: q.DensityMatrix(1).collapse(0, 0, wrong),
    "Circuit.operation: index": lambda wrong: q.Circuit(1).operation(wrong),
    "cp: angle": lambda wrong: q.Circuit(2).cp(wrong, 0, 1),
    "diagonal: controls": lambda wrong: q.Circuit(2).diagonal([1, 1], [0], controls=[wrong]),
    "diagonal: control_values": lambda wrong: q.Circuit(2).diagonal(
        [1, 1], [0], controls=[1], control_values=[wrong]
    ),
    "entropy: base": lambda wrong: q.DensityMatrix(1).entropy(base=wrong),
    "gate: qubits": lambda wrong: q.Circuit(1).gate("x", [wrong]),
    "gate: parameters": lambda wrong: q.Circuit(1).gate("rx", [0], [wrong]),
    "global_phase: angle": lambda wrong: q.Circuit(1).global_phase(wrong),
    "measure: qubits": lambda wrong: q.Circuit(1, 1).measure(wrong, 0),
    "measure: clbits": lambda wrong: q.Circuit(1, 1).measure(0, wrong),
    "NoiseModel.after: operation": q.NoiseModel().after,
    "NoiseModel.check_names: circuit": q.NoiseModel().check_names,
    "NoiseModel.on: qubits": lambda wrong: q.NoiseModel().on([wrong]),
    "pauli_rotation: paulis": lambda wrong: q.Circuit(1).pauli_rotation(wrong, 0.1, [0]),
    "PauliSum.parse: text": q.PauliSum.parse,
    "PauliSum.require: qubits": q.PauliSum.parse("Z0").require,
    "State.load: file": q.State.load,
    "State.save: file": lambda wrong: q.State(1).save(wrong),
    "State.save: attributes": lambda wrong: q.State(1).save(
        "never", None, wrong if isinstance(wrong, complex | np.ndarray) else {"a": wrong}
    ),
    "simulate: checkpoint": lambda wrong: q.simulate(q.Circuit(1), checkpoint=wrong),
    "permutation: targets": lambda wrong: q.Circuit(1).permutation([wrong]),
    "NoiseModel.parse: text": q.NoiseModel.parse,
    "compile: circuit": q.compile,
    "compile: group": lambda wrong: q.compile(q.Circuit(1), wrong),
    "compile: reproducible": lambda wrong: q.compile(q.Circuit(1), reproducible=wrong),
    "DensityMatrix: group": lambda wrong: q.DensityMatrix(1, wrong),
    "Expression: terms": q.Expression,
    "Expression: factor": lambda wrong: q.Expression({"a": wrong}),
    "Expression: constant": lambda wrong: q.Expression({}, wrong),
    "PauliTerm: coefficient": lambda wrong: q.PauliTerm([wrong]),
    "PauliTerm: paulis": lambda wrong: q.PauliTerm(1.0, (wrong,)),
    "PauliTerm: letter": lambda wrong: q.PauliTerm(1.0, ((0, wrong),)),
    "sample: bases": lambda wrong: q.State(1).sample(1, bases=wrong),
    "from_qiskit: circuit": q.from_qiskit,
    "gradients: circuit": lambda wrong: q.gradients(wrong, [], ["Z0"]),
    "gradients: group": lambda wrong: q.gradients(q.Circuit(1), [], ["Z0"], wrong, noise=q.NoiseModel()),
    "gradients: noise": lambda wrong: q.gradients(q.Circuit(1), [], ["Z0"], noise=wrong),
    "parameter_shift: circuit": lambda wrong: q.parameter_shift(wrong, [], ["Z0"], lambda *_: [0.0]),
    "imaginary_time: state": lambda wrong: q.imaginary_time(wrong, "Z0", 1, 1),
    "imaginary_time: time": lambda wrong: q.imaginary_time(q.State(1), "Z0", wrong, 1),
    "imaginary_time: steps": lambda wrong: q.imaginary_time(q.State(1), "Z0", 1, wrong),
    "lindblad: matrix": lambda wrong: q.lindblad(wrong, "Z0", [], 1, 1),
    "lindblad: steps": lambda wrong: q.lindblad(q.DensityMatrix(1), "Z0", [], 1, wrong),
    "lindblad: jumps": lambda wrong: q.lindblad(q.DensityMatrix(1), "Z0", wrong, 1, 1),
    "lindblad: jump": lambda wrong: q.lindblad(q.DensityMatrix(1), "Z0", [wrong], 1, 1),
    "load_qasm: file": q.load_qasm,
    "parse_qasm: text": q.parse_qasm,
    "parse_qasm: folder": lambda wrong: q.parse_qasm("qreg q[1];", folder=wrong),
    "plan: ranks": lambda wrong: q.plan(q.Circuit(1), wrong),
    "plan: ranks_per_node": lambda wrong: q.plan(q.Circuit(1), ranks_per_node=wrong),
    "plan: ranks_per_host": lambda wrong: q.plan(q.Circuit(1), ranks_per_host=wrong),
    "plan_density: noise": lambda wrong: q.plan_density(q.Circuit(1), noise=wrong),
    "Channel: kraus": lambda wrong: q.Channel(wrong),
    "DensityMatrix: qubits": q.DensityMatrix,
    "DensityMatrix.apply: channel": lambda wrong: q.DensityMatrix(1).apply(wrong, [0]),
    "DensityMatrix.run: circuit": q.DensityMatrix(1).run,
    "DensityMatrix.run: noise": lambda wrong: q.DensityMatrix(1).run(q.Circuit(1), wrong),
    "DensityMatrix.sample: shots": q.DensityMatrix(1).sample,
    "DensityMatrix.set_basis_state: index": q.DensityMatrix(1).set_basis_state,
    "NoiseModel.add: qubits": lambda wrong: q.NoiseModel().add("bit_flip", 0.1, qubits=[wrong]),
    "NoiseModel.readout: probability": q.NoiseModel().readout,
    "NoiseModel.readout: qubits": lambda wrong: q.NoiseModel().readout(0.1, qubits=[wrong]),
    **{
        f"{kind.__name__}.{name}: qubits": getattr(kind(2), name)
        for kind in (q.DensityMatrix, q.State)
        for name in ("partial_trace", "density_matrix", "probabilities", "entropy")
    },
    "DensityMatrix.measure: qubits": q.DensityMatrix(1).measure,
    "State.fidelity: other": q.State(1).fidelity,
    "State.inner_product: other": q.State(1).inner_product,
    "plan: circuit": q.plan,
    "plan_density: circuit": q.plan_density,
    "simulate: group": lambda wrong: q.simulate(q.Circuit(1), wrong),
    **{
        f"simulate: {name}": lambda wrong, name=name: q.simulate(q.Circuit(1), **{name: wrong})
        for name in ("method", "state_folder", "precision", "device")
    },
    "plan_density: precision": lambda wrong: q.plan_density(q.Circuit(1), precision=wrong),
    "simulate: shots": lambda wrong: q.simulate(q.Circuit(1), shots=wrong),
    "simulate_density: circuit": q.simulate_density,
    "simulate_density: noise": lambda wrong: q.simulate_density(q.Circuit(1), noise=wrong),
    "simulate_density: shots": lambda wrong: q.simulate_density(q.Circuit(1), shots=wrong),
    "simulate_trajectories: circuit": q.simulate_trajectories,
    "simulate_trajectories: group": lambda wrong: q.simulate_trajectories(q.Circuit(1), wrong),
    "simulate_trajectories: shots": lambda wrong: q.simulate_trajectories(q.Circuit(1), shots=wrong),
    "simulate_trajectories: trajectories": lambda wrong: q.simulate_trajectories(
        q.Circuit(1), trajectories=wrong
    ),
    "simulate_trajectories: memory": lambda wrong: q.simulate_trajectories(q.Circuit(1), memory=wrong),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "wrong", [2.5j, [Path], object(), np.array([0.5, 1])], ids=["number", "list", "object", "array"]
)
def test_an_argument_of_another_class_is_one_line(call: str, wrong: Any) -> None:
    with pytest.raises(BadInput, match=r"\bexpected .*found") as error:
        CALLS[call](wrong)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: q.Circuit(1, 1).measure([0.7], [0]),
        lambda: q.simulate(q.Circuit(1), profile=np.zeros(2)),  # type: ignore[arg-type]
        lambda: onehop.scan(Group.alone(), np.ones(2), exclusive=np.zeros(2)),
        lambda: q.Circuit(1).reset([0.7]),
        lambda: q.Circuit(2).unitary([[0, 1], [1, 0]], [0], controls=[1], control_values=[2]),
        lambda: q.DensityMatrix(1).collapse(0, -1, 1.0),
        lambda: q.DensityMatrix(1).collapse(0, 1, 0.0),
        lambda: q.DensityMatrix(1).collapse(0, 0, float("nan")),
        lambda: q.DensityMatrix(1).collapse(1, 0, 1.0),
        lambda: q.Circuit(2).h(0).operation(1),
        lambda: q.PauliSum.parse("Z0").require(-1),
        lambda: q.NoiseModel().add("bit_flip", 0.1, gates=[3, "x"]).check_names(q.Circuit(1)),
        lambda: q.State.load("a\0b"),
        lambda: q.State(1).save("\ud800"),
        lambda: q.State(1).save("never", None, {"": 1}),
        lambda: q.DensityMatrix(1).entropy(base=0.5),
        lambda: q.DensityMatrix(1).sample(-1),
        lambda: q.DensityMatrix(2).set_basis_state(4),
        lambda: q.DensityMatrix(2).measure([0.5]),
        lambda: q.simulate_density(q.Circuit(1), shots=1e3),
        lambda: q.simulate_trajectories(q.Circuit(1), trajectories=2**70),
        lambda: q.lindblad(q.DensityMatrix(1), "Z0", [([[0, 1], [0, 0]], [0.7])], 1, 1),
    ],
)
def test_a_number_out_of_range_is_not_rounded_or_wrapped(call: Callable[[], Any]) -> None:
    with pytest.raises(BadInput, match=r"(expected .*found|there is no)"):
        call()


def test_an_error_is_one_line_whatever_the_name_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        q.State.load(tmp_path / "a\nb\r\x1b[31m\u2028c")
    assert str(error.value).endswith("a b [31m c: No such file or directory")
