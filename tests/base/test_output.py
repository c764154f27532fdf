"""Commands write files atomically: with a full disk, the old file stays and the error is one line."""

import io
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onehop import BadInput, halo
from onehop.cli import main
from onehop.figure import empty_figure, save_figure
from onehop.output import check_file_target, unfinished_file, write_file
from ranks import PATIENCE, Ranks, completed


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KiB, and nothing left to write on it but a few names."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    done = completed(command)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path) -> None:
    filler = (disk / "filler").open("wb", buffering=0)
    with filler, pytest.raises(OSError, match="No space left on device"):
        shutil.copyfileobj(io.BytesIO(bytes(1 << 20)), filler, 512)


CIRCUIT = Path(__file__).resolve().parents[1] / "data/qasm/own_gates.qasm"
COMMANDS = {
    "lattice info": ("lattice", "info", "--extent", "8x8", "-n", 2, "--json"),
    "schedule": ("schedule", "halo", "--extent", "64x64", "--grid", "2x1", "-o"),
    "circuit": ("quantum", "circuit", "qft", "--qubits", 5, "-o"),
    "poisson plot": ("poisson", "--local", "8x8", "--plot"),
    "hamlib": ("quantum", "hamlib", "tfim", 4, "-o"),
    "state": ("run", CIRCUIT, "--save"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("there_before", [True, False])
def test_a_full_disk_leaves_what_there_was(
    name: str, there_before: bool, small_disk: Path, ranks: Ranks
) -> None:
    target = small_disk / ("out.png" if "plot" in name else "out.json")
    if there_before:
        target.write_text("what was here before")
    fill(small_disk)
    done = ranks.onehop(*COMMANDS[name], target, status=2)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert f" {target}: " in done.stderr
    assert "cannot write" in done.stderr
    assert (
        sorted(one.name for one in small_disk.iterdir())
        == ["filler"] + ["out.png" if "plot" in name else "out.json"] * there_before
    )
    if there_before:
        assert target.read_text() == "what was here before"


@pytest.mark.parametrize("pages", range(1, 8))
def test_a_state_on_a_disk_that_gets_full(pages: int, small_disk: Path, ranks: Ranks) -> None:
    """The HDF5 library notices it at any of its steps, often only when it closes the file."""
    subprocess.run(["mount", "-o", f"remount,size={4 * pages}k", str(small_disk)], check=True)
    circuit = small_disk.with_name("circuit.qasm")
    circuit.write_text("OPENQASM 2.0;\nqreg q[10];\nU(1,0,0) q[9];\n")
    done = ranks.onehop("run", circuit, "--save", small_disk / "state.h5")
    if done.returncode == 0:
        assert pages > 4  # 16 KiB of amplitudes
        return
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"cannot write {small_disk}/state.h5: No space left on device" in done.stderr
    assert list(small_disk.iterdir()) == []


def test_streams_are_written_as_they_are(
    ranks: Ranks, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ranks.onehop("lattice", "info", "--extent", "8x8", "--json", "/dev/full", status=2)
    assert "cannot write the result to /dev/full: No space left on device" in done.stderr
    assert Path("/dev/full").is_char_device()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["sh", "-c", f"sleep 0.5; cat '{fifo}'"], stdout=subprocess.PIPE)
    write_file(fifo, "through a pipe", "the text")
    assert reader.communicate(timeout=PATIENCE)[0] == b"through a pipe"
    assert f"waiting for a program that reads the pipe {fifo.name}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_log_is_continued(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("what was here before\n")
    program = f"from onehop.output import write_file; print('one'); write_file('{name}', 'two', 'it'); print(' three')"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "python")}
    with log.open("a") as stream:
        subprocess.run([sys.executable, "-c", program], stdout=stream, env=environment, check=True)
    assert log.read_text() == "what was here before\none\ntwo three\n"
    assert list(tmp_path.iterdir()) == [log]


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    write_file(real, "one", "the text")
    assert stat.S_IMODE(real.stat().st_mode) & 0o400
    real.chmod(0o640)
    link.symlink_to(real)
    write_file(link, b"two", "the text")
    assert link.is_symlink()
    assert real.read_text() == "two"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640

    def interrupted() -> None:
        with unfinished_file(real) as file:
            file.write(b"half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert real.read_text() == "two"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "real"]


WRITER = """if True:
    import os, signal, sys
    from onehop.output import unfinished_file
    with unfinished_file(sys.argv[1]) as file:
        file.write(b"half of")
        print(flush=True)
        sys.stdin.read()
"""


def test_the_next_output_sweeps_what_a_killed_writer_left(tmp_path: Path) -> None:
    def writer() -> subprocess.Popen[bytes]:
        line = [sys.executable, "-c", WRITER, str(tmp_path / "out")]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "python")}
        started = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert started.stdout is not None
        assert started.stdout.readline() == b"\n"
        return started

    killed = writer()
    (left,) = tmp_path.iterdir()
    living = writer()
    assert left.exists()  # its writer lives
    (other,) = {*tmp_path.iterdir()} - {left}
    killed.kill()
    killed.communicate()
    mine = [
        tmp_path / name for name in (".unfinished", ".unfinished-1-abc", f"{left.name}.txt", "unfinished")
    ]
    elsewhere = tmp_path / ".unfinished-another.machine-1-0123abcd"
    for one in (*mine, elsewhere):
        one.write_text("to keep")
    link = tmp_path / (left.name[:-8] + "00000000")
    link.symlink_to(mine[0])
    assert left.exists()
    write_file(tmp_path / "new", "whole", "the text")
    assert {*tmp_path.iterdir()} == {*mine, elsewhere, link, other, tmp_path / "new"}
    assert all(one.read_text() == "to keep" for one in (*mine, elsewhere))
    assert living.communicate(b"")[0] == b""
    assert living.returncode == 0
    assert (tmp_path / "out").read_text() == "half of"
    assert not other.exists()


