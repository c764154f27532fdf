"""Predicted campaigns: counts of a file against its formulas, and the commands of a small one, run."""

import json
import sys
from pathlib import Path

import pytest

from commands import Command
from onehop import BadInput
from onehop.cli.lattice.campaign_progress import CampaignProgress
from onehop.lattice.measurements import read_measurements
from onehop.predict import Campaign, CampaignSeconds, predict_campaign, predict_solver
from ranks import Ranks

TEXT = """
[thermalize]
extent = [4, 4, 4, 8]
sweeps = 3
keep = 2
every = 2
output = "run"
[measure]
output = "run.h5"
quarks = "wilson"
kappa = 0.1
momenta = 1
flow = 0.1
flow-step = 0.05
"""


def test_times_are_counts_times_those_of_the_machine() -> None:
    extents, ranks = (32, 32, 32, 64), 64
    found = predict_campaign(Campaign(extents, 10, 2000, 100, 24, 300, "clover"), "perlmutter", ranks)
    iteration = predict_solver(extents, "perlmutter", ranks, action="clover")
    solves = 10 * 24 * 300
    assert found.hours["solves"] == pytest.approx(solves * iteration.predicted_seconds / 3600)
    assert found.bytes_by_level == {
        level: solves * moved for level, moved in iteration.bytes_by_level.items()
    }
    assert found.file_bytes == 10 * 32**3 * 64 * 576
    assert found.total_hours == pytest.approx(sum(found.hours.values()))
    twice = predict_campaign(Campaign(extents, 10, 4000, 200, 24, 300, "clover"), "perlmutter", ranks).hours
    assert (twice["generation"], twice["flow"]) == pytest.approx(
        (2 * found.hours["generation"], 2 * found.hours["flow"])
    )
    more = predict_campaign(Campaign(extents, 10, 2000, 100, 24, 300, "clover"), "perlmutter", 2 * ranks)
    assert more.hours["generation"] == pytest.approx(found.hours["generation"] / 2)
    assert more.memory_bytes == found.memory_bytes // 2
    measured = CampaignSeconds("here", 1e-6, 2e-6, 3e-3)
    here = predict_campaign(Campaign((4, 4, 4, 8), 2, 5, 3, 7, 11), measured)
    expected = {"generation": 5 * 512e-6, "flow": 2 * 3 * 1024e-6, "solves": 2 * 7 * 11 * 3e-3}
    assert here.hours == pytest.approx({part: seconds / 3600 for part, seconds in expected.items()})
    with pytest.raises(BadInput, match="four extents"):
        predict_campaign(Campaign((4, 4), 1, 5), measured)


def test_a_campaign_is_planned_and_run(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(TEXT)
    planned = json.loads(command("lattice", "plan", "c.toml", "-n", 2, "--json", "-").stdout)
    assert (planned["configurations"], planned["made"], planned["ranks"]) == (2, 0, 2)
    assert planned["hours"].keys() == {"generation", "flow", "solves"}
    done = command("lattice", "campaign", "c.toml", "--status", "now.json", status=0)
    assert "thermalize: 2 of 2 configurations made, 0 measured, in" in done.stderr
    now = json.loads(Path("now.json").read_text())
    assert (now["step"], now["made"], now["measured"], now["left_seconds"]) == ("measure", 2, 2, 0)
    assert now["planned_seconds"] > 0 < now["elapsed_seconds"]
    assert sorted(one.name for one in Path("run").glob("*.lime")) == ["000003.lime", "000005.lime"]
    measured = read_measurements("run.h5")
    assert [one["number"] for one in measured.configurations] == [3, 5]
    assert (measured.options["kappa"], measured.options["momenta"]) == (0.1, 1)
    assert json.loads(command("lattice", "plan", "c.toml", "--json", "-").stdout)["made"] == 2


def test_the_time_left_is_that_of_the_plan_at_the_pace_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [str(tmp_path / f"{number}.lime") for number in range(5)]
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    unplanned = CampaignProgress(None, 0.5, files, None, None).tell("thermalize")
    assert (unplanned["planned_seconds"], unplanned["left_seconds"]) == (None, None)
    progress = CampaignProgress({"generation": 0.1, "solves": 0.2}, 0.5, files, None, None)
    assert progress.tell("thermalize")["left_seconds"] == pytest.approx(0.3 * 3600)
    for file in files[:3]:
        Path(file).touch()
    clock[0] += 540  # twice as long as three quarters of the generation are planned to take
    found = progress.tell("thermalize")
    assert (found["made"], found["elapsed_seconds"]) == (3, 540)
    assert found["left_seconds"] == pytest.approx(2 * (0.025 + 0.2) * 3600)


def test_a_progress_that_cannot_be_written_ends_no_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Such as on a full disk: the command runs to its end."""
    progress = CampaignProgress(None, 0.5, [], None, str(tmp_path / "gone" / "now.json"))
    done = tmp_path / "done"
    program = f"import time; time.sleep(0.3); open({str(done)!r}, 'w')"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onehop.cli.lattice.campaign_progress.SECONDS_BETWEEN", 0.1)
        assert progress.follow("thermalize", [sys.executable, "-c", program]) == 0
    assert done.exists()
    assert "now.json" in capfd.readouterr().err


def test_a_command_ends_with_its_campaign(ranks: Ranks) -> None:
    """A second campaign could not go on beside it."""
    source = """
        import sys
        from onehop.cli.lattice.campaign_progress import CampaignProgress
        sleeper = "import time; print('begun', flush=True); time.sleep(600)"
        CampaignProgress(None, 0.5, [], None, None).follow("thermalize", [sys.executable, "-c", sleeper])
    """
    process = ranks.popen(ranks.script(source))
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.kill()
    process.wait()
    ranks.assert_nothing_left_running()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[thermalize", "expected TOML"),
        ("[measure]\n", "expected the table thermalize"),
        ("[thermalize]\nextent = [4, 4, 4, 4]\n", "expected extent, keep and output in thermalize"),
        (TEXT.replace("kappa", "kapa"), 'expected an option of lattice measure, found "kapa" in measure'),
        (TEXT.replace("sweeps = 3", "sweeps = -3"), "thermalize: expected --sweeps"),
        (TEXT.replace("kappa = 0.1", ""), "measure: expected --mass with --quarks wilson"),
        (TEXT.replace('output = "run.h5"', ""), "measure: expected --output or --json"),
        (TEXT.replace("0.1\nm", "[0.1, 0.2]\nm"), "measure: expected one value of kappa, found [0.1, 0.2]"),
        (TEXT.replace("sweeps = 3", "sweeps = []"), "thermalize: expected one value of sweeps, found []"),
        (TEXT.replace("sweeps = 3", "sweeps = true"), "thermalize: expected one value of sweeps, found True"),
        (TEXT + 'one-link = "false"\n', "measure: expected true or false of one-link, found 'false'"),
    ],
)
def test_bad_campaigns_are_refused(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from onehop.cli import main

    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(text)
    for name in ("plan", "campaign"):
        assert main(["lattice", name, "c.toml"]) == 2
        assert says in " ".join(capsys.readouterr().err.split())
    assert [one.name for one in tmp_path.iterdir()] == ["c.toml"]
