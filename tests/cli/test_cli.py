"""The command line: version, help, exit codes, JSON, `-n`."""

import json
import os
import pty
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import onehop
from commands import refused
from onehop.cli import main
from onehop.cli.commands import leaves
from onehop.cli.common import console, own_rank, progress, write_json
from onehop.options import fields_of
from ranks import PATIENCE, Ranks


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"onehop {onehop.__version__}\n"


COMMANDS = dict(leaves())
# Two write several files into a folder, and one a script.
WITHOUT_JSON = {("bench", "all"), ("bench", "figures"), ("completion",), ("docs",)}


def test_all_commands_are_walked() -> None:
    assert {("launch",), ("doctor",), ("lattice", "solve"), ("schedule", "halo")} <= COMMANDS.keys()


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_json(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: onehop {' '.join(path)}" in shown
    assert ("--json" in shown) == (path not in WITHOUT_JSON)
    assert COMMANDS[path].function.__doc__


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_of_every_option_stands_alone(path: tuple[str, ...]) -> None:
    for field in fields_of(COMMANDS[path].options):
        text = field.option.help
        assert text.endswith("."), f"{field.name}: {text}"
        assert not text.startswith(("Of ", "What ", "Whether ", "How ", "Which ")), f"{field.name}: {text}"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_default_is_accepted(path: tuple[str, ...]) -> None:
    for field in fields_of(COMMANDS[path].options):
        values = field.default if isinstance(field.default, list | tuple) else [field.default]
        assert all(value is None or value is ... or field.accepts(value) for value in values), field.name


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


def test_ranks_of_any_command(ranks: Ranks, tmp_path: Path) -> None:
    done = ranks.onehop("doctor", "-n", 2, "--no-tests", "--json", tmp_path / "doctor.json", status=0)
    assert "rank 0 of 2" in done.stdout
    assert "rank 1 of 2" not in done.stdout
    launch = next(
        one
        for one in json.loads((tmp_path / "doctor.json").read_text())["findings"]
        if one["name"] == "launch"
    )
    assert launch["text"] == "rank 0 of 2 (onehop launch)"


@pytest.mark.parametrize("launcher", ["onehop", "mpi"])
def test_bad_input_on_all_ranks_is_said_once(ranks: Ranks, launcher: str) -> None:
    command = ["-m", "onehop", "doctor", "-n", "5", "--no-tests"]
    if launcher == "mpi":
        done = ranks.mpiexec(2, *command)
    else:
        done = ranks.onehop("launch", "-n", 2, sys.executable, *command)
    assert done.returncode == 2
    assert done.stderr.count("error: -n 5 was asked for, but this runs inside a launch of 2 ranks") == 1


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("path", [("launch",), ("lattice", "solve"), ("rails",)], ids=" ".join)
def test_paragraphs_of_help_fill_the_terminal(
    path: tuple[str, ...], width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of a paragraph ends only where the next word would not fit."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([*path, "--help"]) == 0
    usage, *paragraphs = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("Usage: onehop")
    paragraphs = [paragraph for paragraph in paragraphs if not paragraph.partition("\n")[0].endswith(":")]
    assert len(paragraphs) >= 2
    for paragraph in paragraphs:
        lines = [line.strip() for line in paragraph.splitlines()]
        for line, following in pairwise(lines):
            assert len(line) + 1 + len(following.split()[0]) > width, paragraph


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_an_unknown_option_of_every_command_is_one_line(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused([*path, "--no-such-option", "3"], capsys)
    assert told.startswith("no such option: --no-such-option")
    assert told.endswith(f"; see `onehop {' '.join(path)} --help`")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("--foo", "no such option: --foo; see `onehop --help`"),
        ("foo", "no such command 'foo'; see `onehop --help`"),
        ("bench foo", "no such command 'foo'; see `onehop bench --help`"),
        (
            "simulate",
            "missing argument 'FILE|halo|allreduce|broadcast|permutation|trace'; see `onehop simulate --help`",
        ),
        ("map --grid", "option --grid requires an argument; see `onehop map --help`"),
        ("doctor --no-tests=3", "option --no-tests does not take a value; see `onehop doctor --help`"),
        ("map --hoists 3", "no such option: --hoists (did you mean --hosts?); see `onehop map --help`"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(command, capsys) == told


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("launch -n x true", "--ranks as a whole number, found 'x'"),
        ("launch -n 2 --prefix foo true", "--prefix rank, rank0 or raw, found 'foo'"),
        ("launch -n 100000 /bin/true", "at most 1024 ranks"),
        ("lattice info --extent 4x4 --lanes=0", "--lanes as a whole number from 1 to 2^31-1, found '0'"),
        ("lattice info --extent 4x4 --width 2.5", "--width as a whole number from 1 to 3, found '2.5'"),
        ("bench pingpong -n 3", "expected 2 ranks for this benchmark, found -n 3"),
        ("bench channel --messages 0", "--messages as a whole number from 1 to 10000, found '0'"),
        ("bench allreduce --codecs nope", "found 'nope'"),
        ("bench allreduce --codecs q8 --in-place", "--in-place without --codecs and --link"),
        ("bench ring --seconds nan", "above 0 and finite, found 'nan'"),
        ("bench circuits --seconds inf", "above 0 and finite, found 'inf'"),
        ("run none.qasm --plot .", "it is a folder"),
        ("run none.qasm -n 2 --save-every 10m", "--save-every is for --checkpoint; leave it out"),
        (
            "run none.qasm -n 2 --shots 2147483649",
            "--shots as a whole number from 0 to 2^31, found '2147483649'",
        ),
        (
            "run none.qasm -n 2 --noise depolarizing=0.1 --trajectories 2147483649",
            "--trajectories as a whole number from 1 to 2^31",
        ),
        ("poisson --plot no/such.png --json no/such/x.json", "no folder"),
        ("poisson --plot no/such.png --json .", "found the folder"),
        ("schedule count .", "Is a directory; expected a file"),
        ("schedule halo --extent eight --grid 2", "eight"),
        ("schedule halo --extent 0x4 --grid 2x1", "0x4"),
        ("schedule halo --extent 8 --grid 2x2", "grid"),
        ("schedule halo --extent 8 --grid 2 --width thin", "thin"),
        ("schedule halo --extent 8 --grid 2 --width 1:2:3", "1:2:3"),
        ("schedule halo --extent 8 --grid 2 --periodic perhaps", "perhaps"),
        ("schedule halo --extent 8 --grid 2 --dtype nothing", "nothing"),
        ("schedule halo --extent 8 --grid 2 -o no/such/folder/halo.json", "there is no folder"),
    ],
)
def test_what_cannot_be_is_refused_before_the_work(
    command: str,
    part: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert part in refused(command, capsys)


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
    process = ranks.popen("-m", "onehop", "schedule", "show", halo, "--rows", "0")
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
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "could not be written" in done.stderr


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


@pytest.mark.parametrize("words", [["bench"], ["bench", "pingpong"], ["bench", "--help"]], ids=" ".join)
def test_missing_benchmarks_say_how_to_install_them(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onehop.cli.commands.find_spec", lambda _name: None)
    assert "pip install ./bench" in refused(words, capsys, 1)
