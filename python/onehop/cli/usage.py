"""The one line that a wrong command line prints: what is wrong, and the command that shows the options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["usage_message"]

# How Typer begins a message about a value, by version.
_ABOUT_A_VALUE = re.compile(r"Invalid value for (?P<names>'.*?'): (?:Value error, )?(?P<reason>.*)")
_INPUT_SHOULD_BE = "Input should be "


def _command_path(command: Any, arguments: Sequence[str]) -> str:
    """Return the command that the arguments name, with its group, such as `onehop lattice solve`."""
    path = ["onehop"]
    for word in arguments:
        parts = getattr(command, "commands", {})
        if word not in parts:
            break
        path.append(word)
        command = parts[word]
    return " ".join(path)


def _given_value(names: Sequence[str], arguments: Sequence[str]) -> str | None:
    """Return the last value that the arguments have for an option of these names."""
    found = None
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in names and equals:
            found = value
        elif word in names and place + 1 < len(arguments):
            found = arguments[place + 1]
    return found


def _plain(message: str, arguments: Sequence[str]) -> str:
    """Translate a message of Typer into one that says what was expected and what was found."""
    about = _ABOUT_A_VALUE.fullmatch(message)
    if about is None:
        message = re.sub(r"'(-[\w-]+)'", r"\1", message).replace("(Possible options:", "(possible options:")
        return message[:1].lower() + message[1:]
    names = re.findall(r"'(.*?)'", about["names"])
    name, reason = max(names, key=len), about["reason"]
    value = _given_value(names, arguments)
    if reason.startswith(_INPUT_SHOULD_BE):
        rule = reason.removeprefix(_INPUT_SHOULD_BE).partition(",")[0]
    elif " is not one of " in reason:
        rule = f"one of {reason.partition(' is not one of ')[2]}"
    else:
        return f"invalid value for {name}: {reason}"
    return f"expected {name} to be {rule}" + (f", found {value!r}" if value is not None else "")


def usage_message(error: Any, command: Any, arguments: Sequence[str]) -> str:
    """Describe a wrong command line in one line.

    Parameters
    ----------
    error
        The exception of Typer, with the method `format_message`.
    command
        The command line as a click command.
    arguments : sequence of str
        The arguments after `onehop`.

    Returns
    -------
    str
        Such as "no such option: --hoists; see `onehop map --help`".
    """
    told = _plain(" ".join(error.format_message().split()).removesuffix("."), arguments)
    return f"{told}; see `{_command_path(command, arguments)} --help`"
