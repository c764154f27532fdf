"""`onehop run` and `onehop plan`: their tables, their JSON, and the arguments that they refuse."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import onehop.cli.quantum.run as run_command
from commands import Command, refused
from onehop import _core
from onehop.cli import main
from ranks import Ranks

pytest.importorskip("qiskit")
from qiskit.quantum_info import SparsePauliOp, Statevector

from qiskit_reader import load_qiskit

DATA = Path(__file__).resolve().parents[1] / "data" / "qasm"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "qasm"
# Circuits without mid-circuit measurements whose state vector Qiskit computes within seconds.
COMPARED = [
    "adder_n10",
    "basis_trotter_n4",
    "bell_n4",
    "bv_n14",
    "cat_state_n22",
    "dnn_n8",
    "hhl_n7",
    "ising_n10",
]
COMPARED += ["multiplier_n15", "qf21_n15", "qft_n18", "sat_n11"]


@pytest.mark.parametrize(
    ("options", "pure"),
    [([], True), (["--noise", "dephasing=0"], True), (["--noise", "phase_flip=0.5:h"], False)],
)
def test_variances(options: list[str], pure: bool, ranks: Ranks, command: Command) -> None:
    own = DATA / "own_gates.qasm"
    observable = SparsePauliOp.from_sparse_list([("ZZ", [0, 1], 1), ("X", [2], 0.5)], 5)
    words = ("run", own, "--observable", "Z0 Z1 + 0.5*X2", "--variance", "--shots", 0, *options)
    found = [
        json.loads(command(*words, "--json").stdout),
        json.loads(ranks.onehop(*words, "-n", 2, "--json").stdout),
    ]
    state = Statevector(load_qiskit(own))
    mean = state.expectation_value(observable).real
    variance = state.expectation_value(observable @ observable).real - mean**2
    for one in found:
        key = "Z0 Z1 + 0.5*X2"
        assert (one["variances"][key] == pytest.approx(variance, abs=1e-10)) == pure or not pure
        assert one["variances"][key] == pytest.approx(found[0]["variances"][key], abs=1e-10)
    assert "variance" in command(*words).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--variance"], "at least one --observable"),
        (["--variance", "--observable", "(0+1j)*Z0"], "expected Hermitian"),
    ],
)
def test_variances_that_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["run", str(DATA / "own_gates.qasm"), *words], capsys)


def test_run_on_two_ranks(ranks: Ranks, command: Command) -> None:
    own = str(DATA / "own_gates.qasm")
    words = ("run", own, "--shots", 2000, "--seed", 7, "--observable", "Z0 Z1 + 0.5*X2", "--json")
    done = ranks.onehop(
        *words, "-n", 2, "--save", ranks.folder / "state.h5", "--plot", ranks.folder / "plot.png", status=0
    )
    found = json.loads(done.stdout)
    alone = json.loads(command(*words).stdout)
    assert (found["ranks"], alone["ranks"], found["seed"], found["shots"]) == (2, 1, 7, 2000)
    assert found["counts"] == alone["counts"]
    assert found["bytes_moved"] >= 0 == alone["bytes_moved"]
    assert found["exchanges"] >= 0 == alone["exchanges"]
    assert found["seconds"] > 0
    assert found["peak_memory_per_rank"] > found["program_memory_per_rank"] > 1 << 20
    assert found["predicted_seconds"] > 0

    expected = Statevector(load_qiskit(DATA / "own_gates.qasm"))
    observable = SparsePauliOp.from_sparse_list([("ZZ", [0, 1], 1), ("X", [2], 0.5)], 5)
    value = expected.expectation_value(observable).real
    assert found["expectations"] == pytest.approx({"Z0 Z1 + 0.5*X2": value}, abs=1e-12)
    assert sum(found["counts"].values()) == 2000
    # The register is never measured: all its bits stay 0.
    assert found["counts"] == {"00000": 2000}
    h5py = pytest.importorskip("h5py")
    with h5py.File(ranks.folder / "state.h5") as stored:
        assert np.abs(stored["amplitudes"][()] - expected.data).max() < 1e-12
        assert stored.attrs["qubits"] == 5
    assert (ranks.folder / "plot.png").stat().st_size > 1000
    assert "exchanges" in done.stderr
    assert "Z0 Z1" in done.stderr


@pytest.mark.alone  # half a gigabyte
def test_memory_of_a_rank(ranks: Ranks) -> None:
    """A run adds at most 1.02 times the amplitudes to the program's memory, with exchange and shots."""
    program = ranks.folder / "spread.qasm"
    ring = "".join(f"cx q[{i}], q[{(i + 1) % 25}];" for i in range(25))
    program.write_text(
        f'OPENQASM 2.0; include "qelib1.inc"; qreg q[25]; ry(0.3) q; {ring} ry(0.4) q; {ring} ry(0.5) q;'
    )
    done = ranks.onehop("run", program, "-n", 2, "--shots", 1000, "--json", status=0)
    found = json.loads(done.stdout)
    assert found["exchanges"] >= 1
    amplitudes = 16 << 24
    held = found["peak_memory_per_rank"] - found["program_memory_per_rank"]
    assert amplitudes <= held <= 1.02 * amplitudes
    assert found["program_memory_per_rank"] < 100 << 20


