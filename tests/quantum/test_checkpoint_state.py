"""The library refuses checkpoint states and qubits out of range, also those that Python has not checked."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from onehop import BadInput, Group, _core, quantum
from onehop.quantum.simulation_options import core_options


def resumed(**changes: Any) -> None:
    """Simulate with a checkpoint state that has bypassed the checks in Python."""
    circuit = quantum.Circuit(2, 2).h(0).measure(0, 0).h(1).measure(1, 1)
    checkpoint = _core.CheckpointState()
    fields: dict[str, Any] = {
        "bits": [0, 1],
        "done": [True, False, False, False],
        "clbits": [False, False],
        "events": 0,
        "runs": 0,
        "expectations": [],
        "outcomes": np.zeros(10, np.uint64),
        "waiting": [([], np.arange(10, dtype=np.uint64))],
        **changes,
    }
    for record, shots in fields.pop("waiting"):
        checkpoint.add_waiting(record, np.array(shots, np.uint64))
    for name, value in fields.items():
        setattr(checkpoint, name, value)

    def restore(state: _core.State) -> None:
        state.local()[...] = np.array([1, 1, 0, 0]) / np.sqrt(2)

    options = core_options(shots=10, seed=1, threads=1, search_seconds=0, resume=checkpoint, restore=restore)
    _core.simulate(circuit, Group.alone(), options)


@pytest.mark.parametrize(
    "changes",
    [
        {"bits": [0, 0]},
        {"bits": [0, 7]},
        {"bits": [-1, 0]},
        {"bits": []},
        {"bits": [0]},
        {"done": [True]},
        {"clbits": []},
        {"clbits": [True] * 3},
        {"events": 1},
        {"runs": -1},
        {"outcomes": np.zeros(9, np.uint64)},
        {"expectations": [1j]},
        {"waiting": []},
        {"waiting": [([], [])]},
        {"waiting": [([], [10])]},
        {"waiting": [([], [10**5])]},
        {"waiting": [([], [10**11])]},
        {"waiting": [([], [1, 1])]},
        {"waiting": [([True], [1]), ([], [1])]},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_the_library_refuses_a_checkpoint_state_out_of_range(changes: dict[str, Any]) -> None:
    resumed()
    with pytest.raises(BadInput):
        resumed(**changes)


def test_the_library_refuses_qubits_that_do_not_exist() -> None:
    state = quantum.State(14)
    for qubits in ([-1], [14], [2**31 - 1], [*range(13), -1], [*range(13), 0]):
        with pytest.raises(BadInput):
            state.sample(10, qubits)
    for shots in (-1, 2**62):
        with pytest.raises(BadInput):
            state.sample(shots, [0])
    circuit = quantum.Circuit(14, 1).x(0)
    with contextlib.suppress(BadInput), circuit.when(0):
        circuit.x(1)
    for wrong in (
        circuit,
        quantum.Circuit(14).x(14),
        quantum.Circuit(14).x(-1),
        quantum.Circuit(14).cx(3, 3),
    ):
        with pytest.raises(BadInput):
            state._core.apply(wrong, 0)
