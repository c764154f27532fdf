"""States that are kept encoded (`precision="q8"` and others), against double precision."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from commands import Command, refused
from onehop import quantum
from onehop.cli import main
from onehop.cli.quantum.choices import choices_of
from onehop.error import BadInput
from onehop.quantum import Circuit, generators, simulate
from ranks import Ranks

# The largest infidelity, and the bytes of an amplitude.
ROUNDED = {"fp16": (1e-6, 4), "bf16": (2e-4, 4), "q8": (1e-3, 2.125), "q6": (2e-2, 1.625)}


@pytest.mark.parametrize("precision", ROUNDED)
def test_fidelity_is_estimated(precision: str) -> None:
    circuit = generators.random_circuit(20, depth=6, seed=3)
    observables = ["Z0 Z1", "X3 Y19 + 0.5*Z18"]
    exact = simulate(circuit, observables=observables)
    found = simulate(circuit, precision=precision, observables=observables, shots=500, seed=1)
    one, other = exact.state.vector(), found.state.vector()
    infidelity = 1 - abs(np.vdot(one, other)) ** 2 / np.vdot(other, other).real
    assert infidelity < ROUNDED[precision][0]
    assert 1 - found.fidelity_estimate == pytest.approx(infidelity, rel=0.2)
    assert found.expectations == pytest.approx(exact.expectations, abs=4 * infidelity**0.5)
    assert abs(np.vdot(other, other) - 1) < 1e-4
    assert sum(found.counts.values()) == 500
    assert found.state.precision == precision


# Of the usual circuits, those whose estimates are worst. That of Grover's search is off by factors: its few distinct
# amplitudes are rounded alike in every pass.
@pytest.mark.parametrize(
    "circuit",
    [
        generators.qpe(20),
        generators.evolution(generators.heisenberg([20]), 20, time=2.0),
        generators.evolution(generators.tfim([5, 4]), 20, order=1),
    ],
)
def test_fidelity_of_regular_circuits_is_estimated(circuit: Circuit) -> None:
    exact = simulate(circuit).state.vector()
    for precision in ("q8", "q6"):
        found = simulate(circuit, precision=precision)
        rounded = found.state.vector()
        infidelity = 1 - abs(np.vdot(exact, rounded)) ** 2 / np.vdot(rounded, rounded).real
        assert 1 - found.fidelity_estimate == pytest.approx(infidelity, rel=0.2)


def test_command(tmp_path: Path, ranks: Ranks, command: Command) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(12).save(file)
    words = ("run", file, "--shots", 100, "--seed", 2, "--precision", "q8", "--observable", "Z0")
    for found in (
        json.loads(command(*words, "--json").stdout),
        json.loads(ranks.onehop(*words, "-n", 2, "--json").stdout),
    ):
        assert found["bytes_per_amplitude"] == 2.125
        assert 0.999 < found["fidelity_estimate"] < 1
        assert abs(found["expectations"]["Z0"]) < 0.01
    assert "a fidelity of about 0.99" in command(*words).stdout
    planned = json.loads(command("plan", file, "--precision", "q8", "--json").stdout)
    assert planned["memory_per_rank"] == 2.125 * 2**12
    choices = {row["precision"]: row for row in planned["choices"] if row["storage"] == "memory"}
    assert list(choices) == ["double", "single", "fp16", "q8", "q6"]
    assert choices["q8"]["memory_in_all"] == planned["memory_in_all"]
    assert choices["single"]["memory_per_rank"] == 8 * 2**12
    assert choices["double"]["predicted_fidelity"] == 1
    assert choices["fp16"]["predicted_fidelity"] > choices["q8"]["predicted_fidelity"]
    least, most = choices["q8"]["predicted_fidelity_range"]
    assert 0.99 < least < choices["q8"]["predicted_fidelity"] < most == 1
    assert least < found["fidelity_estimate"]
    # The bytes of a pass over the bandwidth of a processor are its time there, unless arithmetic takes longer.
    genesis = (Path(quantum.__file__).parents[1] / "machine/files/genesis.toml").read_text()
    machine = tmp_path / "processors.toml"  # devices hold no encoded amplitudes
    machine.write_text(genesis.replace("device = true\n", ""))
    elsewhere = json.loads(command("plan", file, "-n", 2, "--machine", machine, "--json").stdout)
    times = {row["precision"]: row["predicted_seconds"] for row in elsewhere["choices"]}
    assert times["double"] == elsewhere["predicted_seconds"]
    assert 0 < times["q8"] < times["single"] < times["double"]


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(6).save(file)
    for words in (
        ("run", file, "--noise", "dephasing=0.1"),
        ("plan", file, "--density"),
    ):
        error = refused([*map(str, words), "--precision", "q6"], capsys)
        assert "expected precision double or single, found q6" in error
    with pytest.raises(BadInput, match="expected precision double or single"):
        quantum.DensityMatrix(4, precision="q8")
    with pytest.raises(BadInput, match="at least 4 qubits"):
        quantum.State(3, precision="q8")
    with pytest.raises(BadInput, match="'q7'"):
        quantum.State(6, precision="q7")
    with pytest.raises(BadInput, match="encoded"):
        quantum.State(6, precision="q8").local()


def test_plans_of_states_on_disk_count_the_passes_of_all_parts(tmp_path: Path) -> None:
    circuit = quantum.Circuit(12)
    for first in (0, 6):
        circuit = circuit.compose(generators.qft(6), list(range(first, first + 6)))
    planned = quantum.plan(circuit, precision="single")
    rows = choices_of(planned, None, ranks_per_node=None, ranks_per_host=None)
    found = quantum.simulate(circuit, precision="single", state_folder=tmp_path)
    assert [row["disk_passes"] for row in rows if row["storage"] == "disk"] == [2, 2]
    assert found.disk_passes == 2


def test_state_folder(tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "qft.qasm"
    generators.qft(17).save(file)
    words = (
        "run",
        file,
        "--precision",
        "single",
        "--shots",
        200,
        "--seed",
        4,
        "--observable",
        "Z16 X3",
        "--json",
    )
    expected = json.loads(command(*words).stdout)
    folder = tmp_path / "state"
    folder.mkdir()
    found = json.loads(command(*words, "--state-folder", folder, "--state-memory", "512KiB").stdout)
    assert found["counts"] == expected["counts"]
    assert found["expectations"]["Z16 X3"] == pytest.approx(expected["expectations"]["Z16 X3"], abs=1e-5)
    assert found["disk"]["bytes_written"] >= 2 * 8 * 2**17
    assert list(folder.iterdir()) == []
    # The tiles of a pass over the file take several passes in memory.
    assert 1 < found["disk_passes"] <= found["passes"]
    assert found["disk"]["bytes_read"] >= found["disk_passes"] * 8 * 2**17
    planned = json.loads(command("plan", file, "--json").stdout)
    disk = [row for row in planned["choices"] if row["storage"] == "disk"]
    assert [row["precision"] for row in disk] == ["single", "q8"]
    assert disk[0]["disk_bytes"] == 8 * 2**17
    assert disk[0]["disk_bytes_with_checkpoints"] == 2 * disk[0]["disk_bytes"]
    assert expected["disk_passes"] == 0
    for more, message in (
        (["--state-folder", str(tmp_path / "none")], "No such file"),
        (["--state-folder", str(folder), "--state-memory", "x"], "as a size such as"),
        (["--state-folder", str(folder), "-n", "2"], "expected 1 rank"),
        (["--state-folder", str(folder), "--noise", "dephasing=0.1"], "does not work with --noise"),
        (["--state-memory", "1GiB"], "is for --state-folder"),
    ):
        assert main(["run", str(file), *more]) == 2
        assert message in capsys.readouterr().err
