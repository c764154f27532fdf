"""The command line: version, exit codes, JSON, `-n`, and the schedule commands."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

import onehop
from onehop.cli import COMMANDS as MODULES
from onehop.cli import GROUPS, main, make_app
from onehop.cli.common import console, own_rank, progress, write_json
from ranks import Ranks


@pytest.fixture
def halo(tmp_path: Path) -> str:
    path = str(tmp_path / "halo.json")
    assert main(["schedule", "halo", "--extents", "128x64x64", "--grid", "2x1x1", "-o", path]) == 0
    return path


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"onehop {onehop.__version__}\n"


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all commands, each with its path of names; groups of commands are left out."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path, command
        return
    for name, one in below.items():
        yield from commands(one, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(make_app())))
WITHOUT_JSON = {("bench", "all"), ("bench", "figures")}  # they write several files into a folder


def test_all_commands_are_walked() -> None:
    assert {("launch",), ("doctor",), ("bench", "ring"), ("schedule", "halo")} <= COMMANDS.keys()


@pytest.mark.parametrize("names", MODULES.values(), ids=" ".join)
def test_a_command_is_built_without_those_of_other_modules(names: tuple[str, ...]) -> None:
    everything = typer.main.get_command(make_app()).commands  # type: ignore[attr-defined]
    for name in names:
        alone = typer.main.get_command(make_app(name)).commands  # type: ignore[attr-defined]
        assert name in alone
        assert alone.keys() <= set(names)
        assert [path for path, _ in commands(alone[name])] == [path for path, _ in commands(everything[name])]
    assert everything.keys() == {name for each in MODULES.values() for name in each}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_is_built_with_the_named_part_alone(group: str) -> None:
    everything = typer.main.get_command(make_app(group)).commands[group].commands  # type: ignore[attr-defined]
    assert len(everything) > 4
    for name, whole in everything.items():
        alone = typer.main.get_command(make_app(group, name)).commands[group]  # type: ignore[attr-defined]
        assert list(alone.commands) == [name]
        assert [one.opts for one in alone.commands[name].params] == [one.opts for one in whole.params]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_json(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    assert "Usage: onehop" in capsys.readouterr().out
    options = [option for one in COMMANDS[path].params for option in one.opts]
    if path not in WITHOUT_JSON:
        assert "--json" in options
    assert COMMANDS[path].help


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_of_every_option_stands_alone(path: tuple[str, ...]) -> None:
    helps = {one.name: getattr(one, "help", None) for one in COMMANDS[path].params if not one.hidden}
    for name, text in helps.items():
        assert text, f"{name} has no help"
        assert text.endswith("."), f"{name}: {text}"
        assert not text.startswith(("Of ", "What ", "Whether ", "How ", "Which ")), f"{name}: {text}"


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["launch"], ["schedule", "halo"], ["doctor", "--nothing"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


# -- schedules -------------------------------------------------------------------------------------------------------


def test_halo_is_the_one_of_the_library(halo: str) -> None:
    assert onehop.Schedule.load(halo) == onehop.halo(extents=(128, 64, 64), grid=(2, 1, 1))


def test_halo_goes_where_json_goes(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["schedule", "halo", "--extents", "128x64x64", "--grid", "2x1x1", "--json"]
    assert main([*words, str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_text() == Path(halo).read_text()
    capsys.readouterr()
    assert main([*words, "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path(halo).read_text())


def test_halo_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--extents 8x9 --grid 2x2 --width 1:2x3 --periodic yesxno --corners --dtype float32 --fields 2"
    assert main(["schedule", "halo", *words.split()]) == 0
    made = onehop.Schedule.from_json(capsys.readouterr().out)
    assert made == onehop.halo(
        extents=(8, 9),
        grid=(2, 2),
        width=[(1, 2), 3],
        periodic=[True, False],
        corners=True,
        dtype="float32",
        fields=2,
    )


@pytest.mark.parametrize(
    "words",
    [
        "--extents eight --grid 2",
        "--extents 0x4 --grid 2x1",
        "--extents 8 --grid 2x2",
        "--extents 8 --grid 2 --width thin",
        "--extents 8 --grid 2 --width 1:2:3",
        "--extents 8 --grid 2 --periodic perhaps",
        "--extents 8 --grid 2 --dtype nothing",
        "--extents 8 --grid 2 -o no/such/folder/halo.json",
    ],
)
def test_bad_halo_is_one_line_and_exit_code_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "halo", *words.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


def test_count(halo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "count", halo]) == 0
    assert "1 round, 2 messages, 131072 bytes between ranks, 262144 inside" in capsys.readouterr().out
    assert main(["schedule", "count", halo, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bytes"] == 2 * 2 * 64 * 64 * 8
    assert "131072 bytes" in captured.err


def test_show(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "show", halo, "--rows", "3", "--json", str(tmp_path / "again.json")]) == 0
    out = capsys.readouterr().out
    assert "field0" in out
    assert "and 9 more" in out
    assert onehop.Schedule.load(tmp_path / "again.json") == onehop.Schedule.load(halo)


def test_verify(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "verify", halo]) == 0
    assert "ok" in capsys.readouterr().out
    data = json.loads(Path(halo).read_text())
    del data["rounds"][0]["transfers"][5]
    (tmp_path / "broken.json").write_text(json.dumps(data))
    assert main(["schedule", "verify", str(tmp_path / "broken.json"), "--json", "-"]) == 1
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["ok"] is False
    assert result["violations"][0]["rule"] == "coverage"
    assert captured.err.count("coverage: ") == 1


def test_schedule_from_stdin(halo: str, ranks: Ranks) -> None:
    done = ranks.onehop("schedule", "verify", "-", input=Path(halo).read_text())
    assert done.returncode == 0


def test_file_that_is_no_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"ranks": "many"}')
    for name in ("x.json", "nothing.json"):
        assert main(["schedule", "count", str(tmp_path / name)]) == 2
        assert name in capsys.readouterr().err


# -- what the commands share -----------------------------------------------------------------------------------------


def test_json_goes_to_a_file_or_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json(None, {"a": 1})
    assert capsys.readouterr().out == ""
    write_json("-", {"a": 1})
    assert json.loads(capsys.readouterr().out) == {"a": 1}
    write_json(str(tmp_path / "x.json"), {"a": 1})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}
    with pytest.raises(onehop.BadInput, match="no/such"):
        write_json("no/such/x.json", {})


def test_only_rank_0_speaks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "2")
    assert own_rank() == 1
    console().print("table")
    write_json("-", {})
    with progress("work") as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_progress_is_quiet_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("work", 10) as advance:
        advance(10)
    assert capsys.readouterr() == ("", "")


def test_ranks_of_any_command(ranks: Ranks, tmp_path: Path) -> None:
    done = ranks.onehop("doctor", "-n", 2, "--no-tests", "--json", tmp_path / "doctor.json")
    assert done.returncode == 0
    assert "rank 0 of 2" in done.stdout
    assert "rank 1 of 2" not in done.stdout
    launch = next(
        one
        for one in json.loads((tmp_path / "doctor.json").read_text())["findings"]
        if one["name"] == "launch"
    )
    assert launch["text"] == "rank 0 of 2 (onehop launch)"


def test_what_cannot_be_is_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, says in (
        (["bench", "pingpong", "-n", "3"], "expected 2 ranks for this benchmark, found -n 3"),
        (["bench", "channel", "--messages", "0"], "at least 1, found 0"),
        (["bench", "allreduce", "--codecs", "nope"], "found 'nope'"),
        (["bench", "ring", "--seconds", "nan"], "above 0 and finite, found nan"),
        (["bench", "circuits", "--seconds", "inf"], "above 0 and finite, found inf"),
        (["run", "no.qasm", "--plot", str(tmp_path)], "it is a folder"),
        (["schedule", "count", str(tmp_path)], "Is a directory; expected a file"),
    ):
        assert main(words) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("launcher", ["onehop", "mpi"])
def test_bad_input_on_all_ranks_is_said_once(ranks: Ranks, launcher: str) -> None:
    command = ["-m", "onehop", "doctor", "-n", "5", "--no-tests"]
    if launcher == "mpi":
        done = ranks.mpiexec(2, *command)
    else:
        done = ranks.onehop("launch", "-n", 2, sys.executable, *command)
    assert done.returncode == 2
    assert done.stderr.count("error: -n 5 was asked for, but this runs inside a launch of 2 ranks") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("circuit ghz --qubits 0", "`onehop circuit` is now `onehop quantum circuit`"),
        ("hamlib list none.hdf5", "`onehop hamlib` is now `onehop quantum hamlib`"),
        ("qedc none.py", "`onehop qedc` is now `onehop quantum qedc`"),
        ("plan none.qasm --here 1", "`--here` is now `--ranks-per-node`"),
        ("launch -n 1 --grace 1 no-such-program", "`--grace` is now `--kill-after`"),
    ],
)
def test_old_names_say_the_new_ones_once(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(old.split()) == 2
    assert capsys.readouterr().err.count(new) == 1


@pytest.mark.parametrize(
    ("command", "new", "old"),
    [
        ("plan none.qasm --here 1 --ranks-per-node 2", "--ranks-per-node", "--here"),
        ("quantum plan none.qasm --ranks-per-node=1 --here=1", "--ranks-per-node", "--here"),
        ("launch --kill-after 1 -n 1 --grace 2 no-such-program", "--kill-after", "--grace"),
        ("bench wilson --ways half --variants half", "--variants", "--ways"),
    ],
)
def test_an_option_by_both_its_names_is_an_error(
    command: str, new: str, old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "",
        f"error: expected {new} or its former name {old}, found both; leave {old} out\n",
    )


def test_a_former_name_has_the_bounds_of_the_present_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "-n", "1", "--grace", "-1", "no-such-program"]) == 2
    assert "--grace" in capsys.readouterr().err
    assert main(["plan", "none.qasm", "--here", "0"]) == 2
    assert "--here" in capsys.readouterr().err


def test_a_program_may_have_an_option_of_a_former_name(capfd: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "--grace", "--kill-after"]
    assert main(["launch", "-n", "1", "--kill-after", "1", "--output", "raw", *words]) == 0
    assert capfd.readouterr().out == "['--grace', '--kill-after']\n"


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("path", [("launch",), ("lattice", "solve"), ("bench", "wilson")], ids=" ".join)
def test_paragraphs_of_help_fill_the_terminal(
    path: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of a paragraph ends only where the next word would not fit."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*path, "--help"]) == 0
    usage, *paragraphs = capsys.readouterr().out.partition("╭")[0].strip().split("\n" + " " * width + "\n")
    assert usage.startswith("Usage: onehop")
    assert len(paragraphs) >= 2
    for paragraph in paragraphs:
        lines = [line.strip() for line in paragraph.splitlines()]
        for line, following in pairwise(lines):
            assert len(line) + 1 + len(following.split()[0]) > width - 2, paragraph


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_an_unknown_option_of_every_command_is_one_line(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*path, "--no-such-option", "3"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    *notes, line = captured.err.splitlines()
    assert line.startswith("error: no such option: --no-such-option")
    assert line.endswith(f"; see `onehop {' '.join(path)} --help`")
    assert all("is now" in note for note in notes)  # the former names of commands


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("--foo", "no such option: --foo; see `onehop --help`"),
        ("foo", "no such command 'foo'; see `onehop --help`"),
        ("bench foo", "no such command 'foo'; see `onehop bench --help`"),
        ("simulate", "missing argument 'FILE|halo|allreduce|permutation'; see `onehop simulate --help`"),
        ("map --grid", "option --grid requires an argument; see `onehop map --help`"),
        ("map --periodic=3", "option --periodic does not take a value; see `onehop map --help`"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"error: {told}\n")


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("launch -n x true", "--ranks", "'x'"),
        ("lattice info --extent 4x4 --lanes=0", "--lanes", "0"),
        ("lattice info --extent 4x4 --width 2.5", "--width", "'2.5'"),
        ("launch -n 2 --output foo true", "--output", "'foo'"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_named_in_one_line(
    command: str, name: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wording differs between versions of Typer."""
    assert main(command.split()) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert name in told
    assert value in told
    assert told.count("\n") == 1


