"""`onehop bench predict`, and the machine file of `onehop tune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onehop.bench.machine_file import fit_messages, machine_text
from onehop.bench.predict import read_bench
from onehop.cli import main
from onehop.error import BadInput, Error
from onehop.machine import load_machine, message_traffic, parse_machine, simulate

SIZES = (256, 1024, 4096, 16384, 65536, 1 << 20, 4 << 20)


def test_the_fit_finds_the_line_and_the_file_predicts_it() -> None:
    messages = [(size, 0.4 + size / 8e3) for size in SIZES]  # 0.4 µs and 8 GB/s
    constant, bandwidth = fit_messages(messages)
    assert constant == pytest.approx(0.4e-6)
    assert bandwidth == pytest.approx(8e9)
    machine = parse_machine(machine_text(messages, 2), "this")
    assert machine.processors == 2
    assert 1e8 < machine.multiply_adds_double.value < 1.5 * machine.multiply_adds_single.value
    assert all(figure.basis == "measured" for figure in (machine.memory, machine.levels[0].bandwidth))
    for size, us in messages:
        assert simulate(message_traffic(2, [[(0, 1, size)]]), machine).seconds == pytest.approx(
            us * 1e-6, rel=1e-3
        )
    with pytest.raises(Error, match="do not"):
        fit_messages([(size, 1e6 / size) for size in SIZES])


def rows(bench: str, **more: int) -> dict:
    row = {"case": "1 MiB", "bytes": 1 << 20, "ranks": 2, "ours_us": 100.0, **more}
    return {"bench": bench, "rows": [row]}


def test_the_command_compares(tmp_path: Path) -> None:
    level = load_machine("two-core").levels[0]
    files = []
    for bench in ("pingpong", "halo", "permutation", "allreduce"):
        file = tmp_path / f"{bench}.json"
        file.write_text(json.dumps(rows(bench, **({"count": 1 << 18} if bench == "allreduce" else {}))))
        files.append(str(file))
    out = tmp_path / "out.json"
    assert main(["bench", "predict", *files, "--machine", "two-core", "--json", str(out)]) == 0
    found = {row["bench"]: row for row in json.loads(out.read_text())["rows"]}
    flow = (1 << 20) / level.bandwidth.value * 1e6
    for bench in ("pingpong", "halo", "permutation"):
        assert found[bench]["predicted_us"] == pytest.approx(flow, rel=0.01)
        assert found[bench]["factor"] == pytest.approx(100 / found[bench]["predicted_us"], rel=1e-6)
    assert found["allreduce"]["predicted_us"] == pytest.approx(flow, rel=0.8)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"bench": "su3", "rows": []}', '{"bench": "halo", "rows": [{"case": "x"}]}']
)
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"x\.json: expected"):
        read_bench(str(file))
    assert main(["bench", "predict", str(file), "--machine", "two-core"]) == 2


def test_seconds_with_files_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "predict", "x.json", "--machine", "two-core", "--seconds", "3"]) == 2
    assert "expected --seconds without files only" in capsys.readouterr().err
