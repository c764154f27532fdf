"""Functions of `onehop.quantum` with numbers out of range: one line says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onehop
from onehop import BadInput, Group
from onehop import quantum as q


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
