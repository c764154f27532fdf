"""Drawings of circuits as text, in notebooks and by Qiskit."""

from __future__ import annotations

import re

import pytest

from onehop import BadInput
from onehop.quantum import Circuit, Parameter
from onehop.quantum.circuit import Register
from onehop.quantum.drawing import _for_qiskit


def _teleport() -> Circuit:
    circuit = Circuit(3, 2)
    circuit.registers = [Register("m", 0, 2)]
    circuit.ry(0.5, 0).h(1).cx(1, 2).cx(0, 1).h(0).measure([0, 1], [0, 1])
    with circuit.when(1):
        circuit.x(2)
    with circuit.when(0):
        circuit.z(2)
    return circuit


def test_a_circuit_with_conditions() -> None:
    lines = str(_teleport().draw(width=100)).splitlines()
    assert [re.sub("─+", "─", line) for line in lines[::2]] == [
        "q0: ─RY(0.5)─●─H─M→m[0]─",
        "q1: ─H─●─X─M→m[1]─",
        "q2: ─X─X if m[1]=1─Z if m[0]=1─",
    ]
    # A line joins the control and the target of each of the two gates.
    assert lines[1].index("│") == lines[0].index("●") == lines[2].index("X")
    assert lines[3].index("│") == lines[2].index("●") == lines[4].index("X")
    # An operation under a condition is after the measurement that writes its bit.
    assert lines[4].index("if m[1]") > lines[2].index("M→m[1]")
    assert repr(_teleport().draw(width=100)) == str(_teleport().draw(width=100))


def test_gates_of_every_kind() -> None:
    circuit = Circuit(4, 1, "all").swap(0, 2).gate("ccx", [0, 3, 1]).barrier([0, 1]).reset(3)
    circuit.unitary(
        [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]], [1, 0], controls=[3], control_values=0
    )
    circuit.rzz(0.25, 0, 1).rx(2 * Parameter("a"), 2).global_phase(0.5, controls=[3]).u(0.1, 0.2, 0.3, 0)
    text = str(circuit.draw(width=200))
    lines = text.splitlines()
    assert [one for one in lines[0].split("─") if one][1:] == [
        "×",
        "●",
        "░",
        "unitary:1",
        "RZZ(0.25)",
        "U(0.1, 0.2, 0.3)",
    ]
    for part in ("unitary:0", "RZZ(0.25)", "RX(2*a)", "● global_phase(0.5)", "|0⟩", "○", "U(0.1, 0.2, 0.3)"):
        assert part in text, text
    assert lines[2].index("┼") == lines[0].index("×") == lines[4].index("×")
    assert all(len(line) <= 40 for line in str(circuit.draw(width=40)).splitlines())
    assert "more operations" in str(Circuit(1).compose(Circuit(1).h(0).power(1100)).draw())
    assert str(Circuit(2).draw()) == "q0: ─\nq1: ─"
    assert "<pre" in circuit._repr_html_()
    assert "&lt;" not in circuit._repr_html_()


@pytest.mark.parametrize(
    ("angle", "name"), [(-3.0, "rx"), (3.5, "ry"), (-6.0, "rz"), (3.0, "p"), (-2.0, "rzz")]
)
def test_angles_are_those_of_the_gate(angle: float, name: str) -> None:
    qubits = [0, 1] if name == "rzz" else [0]
    assert f"{name.upper()}({angle:.4g})" in str(Circuit(2).gate(name, qubits, [angle]).draw())
    controlled = Circuit(3).gate(name, qubits, [angle]).control(2)
    assert f"{name.upper()}({angle:.4g})" in str(controlled.draw())


def test_qiskit_draws() -> None:
    pytest.importorskip("qiskit")
    circuit = _teleport().gate("rccx", [0, 1, 2]).rx(Parameter("a"), 0).cp(0.5, 0, 1).reset(2).barrier()
    drawn = str(_for_qiskit(circuit).draw("text", fold=-1))
    for part in ("Ry(0.5)", "X if m[1]=1", "Rccx", "RX(a)", "P(0.5)", "|0>", "m: 2/"):
        assert part in drawn, drawn
    try:
        assert circuit.draw("latex_source").startswith("\\documentclass")
    except BadInput as error:
        assert "pip install pylatexenc" in str(error)  # noqa: PT017
