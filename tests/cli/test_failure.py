"""Whatever ends a command is one line of an error and an exit code, never a traceback."""

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import onehop
from onehop.cli import main
from onehop.cli.failure import fail
from onehop.launch.environment import variables
from onehop_bench.figures import FIGURES
from onehop_bench.predict import BENCHES
from ranks import Ranks


def raised(make: Callable[[], object]) -> BaseException:
    """The exception that a call raises."""
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def nested() -> object:
    return nested()


CASES: dict[str, tuple[Callable[[], object], int, str]] = {
    "bad input": (lambda: onehop.halo(extents=(8,), grid=(3, 3)), 2, "expected"),
    "memory": (lambda: bytearray(1 << 62), 1, "out of memory; free memory"),
    "recursion": (nested, 2, "nested too deeply"),
    "JSON": (lambda: json.loads("{"), 2, "expected JSON, found text that is not"),
    "bytes": (lambda: b"a\xff".decode(), 2, "found the byte 0xff at position 1"),
    "surrogate": (
        lambda: "\ud800".encode(),
        1,
        "the character '\\ud800' cannot be written in the encoding utf-8",
    ),
    "package": (lambda: __import__("no_such_package"), 1, "No module named 'no_such_package'; install it"),
    "no file": (lambda: Path("no/such\nfile").read_text(), 1, "no/such file: No such file or directory"),
    "folder": (lambda: Path("/").read_text(), 1, "/: Is a directory; check its path"),
    "bytes of a name": (lambda: os.open(b"no/\xff", 0), 1, "No such file"),
    "exists": (lambda: Path("/").mkdir(), 1, "/: File exists"),
    "call": (lambda: os.waitpid(os.getpid(), 0), 1, "needs: No child processes; "),
    "without a number": (lambda: (_ for _ in ()).throw(OSError("told\nthis")), 1, "told this"),
    "bug": (lambda: {}["x"], 1, "this is a bug of onehop: KeyError: 'x'; please report it"),
    "assertion": (
        lambda: (_ for _ in ()).throw(AssertionError),
        1,
        "this is a bug of onehop: AssertionError",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_every_exception_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    make, code, part = CASES[name]
    assert fail(raised(make)) == code
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    assert part in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


@pytest.mark.parametrize(
    "number", [errno.EPERM, errno.EIO, errno.EROFS, errno.EMFILE, errno.EAGAIN, errno.ESTALE]
)
def test_what_the_system_refuses(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(OSError(number, os.strerror(number), "some/file")) == 1
    told = capsys.readouterr().err
    assert os.strerror(number) in told
    assert "; " in told
    assert told.count("\n") == 1


def test_interrupts_say_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert fail(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "onehop: interrupted\n"
    monkeypatch.setattr("onehop.cli.failure._has_launcher", lambda: True)  # which says it for all ranks
    assert fail(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == ""


def test_a_traceback_on_demand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ONEHOP_TRACEBACK", "1")
    assert fail(raised(lambda: {}["x"])) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("Traceback")
    assert "test_failure.py" in told[1]
    assert told[-1].startswith("error: this is a bug of onehop")


def test_a_command_that_meets_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("here")

    monkeypatch.setattr("onehop.cli.find_command", broken)
    assert main(["machines"]) == 1
    assert "this is a bug of onehop: ZeroDivisionError: here" in capsys.readouterr().err


# -- Ctrl-C ---

# Sends the signal when a module is about to be imported.
INTERRUPTED = """
import os, signal, sys

trap = sys.argv.pop(1)

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == trap:
            print("reached", flush=True)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
{ignore}
sys.argv[0] = "/usr/bin/onehop"
from onehop.cli import main
sys.exit(main(["schedule", "halo", "--extent", "8x8", "--grid", "2x1", "-o", os.devnull]))
"""


@pytest.mark.parametrize(
    "module", ["onehop._core", "onehop.cli.commands", "onehop.cli.failure", "onehop.cli.schedule", "numpy"]
)
@pytest.mark.parametrize("ignored", [False, True])
def test_interrupted_imports_are_quiet(module: str, ignored: bool, ranks: Ranks) -> None:
    """As under nohup, an ignored signal stays ignored."""
    if ignored and module != "onehop.cli.commands":
        pytest.skip("one module suffices")
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)" if ignored else ""
    done = ranks.run_python("-c", INTERRUPTED.format(ignore=ignore), module)
    late = not ignored and module in ("onehop.cli.schedule", "numpy")  # the command has begun
    assert (done.returncode, done.stderr) == (0 if ignored else 130, "onehop: interrupted\n" if late else "")
    assert done.stdout.startswith("reached\n")


# Sends the signal while the error is told, or once the command has ended.
LATE = """
import atexit, os, signal, sys
sys.argv[0] = "/usr/bin/onehop"
from onehop.cli import failure, main
def interrupt(*_):
    os.kill(os.getpid(), signal.SIGINT)
{when}
sys.exit(main(["machines", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(
    ("when", "words"),
    [("atexit.register(interrupt)", []), ("failure.exit_code = interrupt", ["no-such-machine"])],
)
def test_interrupts_at_the_end_are_quiet(when: str, words: list[str], ranks: Ranks) -> None:
    done = ranks.run_python("-c", LATE.format(when=when), *words, status=130)
    assert len(done.stderr.splitlines()) == len(words), done.stderr


FIRST_IMPORTS = """
import sys, _signal
sys.argv[0] = "/usr/bin/onehop"
for name in ("enum", "signal"):  # which the start of Python may have imported
    sys.modules.pop(name, None)
class Finder:
    def find_spec(name, path, target=None):
        if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
            print(name)
sys.meta_path.insert(0, Finder)
import onehop
"""


def test_nothing_slow_is_imported_before_interrupts_are_quiet(ranks: Ranks) -> None:
    done = ranks.run_python("-c", FIRST_IMPORTS, status=0)
    assert {*done.stdout.split()} - {"__future__"} == {
        "onehop",
        "onehop._current_folder",
        "onehop._interrupt",
    }


def test_the_library_leaves_interrupts_alone(ranks: Ranks) -> None:
    program = ranks.script(
        "import signal, onehop\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    assert ranks.run_python(program).returncode == 0


@pytest.mark.parametrize("ranks_of_launch", [1, 2])
def test_an_interrupted_launch(ranks_of_launch: int, ranks: Ranks) -> None:
    reading, writing = os.pipe()
    sleeper = f"echo > /proc/{os.getpid()}/fd/{writing}; exec sleep 60"
    process = ranks.popen("-m", "onehop", "launch", "-n", ranks_of_launch, "sh", "-c", sleeper)
    for _ in range(ranks_of_launch):
        assert os.read(reading, 1) == b"\n"
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert (process.returncode, told) == (130, "onehop: interrupted; all ranks were stopped\n")
    os.close(reading)
    os.close(writing)


def test_an_interrupted_tune(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its ranks end with 130, which is no failure of the measurement."""
    monkeypatch.setattr("onehop.tune.settings.launch", lambda *_, **__: 130)
    monkeypatch.setattr("onehop.cli.tune.usable_cores", lambda: 2)
    assert main(["tune", "--seconds", "1", "--dry-run"]) == 130
    assert capsys.readouterr().err == ""


# -- files of any kind ---

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 9,
    "zeros": bytes(5000),
    "deep": b"[" * 100_000,
    "deep object": b'{"rows":' * 50_000,
    "number": b"3",
    "null": b"null",
    "list": b"[1, 2]",
    "object": b'{"a": {}}',
    "string": b'"x"',
    "surrogate": b'{"bench": "\\ud800", "rows": [{"case": "\\ud800"}], "\\ud800": 1}',
    "long number": b'{"bench": "halo", "rows": [' + b"1" * 5000 + b"]}",
    "latin": '{"bench": "größe"}'.encode("latin-1"),
    "no end": b'{"rows": [',
}

# Each of these starts a process that reads the file.
SLOW = ("circuit", "plan", "checkpoint", "qedc")

COMMANDS = {
    "bench predict": "bench predict --machine two-core FILE.json",
    "circuit": "run FILE.json",
    "plan": "plan FILE.json -n 2",
    "checkpoint": "run circuit.qasm --checkpoint FILE.json",
    "qedc": "quantum qedc FILE.json",
    "schedule": "schedule verify FILE.json",
    "simulate": "simulate FILE.json --machine two-core",
    "machine": "machines FILE.toml",
    "map": "simulate halo.json --machine two-core --map FILE.json",
    "rails": "simulate halo.json --machine two-core --rails FILE.json",
    "gauge field": "lattice measure FILE.json",
    "start": "lattice thermalize --start FILE.json --sweeps 1 -o out.lime",
    "links": "lattice solve --fat FILE.json",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "circuit.qasm").write_text("OPENQASM 2.0; qreg q[2]; creg c[2]; U(1,0,0) q[0]; measure q -> c;")
    onehop.halo(extents=(8, 8), grid=(2, 1)).save(folder / "halo.json")
    for suffix in ("json", "toml"):
        (folder / f"folder.{suffix}").mkdir()
        for name, contents in CONTENTS.items():
            (folder / f"{name}.{suffix}").write_bytes(contents)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_files_of_any_kind_are_one_line(
    command: str, place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    files = ("binary", "a\udcffb") if command in SLOW else ("folder", "none", "a\udcffb", *CONTENTS)
    for file in files:
        code = main([word.replace("FILE", file) for word in COMMANDS[command].split(" ")])
        told = capfd.readouterr().err
        assert "bug of onehop" not in told, (file, told)
        assert "Traceback" not in told, (file, told)
        assert code in (0, 1, 2), (file, code)
        assert told.count("\n") <= 1, (file, told)
        assert (code == 0) == (told == ""), (file, told)


# One row of each result that figures show, with values of other types.
@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 10**400, float("nan"), "\ud800", [[1]], True])
def test_results_with_other_values(value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "case": "8 B",
        "bytes": 8,
        "ranks": 2,
        "ours_us": 1.0,
        "extents": [8, 8],
        "grid": [2, 1],
        "periodic": [True, True],
        "qubits": 4,
        "pairs": [[0, 3]],
        "transport": "auto",
        "count": 2,
    }
    file = tmp_path / "x.json"
    for bench in BENCHES:
        for key in row:
            file.write_text(json.dumps({"bench": bench, "rows": [{**row, key: value}]}))
            main(["bench", "predict", "--machine", "two-core", str(file)])
            told = capsys.readouterr().err
            assert "bug of onehop" not in told, (bench, key, told)
            assert told.count("\n") <= 1, told


RESULT_ROW = {
    "case": "8 B",
    "ranks": 2,
    "bytes": 8,
    "ours_us": 1.0,
    "p10_us": 1.0,
    "p90_us": 1.0,
    "best_peer_us": 1.0,
    "best_peer": "x",
    "limit_us": 1.0,
    "peers": {},
}


@pytest.mark.parametrize("change", [*CONTENTS, "host", "notes", "row", "version"])
def test_figures_of_other_results(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    whole = {
        "bench": "pingpong",
        "host": {"cpu": "x", "mpi": "y"},
        "rows": [RESULT_ROW],
        "version": "1",
        "notes": [],
    }
    wrong = (None, "x", [], {}, -1, 10**400, [[]]) if change not in CONTENTS else (None,)
    for value in wrong:
        changed = {"rows": [{**RESULT_ROW, "bytes": value}]} if change == "row" else {change: value}
        text = CONTENTS.get(change) or json.dumps({**whole, **changed}).encode()
        for source in {name for figure in FIGURES.values() for name in figure.sources}:
            (tmp_path / f"{source}.json").write_bytes(text)
        main(["bench", "figures", "--results", str(tmp_path), "--to", str(tmp_path / "figures")])
        told = capsys.readouterr().err
        assert "bug of onehop" not in told, (value, told)
        assert all(line.startswith("error: ") for line in told.splitlines()), told


# -- variables of the environment ---


def test_misspelt_variables_are_named_once(ranks: Ranks) -> None:
    ranks.environment |= {
        "ONEHOP_TIMOUT": "3",
        "onehop_threads": "2",
        "ONEHOP_WERROR": "ON",
        "ONEHOP_QQ": "1",
    }
    named = [
        "onehop: ONEHOP_QQ in the environment has no effect: onehop has no variable of a similar name",
        "onehop: ONEHOP_TIMOUT in the environment has no effect: did you mean ONEHOP_TIMEOUT?",
        "onehop: onehop_threads in the environment has no effect: did you mean ONEHOP_THREADS?",
    ]
    for words in (
        "machines",
        "poisson -n 3 --local 8x8 --iterations 2",
        "--help",
        "launch -n 2 true",
        "nonsense",
    ):
        told = ranks.onehop(*words.split()).stderr.splitlines()
        assert [line for line in told if "in the environment" in line] == named, words


def test_no_variable_of_onehop_is_named(ranks: Ranks) -> None:
    names = {one["name"]: "" for one in onehop._core.environment_variables()}
    ranks.environment |= {name: value for name, value in names.items() if name not in variables()}
    assert ranks.onehop("machines").stderr == ""


def test_a_launched_program_keeps_its_own_variables(ranks: Ranks) -> None:
    ranks.environment["ONEHOP_OF_THE_PROGRAM"] = "3"
    done = ranks.onehop("launch", "-n", 1, "--prefix", "raw", "printenv", "ONEHOP_OF_THE_PROGRAM")
    assert done.stdout == "3\n"
