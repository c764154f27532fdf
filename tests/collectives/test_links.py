"""Whether codecs are used on the links between hosts with `compress_above="auto"`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onehop import codec, collectives
from onehop.codec import CODECS
from onehop.group import Group
from onehop.links import Links
from threads import run_threads


def between_hosts(group: Group) -> Any:
    """A group whose ranks are told that each has a host of its own."""
    return SimpleNamespace(
        rank=group.rank, size=group.size, local_ranks=[group.rank], allgather=group.allgather
    )


def tuned(file: Path, rates: dict[str, float]) -> None:
    rows = {name: {"pays_below_gbit_per_s": rate} for name, rate in rates.items()}
    file.write_text(json.dumps({"codecs": rows}))


def test_a_codec_pays_on_links_below_its_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tuning.json"
    monkeypatch.setenv("ONEHOP_TUNING", str(file))
    # The "link" is the memory of this machine: some ten to some hundred Gbit/s.
    tuned(file, {"q8": 1e6, "q4": 1e-3})

    def rank(group: Group) -> list[bool]:
        links, paths = Links(), collectives.plans(group).collectives
        inside = links.pays(group, paths, "q4")  # decided by the length alone
        return [inside, *(links.pays(between_hosts(group), paths, one) for one in ("q8", "q4", "raw"))]

    assert run_threads(3, rank) == [[True, True, False, True]] * 3


def test_ranks_choose_alike_by_the_tuning_of_rank_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEHOP_TUNING", str(tmp_path / "missing.json"))
    monkeypatch.setattr("onehop.links.tuned_rate", lambda name: 1e6 if name == "q8" else 1e-3)

    def rank(group: Group) -> bool:
        links, paths = Links(), collectives.plans(group).collectives
        return links.pays(between_hosts(group), paths, "q8" if group.rank == 0 else "q4")

    assert run_threads(2, rank) == [True] * 2


@pytest.mark.parametrize("name", CODECS[1:])
def test_speed_of_codecs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speed = codec.measure_speed(name)
    assert speed.share == codec.encoded_bytes(name, "float32", 1 << 17) / (4 << 17)
    seconds = 1 / speed.encode_gb_per_s + 1 / speed.decode_gb_per_s
    assert speed.pays_below_gbit_per_s == pytest.approx(8 * (1 - speed.share) / seconds)
    # Without a file the speed is measured, and so if the file says nonsense.
    monkeypatch.setenv("ONEHOP_TUNING", str(tmp_path / "tuning.json"))
    assert codec.tuned_rate(name) > 0
    tuned(tmp_path / "tuning.json", {name: 12.5})
    assert codec.tuned_rate(name) == 12.5
    tuned(tmp_path / "tuning.json", {name: -1})
    assert codec.tuned_rate(name) > 0
