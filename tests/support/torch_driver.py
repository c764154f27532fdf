"""Run PyTorch's own tests of torch.distributed with one backend, as PyTorch's test_distributed_spawn.py does for gloo.

    python torch_driver.py BACKEND RANKS RESULTS.json [TEST ...]

The results are a JSON object: the outcome of each test ("passed", "failed" or "skipped") with its errors. The tests are
in the wheel of torch. Without names all run that do not name another backend or a device in their own name.
"""

import json
import logging
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 100  # of one test
#: Names of tests for other backends and devices, which have nothing to do on processors.
ELSEWHERE = ("cuda", "nccl", "mpi", "ucc", "gpu", "multigpu")

backend, ranks, results = sys.argv[1:4]
folder = tempfile.mkdtemp()  # whoever starts this sets TMPDIR and removes it
for name in ("barrier", "test_dir", "init_dir"):
    Path(folder, name).mkdir()
# The decorators of the suite read the variable; so the tests are those of gloo, and their bodies use the other backend.
os.environ.update(
    BACKEND="gloo", WORLD_SIZE=ranks, TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/shared_init_file"
)
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", str(LIMIT_SECONDS))

import torch  # noqa: E402
from torch.testing._internal.distributed import distributed_test as suite  # noqa: E402

if backend == "onehop":
    import onehop.torch

    suite.dist.monitored_barrier = (
        onehop.torch.monitored_barrier
    )  # torch's own refuses every backend but gloo


class BackendName(str):
    """The name of the tested backend, which equals gloo's, too: bodies of tests choose by name."""

    def __eq__(self, other: object) -> bool:
        return other == "gloo" or super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


suite.BACKEND = BackendName(backend)


class Driver(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
    """PyTorch's tests. Ranks are forked, because a test would otherwise mostly import torch."""

    def setUp(self) -> None:
        super().setUp()
        torch.set_num_threads(1)
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


class Recorder(unittest.TestResult):
    """Collects outcomes and writes them after every test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, list[str]] = {}

    def _note(self, test: Any, outcome: str, words: str = "") -> None:
        self.outcomes[test._testMethodName] = [outcome, words]
        new = Path(f"{results}.new")
        new.write_text(json.dumps(self.outcomes, indent=1))
        new.replace(results)

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self._note(test, "passed")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped", reason)

    def addFailure(self, test: Any, error: Any) -> None:  # noqa: N802
        self._note(test, "failed", str(error[1]))

    addError = addFailure  # noqa: N815


if __name__ == "__main__":
    logging.disable(logging.INFO)
    names = sys.argv[4:] or [
        name
        for name in unittest.defaultTestLoader.getTestCaseNames(Driver)
        if not set(name.lower().split("_")) & set(ELSEWHERE)
    ]
    recorder = Recorder()
    for name in names:
        Driver(name).run(recorder)
    sys.exit(any(outcome == "failed" for outcome, _ in recorder.outcomes.values()))
