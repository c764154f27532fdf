"""Name the variables of the environment that look like onehop's and that it does not read."""

from __future__ import annotations

import os
import sys

from onehop._core import environment_variables
from onehop.error import BadInput
from onehop.launch.environment import RESTARTED, current_launch

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
