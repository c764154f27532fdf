"""The walk over measurement records: the same seed gives the same counts in every version and on every number of ranks.

Other tests compare its results with brute force, with density matrices and with other simulators.
"""

from __future__ import annotations

from math import cos
from typing import Any

import pytest

from onehop import BadInput, Error, Group, _core, quantum
from onehop.quantum import DensityMatrix, NoiseModel, PauliSum
from onehop.quantum.circuit import Condition, Operation
from onehop.quantum.noise.core_program import run_program, run_tree
from onehop.quantum.steps import Program, Save
from threads import run_threads

NOISE = NoiseModel().add("depolarizing", 0.1, gates=["cx"]).add("amplitude_damping", 0.08).readout(0.02, 0.05)


def measured_inside() -> quantum.Circuit:
    circuit = quantum.Circuit(3, 3).ry(0.9, 0).cx(0, 1).rx(0.7, 2).measure(0, 0)
    with circuit.when(0):
        circuit.ry(0.4, 2).h(1)
    with circuit.when(0, negated=True):
        circuit.reset(1)
    return circuit.h(0).cx(1, 2).measure([0, 1, 2], [0, 1, 2])


def gates_and_a_reset() -> quantum.Circuit:
    circuit = quantum.Circuit(3, 3).ry(0.9, 0).cx(0, 1).rx(0.7, 2).reset(1)
    return circuit.cx(1, 2).h(0).measure([0, 1, 2], [0, 1, 2])


def of_kind(kind: str, group: Group) -> tuple[list[int], int, float]:
    options: dict[str, Any] = {"shots": 200, "seed": 7, "observables": ["X0 Z2"]}
    if kind == "simulate":
        result: Any = quantum.simulate(measured_inside(), group, **options)
    elif kind == "density":
        result = quantum.simulate_density(measured_inside(), group, noise=NOISE, **options)
    else:
        circuit = measured_inside() if kind == "records" else gates_and_a_reset()
        result = quantum.simulate_trajectories(circuit, group, noise=NOISE, trajectories=100, **options)
    counts = [result.counts.get(f"{outcome:03b}", 0) for outcome in range(8)]
    return counts, result.runs, round(result.expectations[0], 9)


def test_branches_that_are_never_taken_do_not_change_the_shots() -> None:
    def circuit(*, unused: bool) -> quantum.Circuit:
        one = quantum.Circuit(3, 4).ry(0.9, 0).cx(0, 1).measure(0, 0)
        if unused:
            one._assign(Condition([1], 1))  # hidden bit 4, which is 0
            one._assign(Condition([0], 1))  # which nothing reads
            for clbits, value, negated in (([2], 1, False), ([3, 4], 0, True), ([0, 2], 2, False)):
                with one.when(clbits, value, negated=negated):
                    one.x(0).measure(1, 3).reset(2)
        with one.when([0, 3] if unused else 0):
            one.ry(0.4, 2)
        return one.h(1).measure([1, 2], [1, 2])

    with_them, without = (
        quantum.simulate(circuit(unused=unused), shots=300, seed=5) for unused in (True, False)
    )
    assert with_them.counts == without.counts
    assert with_them.runs == without.runs == 2


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("simulate", ([76, 86, 1, 0, 15, 10, 10, 2], 2, 0.650115859)),
        ("density", ([85, 61, 3, 5, 16, 11, 11, 8], 4, 0.544797659)),
        ("records", ([85, 69, 7, 6, 11, 7, 6, 9], 24, 0.544824522)),
        ("histories", ([89, 70, 5, 5, 16, 9, 2, 4], 22, 0.408216605)),
    ],
)
def test_seeds_give_the_same_counts(kind: str, expected: tuple[list[int], int, float], ranks: int) -> None:
    assert run_threads(ranks, lambda group: of_kind(kind, group)) == [expected] * ranks


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_density_matrix_that_exists(ranks: int) -> None:
    def run(group: Group) -> Any:
        matrix = DensityMatrix(3, group)
        bits = [matrix.run(measured_inside(), NOISE, seed=seed) for seed in range(4)]
        return bits, matrix.sample(6, [0, 2], seed=3).tolist(), matrix.measure([2, 0], seed=1)

    expected = ([[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 1]], [2] * 6, [1, 0])
    assert run_threads(ranks, run) == [expected] * ranks


