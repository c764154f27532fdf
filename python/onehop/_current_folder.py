"""Takes the current folder off `sys.path` for `python -m onehop`, before anything is imported from there.

Uses nothing that Python has not loaded when it starts: anything else might come from that folder.
"""

import os
import sys


def _runs_onehop() -> bool:
    """Whether this is `python -m onehop`, or `-m` and one of its modules, while Python looks for it."""
    arguments = getattr(sys, "argv", [])
    if arguments[:1] != ["-m"]:
        return False
    name = sys.orig_argv[len(sys.orig_argv) - len(arguments)]
    if name.startswith("-"):
        name = name.partition("m")[2]
    return name.partition(".")[0] == "onehop"


def _leave_it_out() -> None:
    """Do it, unless Python has been told so itself (`-P`, `-I`)."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated or not _runs_onehop():
        return
    folder = sys.path.pop(0)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if folder == package:  # the processes that this one starts must find it, too
        found = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = package + (os.pathsep + found if found else "")


_leave_it_out()
