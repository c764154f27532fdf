"""One trial of each quick kind passes, a seed repeats it, and planted faults are anomalies."""

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import broken  # noqa: E402
import faults  # noqa: E402
import soak  # noqa: E402
import trials  # noqa: E402

from ranks import Ranks, completed  # noqa: E402

needs_program = pytest.mark.skipif(
    not soak.native.PROGRAM.exists(), reason="onehop_soak is not built: `tools/build.sh release`"
)


needs_ucx = pytest.mark.skipif(not soak.stored.is_possible(), reason="no UCX library was found")


@pytest.mark.parametrize(
    ("kind", "seed", "counted"),
    [
        ("exchanges", 1, "exchanges"),
        ("reductions", 4, "reductions"),
        ("faults", 1, "faults"),
        ("disks", 5, "disks"),
        ("limits", 2, "limits"),
        pytest.param("many_exchanges", 3, "exchanges", marks=needs_program),
        pytest.param("long_messages", 3, "exchanges", marks=needs_program),
        pytest.param("many_kills", 3, "kills", marks=needs_program),
        pytest.param("many_split_kills", 3, "kills", marks=needs_program),
        pytest.param("stored_exchanges", 1, "ucx_exchanges", marks=needs_ucx),
        pytest.param("stored_reductions", 2, "reductions", marks=needs_ucx),
        pytest.param("stored_faults", 3, "ucx_faults", marks=needs_ucx),
    ],
)
def test_one_trial(kind: str, seed: int, counted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak.native, "BATCHES", 1)
    monkeypatch.setattr(soak.native, "FAULTS", 20)
    counts, wrong = soak.trial(kind, seed)
    assert wrong == ""
    assert counts[counted] > 0


def test_a_wrong_byte_is_an_anomaly(ranks: Ranks) -> None:
    program = f"""
        import sys
        sys.path.insert(0, {str(HERE / "programs")!r})
        import exchanges
        right = exchanges.model_run
        def wrong(model, moves):
            right(model, moves)
            if moves[0]:
                model[moves[0][0][1][0]] += 1  # one element that the first transfer wrote
        exchanges.model_run = wrong
        sys.argv = ["exchanges.py", "1", "20", "2"]
        exchanges.main()
    """
    done = ranks.launch(2, program)
    assert done.returncode != 0
    assert "wrong bytes: seed [1, " in done.stderr


@needs_program
@pytest.mark.parametrize(
    ("kind", "seed", "said"),
    [
        ("exchanges", 1, "in the 8 bytes from"),  # the first schedule only moves elements
        ("exchanges", 3, ", byte "),  # the first one also adds
        ("long_messages", 6, "in the 8 bytes from"),  # a plan
        ("long_messages", 7, "received in way"),  # channels
        ("long_messages", 8, "sums of reduction"),
        ("kills", 1, "a wrong rank is named"),
        ("split_kills", 1, "a wrong rank is named"),
    ],
)
def test_planted_faults_of_the_native_trials_are_anomalies(kind: str, seed: int, said: str) -> None:
    line = [str(soak.native.PROGRAM), kind, str(seed), "3", "plant"]
    done = completed(line, timeout=100)
    assert done.returncode == 1
    assert said in done.stderr
    assert "kills" in kind or "wrong bytes" in done.stderr
    assert f"repeat with: onehop_soak {kind} {seed} " in done.stderr


def test_a_late_report_is_an_anomaly_that_its_name_repeats(tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\nimport soak, trials\ntrials.PROMISED_SECONDS = -1\n"
        "raise SystemExit(soak.main())\n"
    )
    kills = next(seed for seed in range(100) if _is_kill(seed))
    log = tmp_path / "log"
    done = completed([sys.executable, program, "--repeat", f"faults:{kills}"])
    assert done.returncode == 1
    assert "told after" in done.stdout
    done = completed(
        [sys.executable, HERE / "soak.py", "--trials", "1", "--seed", "3", "--log", log, "limits"]
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(log.read_text())["counts"]["trials"] == 1


@pytest.mark.parametrize("does", ["time.sleep(600)", "raise SystemExit(3)"])
def test_ranks_that_never_are_at_work_are_an_anomaly(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work.py").write_text(
        f"import sys, time\nprint('words of a rank', file=sys.stderr, flush=True)\n{does}\n"
    )
    monkeypatch.setattr(trials, "PROGRAMS", tmp_path)
    monkeypatch.setattr(trials, "START_SECONDS", 10)
    wrong = soak.trial("faults", next(seed for seed in range(100) if _is_kill(seed)))[1]
    assert "before all ranks were at work" in wrong
    assert "words of a rank" in wrong


def _is_kill(seed: int) -> bool:
    """Whether the trial of this seed kills a rank; it draws in this order."""
    source = trials.random.Random(seed)
    source.choice([2, 3, 4])
    source.choice(trials.WORK)
    return source.choice(["kill", "kill", "kill", "stop", "exit", "raise"]) == "kill"


def test_wrong_arguments_are_named() -> None:
    for arguments, said in (
        (["nonsense"], "found nonsense"),
        (["--hours", "0"], "above 0"),
        (["--repeat", "x"], "x"),
    ):
        done = completed([sys.executable, HERE / "soak.py", *arguments])
        assert done.returncode == 2
        assert said in done.stderr


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda one: one.name)
def test_faults_fit_the_sources(fault: faults.Fault) -> None:
    texts = broken.broken_text(fault, soak.ROOT)
    assert texts
    assert all(text != (soak.ROOT / name).read_text() for name, text in texts.items())


def test_a_fault_that_does_not_fit_is_an_error() -> None:
    change = faults.Change("src/plan/run/plan.cc", "#include", "#embed")
    with pytest.raises(
        ValueError, match=r"expected '#include' 1 times in src/plan/run/plan.cc, found it \d+ times"
    ):
        broken.broken_text(faults.Fault("none", "", "kills", (change,)), soak.ROOT)
