"""The command `onehop`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from onehop._core import __version__, check_environment, environment_variables
from onehop._interrupt import end_at_interrupt, restore_children, restore_interrupt
from onehop.cli import former
from onehop.cli.commands import COMMANDS, Command, Group
from onehop.cli.failure import fail
from onehop.error import BadInput
from onehop.launch.environment import RESTARTED, check_paths, current_launch


def _open_closed_streams() -> None:
    """Open the null device as each standard stream that the caller has closed.

    Without it, the next file that is opened becomes standard output, and whatever is printed lands in it.
    """
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def find_command(words: Sequence[str]) -> tuple[Command | Group, list[str], list[str]]:
    """Return the command that the words name, its path, and the words after it, or raise BadInput."""
    command: Command | Group = COMMANDS
    path: list[str] = []
    left = list(words)
    while isinstance(command, Group) and left and not left[0].startswith("-"):
        if left[0] not in command.commands:
            where = " ".join(["onehop", *path])
            raise BadInput(f"no such command {left[0]!r}{_similar(left[0], command)}; see `{where} --help`")
        path.append(left.pop(0))
        command = command.commands[path[-1]]
    return command, path, left


def _similar(word: str, group: Group) -> str:
    import difflib

    near = difflib.get_close_matches(word, group.commands, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def _run_group(group: Group, path: Sequence[str], left: Sequence[str]) -> int:
    """Print the help of a group of commands, which needs one of them."""
    from onehop.cli.help import group_help

    where = " ".join(["onehop", *path])
    if left and left[0] not in ("-h", "--help"):
        raise BadInput(f"no such option: {left[0].partition('=')[0]}; see `{where} --help`")
    summaries = {name: command.about for name, command in group.commands.items()}
    sections = dict(group.sections or {})
    if others := tuple(summaries.keys() - {name for names in sections.values() for name in names}):
        sections["Commands"] = tuple(name for name in summaries if name in others)
    rows = {title: {name: summaries[name] for name in names} for title, names in sections.items()}
    print(group_help(where, group.about, rows))
    if left:
        return 0
    from onehop.cli.common import print_error

    print_error(BadInput(f"`{where}` needs a command; the help lists them"))
    return 2


def _run_command(command: Command, path: str, words: Sequence[str]) -> int:
    from onehop.cli.common import say_written, warnings_in_one_line
    from onehop.cli.parser import HelpWanted, parse

    try:
        options = parse(command.options, words, path, ends_at_argument=command.ends_at_argument)
    except HelpWanted:
        from onehop.cli.help import command_help

        print(command_help(f"onehop {path}", command.function.__doc__ or "", command.options))
        return 0
    with warnings_in_one_line():
        code = command.function(options) or 0
    if not command.ends_at_argument:  # what a program prints is its own
        say_written(options)
    return code


def _run(words: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    first = words[0] if words else "--help"
    say_unknown_variables(keep=first == "launch")
    # A wrong value ends every command here, before it starts ranks.
    check_environment()
    check_paths()
    current_launch()
    if first in ("-V", "--version"):
        print(f"onehop {__version__}")
        return 0
    if first == "help":
        words = [*words[1:], "--help"]
    if first in former.COMMANDS:
        former.say_renamed(f"onehop {first}", f"onehop {former.COMMANDS[first]}")
        words = [*former.COMMANDS[first].split(), *words[1:]]
    command, path, left = find_command(words)
    if isinstance(command, Group):
        return _run_group(command, path, left)
    return _run_command(command, " ".join(path), left)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the arguments of this process.

    Returns the exit code: 0, 1 for a failure, 2 for bad input, 3 for a lost peer, 130 after Ctrl-C.
    """
    try:
        restore_interrupt()
        restore_children()
        _open_closed_streams()
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()  # reports a full disk here rather than at the end of Python
        end_at_interrupt()
        return code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        end_at_interrupt()
        return fail(error)


_PREFIX = "ONEHOP_"
# Read by the build, and by the compile lines of the documentation.
_OF_THE_BUILD = ("SOURCE", "WERROR")


def _says_nothing() -> bool:
    """Whether another process says it: another rank, or the one that has started this command again as ranks."""
    try:
        launched = current_launch()
    except BadInput:
        return False
    return RESTARTED in os.environ or (launched is not None and launched.rank != 0)


def say_unknown_variables(*, keep: bool) -> None:
    """Print one line on stderr for each variable ONEHOP_... that is misspelt, with the nearest name.

    Without `keep`, for a program of the user, they are removed from the environment, so that the processes that this
    command starts do not name them again.
    """
    given = [name for name in os.environ if name.upper().startswith(_PREFIX)]
    if not given:
        return
    known = [one["name"] for one in environment_variables()]
    unknown = sorted({*given} - {*known, *(_PREFIX + one for one in _OF_THE_BUILD)})
    if not unknown or _says_nothing():
        return
    import difflib

    for name in unknown:
        near = difflib.get_close_matches(
            name.upper()[len(_PREFIX) :], [one[len(_PREFIX) :] for one in known], 1
        )
        what = f"did you mean {_PREFIX}{near[0]}?" if near else "onehop has no variable of a similar name"
        print(f"onehop: {name} in the environment has no effect: {what}", file=sys.stderr)
        if not keep:
            del os.environ[name]
