"""Run the commands of `onehop bench` as briefly as possible, and check what every result has."""

import json
from typing import Any

import pytest

import onehop
from onehop.error import BadInput
from onehop.launch import find_mpi_launcher
from ranks import Ranks

ROW_KEYS = {
    "case",
    "bytes",
    "ranks",
    "ours_us",
    "p10_us",
    "p90_us",
    "peers",
    "best_peer",
    "best_peer_us",
    "ratio",
}


def has_mpi() -> bool:
    try:
        find_mpi_launcher("openmpi")
    except BadInput:
        return False
    return True


needs_mpi = pytest.mark.skipif(not has_mpi(), reason="needs an Open MPI to compare with")


def measure(ranks: Ranks, *arguments: str) -> dict[str, Any]:
    done = ranks.onehop("bench", *arguments, "--quick", "--json", "-", timeout=100, status=0)
    assert "onehop bench" in done.stderr  # the table makes room for the JSON
    result = json.loads(done.stdout)
    assert set(result) >= {"bench", "version", "host", "rows"}
    assert result["version"] == onehop.__version__
    assert set(result["host"]) >= {"cpu", "cores", "simd", "mpi"}
    for row in result["rows"]:
        assert set(row) >= ROW_KEYS
        assert 0 < row["p10_us"] <= row["ours_us"] <= row["p90_us"]
    return result
