"""The comparison of a device with the processor: `python -m onehop.device.check`, `onehop doctor --device`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cards import environment
from onehop import BadInput
from onehop.device import check as device_check
from onehop.device.check import check, lines


def test_check_of_the_processor() -> None:
    found = check("processor", quick=True)
    assert found["ok"]
    names = [one["name"] for one in found["checks"]]
    assert "onehop_encode_q8" in names
    assert "onehop_decode_fp8" in names
    assert "sum of 2 ranks, 2 shots, 100001 numbers" in names
    assert all(one["ratio"] == one["value"] / one["limit"] for one in found["rates"])
    assert lines(found)[0] == f"processor: {len(names)} of {len(names)} checks passed"
    with pytest.raises(BadInput, match="expected a device as"):
        check("gpu")


def test_lines_name_what_differs() -> None:
    wrong = {"name": "onehop_encode_q8", "ok": False, "against": "the processor", "error": "byte 3"}
    assert lines({"device": "cuda:0", "checks": [wrong], "rates": []}) == [
        "cuda:0: 0 of 1 checks passed",
        "  onehop_encode_q8: differs from the processor byte 3",
    ]


@pytest.mark.parametrize("kind", ["cuda"])
def test_check_of_a_card(kind: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "onehop.device.check", "--quick", "--json", "-"]
    run = subprocess.run(line, capture_output=True, text=True, env=environment(kind, tmp_path))
    found = json.loads(run.stdout)
    assert (run.returncode, found["ok"]) == (0, True), run.stdout
    assert found["device"] == f"{kind}:0 (stand-in)"


def test_commands_without_a_card(tmp_path: Path) -> None:
    env = {**environment("cuda", tmp_path), "ONEHOP_CUDA": "none"}
    for line, words, code in (
        (["onehop.device.check"], "expected a card, found none", 2),
        (["onehop", "doctor", "--device", "cuda"], "ONEHOP_CUDA=none switches the CUDA driver off", 1),
        (["onehop", "doctor", "--device", "gpu"], "expected a device as", 2),
        (["onehop", "doctor", "--quick"], "--quick needs --device", 2),
    ):
        run = subprocess.run([sys.executable, "-m", *line], capture_output=True, text=True, env=env)
        assert run.returncode == code, run.stderr
        assert words in run.stderr
        assert "Traceback" not in run.stderr


def test_the_result_goes_where_outputs_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"device": "processor", "checks": [], "rates": [], "ok": True}
    monkeypatch.setattr(device_check, "check", lambda *_: found)
    words = ["--device", "processor", "--json"]
    assert device_check.main([*words, str(tmp_path / "new.json")]) == 0
    assert json.loads((tmp_path / "new.json").read_text()) == found
    assert device_check.main([*words, str(tmp_path / "none" / "new.json")]) == 2
    assert "cannot write the result to " in capsys.readouterr().err
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "shared" / "link.json").symlink_to(tmp_path / "mine")
    assert device_check.main([*words, str(tmp_path / "shared" / "link.json")]) == 2
    assert not (tmp_path / "mine").exists()