def flips_until_zero() -> Program:
    """Return a program that repeats a measurement until it gives 0, and saves the mean of Z on the other qubit."""
    program = Program(quantum.Circuit(2, 1).h(0).measure(0, 0))
    program.mark(0)
    program.jump(1, Condition([0], 0))
    program.circuit.ry(0.3, 1).h(0).measure(0, 0)
    program.jump(0)
    program.mark(1)
    program.save(Save("expval", "z", "average", observable=PauliSum.parse("Z1")), [])
    return program


@pytest.mark.parametrize("method", ["statevector", "density_matrix"])
def test_jumps_and_saved_data(method: str) -> None:
    result, saved = run_program(flips_until_zero(), method=method, shots=4000, seed=3)
    assert result.outcomes.values == [0]
    # The number of turns is geometric: half of the shots make none, a quarter one, ...
    expected = sum(cos(0.3 * turns) / 2 ** (turns + 1) for turns in range(60))
    assert saved["z"].groups[""][0] == pytest.approx(expected, abs=0.02)


def test_loops_without_an_end() -> None:
    program = Program(quantum.Circuit(1))
    program.mark(0)
    program.circuit.h(0)
    program.jump(0)
    with pytest.raises(Error, match="100,000 turns"):
        run_program(program)


def test_a_tree_with_postselection() -> None:
    circuit = quantum.Circuit(2, 2).ry(1.0, 0).measure(0, 0).ry(0.5, 1).measure(1, 1)
    program = Program(circuit)
    program.postselect(Condition([1], 0))
    program.save(Save("statevector", "final", "list"), [0, 1])
    runs = run_tree(program, 0, lambda _runs, _one: 0, precision="double", threads=1, device="cpu")
    zero = [cos(0.5) ** 2, cos(0.25) ** 2]
    assert [clbits for _, clbits, _ in runs] == [[False, False], [True, False]]
    weights = [weight for weight, _, _ in runs]
    assert weights == pytest.approx([zero[0] * zero[1], (1 - zero[0]) * zero[1]], abs=1e-12)
    runs = run_tree(
        program, 100, lambda number, one: round(number * one), precision="double", threads=1, device="cpu"
    )
    assert [weight for weight, _, _ in runs] == [72, 22]


def test_circuits_have_no_operations_of_programs() -> None:
    circuit = quantum.Circuit(1)
    circuit.add(Operation("save", "save", []))
    with pytest.raises(BadInput, match="expected a program"):
        quantum.simulate(circuit)


def test_circuits_with_jumps() -> None:
    circuit = quantum.Circuit(1)
    circuit.add(Operation("jump", "jump", []))
    with pytest.raises(BadInput, match=r"operation 0 .* expected a jump to a mark"):
        quantum.simulate(circuit)
    coins = flips_until_zero()
    loop = quantum.Circuit._like(coins.circuit, coins.circuit.operations[:-1]).measure(1, 0)
    result = quantum.simulate(loop, shots=4000, seed=3, observables=["Z1"])
    z = sum(cos(0.3 * turns) / 2 ** (turns + 1) for turns in range(60))
    assert result.expectations[0] == pytest.approx(z, abs=0.02)
    assert result.counts["1"] / 4000 == pytest.approx((1 - z) / 2, abs=0.04)
    density = quantum.simulate_density(loop, shots=400, seed=3, observables=["Z1"])
    assert density.expectations[0] == pytest.approx(z, abs=0.06)
    assert quantum.compile(loop).simulate(shots=4000, seed=3).counts == result.counts
    state = quantum.State(2)
    state.run(loop, seed=1)
    assert quantum.plan(loop).passes > 0


def test_branches_without_observables_take_no_steps_for_them() -> None:
    """Each all-gather is a round trip between hosts."""
    circuit = quantum.Circuit(4, 4).h(0).cx(0, 1).cx(1, 2).cx(2, 3).measure(0, 0).h(0).cx(0, 3).measure(3, 3)

    def all_gathers(group: Group, observables: list[str]) -> tuple[int, int]:
        before = _core.allgathers_begun()
        result = quantum.simulate(circuit, group, shots=500, seed=1, observables=observables)
        return _core.allgathers_begun() - before, result.runs

    none, some = (run_threads(2, lambda group, o=one: all_gathers(group, o))[0] for one in ([], ["Z0"]))
    assert none[1] == some[1] > 1
    assert none[0] <= some[0] - some[1]
