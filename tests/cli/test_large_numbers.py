"""Numbers that no computer can hold, in options of commands, are one line of an error."""

import os
from pathlib import Path

import pytest

from commands import refused
from onehop import BadInput, Group, halo
from onehop.cli import main
from onehop.lattice import Gauge, Geometry
from onehop.lattice.files import write_gauge
from onehop.launch.mpi import launch_under_mpi
from onehop_bench import parse_sizes

LARGE = (2**31, 2**63, 10**30)
COMMANDS = (
    ("lattice", "info", "--extent", "8x8", "--grid"),
    ("lattice", "info", "--extent", "8x8", "--lanes"),
    ("lattice", "info", "--extent", "8x8", "--site-bytes"),
    ("lattice", "info", "--extent", "8x8", "-n"),
    ("lattice", "info", "--extent"),
    ("lattice", "measure", "field.lime", "--grid"),
    ("lattice", "solve", "field.lime", "--mass", "0.5", "--iterations"),
    ("lattice", "solve", "field.lime", "--mass", "0.5", "--lanes"),
    ("lattice", "thermalize", "--grid", "1x1x1x1", "--extent"),
    ("poisson", "--local", "8x8", "--residual-every"),
    ("poisson", "--local", "8x8", "--iterations", "2", "--enlarge"),
    ("quantum", "circuit", "qft", "-o", "new.qasm", "--qubits"),
    ("quantum", "circuit", "qaoa", "-o", "new.qasm", "--qubits", "4", "--layers"),
    ("quantum", "circuit", "random", "-o", "new.qasm", "--qubits", "4", "--depth"),
    ("schedule", "halo", "--extent", "8x8", "--grid", "2x1", "--dtype"),
    ("schedule", "verify", "halo.json", "--limit"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_large_numbers_in_options(
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    halo(extents=(8, 8), grid=(2, 2)).save("halo.json")
    write_gauge("field.lime", Gauge(Group.alone(), (4, 4, 4, 4)))
    for number in LARGE:
        code = main([*arguments, str(number)])
        lines = capsys.readouterr().err.count("\n")
        if number > 2**31:
            assert code in (1, 2)  # 1: too much memory
            assert lines == 1


@pytest.mark.parametrize("text", ["1,2,,3", "9" * 5000, "["])
def test_a_type_that_numpy_cannot_parse(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["schedule", "halo", "--extent", "8x8", "--grid", "2x1", "--dtype", text]
    assert "expected --dtype as a NumPy type" in refused(words, capsys)


def test_large_numbers_in_python() -> None:
    for size in ("9" * 5000, "2048G", "1,1T", "٣"):
        with pytest.raises(BadInput, match="expected a size"):
            parse_sizes(size)
    assert parse_sizes("1024G") == [1 << 40]
    for number in LARGE:
        with pytest.raises(BadInput, match="expected grid to be a whole number in the range of its type"):
            Geometry((8, 8), (number, 1))
        with pytest.raises(BadInput, match="expected at most 1024 ranks"):
            launch_under_mpi(number, ["true"])


def test_what_no_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands say so before they take the memory for what a short description stands for."""
    monkeypatch.chdir(tmp_path)
    halo(extents=(128, 64), grid=(64, 64)).save("halo.json")
    place = '{"rank":0,"array":0,"slice":{"indices":[]}}'
    transfers = ",".join([f'{{"from":{place},"to":{place}}}'] * 40_000)
    array = '{"name":"u","element_bytes":8,"elements":1}'
    head = f'{{"onehop_schedule":1,"ranks":1,"arrays":[{array}],"rounds":[{{"transfers":['
    Path("many.json").write_text(f"{head}{transfers}]}}]}}", encoding="utf-8")
    Path("sparse.goal").touch()
    os.truncate("sparse.goal", 1 << 29)
    Path("map.json").write_text(f"[{'[],' * 300_000}[]]", encoding="utf-8")
    cases = (
        (30, "schedule halo --extent 64x64 --grid 64x64", "the schedule as JSON: expected what fits into"),
        (30, "schedule show halo.json --json -", "the schedule as JSON: expected what fits into"),
        (20, "schedule count many.json", "rounds[0].transfers: expected what fits into"),
        (90, "map --grid 1024x1024 --hosts 16384 --per-host 64", "map: expected what fits into"),
        (20, "simulate halo.json --machine fugaku --map map.json", "not enough memory for"),
        (90, "simulate trace sparse.goal --machine fugaku", "not enough memory for the trace sparse.goal"),
        (
            90,
            "simulate broadcast -n 4096 --elements 9 --machine frontier",
            "simulate: expected what fits into",
        ),
    )
    for megabytes, words, told in cases:
        monkeypatch.setenv("ONEHOP_TEST_FREE_MEMORY", str(megabytes * 10**6))
        assert main(words.split()) in (1, 2), words
        assert told in capsys.readouterr().err, words
