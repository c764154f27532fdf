"""No output replaces an input: the check of a command line before any command runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onehop.error import BadInput

__all__ = ["check_outputs"]

# The options of all commands whose value is a file that the command writes. A `--checkpoint` is read and written.
OUTPUT_OPTIONS = (
    "--json",
    "--output",
    "-o",
    "--out",
    "--plot",
    "--goal",
    "--rankfile",
    "--machine-file",
    "--save",
)


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # one of them does not exist, or is no path at all
        return False


def _same_new_file(one: str, other: str) -> bool:
    """Whether both name one file, which need not exist yet. Standard output and devices may be named twice."""
    places = [Path(name) for name in (one, other)]
    try:
        if "-" in (one, other) or any(place.is_relative_to("/dev") or place.is_fifo() for place in places):
            return False
        return places[0].resolve() == places[1].resolve() or _same_file(one, other)
    except (OSError, ValueError, RuntimeError):  # no path at all, or links in a circle
        return False


def check_outputs(arguments: Sequence[str]) -> None:
    """Raise BadInput if an option names a file to write that another argument names as well.

    Parameters
    ----------
    arguments : sequence of str
        The command line after `onehop`, in which every option is followed by its value.
    """
    if "launch" in arguments[:1]:
        return  # they belong to the launched program
    outputs: list[tuple[str, str]] = []
    checkpoints: list[tuple[str, str]] = []
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word.startswith("-o") and len(word) > 2:
            outputs.append(("-o", word[2:]))
        elif name in OUTPUT_OPTIONS:
            outputs.append((name, value if equals else next(words, "")))
        elif name == "--checkpoint":
            checkpoints.append((name, value if equals else next(words, "")))
            others.append(checkpoints[-1][1])
        else:
            others.append(value if equals and word.startswith("--") else word)
    _check_pairs(outputs, checkpoints)
    if "--overwrite" in arguments:
        return  # the user says so
    for option, target in outputs:
        for other in others:
            if target and _same_file(target, other):
                raise BadInput(
                    f"expected {option} with another file than {other}, which this command reads, found the same file: "
                    "name another one"
                )


def _check_pairs(outputs: Sequence[tuple[str, str]], checkpoints: Sequence[tuple[str, str]]) -> None:
    """Raise BadInput if two options write to one file: the second would replace, or remove, what the first wrote."""
    written = [*checkpoints, *outputs]
    for number, (option, target) in enumerate(outputs, len(checkpoints)):
        for other, place in written[:number]:
            if other != option and target and place and _same_new_file(target, place):
                raise BadInput(
                    f"expected {option} with another file than {other}, found {target} for both: name another one"
                )
