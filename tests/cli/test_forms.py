"""One form of times, bytes, rates and counts in what commands print, and lines that fit 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onehop.cli import main
from onehop.cli.machines import figure_text

UNIT = r"(?:ns|µs|us|ms|s|min|h|B|bytes?|[KMGT]i?B|[kMGT]B/s|[kMGT]?FLOP/s)\b"
BAD = {
    "an exponent before a unit": rf"\de[+-]\d+ {UNIT}",
    "bytes that fill a larger unit": r"\b\d{4,} (?:B|bytes?)\b(?!-)",
    "a time or size that fills a larger unit": r"(?<!\.)\b[1-9]\d{3,}(?:\.\d+)? (?:ns|µs|ms|s|KiB|MiB|GB/s|MB/s)\b",
    "a fraction of a unit that has a smaller one": r"(?<![\d.])0\.\d+ (?:µs|ms|s|KiB|MiB|GiB|GB/s)\b",
    "µs with u": r"\d us\b",
    "a count without commas": r"(?<![\d.,x:#a-f])(?![01]+\b)\d{5,}(?![\d.,xa-f])",
}


def bad_forms(text: str) -> list[str]:
    """The lines of a text that have a bad form, each with its name."""
    return [
        f"{name}: {line.strip()}"
        for line in text.splitlines()
        for name, form in BAD.items()
        if re.search(form, line)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "about 1.6e+02 s",
        "131072 bytes sent",
        "1000 ms",
        "1024 KiB",
        "0.5 ms",
        "8000 GB/s",
        "0.79 us",
        "│ 287496 │",
    ],
)
def test_bad_forms_are_found(line: str) -> None:
    assert len(bad_forms(line)) >= 1


def test_figures_of_machines() -> None:
    assert figure_text("hop_latency", 2e-7) == "200 ns"
    assert figure_text("memory_bandwidth", 8e12) == "8 TB/s"
    assert figure_text("multiply_adds_single", 2.5e11) == "250 Gop/s"


def test_good_forms_pass() -> None:
    assert (
        bad_forms("1.408 µs, 128 MiB, 65,536 ranks, 1000 shots, 4096 elements, seed 7, 010101, 1e-10, 2 days")
        == []
    )


def test_outputs_of_commands(
    halo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    qft, cfg = str(tmp_path / "qft.qasm"), str(tmp_path / "cfg.lime")
    commands = f"""
        quantum circuit qft -q 20 --measure -o {qft}
        plan {qft} -n 4
        plan {qft} -n 64 --machine genesis
        run {qft} --shots 50 --seed 1
        run {qft} --shots 50 --seed 1 --profile
        schedule show {halo}
        schedule count {halo}
        simulate halo --grid 8x8x8 --extent 64x64x64 --machine fugaku
        map --grid 64x64 --hosts 64 --per-host 64 --bytes 10000x20000
        machines
        rails
        poisson --extent 64x64 --iterations 50
        lattice info --extent 32x32x32x64 -n 16 --machine fugaku
        lattice thermalize --extent 4x4x4x4 --beta 6 --sweeps 1 -o {cfg}
        lattice solve {cfg} --mass 0.1
        doctor --no-tests
    """
    for command in filter(None, map(str.strip, commands.splitlines())):
        assert main(command.split()) == 0, command
        printed = capsys.readouterr().out
        assert [command, *bad_forms(printed)] == [command]
        wide = [line for line in printed.splitlines() if len(line) > 80 and line[0] in "┏┃┡│└┌├"]
        assert [command, *wide] == [command]
