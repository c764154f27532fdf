"""Whether others took the processor while something was measured."""

import json
import os
import subprocess
import sys

import pytest

from onehop.cli.busy import Load, load_text

SPIN = "import time\nend = time.perf_counter() + 0.25\nwhile time.perf_counter() < end: pass"


def test_own_work_is_not_that_of_others() -> None:
    """A child of this process that computes counts as own work once it has ended, and as that of others before."""
    own = Load()
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    mine = own.found()
    load = Load()
    child = subprocess.Popen([sys.executable, "-c", SPIN])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    others = load.found()
    child.wait()
    assert others["others"] > 0.5
    assert {"others", "steal", "load", "cores", "busy"} == mine.keys()


@pytest.mark.parametrize(
    ("machine", "worked", "is_quiet"), [("", 10.0, True), ("", 4.0, False), ("another", 10.0, False)]
)
def test_ranks_on_the_same_machine_are_no_others(
    monkeypatch: pytest.MonkeyPatch, machine: str, worked: float, is_quiet: bool
) -> None:
    """Ranks on emulated hosts, too."""

    class Ranks:
        def allgather(self, mine: bytes) -> list[bytes]:
            here, _ = json.loads(mine)
            return [mine, json.dumps([machine or here, worked]).encode()]

    ticks = iter([(0.0, 0.0), (10.0, 0.0)])
    monkeypatch.setattr("onehop.cli.busy._ticks", lambda: next(ticks))
    monkeypatch.setattr("onehop.cli.busy._own", lambda: 0.0)
    assert (Load(Ranks()).found()["others"] == 0) is is_quiet  # type: ignore[arg-type]


def test_the_line_names_steal_and_load() -> None:
    found = {"others": 1.234, "steal": 0.3, "load": 5.25, "cores": 2, "busy": True}
    assert load_text(found) == (
        "the machine was busy: others took 1.2 of 2 cores, 0.3 of them below this virtual machine (load 5.2); "
        "measure again when it is quiet"
    )
    quiet = {"others": 0.01, "steal": 0.001, "load": 0.1, "cores": 2, "busy": False}
    assert load_text(quiet) == "the machine was quiet: others took 0.01 of 2 cores"


def test_a_sandbox_without_counts_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr("os.getloadavg", refused)
    monkeypatch.setattr("resource.getrusage", refused)
    assert Load().found()["load"] == 0