def test_schedules_are_written_whole(small_disk: Path) -> None:
    target = small_disk / "schedule.json"
    target.write_text("what was here before")
    fill(small_disk)
    with pytest.raises(BadInput, match="cannot write the schedule"):
        halo(extents=(64, 64), grid=(2, 1)).save(target)
    assert target.read_text() == "what was here before"


def test_targets_are_looked_at_before_the_work(tmp_path: Path) -> None:
    check_file_target(tmp_path / "new", "--json")
    for target, says in ((tmp_path, "found the folder"), (tmp_path / "no" / "x", "there is no folder")):
        with pytest.raises(BadInput, match=says):
            check_file_target(target, "--json")


OUTPUTS = (
    ["schedule", "halo", "--extent", "8x8", "--grid", "2x1", "-o"],
    ["lattice", "info", "--extent", "8x8", "--json"],
    ["lattice", "thermalize", "--extent", "4x4x4x4", "--format", "ildg", "-o"],
    ["lattice", "thermalize", "--extent", "4x4x4x4", "--checkpoint"],
    ["poisson", "--local", "8x8", "--plot"],
    ["quantum", "circuit", "qft", "--qubits", "3", "-o"],
    ["run", "circuit.qasm", "--save"],
    ["run", "circuit.qasm", "--checkpoint"],
)


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
@pytest.mark.parametrize("name", ["x" * 300 + ".png", "circle/out.png", "circle"])
def test_names_that_the_system_refuses(
    arguments: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "circuit.qasm").write_text('OPENQASM 2.0; include "qelib1.inc"; qreg q[1]; h q[0];')
    assert main([*arguments, name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == ["circle", "circuit.qasm"]


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda place, _mode: Path(place) != tmp_path)
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="permission denied in the folder"):
        check_file_target(tmp_path / "new", "--json")


def test_plots_of_another_format(tmp_path: Path) -> None:
    figure = empty_figure(2, 2)
    save_figure(figure, str(tmp_path / "plot.svg"))
    drawn = (tmp_path / "plot.svg").read_text()
    assert "<svg" in drawn
    assert re.search(r"\d\.\d{3}|\n[LMz]", drawn) is None  # rounded; a path is one line
    save_figure(figure, str(tmp_path / "plot"))
    assert (tmp_path / "plot").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadInput, match=r"cannot write the plot to .*plot\.docx"):
        save_figure(figure, str(tmp_path / "plot.docx"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["plot", "plot.svg"]
