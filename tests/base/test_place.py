"""Outputs in folders of other users: no link, pipe or exchanged folder of theirs leads a write elsewhere."""

import itertools
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onehop import BadInput, Error, Group, halo
from onehop.cli import main
from onehop.figure import empty_figure, save_figure
from onehop.lattice import Gauge
from onehop.lattice.files.write import write_gauge
from onehop.launch import launch
from onehop.output import (
    check_file_target,
    check_name,
    make_folder,
    open_unfinished,
    remove_output,
    unfinished_file,
    write_file,
)
from onehop.place import find_place, private_folder
from onehop.quantum import Circuit, State, simulate
from onehop.quantum.io.hamlib import write_tfim_file
from onehop.tune.settings import save as save_tuning

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")

# Folders in which another user may put, rename or exchange a link: permissions and owner.
TRAPS = {
    "writable for all": (0o777, 0),
    "writable for all and sticky": (0o1777, 0),
    "sticky, of another user": (0o1777, NOBODY),
    "of another user": (0o755, NOBODY),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of this user with a file that must stay as it is."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "precious").write_text("mine")
    return folder


def make_shared(folder: Path, trap: str) -> Path:
    permissions, owner = TRAPS[trap]
    folder.mkdir()
    folder.chmod(permissions)
    os.chown(folder, owner, owner)
    return folder


def foreign_link(link: Path, target: Path) -> Path:
    link.symlink_to(target)
    os.lchown(link, NOBODY, NOBODY)
    return link


def check_untouched(home: Path) -> None:
    assert [one.name for one in home.iterdir()] == ["precious"]
    assert (home / "precious").read_text() == "mine"


def save_state(path: Path) -> None:
    State(3, Group.alone()).save(path)


def save_gauge(path: Path) -> None:
    write_gauge(str(path), Gauge(Group.alone(), (4, 4, 4, 4)), "nersc", overwrite=True)


WRITERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: write_file(path, "theirs", "it"),
    "schedule": lambda path: halo(extents=(8, 8), grid=(2, 1)).save(path),
    "figure": lambda path: save_figure(empty_figure(1, 1), str(path)),
    "state": save_state,
    "gauge field": save_gauge,
    "tuning": lambda path: save_tuning({}, path),
    "hamiltonians": lambda path: write_tfim_file(path, [((2,), "grid")], fields=[1.0]),
    "output of ranks": lambda path: launch(1, ["true"], output_dir=str(path)),
    "trace": lambda path: launch(1, ["true"], trace=str(path)),
    "state on disk": lambda path: simulate(Circuit(2), state_folder=path),
    "folder": lambda path: make_folder(path, "--to"),
    "removal": remove_output,
    "check": lambda path: check_file_target(path, "--json"),
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("writer", WRITERS)
def test_links_of_another_user_lead_nowhere(writer: str, trap: str, home: Path, tmp_path: Path) -> None:
    shared = make_shared(tmp_path / "shared", trap)
    links = {
        "file": foreign_link(shared / "file.png", home / "precious"),
        "new file": foreign_link(shared / "new.png", home / "new.png"),
        "folder": foreign_link(shared / "folder", home) / "new.png",
        "folder on the way": shared / "folder/../home/new.png",
        "link to it": tmp_path / "second",
    }
    links["link to it"].symlink_to(links["file"])
    for link in links.values():
        with pytest.raises((Error, PermissionError), match=r"belongs to user 65534|every user may rename"):
            WRITERS[writer](link)
        check_untouched(home)


def test_which_links_are_followed(home: Path, tmp_path: Path) -> None:
    """Root's: its own, in its own folders, unless every user may rename them there."""
    for number, (permissions, owner, of_link) in enumerate(
        itertools.product((0o755, 0o775, 0o777, 0o1775, 0o1777), (0, NOBODY), (0, NOBODY))
    ):
        shared = tmp_path / str(number)
        shared.mkdir()
        link = shared / "link"
        link.symlink_to(home / "precious")
        os.lchown(link, of_link, of_link)
        shared.chmod(permissions)
        os.chown(shared, owner, owner)
        followed = owner == of_link == 0 and permissions != 0o777
        if followed:
            write_file(link, "mine", "it")
            assert link.is_symlink()
        else:
            with pytest.raises(BadInput, match=r"the link .*link (belongs|lies)"):
                write_file(link, "theirs", "it")
        check_untouched(home)


def refused_as(user: int, path: Path) -> bool:
    """Whether a process of another user is refused to write a file."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            write_file(path, "text", "it")
            code = 0
        except BadInput as error:
            code = 1 if "the link" in str(error) else 3
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 1


def test_an_ordinary_user_follows_links_in_a_folder_of_its_group() -> None:
    """For example to a colleague's data; but not in a folder where every user may write."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the folders of tests can be entered by root only
        place = Path(name)
        place.chmod(0o755)
        told = []
        for number, permissions in enumerate((0o2775, 0o777, 0o1777)):
            shared, target = place / f"shared{number}", place / f"target{number}"
            for folder in (shared, target):
                folder.mkdir()
                os.chown(folder, 2000, 2000)
            target.chmod(0o777)
            (shared / "link").symlink_to(target)
            os.lchown(shared / "link", 2000, 2000)
            shared.chmod(permissions)
            told.append(refused_as(2001, shared / "link/out"))
        assert told == [False, True, True]


def test_a_folder_that_is_exchanged_meanwhile(home: Path, tmp_path: Path) -> None:
    """The output stays in the folder that was opened."""
    shared = make_shared(tmp_path / "shared", "writable for all")
    folder = shared / "folder"
    folder.mkdir()
    with unfinished_file(folder / "precious") as file:
        folder.rename(shared / "moved")
        foreign_link(folder, home)
        file.write(b"theirs")
    check_untouched(home)
    assert (shared / "moved/precious").read_bytes() == b"theirs"
    assert len(list((shared / "moved").iterdir())) == 1


def test_a_temporary_file_that_is_exchanged_meanwhile(home: Path, tmp_path: Path) -> None:
    """What is written goes through the descriptor that has made the file, never to a name."""
    shared = make_shared(tmp_path / "shared", "writable for all")
    with unfinished_file(shared / "out") as file:
        (temporary,) = shared.iterdir()
        temporary.unlink()
        foreign_link(temporary, home / "precious")
        file.write(b"theirs")
    check_untouched(home)


def test_shares_of_a_state_go_to_its_own_file_only(home: Path, tmp_path: Path) -> None:
    """The other ranks open the temporary file by its name."""
    precious = home / "precious"
    for kind in ("link", "hard link", "of another user", "pipe", "own"):
        name = tmp_path / kind
        if kind == "link":
            name.symlink_to(precious)
        elif kind == "hard link":
            name.hardlink_to(precious)
        elif kind == "pipe":
            os.mkfifo(name)
        else:
            name.touch()
            os.chown(name, 0 if kind == "own" else NOBODY, 0)
        if kind == "own":
            os.close(open_unfinished(tmp_path / "out", name.name, 0))
        else:
            with pytest.raises(OSError, match=r"levels of symbolic links|taken the name|No such device"):
                open_unfinished(tmp_path / "out", name.name, 0)
    check_untouched(home)


def test_a_pipe_of_another_user_gets_nothing(tmp_path: Path) -> None:
    shared = make_shared(tmp_path / "shared", "writable for all and sticky")
    pipe = shared / "out.json"
    os.mkfifo(pipe, 0o666)
    os.chown(pipe, NOBODY, NOBODY)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BadInput, match=r"the pipe .*out.json belongs to user 65534"):
        write_file(pipe, "secret", "it")
    with pytest.raises(
        BadInput, match=r"^--json: .*the pipe .*out.json belongs to user 65534"
    ):  # before the work
        check_file_target(pipe, "--json")
    os.close(reader)


