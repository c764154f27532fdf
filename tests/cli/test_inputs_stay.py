"""Commands leave the files that they read as they are, and leave nothing else behind, whether they succeed or not."""

import re
import sys
from pathlib import Path

import pytest

import onehop
from onehop.cli import find_command, main
from onehop.cli.commands import leaves
from onehop.cli.parser import Line
from onehop.error import BadInput
from onehop.lattice import Gauge
from onehop.lattice.files import write_gauge
from onehop.options import fields_of

QASM = 'OPENQASM 2.0;\ninclude "qelib1.inc";\nqreg q[3];\nh q[0];\ncx q[0],q[1];\nccx q[0],q[1],q[2];\n'
# Commands that read one file. What they print goes to stdout.
READERS = {
    "circuit.qasm": (
        ["plan", "{}"],
        ["run", "{}", "-n", "1", "--shots", "10", "--json"],
        ["run", "{}", "-n", "2", "--observable", "Z0"],
    ),
    "schedule.json": (
        ["schedule", "count", "{}"],
        ["schedule", "verify", "{}"],
        ["schedule", "show", "{}", "--json"],
        ["simulate", "{}", "--machine", "fugaku"],
        ["map", "--schedule", "{}", "--hosts", "2", "--per-host", "2"],
    ),
    "models.h5": (["quantum", "hamlib", "list", "{}"],),
    "field.lime": (
        ["lattice", "measure", "{}"],
        ["lattice", "solve", "{}", "--mass", "0.5", "--tolerance", "1e-3"],
    ),
}
CASES = [(name, arguments) for name, all_of_it in READERS.items() for arguments in all_of_it]


def make(name: str, folder: Path) -> Path:
    """Write a small input."""
    file = folder / name
    if name == "circuit.qasm":
        file.write_text(QASM)
    elif name == "schedule.json":
        file.write_text(onehop.halo(extents=(8, 8), grid=(2, 2)).to_json())
    elif name == "models.h5":
        pytest.importorskip("h5py")
        assert main(["quantum", "hamlib", "tfim", "4", "-o", str(file)]) == 0
    else:
        write_gauge(str(file), Gauge(onehop.Group.alone(), (4, 4, 4, 4)))
    return file


def check_outputs(arguments: list[str]) -> None:
    """Check that no output of a command line is an input."""
    command, path, left = find_command(arguments)
    line = Line(fields_of(command.options), " ".join(path))
    line.split(left, command.ends_at_argument)
    line.check_outputs(line.values())


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return everything in a folder, with the time of the last change and the file's number."""
    found = {}
    for one in folder.rglob("*"):
        state = one.stat()
        found[str(one.relative_to(folder))] = state.st_mtime_ns, state.st_ino, one.read_bytes()
    return found


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[" ".join(one[1][:2]) for one in CASES])
def test_inputs_stay(
    name: str, arguments: list[str], damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make(name, tmp_path)
    if damaged:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    line = [one.format(file.name) for one in arguments]
    monkeypatch.setattr(sys, "argv", ["onehop", *line])  # a command that needs ranks starts itself again
    code = main(line)
    assert (code != 0) == damaged
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["schedule", "count", "{}", "--json", "{}"],
        ["schedule", "count", "{}", "--json={}"],
        ["simulate", "{}", "--machine", "fugaku", "--goal", "{}"],
        ["map", "--schedule", "{}", "--hosts", "2", "--per-host", "2", "-o", "./{}"],
        ["map", "--schedule={}", "--hosts", "2", "--per-host", "2", "--rankfile", "link"],
    ],
)
def test_an_output_never_replaces_an_input(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = make("schedule.json", tmp_path)
    (tmp_path / "link").symlink_to(file.name)
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    assert main([one.format(file.name) for one in arguments]) == 2
    said = capsys.readouterr().err
    assert len(said.strip().splitlines()) == 1
    assert "which this command reads" in said
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--save", "new", "--checkpoint", "new"],
        ["--json", "old", "--checkpoint", "./old"],
        ["--json=new", "--plot", "folder/../new"],
        ["--save", "link", "--json", "old"],
    ],
)
def test_no_file_is_written_twice(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("old")
    with pytest.raises(BadInput, match=r"found .* for both"):
        check_outputs(["run", "circuit.qasm", *arguments])


def test_a_state_and_its_checkpoint_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The end of the run once removed the checkpoint, and with it the state."""
    file = make("circuit.qasm", tmp_path)
    same = str(tmp_path / "state.h5")
    assert main(["run", str(file), "--save", same, "--checkpoint", same]) == 2
    assert "expected --save with another file than --checkpoint" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_other_outputs_are_none_of_its_business(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.touch()
    two.touch()
    check_outputs(["schedule", "count", str(one), "--json", str(two)])
    check_outputs(["schedule", "count", str(one), "--json", "-"])
    check_outputs(["lattice", "convert", str(one), "-o", str(one), "--overwrite"])
    check_outputs(["launch", "-n", "2", "program", "-o", str(one), str(one)])
    check_outputs(["run", str(one), "--json"])
    check_outputs(["run", str(one), "--json", "-", "--plot", "-"])
    check_outputs(["run", str(one), "--json", "/dev/stdout", "--plot", "/dev/stdout"])
    check_outputs(["run", str(one), "--json", "", "--plot", "\0", "--save", "\0"])
    check_outputs(["run", str(one), "--json", str(two), "--json", str(two)])
    check_outputs(["run", str(one), "--observable", str(two), "--json", "x.json"])
    with pytest.raises(BadInput, match="expected --plot with another file"):
        check_outputs(["run", str(one), f"--plot={one}"])


def test_every_option_that_names_a_target_is_known() -> None:
    begins = re.compile(
        r"((Also )?[Ww]rite|Draw|Plot|File for|HDF5 file to|OpenQASM file to)\b.*(FILE|file|map|load|time)"
    )
    found = {}
    for path, command in leaves():
        for field in fields_of(command.options):
            if not field.is_flag and begins.match(field.option.help):
                found[(*path, field.name)] = bool(field.option.writes)
    assert len(found) > 20
    assert {name for name, writes in found.items() if not writes} == set()
