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


def check_outputs(arguments: Sequence[str]) -> None:
    """Raise BadInput if an option names a file to write that another argument names as well.

    Parameters
    ----------
    arguments : sequence of str
        The command line after `onehop`, in which every option is followed by its value.
    """
    if "launch" in arguments[:1] or "--overwrite" in arguments:
        return  # they belong to the launched program; or the user says so
    outputs: list[tuple[str, str]] = []
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in OUTPUT_OPTIONS:
            others.append(value if equals and word.startswith("--") else word)
        else:
            outputs.append((name, value if equals else next(words, "")))
    for option, target in outputs:
        for other in others:
            if target and _same_file(target, other):
                raise BadInput(
                    f"expected {option} with another file than {other}, which this command reads, found the same file: "
                    "name another one"
                )
