"""`onehop quantum circuit` and `onehop quantum hamlib`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onehop.cli import main

KINDS = {
    "qft": ["--qubits", "4", "--state", "0110", "--measure"],
    "qpe": ["--qubits", "4", "--phase", "0.375"],
    "tfim": ["--extent", "2x3", "--lattice", "triangular", "--periodic", "--mirror", "--order", "1"],
    "heisenberg": ["--qubits", "4", "--steps", "2"],
    "ghz": ["-q", "3", "--measure"],
    "random": ["--qubits", "4", "--depth", "3", "--seed", "5"],
    "qv": ["--qubits", "4"],
    "qaoa": ["--qubits", "6", "--layers", "1"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [2, 3])
def test_circuit(kind: str, version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onehop.quantum.io.qasm import load_qasm

    file = tmp_path / "made.qasm"
    assert main(["quantum", "circuit", kind, *KINDS[kind], "--openqasm", str(version), "-o", str(file)]) == 0
    assert f"OPENQASM {version}.0;" in file.read_text()
    circuit = load_qasm(file)
    assert circuit.qubits == {"qpe": 4, "tfim": 6, "ghz": 3, "qaoa": 6}.get(kind, 4)
    assert len(circuit) > 3
    assert "gates" in capsys.readouterr().err
    told = str(tmp_path / "told.json")
    assert main(["quantum", "circuit", kind, *KINDS[kind], "--openqasm", str(version), "--json", told]) == 0
    assert capsys.readouterr().out == file.read_text()
    report = json.loads(Path(told).read_text())
    assert report["qubits"] == circuit.qubits
    no_gates = report["operations"].get("measure", 0) + report["operations"].get("barrier", 0)
    assert report["gates"] == sum(report["operations"].values()) - no_gates


def test_hamlib(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("h5py")
    file = str(tmp_path / "tfim.hdf5")
    assert main(["quantum", "hamlib", "tfim", "4", "2x3t", "--fields", "0.5,2", "-o", file]) == 0
    assert "8 Hamiltonians" in capsys.readouterr().out
    assert main(["quantum", "hamlib", "list", file, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["hamiltonians"]
    assert {"name": "graph-1D-grid-pbc-qubitnodes_Lx-4_h-2", "qubits": 4, "terms": 8} in found
    name = "graph-2D-triag-nonpbc-qubitnodes_Lx-2_Ly-3_h-0.5"
    assert main(["quantum", "circuit", "hamlib", file, name, "--steps", "2"]) == 0
    assert "rzz" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quantum", "circuit", "qpe", "--qubits", "1"], "at least 2 qubits"),
        (["quantum", "circuit", "qft", "--qubits", "3", "--state", "01"], "3 bits"),
        (["quantum", "circuit", "tfim"], "either --qubits"),
        (["quantum", "circuit", "tfim", "--extent", "4xa"], "expected --extent as numbers of 1 or more"),
        (
            ["quantum", "circuit", "tfim", "--qubits", "4", "--lattice", "hexagonal"],
            "expected --lattice grid or triangular",
        ),
        (["quantum", "circuit", "ghz", "--qubits", "3", "-o", "no/such/folder/x.qasm"], "no/such/folder"),
        (["quantum", "circuit", "nothing"], "no such command"),
        (["quantum", "circuit", "ghz", "--qubits", "0"], "--qubits"),
        (["quantum", "circuit", "ghz", "--qubits", "2", "--json", "-"], "-o FILE"),
        (["quantum", "hamlib", "tfim", "4", "--fields", "a"], "--fields"),
        (["quantum", "hamlib", "list", "none.hdf5"], "none.hdf5"),
    ],
)
def test_wrong_commands(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
