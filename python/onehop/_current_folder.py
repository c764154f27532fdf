"""Remove the current folder from `sys.path` for `python -m onehop`, before any module is imported from there.

This module imports only modules that Python loads at start-up: any other module might come from that folder.
"""

import os
import sys


def module_being_run() -> str:
    """Return the module that Python is resolving for `python -m MODULE`; "" if it runs something else."""
    arguments = getattr(sys, "argv", [])
    if arguments[:1] != ["-m"]:
        return ""
    name = sys.orig_argv[len(sys.orig_argv) - len(arguments)]
    return name.partition("m")[2] if name.startswith("-") else name


def _remove_current_folder() -> None:
    """Remove the folder, unless Python left it out already because of `-P` or `-I`."""
    if (
        getattr(sys.flags, "safe_path", False)
        or sys.flags.isolated
        or module_being_run().partition(".")[0] != "onehop"
    ):
        return
    folder = sys.path.pop(0)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if folder == package:  # child processes must still find the package
        found = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = package + (os.pathsep + found if found else "")


_remove_current_folder()
