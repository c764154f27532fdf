"""The schedule commands: halo, count, show and verify."""

import json
from pathlib import Path

import pytest

import onehop
from commands import refused
from onehop.cli import main
from ranks import Ranks


def test_halo_is_the_one_of_the_library(halo: str) -> None:
    assert onehop.Schedule.load(halo) == onehop.halo(extents=(128, 64, 64), grid=(2, 1, 1))


def test_halo_goes_where_json_goes(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["schedule", "halo", "--extent", "128x64x64", "--grid", "2x1x1", "--json"]
    assert main([*words, str(tmp_path / "again.json")]) == 0
    assert (tmp_path / "again.json").read_text() == Path(halo).read_text()
    capsys.readouterr()
    assert main([*words, "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path(halo).read_text())


def test_halo_with_everything(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--extent 8x9 --grid 2x2 --width 1:2x3 --periodic 1x0 --corners --dtype float32 --fields 2"
    assert main(["schedule", "halo", *words.split()]) == 0
    made = onehop.Schedule.from_json(capsys.readouterr().out)
    assert made == onehop.halo(
        extents=(8, 9),
        grid=(2, 2),
        width=[(1, 2), 3],
        periodic=[True, False],
        corners=True,
        dtype="float32",
        fields=2,
    )


def test_count(halo: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "count", halo]) == 0
    assert "1 round, 2 messages, 128 KiB between ranks, 256 KiB inside" in capsys.readouterr().out
    assert main(["schedule", "count", halo, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["bytes"] == 2 * 2 * 64 * 64 * 8
    assert "128 KiB" in captured.err


def test_show(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "show", halo, "--rows", "3", "--json", str(tmp_path / "again.json")]) == 0
    out = capsys.readouterr().out
    assert "field0" in out
    assert "and 9 more" in out
    assert onehop.Schedule.load(tmp_path / "again.json") == onehop.Schedule.load(halo)


def test_verify(halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", "verify", halo]) == 0
    assert "ok" in capsys.readouterr().out
    data = json.loads(Path(halo).read_text())
    del data["rounds"][0]["transfers"][5]
    (tmp_path / "broken.json").write_text(json.dumps(data))
    assert main(["schedule", "verify", str(tmp_path / "broken.json"), "--json", "-"]) == 1
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["ok"] is False
    assert result["violations"][0]["rule"] == "coverage"
    assert captured.err.count("coverage: ") == 1


def test_schedule_from_stdin(halo: str, ranks: Ranks) -> None:
    ranks.onehop("schedule", "verify", "-", input=Path(halo).read_text(), status=0)


def test_file_that_is_no_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text('{"ranks": "many"}')
    for name in ("x.json", "nothing.json"):
        assert name in refused(["schedule", "count", str(tmp_path / name)], capsys)