def test_help_for_nobody_is_no_failure() -> None:
    """As in `onehop --help | head -0`: the reader is gone when the text comes."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "onehop", "--help"], stdout=nobody, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_closed_pipe_is_no_traceback(halo: str, ranks: Ranks) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "onehop", "schedule", "show", halo, "--rows", "0"],
        env=ranks.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert "Traceback" not in process.stderr.read()
    process.wait(20)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full")
@pytest.mark.parametrize(
    "words", [("--version",), ("quantum", "circuit", "ghz", "--qubits", "3")], ids=" ".join
)
def test_full_disk_is_one_line(words: tuple[str, ...], ranks: Ranks) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "onehop", *words],
            env=ranks.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "could not be written" in done.stderr


@pytest.mark.parametrize(("target", "says"), [("no/such/x.json", "no folder"), (".", "found the folder")])
def test_json_target_is_looked_at_before_the_work(
    target: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["poisson", "--local", "no size", "--json", target]) == 2
    told = capsys.readouterr().err
    assert "Traceback" not in told
    assert says in told


def test_in_a_terminal_rank_0_reads_what_is_typed(ranks: Ranks) -> None:
    """Ranks have process groups of their own, and only the foreground group may read a terminal."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        pytest.skip(f"there are no pseudo-terminals here: {error}")  # as in a chroot without /dev/pts
    # Rank 1 must not read: the end of its input would be an error that stops rank 0.
    program = ranks.script("import os\nif os.environ['ONEHOP_RANK'] == '0':\n    print('got', input())\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(
            sys.executable, [sys.executable, "-m", "onehop", "launch", "-n", "2", program], ranks.environment
        )
    os.write(terminal, b"hello\n")
    seen = b""
    while b"got hello" not in seen:
        seen += os.read(terminal, 1024)  # raises OSError if the launch ends without it
    os.close(terminal)
    os.waitpid(pid, 0)
