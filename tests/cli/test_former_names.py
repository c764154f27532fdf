"""Former names of commands and options."""

import sys

import pytest

from commands import refused
from onehop.cli import main


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("circuit ghz --qubits 0", "`onehop circuit` is now `onehop quantum circuit`"),
        ("hamlib list none.hdf5", "`onehop hamlib` is now `onehop quantum hamlib`"),
        ("qedc none.py", "`onehop qedc` is now `onehop quantum qedc`"),
        ("plan none.qasm --here 1", "`--here` is now `--per-host`"),
        ("map --no-scotch", "`--no-scotch` has no effect"),
        ("launch -n 1 --kill-after 1 no-such-program", "`--kill-after` is now `--grace`"),
    ],
)
def test_old_names_say_the_new_ones_once(old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(old.split()) == 2
    assert capsys.readouterr().err.count(new) == 1


@pytest.mark.parametrize(
    ("command", "new", "old"),
    [
        ("plan none.qasm --here 1 --per-host 2", "--per-host", "--here"),
        ("quantum plan none.qasm --per-host=1 --ranks-per-node=1", "--per-host", "--ranks-per-node"),
        ("launch --kill-after 1 -n 1 --grace 2 no-such-program", "--grace", "--kill-after"),
        ("simulate halo --machine fugaku --extent 8x8 --extents 8x8", "--extent", "--extents"),
    ],
)
def test_an_option_by_both_its_names_is_an_error(
    command: str, new: str, old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(command, capsys)
    assert told == f"expected {new} or its former name {old}, found both; leave {old} out"


def test_a_former_name_has_the_bounds_of_the_present_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["launch", "-n", "1", "--kill-after", "-1", "no-such-program"]) == 2
    assert "--kill-after" in capsys.readouterr().err
    assert main(["plan", "none.qasm", "--here", "0"]) == 2
    assert "--here" in capsys.readouterr().err


def test_a_program_may_have_an_option_of_a_former_name(capfd: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "--grace", "--kill-after"]
    assert main(["launch", "-n", "1", "--grace", "1", "--prefix", "raw", *words]) == 0
    assert capfd.readouterr().out == "['--grace', '--kill-after']\n"
