"""`onehop doctor`: its findings, and that they are true."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

import onehop
from onehop.doctor import State, host, machine, selftest, software
from onehop.doctor.selftest import Outcome
from onehop.launch import MpiLauncher
from ranks import Ranks


def test_linux_counts_processors_and_caches(tmp_path: Path) -> None:
    for cpu in range(4):  # two cores of two threads
        files = {"topology/physical_package_id": "0", "topology/core_id": str(cpu % 2)}
        for index, (level, size, kind, shared) in enumerate(
            [(1, "32K", "Data", cpu % 2), (1, "32K", "Instruction", cpu % 2), (3, "32M", "Unified", "0-3")]
        ):
            cache = {"level": level, "size": size, "type": kind, "shared_cpu_list": shared}
            files |= {f"cache/index{index}/{name}": str(value) for name, value in cache.items()}
        for name, text in files.items():
            file = tmp_path / f"cpu/cpu{cpu}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
    found = machine.topology(tmp_path)
    assert found.processors == "2 cores, 4 threads, 1 package, 1 NUMA node"
    assert found.cache_text == "L1 2 x 32 KiB, L3 1 x 32 MiB"


def test_linux_without_files_still_counts_processors(tmp_path: Path) -> None:
    found = machine.topology(tmp_path)
    assert found.threads == os.cpu_count()
    assert found.cache_text == "unknown"


def test_host_is_what_benchmarks_write() -> None:
    found = host("Some MPI")
    assert found["mpi"] == "Some MPI"
    assert found["cores"] == len(os.sched_getaffinity(0))
    assert found["cpu"]
    json.dumps(found)


def test_memory_is_plausible() -> None:
    found = machine.memory()
    assert 0 < found["available"] <= found["total"]
    assert found["group_limit"] is None or found["group_limit"] > 0


@pytest.mark.parametrize(
    ("abi", "kind", "library", "beside", "together"),
    [
        ("Open MPI", "openmpi", "/a/lib/libmpi.so.40", "/a/lib/libmpi.so.40", True),
        ("Open MPI", "openmpi", "/a/lib/libmpi.so.40", "/b/lib/libmpi.so.40", False),
        ("MPICH", "openmpi", "/a/lib/libmpi.so.12", "/a/lib/libmpi.so.40", False),
        ("MPICH", "mpich", "/a/lib/libmpi.so.12", None, True),
    ],
)
def test_mpi_library_and_launcher_must_belong_together(
    abi: str, kind: str, library: str, beside: str | None, together: bool
) -> None:
    assert software.belong_together(library, abi, MpiLauncher("mpiexec", kind, "1", beside)) is together


def test_versions_are_found_without_importing() -> None:
    assert software.package_version("numpy") == __import__("numpy").__version__
    assert software.package_version("no-such-package-anywhere") is None


@pytest.mark.alone  # doctor reports what it cannot do in time
def test_all_is_well_here(ranks: Ranks, tmp_path: Path) -> None:
    ranks.onehop("doctor", "--json", tmp_path / "doctor.json", timeout=110, status=0)
    result = json.loads((tmp_path / "doctor.json").read_text())
    assert result["ok"] is True
    assert result["version"] == onehop.__version__
    found = {one["name"]: one for one in result["findings"]}
    assert found["test: shared memory"]["state"] == "ok"
    assert found["test: mock"]["state"] == "ok"
    for one in found.values():
        assert one["state"] == "ok" or one["remedy"], one
    if found["mpiexec"]["state"] == found["MPI library"]["state"] == "ok":
        assert found["test: mpi"]["state"] == "ok", found["test: mpi"]


def test_rank_count_that_the_launcher_promised_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from onehop.doctor import examination

    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "3")
    monkeypatch.setattr(onehop.Group, "world", classmethod(lambda cls: cls.alone()))
    found = examination._launch()
    assert found.state == State.BROKEN
    assert "3 ranks" in found.text
    assert found.remedy


def test_rank_that_does_not_know_its_number(ranks: Ranks) -> None:
    ranks.environment.update(PMI_SIZE="3", ONEHOP_MPI="none")
    done = ranks.onehop("doctor", "--no-tests", "--json", "-", status=1)
    launch = next(one for one in json.loads(done.stdout)["findings"] if one["name"] == "launch")
    assert launch["state"] == "broken"
    assert "one rank of 3" in launch["text"]


def test_failed_test_makes_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from onehop.cli import main
    from onehop.doctor import examination

    monkeypatch.setattr(
        examination, "test_local", lambda transport: Outcome(False, f"{transport} is out of order")
    )
    monkeypatch.setattr(
        examination, "test_mpi", lambda launcher: Outcome(False, f"{launcher.kind} is out of order")
    )
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "shared_memory is out of order" in " ".join(out.split())
    assert "selftest" in out


def test_self_test_that_hangs_is_ended(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "TIME_LIMIT", 1.0)
    sleep = [sys.executable, "-m", "onehop", "launch", "-n", "2", "--prefix", "raw", "sleep", "60"]
    result = selftest._run(sleep, ranks.environment)
    assert (result.ok, result.text) == (False, "not done after 1 s")


def test_self_test_says_what_went_wrong(ranks: Ranks) -> None:
    result = selftest._run(
        [sys.executable, "-c", "raise SystemExit('Error: out of paper')"], ranks.environment
    )
    assert result == Outcome(False, "Error: out of paper")


def test_self_test_that_the_system_does_not_start(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*words: object, **options: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(selftest.subprocess, "Popen", refused)
    result = selftest._run(["program"], ranks.environment)
    assert not result.ok
    assert "could not run 'program': Resource temporarily unavailable; end other processes" in result.text
