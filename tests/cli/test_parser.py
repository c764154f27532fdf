"""Command lines become options."""

from dataclasses import dataclass

import pytest

from onehop import BadInput
from onehop.cli.parser import HelpWanted, parse
from onehop.options import Options, argument, option


@dataclass(kw_only=True)
class Sample(Options):
    file: str = argument("FILE", "A file.")
    words: list[str] = argument("WORDS...", "Words.", [])
    output: str | None = option(None, "An output.", "-o", "--output")
    mass: list[float] = option([], "Masses.")
    json: str | None = option(None, "JSON.", alone="-")
    bind: bool = option(True, "Bind.", "--bind", off="--no-bind")
    grid: tuple[int, ...] | None = option(None, "A grid.")


def parsed(line: str, *, ends_at_argument: bool = False) -> Sample:
    return parse(Sample, line.split(), "sample", ends_at_argument=ends_at_argument)


def test_options_and_arguments_in_any_order() -> None:
    found = parsed("--grid 2x2 a -ob --mass -1e-3 c --mass=-2 --no-bind --json -- --d")
    assert (found.file, found.words, found.output) == ("a", ["c", "--d"], "b")
    assert (found.mass, found.bind, found.json, found.grid) == ([-1e-3, -2], False, "-", (2, 2))
    assert found.given(["grid", "output", "file"]) == ["FILE", "--output", "--grid"]


def test_commas_between_extents_are_a_former_spelling(capfd: pytest.CaptureFixture[str]) -> None:
    assert parsed("a --grid 2,3").grid == (2, 3)
    assert "`--grid 2,3` is now `--grid 2x3`" in capfd.readouterr().err


def test_what_belongs_to_a_program() -> None:
    found = parsed("--no-bind a --grid 3 --help", ends_at_argument=True)
    assert (found.words, found.grid) == (["--grid", "3", "--help"], None)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "missing argument 'FILE'; see `onehop sample --help`"),
        ("a --grid", "option --grid requires an argument"),
        ("a --no-bind=1", "option --no-bind does not take a value"),
        ("a --gird 2x2", "no such option: --gird .did you mean --grid?"),
        ("a --grid 2xb", "expected --grid as numbers"),
    ],
)
def test_wrong_lines(line: str, told: str) -> None:
    with pytest.raises(BadInput, match=told.replace("?", r"\?")):
        parsed(line)


@pytest.mark.parametrize("line", ["-h", "a --help", "--grid 2 -h"])
def test_help(line: str) -> None:
    with pytest.raises(HelpWanted):
        parsed(line)