def test_measurements_inside(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(DATA / "teleport.qasm"), "--shots", "400", "--seed", "1", "--json", "-"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert set(counts) == {"0 0 0", "0 0 1", "0 1 0", "0 1 1"}
    assert min(counts.values()) > 50


def test_without_classical_bits_all_qubits_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "ghz.qasm")
    assert main(["quantum", "circuit", "ghz", "--qubits", "5", "-o", file]) == 0
    capsys.readouterr()
    assert main(["run", file, "--shots", "100", "--seed", "3", "--precision", "single", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["counts"]) == {"00000", "11111"}
    assert main(["run", file, "--shots", "0", "--observable", "Z0 Z4", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {}
    assert found["expectations"] == pytest.approx({"Z0 Z4": 1})


def test_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "qft.qasm")
    assert main(["quantum", "circuit", "qft", "--qubits", "20", "-o", file]) == 0
    capsys.readouterr()
    assert main(["plan", file, "-n", "64", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["qubits"], found["ranks"], found["fits"]) == (20, 64, True)
    assert 0 < found["bytes_per_rank"] <= found["baseline_bytes_per_rank"] / 3
    assert found["memory_per_rank"] >= 16 << 14
    assert found["exchanges"] == len(found["bytes_per_exchange"]) >= 1
    assert 1 <= found["exchanges_at_least"] <= found["exchanges"]
    assert 0 < found["passes_at_least"] <= found["passes"]
    assert found["passes"] > 0
    assert 0 < found["predicted_seconds"] < 60
    assert "exchanges" in captured.err
    assert main(["plan", file, "-n", "2", "--precision", "single", "--json", str(tmp_path / "p.json")]) == 0
    assert json.loads((tmp_path / "p.json").read_text())["memory_per_rank"] >= 8 << 19


@pytest.mark.parametrize(
    "options", [[], ["--shots", "0"], ["--noise", "depolarizing=0.01:cx"], ["--checkpoint", "checkpoint.h5"]]
)
def test_every_rank_places_the_circuit_once(ranks: Ranks, options: list[str]) -> None:
    """The run finds the placement that the rank has made to print the plan, also without measurements in the file."""
    file = ranks.folder / "qft.qasm"
    assert main(["quantum", "circuit", "qft", "--qubits", "6", "-o", str(file)]) == 0
    words = ["run", str(file), "--seed", "1", *options]
    done = ranks.launch(
        2,
        f"""
        from onehop import Group, _core
        from onehop.cli import main

        assert main({words!r}) == 0
        group = Group.world()
        counters = group.allgather(repr(_core.circuit_cache_counters()).encode())
        if group.rank == 0:
            print(*counters, sep="; ", flush=True)
        """,
        status=0,
    )
    assert "b'(1, 1)'; b'(1, 1)'" in done.stdout  # placed once and found once


def test_the_launcher_places_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whether a circuit fits and how many ranks it can use does not depend on a placement."""
    file = str(tmp_path / "qft.qasm")
    assert main(["quantum", "circuit", "qft", "--qubits", "5", "-o", file]) == 0
    started: list[int] = []

    def start(number: int, *_: object, **__: object) -> None:
        started.append(number)
        raise SystemExit(0)

    monkeypatch.setattr(run_command, "ensure_ranks", start)
    before = _core.circuit_cache_counters()
    for noise in ([], ["--noise", "depolarizing=0.01:cx"]):
        assert main(["run", file, "-n", "64", *noise]) == 0
    assert _core.circuit_cache_counters() == before
    # A gate needs its target local, the noise after cx four of the ten qubits of a density matrix.
    assert started == [16, 64]
    assert main(["run", file, "-n", "3"]) == 2
    assert (
        "expected a number of ranks that is a power of two, found 3; take 2 or 4" in capsys.readouterr().err
    )
    for command in ("run", "plan"):
        assert main([command, file, "-n", str(2**60)]) == 2
        assert capsys.readouterr().err == f"error: expected at most {2**30} ranks (2^30), found {2**60}\n"


def test_a_state_that_does_not_fit_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "qft.qasm")
    assert main(["quantum", "circuit", "qft", "--qubits", "48", "-o", file]) == 0
    capsys.readouterr()
    assert main(["plan", file, "-n", "2", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["fits"] is False
    assert "machines like this one" in captured.err
    assert main(["run", file]) == 1
    error = capsys.readouterr().err
    assert "does not fit" in error
    assert "4 PiB" in error
    assert "--precision" not in error  # none fits
    assert "or --state-folder FOLDER on a disk with 4 PiB of free space" in error


def test_the_precision_that_an_error_names_fits_and_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "qft.qasm")
    qubits = (_core.memory_need(1, 1, "double", 1).available // 3).bit_length() - 1  # with 3 to 6 bytes each
    assert main(["quantum", "circuit", "qft", "--qubits", str(qubits), "-o", file]) == 0
    assert main(["run", file]) == 1
    error = capsys.readouterr().err
    assert "or --precision fp16 (" in error or "or --precision q8 (" in error
    noise = ["--noise", "depolarizing=0.1:x", "--trajectories", "1"]  # which encoded states do not take
    assert main(["run", file, *noise]) == 1
    assert "--precision" not in capsys.readouterr().err
    assert main(["plan", file, *noise, "--json"]) == 0
    assert [one["precision"] for one in json.loads(capsys.readouterr().out)["choices"]] == [
        "double",
        "single",
    ]


@pytest.mark.parametrize("name", COMPARED)
def test_states_of_qasmbench_files(name: str) -> None:
    """The saved state agrees with Qiskit's."""
    from onehop.quantum import load_qasm, simulate

    file = SHARED / f"{name}.qasm"
    if not file.exists():
        pytest.skip("the files of QASMBench are not beside the repository")
    expected = Statevector(load_qiskit(file).remove_final_measurements(inplace=False))
    state = simulate(load_qasm(file)).state
    assert np.abs(state.vector() - expected.data).max() < 1e-11


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("OPENQASM 2.0;\nqreg q[2];\nx q[0];\n", [], "f.qasm:3:1: 'x' is not defined"),
        ("OPENQASM 3.0;\nqubit[2] q;\nfoo q[0];\n", [], "f.qasm:3:1: gate 'foo' is not defined"),
        (None, ["--observable", "Z0 Q1"], "column 4"),
        (None, ["--observable", "Z0 X5"], "names qubit 5, but there are 2 qubits"),
        (None, ["--precision", "half"], "precision"),
        (None, ["--save", "no/such/folder/s.h5"], "no/such/folder"),
        (None, ["--save", "."], "found the folder"),
        (None, ["--save", "/dev/full"], "no regular file"),
        (None, ["--checkpoint", "/dev/full"], "no regular file"),
        (None, ["--observable", "1e999*Z0"], "beyond the range of a double"),
        (None, ["--seed", str(1 << 64)], "2^64-1"),
        (None, ["--plot", "no/such/folder/p.png"], "no/such/folder"),
        (None, ["--shots", "-1"], "--shots"),
    ],
)
def test_bad_input_is_refused(
    text: str | None, words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.qasm"
    file.write_text(text or 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[2];\nh q[0];\n')
    assert main(["run", str(file), *words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_errors_on_ranks_are_reported_once(ranks: Ranks) -> None:
    done = ranks.onehop("run", "none.qasm", "-n", 2, status=2)
    assert done.stderr.count("cannot read the circuit none.qasm") == 1
    done = ranks.onehop("run", DATA / "own_gates.qasm", "-n", 3, status=2)
    assert "power of two" in done.stderr


def test_more_ranks_than_a_circuit_can_use_are_not_started(ranks: Ranks) -> None:
    pair = ranks.folder / "pair.qasm"
    pair.write_text('OPENQASM 2.0; include "qelib1.inc"; qreg q[2]; h q[0]; cx q[0], q[1];')
    done = ranks.onehop("run", pair, "-n", 1024, "--shots", 10, "--json", status=0)
    assert json.loads(done.stdout)["ranks"] == 2
    assert "too small for more than 2 ranks" in done.stderr


def test_plots_say_what_they_leave_out(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    counts = {f"{number:05b}": 100 - number for number in range(32)}
    run_command.draw(
        str(tmp_path / "p.svg"),
        {"circuit": "c", "qubits": 5, "shots": sum(counts.values()), "counts": counts},
    )
    drawn = (tmp_path / "p.svg").read_text()
    assert "c: 5 qubits, 2704 shots" in drawn
    assert "8 outcomes not shown" in drawn
    run_command.draw(
        str(tmp_path / "p.png"), {"circuit": "c", "qubits": 5, "shots": 1, "counts": {"00000": 1}}
    )
    width, height = struct.unpack(">II", (tmp_path / "p.png").read_bytes()[16:24])
    assert width >= 900
    assert height >= 500