def test_the_output_of_ranks_goes_to_no_file_or_pipe_of_another_user(home: Path, tmp_path: Path) -> None:
    shared = make_shared(tmp_path / "shared", "writable for all and sticky")
    output = shared / "rank-0.txt"
    output.hardlink_to(home / "precious")
    assert launch(1, ["echo", "theirs"], output_dir=str(shared)) == 0
    check_untouched(home)
    assert output.read_text() == "theirs\n"
    output.unlink()
    os.mkfifo(output, 0o666)
    os.chown(output, NOBODY, NOBODY)
    reader = os.open(output, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BadInput, match=r"the pipe .*rank-0.txt belongs to user 65534"):
        launch(1, ["true"], output_dir=str(shared))
    os.close(reader)


@pytest.mark.parametrize(("owner", "left"), [(0, 0o640), (NOBODY, 0o640 & 0o755)])
def test_a_replaced_file_passes_no_dangerous_permissions_on(owner: int, left: int, tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.write_text("before")
    os.chown(file, owner, owner)
    file.chmod(0o6640 if owner == 0 else 0o6642)
    before = os.umask(0o022)
    write_file(file, "after", "it")
    os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == left
    assert file.stat().st_uid == 0


def test_names_that_lead_to_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The places are those of the system."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "file").touch()
    for name in ("x", "a/x", "./a//x", "link/x", "link/../x", "../x", "/x", str(tmp_path / "link/../../x")):
        with find_place(name) as place:
            assert place.path() == Path(os.path.realpath(name)), name
    for name in ("no/x", "file/x", "link/no/x", "x" * 300):
        with pytest.raises(OSError, match=r"No such|Not a directory|too long"):
            find_place(name)
    with find_place("new/folders/x", make_parents=True) as place:
        assert place.path() == tmp_path / "new/folders/x"
    assert check_name("link/y", "it") == tmp_path / "a/b/y"


@pytest.mark.parametrize("trap", ["writable for all", "sticky, of another user", "of another user"])
def test_temporary_folders_that_others_can_exchange(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = make_shared(tmp_path / "shared", trap)
    inside = shared / "mine"
    inside.mkdir()
    for folder in (shared, inside):
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        with pytest.raises(Error, match=rf"found {shared}, wh.*set TMPDIR"), private_folder("x"):
            pass
        assert main(["tune", "--seconds", "1", "--dry-run"]) == 1
        assert "set TMPDIR" in capsys.readouterr().err
    assert list(inside.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", None)
    with private_folder("onehop-test-", str(tmp_path)) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()
