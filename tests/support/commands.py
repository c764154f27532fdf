"""Commands that end with one line of an error."""

import subprocess
from collections.abc import Callable, Sequence

import pytest

from onehop.cli import main

#: The fixture `command` (tests/conftest.py).
Command = Callable[..., subprocess.CompletedProcess[str]]


def refused(words: Sequence[str] | str, capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """Run a command that prints nothing but an error, and return its text without "error: "."""
    assert main(words.split() if isinstance(words, str) else words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: "), captured.err
    assert captured.err.count("\n") == 1, captured.err
    return captured.err.removeprefix("error: ")[:-1]
