"""The built-in launcher: output of the ranks, and typed input."""

from pathlib import Path

from onehop.launch.output import Lines
from ranks import Ranks


def lines_of(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_every_line_carries_its_rank(ranks: Ranks) -> None:
    done = ranks.launch(
        3, "import os; print('one'); print('two of', os.environ['ONEHOP_RANKS'], end='')", status=0
    )
    assert done.stderr == ""
    assert lines_of(done.stdout) == [
        "[0] one", "[0] two of 3", "[1] one", "[1] two of 3", "[2] one", "[2] two of 3",
    ]  # fmt: skip


def test_lines_are_never_mixed(ranks: Ranks) -> None:
    source = """
        import os, sys
        letter = "abcd"[int(os.environ["ONEHOP_RANK"])]
        for _ in range(200):
            for _ in range(40):
                sys.stdout.write(letter)
            print()
    """
    done = ranks.launch(4, source)
    assert len(done.stdout.splitlines()) == 800
    assert set(done.stdout.splitlines()) == {f"[{rank}] {letter * 40}" for rank, letter in enumerate("abcd")}


def test_stdout_and_stderr_stay_apart(ranks: Ranks) -> None:
    done = ranks.launch(1, "import sys; print('out'); print('err', file=sys.stderr)")
    assert (done.stdout, done.stderr) == ("[0] out\n", "[0] err\n")


def test_rank0_alone(ranks: Ranks) -> None:
    done = ranks.launch(3, "import os; print('rank', os.environ['ONEHOP_RANK'])", "--prefix", "rank0")
    assert done.stdout == "rank 0\n"


def test_raw(ranks: Ranks) -> None:
    # One write per rank: print() writes words and the end of the line one by one, and those of two ranks may mix.
    program = "import os, sys; sys.stdout.write('rank ' + os.environ['ONEHOP_RANK'] + chr(10))"
    done = ranks.launch(2, program, "--prefix", "raw")
    assert lines_of(done.stdout) == ["rank 0", "rank 1"]


def test_last_words_of_a_failed_rank_are_shown_even_if_it_is_not_rank_0(ranks: Ranks) -> None:
    source = """
        import os, sys, time
        if os.environ["ONEHOP_RANK"] == "1":
            sys.exit("something went wrong")
        time.sleep(60)
    """
    done = ranks.launch(2, source, "--prefix", "rank0", status=1)
    assert "[1] something went wrong" in done.stderr


def test_input_goes_to_rank_0(ranks: Ranks) -> None:
    done = ranks.launch(2, "import sys; print(repr(sys.stdin.read()))", input="typed\n")
    assert lines_of(done.stdout) == ["[0] 'typed\\n'", "[1] ''"]


def test_a_closed_output_ends_the_launch(ranks: Ranks) -> None:
    source = "import time\nwhile True: print('x' * 1000); time.sleep(0.001)"
    process = ranks.start(2, source)
    process.stdout.readline()
    process.stdout.close()
    process.stderr.close()
    assert process.wait(20) != 0


def test_long_lines_are_cut(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        lines = Lines(file.fileno(), "[7] ")
        lines.feed(b"x" * (3 << 20))
        lines.close()
    text = (tmp_path / "out").read_bytes()
    assert text.startswith(b"[7] x")
    assert text.count(b"x") == 3 << 20
