"""The loop of a process that runs a reference simulator. It needs Python alone: the scripts beside it import it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def version_of(package: str) -> str:
    """The version of an installed package."""
    from importlib.metadata import version

    return version(package)


def answer_requests(
    simulators: Mapping[str, Callable[[int], Any]], answer: Callable[[Any, dict[str, Any]], dict[str, Any]]
) -> None:
    """Start the simulator that the command line names, and answer requests until there are no more.

    A line of JSON says first which version it is, or why it is missing; each further line is an answer, or an error.
    `simulators` makes a simulator for a number of threads, by its name; `answer` carries out a request with it.
    """
    # Answers go to the original stdout, and the simulators' own output to stderr.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        peer = simulators[sys.argv[1]](int(sys.argv[2]))
    except Exception as error:
        answers.write(json.dumps({"missing": f"{type(error).__name__}: {error}"}) + "\n")
        return
    answers.write(json.dumps({"version": str(peer.version), "precisions": peer.precisions}) + "\n")
    for line in sys.stdin:
        try:
            result = answer(peer, json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(result) + "\n")
