"""All-reduce over an emulated link: the gain by codecs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.launch.mpi import find_mpi_launcher
from onehop_bench.hosts import emulated_hosts


def _why_not() -> str:
    """Why hosts cannot be emulated here; empty if they can."""
    try:
        if find_mpi_launcher().kind != "openmpi":
            return "the mpiexec here is not Open MPI's"
        with emulated_hosts(2, "1Gbit"):
            return ""
    except Exception as error:
        return str(error)


WHY_NOT = _why_not()
needs_hosts = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "hosts can be emulated")


@pytest.mark.parametrize("rate", ["fast", "1", "1Gbps", "-1Gbit"])
def test_a_rate_that_is_none(rate: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["bench", "allreduce", "--link", rate]) == 2
    assert "such as 1gbit" in capsys.readouterr().err


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
