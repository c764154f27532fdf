"""All-reduce over an emulated link: the gain by codecs, and cleaning up."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onehop import BadInput
from onehop.bench import link
from onehop.launch.mpi import find_mpi_launcher


def _why_not() -> str:
    """Why hosts cannot be emulated here; empty if they can."""
    try:
        link.check_link("1Gbit")
        if find_mpi_launcher().kind != "openmpi":
            return "the mpiexec here is not Open MPI's"
        with link.emulated_hosts("1Gbit"):
            return ""
    except Exception as error:
        return str(error)


WHY_NOT = _why_not()
needs_hosts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "hosts can be emulated")


def _namespaces(process: subprocess.Popen) -> list[str]:
    """The hosts that this process has made; others may be measuring beside it."""
    folder = Path("/run/netns")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    return [name for name in names if name.startswith(f"{link.PREFIX}{process.pid}-")]


@pytest.mark.parametrize("rate", ["", "fast", "1", "1Gbps", "-1Gbit"])
def test_a_rate_that_is_none(rate: str) -> None:
    with pytest.raises(BadInput, match="such as 1Gbit"):
        link.check_link(rate)


def test_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "tc" else tool)
    with pytest.raises(BadInput, match=r"needs tc, .*apt install iproute2"):
        link.check_link("1Gbit")
    monkeypatch.setattr(shutil, "which", lambda tool: tool)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BadInput, match="root"):
        link.check_link("1Gbit")


@needs_hosts
def test_fewer_bytes_take_less_time(tmp_path: Path) -> None:
    out = tmp_path / "link.json"
    command = [sys.executable, "-m", "onehop", "bench", "allreduce", "--link", "100Mbit", "--sizes", "256K"]
    command += ["--codecs", "raw,q8", "--quick", "--json", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    raw, q8 = json.loads(out.read_text())["rows"]
    assert (raw["codec"], q8["codec"]) == ("raw", "q8")
    assert raw["wire_bytes"] == 256 << 10
    assert q8["wire_bytes"] * 32 * 4 == raw["wire_bytes"] * 34
    assert raw["wrong"] == q8["wrong"] == 0
    assert raw["error"] < 1e-6 < q8["error"] < 0.02
    # 21 ms that cannot be had for less, against 5.6.
    assert raw["ours_us"] > 20_000
    assert q8["ours_us"] < raw["ours_us"]
    assert not _namespaces(process)


@needs_hosts
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind(signal_: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "onehop", "bench", "allreduce", "--link", "1Mbit", "--seconds", "60"]
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(
        command,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        end = time.monotonic() + 30
        while not _namespaces(process) and time.monotonic() < end:
            time.sleep(0.02)
        assert _namespaces(process)
        time.sleep(0.5)
        os.killpg(process.pid, signal_)
        assert process.wait(30) != 0
        assert not _namespaces(process)
    finally:
        process.kill()
        process.wait()
