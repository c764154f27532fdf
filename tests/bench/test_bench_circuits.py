"""`onehop bench circuits`: the circuits, the comparison, and the installed reference simulators."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onehop.cli import main
from onehop.error import BadInput, Error
from onehop_bench import reference_simulators, simulators
from onehop_bench.bars import save_circuit_plot
from onehop_bench.circuits import (
    Circuits,
    Ours,
    circuits,
    distance,
    make_circuit_peer_table,
    make_circuit_table,
)
from onehop_bench.circuits_cases import CIRCUIT_CASES, Gate, make_gates
from onehop_bench.reference_simulators import REFERENCE_SIMULATORS, Timing, WorkerSimulator, find_simulators
from onehop_bench.simulators import refuse_wrong

H = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
X = np.array([[0, 1], [1, 0]])


def matrix_of(name: str, qubits: list[int], numbers: list[float]) -> np.ndarray:
    """From the definition of each gate, the first qubit the least significant bit."""
    size = 1 << len(qubits)
    if name == "matrix":
        return np.array(numbers).view(np.complex128).reshape(size, size)
    if name == "rx":
        return np.cos(numbers[0] / 2) * np.eye(2) - 1j * np.sin(numbers[0] / 2) * X
    if name == "rzz":
        return np.diag(np.exp(-0.5j * numbers[0] * np.array([1, -1, -1, 1])))
    if name in ("cz", "mcz", "cp"):
        angle = numbers[0] if name == "cp" else np.pi
        return np.diag([1] * (size - 1) + [np.exp(1j * angle)])
    return {"h": H, "x": X, "cx": np.eye(4)[[0, 3, 2, 1]], "swap": np.eye(4)[[0, 2, 1, 3]]}[name]


def state_of(gates: Sequence[Gate], qubits: int) -> np.ndarray:
    state = np.zeros(1 << qubits, np.complex128)
    state[0] = 1
    for name, which, numbers in gates:
        matrix = matrix_of(name, which, numbers).reshape([2] * 2 * len(which))
        # Axes of the state run from the last qubit to the first, and so do those of the matrix.
        axes = [qubits - 1 - qubit for qubit in reversed(which)]
        whole = state.reshape([2] * qubits)
        applied = np.tensordot(matrix, whole, (list(range(len(which), 2 * len(which))), axes))
        state = np.moveaxis(applied, range(len(which)), axes).reshape(-1)
    return state


class FakePeer:
    """A simulator that returns right answers, or wrong ones on request."""

    version = "1.0"

    def __init__(
        self, name: str, took: float = 0.5, error: float = 0.0, precisions: Sequence[str] = ("double",)
    ) -> None:
        self.name = name
        self.took = took
        self.error = error
        self.precisions = precisions
        self.asked: list[str] = []

    def load(self, gates: Sequence[Gate], qubits: int, precision: str) -> list[str]:
        assert precision in self.precisions
        self.state = state_of(gates, qubits)
        return ["slow", "fast"]

    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:
        self.asked.append(setting)
        amplitudes = np.exp(0.3j) * self.state[list(indices)]
        amplitudes[0] += self.error
        return Timing([self.took * (2 if setting == "slow" else 1)] * 2, amplitudes)

    def close(self) -> None:
        self.asked.append("closed")


class BrokenPeer(FakePeer):
    def run(self, setting: str, seconds: float, indices: Sequence[int]) -> Timing:
        raise Error(f"{self.name}: out of memory")


def quick(*cases: str, **what: Any) -> Circuits:
    return Circuits(**{"cases": [*cases], "qubits": [6], "precision": ["double"], "seconds": 0.001, **what})


@pytest.mark.parametrize("case", CIRCUIT_CASES)
def test_cases_are_what_their_gates_say(case: str) -> None:
    gates = make_gates(case, 6)
    for precision, tolerance in (("double", 1e-12), ("single", 1e-5)):
        seconds, amplitudes = Ours(gates, 6, precision, 1).run(0, range(64))
        assert len(seconds) == 1
        assert distance(state_of(gates, 6), amplitudes) < tolerance


def test_sizes_of_the_cases() -> None:
    count = {case: len(make_gates(case, 24)) for case in CIRCUIT_CASES}
    assert count["qft"] == 1 + 24 + 24 * 23 // 2 + 12
    assert count["tfim-1d"] == 10 * 48
    assert count["tfim-2d"] == 10 * (24 + 18 + 20)
    assert count["brickwork"] == 20 * 24 + 10 * 12 + 10 * 11
    assert count["volume"] == 10 * 12
    assert count["ghz"] == 24


def test_best_of_the_peers_at_its_best_setting() -> None:
    slower, faster = FakePeer("slower", 0.7), FakePeer("faster", 0.4)
    far, single = FakePeer("far behind", 3.0), FakePeer("other precision", 0.01, precisions=("single",))
    result = circuits(quick("qft", seconds=1), [slower, faster, far, single])
    (row,) = result.rows
    assert row.peers == {"slower": 0.7, "faster": 0.4, "far behind": 3.0}
    assert row.settings == dict.fromkeys(row.peers, "fast")
    assert (row.best_peer, row.best_peer_s) == ("faster", 0.4)
    assert row.speedup == pytest.approx(0.4 / row.ours_s)
    assert row.rounds > 1
    assert faster.asked.count("fast") == row.rounds + 2
    assert far.asked.count("fast") == 1 + 2  # measured in the first round only
    assert row.passes >= 1
    assert row.pass_s > 0
    assert 0 < row.plan_s < 1
    refuse_wrong("amplitudes", result)


def test_wrong_answer_is_reported_and_does_not_count() -> None:
    wrong, right = FakePeer("wrong", 0.1, error=1e-3), FakePeer("right", 0.5)
    result = circuits(quick("ghz"), [wrong, right])
    (row,) = result.rows
    assert row.best_peer == "right"
    assert set(row.wrong) == {"wrong"}
    with pytest.raises(Error, match="ghz, 6 qubits, double: those of wrong"):
        refuse_wrong("amplitudes", result)


def test_peer_that_fails_is_left_out_and_named() -> None:
    result = circuits(quick("ghz", "qft"), [BrokenPeer("broken"), FakePeer("right")])
    assert [list(row.peers) for row in result.rows] == [["right"], ["right"]]
    assert sum("broken: out of memory" in note for note in result.notes) == 2


def test_without_peers() -> None:
    result = circuits(quick("grover", precision=["double", "single"]), [])
    assert [(row.best_peer, row.speedup) for row in result.rows] == [(None, None)] * 2
    assert all(row.case in make_circuit_table(result).render(150) for row in result.rows)
    assert make_circuit_peer_table(result) is None


@pytest.mark.parametrize(
    ("settings", "found"),
    [({"qubits": [3]}, "3"), ({"qubits": [6, 34], "precision": ["single"]}, "34 qubits need 128 GiB")],
)
def test_what_cannot_be(settings: dict[str, Any], found: str) -> None:
    with pytest.raises(BadInput, match=found):
        circuits(quick(**settings), [])
    with pytest.raises(BadInput, match="nobody"):
        find_simulators(["nobody"], 1)


def test_table_and_plot(tmp_path: Path) -> None:
    peers = [FakePeer("wrong", 0.1, error=1e-3), FakePeer("right", 0.5, precisions=("double", "single"))]
    result = circuits(quick("ghz", "qft", precision=["double", "single"]), peers)
    assert all(row.case in make_circuit_table(result).render(150) for row in result.rows)
    table = make_circuit_peer_table(result)
    assert table is not None
    assert ", wrong" in table.render(150)
    save_circuit_plot(result, str(tmp_path / "circuits.png"))
    assert (tmp_path / "circuits.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadInput, match="cannot write"):
        save_circuit_plot(result, str(tmp_path / "circuits.nothing"))


def test_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fakes = [FakePeer("right", 0.5), FakePeer("wrong", 0.4, error=1e-3)]
    chosen = fakes[:1]
    monkeypatch.setattr(
        simulators, "find_simulators", lambda *_: (chosen, ["without qsim: `make reference-simulators`"])
    )
    file = tmp_path / "out.json"
    options = ["bench", "circuits", "--qubits", "6", "--case", "qft", "--precision", "double", "--quick"]
    assert main([*options, "--json", str(file)]) == 0
    stored = json.loads(file.read_text())
    (row,) = stored["rows"]
    assert (row["case"], row["qubits"], row["precision"]) == ("qft", 6, "double")
    assert row["peers"] == {"right": 0.5}
    assert row["best_peer"] == "right"
    assert row["speedup"] == pytest.approx(row["best_peer_s"] / row["ours_s"], rel=1e-3)
    assert row["passes"] >= 1
    said = capsys.readouterr()
    assert "without qsim: `make reference-simulators`" in said.out
    assert "without qsim: `make reference-simulators`" in stored["notes"]
    assert fakes[0].asked[-1] == "closed"

    chosen[:] = fakes
    assert main(options) != 0
    assert "differ" in capsys.readouterr().err


def test_peers_that_are_installed_agree_with_us() -> None:
    there, missing = find_simulators(REFERENCE_SIMULATORS, 1)
    assert len(there) + len(missing) == len(REFERENCE_SIMULATORS)
    assert all("pip install" in line for line in missing)
    try:
        result = circuits(quick(precision=["double", "single"]), there)
    finally:
        for peer in there:
            peer.close()
    refuse_wrong("amplitudes", result)
    for row in result.rows:
        assert set(row.peers) == {peer.name for peer in there if row.precision in peer.precisions}


def test_worker_that_dies_is_an_error(tmp_path: Path) -> None:
    # A Python that says that it has the simulator, and then ends.
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho \'{"version": "1", "precisions": ["double"]}\'\nread line\nexit 3\n')
    python.chmod(0o755)
    peer = WorkerSimulator("qulacs", str(python), 1)
    with pytest.raises(Error, match="qulacs ended with status 3"):
        peer.load([], 4, "double")
    peer.close()
    python.write_text("#!/bin/sh\nexit 4\n")
    with pytest.raises(ImportError, match="status 4"):
        WorkerSimulator("qulacs", str(python), 1)


def test_worker_that_complains_much_or_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\nhead -c 300000 /dev/zero >&2\n"
        'echo \'{"version": "1", "precisions": ["double"]}\'\nread line\nexec sleep 20\n'
    )
    python.chmod(0o755)
    peer = WorkerSimulator("qulacs", str(python), 1, kill_after=1)
    with pytest.raises(Error, match="qulacs gave no answer within 1 s"):
        peer.load([], 4, "double")
    peer.close()
    # Whose folder one stands in does not matter.
    (tmp_path / ".reference-simulators" / "bin").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    python.rename(tmp_path / ".reference-simulators" / "bin" / "python")
    monkeypatch.chdir(tmp_path)
    assert not any(str(tmp_path) in one for one in reference_simulators._pythons())
