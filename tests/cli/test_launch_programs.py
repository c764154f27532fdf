"""Several programs in a launch, variables and cores of single ranks, files of output, signals, and grace."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from commands import refused
from onehop.error import BadInput
from onehop.launch.programs import Program, number_set, read_variables, starts_of
from ranks import PATIENCE, Ranks

SHOW = "import os, sys; print(sys.argv[1:], os.environ.get('ONE'), os.environ.get('TWO'), os.sched_getaffinity(0))"


def test_programs_variables_files_and_cores(ranks: Ranks) -> None:
    ranks.script(SHOW, "show.py")
    core = min(os.sched_getaffinity(0))
    ranks.script(
        f"# two of the four\n\n1 ONE=file\n3 cores={core} TWO='a b' -m show third {{rank}}  # the last\n",
        "ranks",
    )
    first = ["-n", 2, "--env", "ONE=first{rank}", "--env=TWO=x=y", "show.py", "a"]
    second = ["-n", 2, "--env", "ONE=second", "-m", "show", "b", "-n"]
    options = ["--no-bind", "--ranks-file", "ranks", "--output-dir", "some/where", "--json", "end.json"]
    done = ranks.onehop("launch", *options, *first, ":", *second, cwd=ranks.folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    said = [(ranks.folder / f"some/where/rank-{rank}.txt").read_text().split(" {")[0] for rank in range(4)]
    assert said == [
        "['a'] first0 x=y",
        "['a'] file x=y",
        "['b', '-n'] second None",
        "['third', '{rank}'] second a b",
    ]
    assert (ranks.folder / "some/where/rank-3.txt").read_text().endswith(f" {{{core}}}\n")
    told = json.loads((ranks.folder / "end.json").read_text())
    assert told["command"].count(":") == 2
    assert len(told["ranks"]) == 4


def test_a_file_has_the_number_of_ranks(tmp_path: Path) -> None:
    file = tmp_path / "ranks"
    file.write_text("2 true two\n0-1 false\n")
    starts = starts_of([Program(None, variables=["A={rank}"])], str(file))
    assert [list(start.command) for start in starts] == [["false"], ["false"], ["true", "two"]]
    assert [start.environment for start in starts] == [{"A": "0"}, {"A": "1"}, {"A": "2"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 true\n0-1 true", "line 2: expected each rank once, found rank 0 in "),
        ("0 true\n2 true", "expected a program for rank 1"),
        ("x true", "line 1: expected ranks such as 0-3,8, at most 1023, found 'x'"),
        ("0-2000000000 true", "line 1: expected ranks"),
        ("3-1 true", "line 1: expected ranks"),
        ("0 cores=70000 true", "line 1: expected cores such as 0-3,8, at most 65536"),
        ("0 cores=65535 true", "line 1: expected cores that this process may use"),
        ("0 'true", "line 1: No closing quotation"),
        ("0 -m", "line 1: expected a module after -m, found none"),
        ("0 no-such-program", "line 1: cannot run 'no-such-program'"),
        ("0 ONEHOP_RANK=1 true", "line 1: expected variables other than those of the launcher itself"),
        ("# nothing", "expected lines RANKS"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "ranks"
    file.write_text(text)
    with pytest.raises(BadInput) as raised:
        starts_of([Program(None)], str(file))
    assert told in str(raised.value)
    assert str(file) in str(raised.value)


def test_small_parts() -> None:
    assert number_set("3,0-2", "ranks", 3) == [3, 0, 1, 2]
    assert read_variables(["A=", "B=x{rank}=y"], 7) == {"A": "", "B": "x7=y"}
    for wrong in ("A", "=1", "1A=2", "A B=1"):
        with pytest.raises(BadInput, match="--env: expected NAME=VALUE"):
            read_variables([wrong], 0)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("launch true", "missing option -n RANKS"),
        ("launch -n 1 true : true", "missing option -n RANKS"),
        ("launch -n 1 true :", "missing option -n RANKS"),
        ("launch -n 1 true : -n 0 true", "expected at least 1 rank, found 0"),
        ("launch -n 1000 true : -n 1000 true", "expected at most 1024 ranks on one machine, found 2000"),
        ("launch -n 1 true : -n 1 --no-bind true", "no such option: --no-bind"),
        ("launch -n 1 --ranks-file no-such-file true", "cannot read the file of ranks no-such-file"),
        ("launch -n 1 --env ONE true", "--env: expected NAME=VALUE, found 'ONE'"),
        ("launch -n 1 --prefix raw --output-dir x true", "--prefix is about the terminal"),
        ("launch -n 1 --output-dir /dev/null/x true", "to the folder '/dev/null/x': Not a directory"),
        ("launch -n 1", "expected a program to launch"),
    ],
)
def test_refused(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(command, capsys)


SAVES = """
    import os, signal, sys, time
    rank = os.environ["ONEHOP_RANK"]
    def say(line):
        os.write(1, f"{line}\\n".encode())  # at once, because both ranks write to one pipe
    def save(number, frame):
        say(f"{rank} has {signal.Signals(number).name}")
        if number == signal.SIGTERM:
            time.sleep(2.5)
            say(f"{rank} saved")
            sys.exit(0)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
        signal.signal(number, save)
    say("ready")
    while True:
        time.sleep(100)
"""


def test_signals_are_passed_on_and_sigterm_is_waited_for(ranks: Ranks) -> None:
    process = ranks.start(2, SAVES, "--grace", 100, "--prefix", "raw")
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        process.send_signal(number)
        assert sorted(process.stdout.readline() for _ in range(2)) == [
            f"{rank} has {number.name}\n" for rank in (0, 1)
        ]
    process.terminate()
    out, _ = process.communicate(timeout=PATIENCE)
    assert sorted(out.splitlines()) == ["0 has SIGTERM", "0 saved", "1 has SIGTERM", "1 saved"]
    assert process.returncode == 128 + signal.SIGTERM


def test_grace_ends(ranks: Ranks) -> None:
    source = """
        import os, signal, sys, time
        if os.environ["ONEHOP_RANK"] == "0":
            time.sleep(0.3)
            sys.exit(4)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1000)
    """
    begin = time.monotonic()
    done = ranks.launch(2, source, "--grace", 0.2, "--output-dir", "out", status=4)
    assert time.monotonic() - begin < 60
    file = Path("out") / "rank-0.txt"
    assert (
        done.stderr
        == f"onehop: rank 0 failed with exit code 4; the others were stopped; its output is in {file}\n"
    )
