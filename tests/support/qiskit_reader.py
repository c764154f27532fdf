"""Qiskit's readers of OpenQASM, which onehop's is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qiskit import QuantumCircuit


def load_qiskit(file: Path) -> QuantumCircuit:
    """Read an OpenQASM file as a Qiskit circuit."""
    from qiskit import qasm2, qasm3

    text = file.read_text()
    if "OPENQASM 3" in text:
        return qasm3.loads(text)
    return qasm2.loads(
        text,
        include_path=(str(file.parent),),
        custom_instructions=qasm2.LEGACY_CUSTOM_INSTRUCTIONS,
    )
