"""The comparison of a device with the processor: `python -m onehop.device.check`, `onehop doctor --device`."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cards import environment
from onehop import BadInput, Error, Group
from onehop.device import check as device_check
from onehop.device.check import check, lines
from onehop.quantum import Circuit


def test_check_of_the_processor() -> None:
    found = check("processor", quick=True)
    assert found["ok"]
    names = [one["name"] for one in found["checks"]]
    for name in (
        "onehop_decode_fp8",
        "onehop_tile_pass_f64, dense",
        "onehop_all_reduce_q8",
        "onehop_move_slices, unpacking",
        "sum of 2 ranks, 2 shots, 100001 numbers",
        "halo of 2 ranks",
        "passes, 12 qubits, single precision",
        "exchanges of 2 ranks, 12 qubits, double precision",
        "sum of 2 ranks, 1 shots, 1000 numbers, processes on one device",
    ):
        assert name in names
    rates = {one["name"]: one for one in found["rates"]}
    sums = "sum of 2 processes on one device, 2 shots, 4 MiB, q8"
    assert {"encode_q8", sums, "qpe of 12 qubits", "passes of tfim of 12 qubits"} <= {
        name.replace("18", "12") for name in rates
    }
    for one in rates.values():
        # Circuits are compared with the published times on cards only.
        assert one["unit"] == ("B/s" if one["limit"] else "s")
        assert one["ratio"] == (one["value"] / one["limit"] if one["limit"] else None)
    assert lines(found)[0] == f"processor: {len(names)} of {len(names)} checks passed"
    with pytest.raises(BadInput, match="expected a device as"):
        check("gpu")


class _Result:
    """A simulation on a card on which a pass over 33 qubits takes 40 ms, and a circuit of 40 passes 10 ms more."""

    passes = 40.0

    def __init__(self, circuit: Circuit) -> None:
        self.seconds = 0.01 + 1.6 * 2.0 ** (circuit.qubits - 33)


@pytest.mark.parametrize(
    ("quick", "free", "sizes"),
    [
        (False, 140 << 30, [30, 33]),
        (True, 140 << 30, [30, 33]),
        (False, 40 << 30, [30]),
        (False, 4 << 30, [27]),
    ],
)
def test_circuits_are_as_large_as_memory_allows(
    quick: bool, free: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_check, "simulate", lambda circuit, **_: _Result(circuit))
    core = SimpleNamespace(kind="cuda", free_memory=lambda: free)
    rates = device_check._circuit_rates(core, "cuda:0", quick, 4.0e12)
    qpe, tfim = ([one for one in rates if one["name"].startswith(name)] for name in ("qpe", "tfim"))
    assert [one["name"] for one in qpe] == [f"qpe of {size} qubits" for size in sizes]
    if 33 in sizes:
        assert (tfim[-1]["limit"], tfim[-1]["ratio"]) == (72.6, pytest.approx(72.6 / 1.61))
        assert rates[-1]["ratio"] == pytest.approx(40 * (8 << 33) / 1.61 / 4e12)
    else:
        assert tfim[-1]["ratio"] is None


def test_an_error_of_one_rank_is_an_error_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(group: Group, *_: Any) -> dict[str, bool]:
        group.barrier()
        if group.rank == 1:
            raise Error("no such kernel")
        group.barrier()
        return {}

    monkeypatch.setattr(device_check, "_sums", fails)
    found = check("processor", quick=True)
    assert [one for one in found["checks"] if not one["ok"]] == [
        {"name": "sums of 2 ranks", "ok": False, "against": "NumPy", "error": "no such kernel"}
    ]
    assert (found["ok"], found["rates"]) == (False, [])


def test_lines_name_what_differs() -> None:
    wrong = {"name": "onehop_encode_q8", "ok": False, "against": "the processor", "error": "byte 3"}
    fast = {"name": "qpe of 33 qubits", "value": 2.6, "limit": 5.2, "ratio": 2.0, "unit": "s"}
    slow = {"name": "passes of qpe of 33 qubits", "value": 1e12, "limit": 2e12, "ratio": 0.5, "unit": "B/s"}
    assert lines({"device": "cuda:0", "checks": [wrong], "rates": [fast, slow]}) == [
        "cuda:0: 0 of 1 checks passed",
        "  onehop_encode_q8: differs from the processor byte 3",
        "  qpe of 33 qubits: 2.6 s, 2.00 times as fast as an A100, as published",
        "  passes of qpe of 33 qubits: 1e+03 GB/s, 0.50 of a copy  (goal: 0.75)",
    ]
    late = {**fast, "value": 3.0, "ratio": 5.2 / 3}
    assert lines({"device": "cuda:0 (NVIDIA H100 PCIe)", "checks": [], "rates": [late]})[1:] == [
        "  qpe of 33 qubits: 3 s, 1.73 times as fast as an A100, as published  (goal: 2.9 s)"
    ]


@pytest.mark.parametrize("kind", ["cuda", "hip"])
def test_check_of_a_card(kind: str, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "onehop.device.check", "--quick", "--json", "-"]
    run = subprocess.run(line, capture_output=True, text=True, env=environment(kind, tmp_path))
    found = json.loads(run.stdout)
    assert (run.returncode, found["ok"]) == (0, True), run.stdout
    assert found["device"] == f"{kind}:0 (stand-in)"
    assert "halo of 2 ranks, processes on a card each" in [one["name"] for one in found["checks"]]
    assert "sum of 2 processes on a card each, 1 shots, 64 KiB, raw" in [
        one["name"] for one in found["rates"]
    ]


def test_a_card_whose_kernel_is_wrong(tmp_path: Path) -> None:
    """The check names the kernel; the first use of the card refuses it."""
    env = {**environment("cuda", tmp_path), "STANDIN_WRONG": "onehop_apply_matrix_f64"}
    run = subprocess.run(
        [sys.executable, "-m", "onehop.device.check", "--quick"], capture_output=True, text=True, env=env
    )
    assert run.returncode == 1
    assert "  onehop_apply_matrix_f64: differs from the kernels on the processor byte " in run.stdout
    program = "from onehop.quantum import State; State(3, device='cuda')"
    used = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env)
    assert "in the kernel onehop_apply_matrix_f64: byte " in used.stderr
    assert (
        subprocess.run([sys.executable, "-c", program], env={**env, "ONEHOP_DEVICE_CHECK": "0"}).returncode
        == 0
    )


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
