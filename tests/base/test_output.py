"""Commands write files atomically: with a full disk, the old file stays and the error is one line."""

from __future__ import annotations

import io
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from onehop import BadInput
from onehop.figure import empty_figure, save_figure
from onehop.output import check_file_target, unfinished_file, write_file
from ranks import Ranks


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KiB, and nothing left to write on it but a few names."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small file system")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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


COMMANDS = {
    "lattice info": ("lattice", "info", "--extent", "8x8", "-n", 2, "--json"),
    "schedule": ("schedule", "halo", "--extents", "64x64", "--grid", "2x1", "-o"),
    "circuit": ("quantum", "circuit", "qft", "--qubits", 5, "-o"),
    "poisson plot": ("poisson", "--local", "8x8", "--plot"),
    "hamlib": ("quantum", "hamlib", "tfim", 4, "-o"),
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
    done = ranks.onehop(*COMMANDS[name], target)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert f"to {target}: " in done.stderr
    assert "cannot write" in done.stderr
    assert (
        sorted(one.name for one in small_disk.iterdir())
        == ["filler"] + ["out.png" if "plot" in name else "out.json"] * there_before
    )
    if there_before:
        assert target.read_text() == "what was here before"


def test_streams_are_written_as_they_are(ranks: Ranks, tmp_path: Path) -> None:
    done = ranks.onehop("lattice", "info", "--extent", "8x8", "--json", "/dev/full")
    assert done.returncode == 2
    assert "cannot write the result to /dev/full: No space left on device" in done.stderr
    assert Path("/dev/full").is_char_device()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE)
    write_file(fifo, "through a pipe", "the text")
    assert reader.communicate(timeout=30)[0] == b"through a pipe"


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
        with unfinished_file(real) as place:
            place.write_text("half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert real.read_text() == "two"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "real"]


def test_targets_are_looked_at_before_the_work(tmp_path: Path) -> None:
    check_file_target(tmp_path / "new", "--json")
    for target, says in ((tmp_path, "found the folder"), (tmp_path / "no" / "x", "there is no folder")):
        with pytest.raises(BadInput, match=says):
            check_file_target(target, "--json")


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda place, _mode: Path(place) != tmp_path)
    tmp_path.chmod(0o500)
    with pytest.raises(BadInput, match="permission denied in the folder"):
        check_file_target(tmp_path / "new", "--json")


def test_plots_of_another_format(tmp_path: Path) -> None:
    figure = empty_figure(2, 2)
    save_figure(figure, str(tmp_path / "plot.svg"))
    assert b"<svg" in (tmp_path / "plot.svg").read_bytes()
    save_figure(figure, str(tmp_path / "plot"))
    assert (tmp_path / "plot").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(BadInput, match=r"cannot write the plot to .*plot\.docx"):
        save_figure(figure, str(tmp_path / "plot.docx"))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["plot", "plot.svg"]
