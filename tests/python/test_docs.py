"""The documentation is true: its Python programs run, its commands exist, the README's programs are the examples."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from conftest import Ranks
from onehop.cli import COMMANDS, make_app

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted([README, *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(rf"\bonehop ((?:{'|'.join(COMMANDS)})\b[^`#\n]*)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


# An example is a whole program: a block that imports onehop. Others are lines of one.
EXAMPLES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
    if re.search(r"^(from|import) .*onehop", block, re.M) and "onehop.launch" not in block
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run_on_two_ranks(ranks: Ranks, example: str) -> None:
    done = ranks.launch(2, example)
    assert done.returncode == 0, done.stderr


def test_readme_shows_the_examples() -> None:
    (python,) = blocks(README, "python")
    assert (ROOT / "examples/halo.py").read_text().endswith(f'"""\n\n{python}')
    (cpp,) = blocks(README, "cpp")
    file = (ROOT / "examples/halo.cc").read_text()
    assert "".join(cpp.split()) in "".join(file.split())


def test_readme_schedule_commands_run(ranks: Ranks) -> None:
    (block,) = [text for text in blocks(README, "sh") if text.startswith("onehop schedule")]
    for line in block.splitlines():
        done = ranks.onehop(*shlex.split(line, comments=True)[1:], cwd=ranks.folder)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """With all their options; what the options are given may be a placeholder."""
    for text in COMMAND.findall(page.read_text()):
        words = shlex.split(text)
        command = typer.main.get_command(make_app())
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        assert not hasattr(command, "commands") or words in ([], ["..."]), f"no such command: onehop {text}"
        takes = {name: option for option in command.params for name in (*option.opts, *option.secondary_opts)}
        anywhere = command.context_settings.get("allow_interspersed_args", True)
        while words and (anywhere or words[0].startswith("-")):
            word = words.pop(0)
            if word == "--":  # what follows is for another program
                break
            assert word in takes or not word.startswith("-") or word == "-", f"no {word}: onehop {text}"
            if word in takes and not takes[word].is_flag:
                words.pop(0)
