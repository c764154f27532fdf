"""A short selection of PyTorch's own tests of torch.distributed; `make torch` runs all of them beside gloo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ranks import Ranks
from torch_program import WITHOUT_TORCH

DRIVER = Path(__file__).resolve().parents[1] / "support/torch_driver.py"
SELECTION = [
    "test_DistributedDataParallelCPU_grad_is_view",
    "test_accumulate_gradients_no_sync_allreduce_with_then_hook",
    "test_all_gather_coalesced_complex",
    "test_all_reduce_coalesced_full_group_max",
    "test_scatter_complex",
    "test_barrier_timeout_global",
    "test_monitored_barrier_gloo",
    "test_scatter_object_list",
    "test_send_recv_any_source",
    "test_sparse_all_reduce_sum",
]


def test_a_selection_of_the_tests_of_torch(ranks: Ranks) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    pytest.importorskip(
        "expecttest", reason="there is no expecttest in this environment; `make setup-torch` brings it"
    )
    results = ranks.folder / "results.json"
    done = subprocess.run(
        [sys.executable, str(DRIVER), "onehop", "2", str(results), *SELECTION],
        env={**ranks.environment, "OMP_NUM_THREADS": "1", "TMPDIR": str(ranks.folder)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert results.exists(), done.stderr
    outcomes = json.loads(results.read_text())
    assert {name: outcomes[name][0] for name in SELECTION} == dict.fromkeys(SELECTION, "passed"), outcomes
    assert done.returncode == 0, done.stderr
