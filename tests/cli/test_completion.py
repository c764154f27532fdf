"""Completion in shells, `onehop help` and `-V`."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import onehop
from onehop.cli import main
from onehop.cli.commands import COMMANDS, leaves

# What bash completes, by the words on the command line, of which the last one is completed.
CASES = {
    "la": ["launch", "lattice"],
    "lattice s": ["smear", "solve"],
    "quantum circuit qf": ["qft"],
    "run --prec": ["--precision"],
    "run a.qasm --precision s": ["single"],
    "run --precision single --obs": ["--observable"],
    "map --format mpich": ["mpich", "mpich-rankmap"],
    "launch -n 2 --p": ["--prefix"],
    "hel": ["help"],
}


def _script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    script = _script("bash", capsys)
    for line in CASES:
        script += (
            f'COMP_WORDS=(onehop {line}); COMP_CWORD={len(line.split())}; _onehop; echo "${{COMPREPLY[@]}}"\n'
        )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == list(CASES.values())
    assert not done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_have_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = _script(shell, capsys)
    for path, _ in leaves():
        if path[0] != "bench":
            assert f"onehop {' '.join(path)}" in script
    if shell == "fish" and shutil.which("fish"):
        line = script + "complete -C 'onehop lattice s'\n"
        done = subprocess.run(["fish", "-N", "-c", line], capture_output=True, text=True, check=True)
        assert {"smear", "solve"} <= set(done.stdout.split())


def test_an_unknown_shell_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash, zsh or fish" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ["lattice", "solve"], ["run"], []:
        assert main([*words, "--help"]) == 0
        expected = capsys.readouterr().out
        assert main(["help", *words]) == 0
        assert capsys.readouterr().out == expected
    assert main(["-V"]) == 0
    assert capsys.readouterr().out == f"onehop {onehop.__version__}\n"
    assert main(["help", "nothing"]) == 2
    assert "no such command 'nothing'" in capsys.readouterr().err


def test_the_help_lists_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in COMMANDS.commands:
        assert text.count(f"\n  {name} ") == 1, name
    assert "Measure:" in text
