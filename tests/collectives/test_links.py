"""Whether codecs are used on the links between hosts with `compress_above="auto"`."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onehop import _core, codec, collectives
from onehop.codec import CODECS
from onehop.group import Group
from onehop.links import Links, link_rate
from threads import run_threads
from torch_program import WITHOUT_TORCH


def between_hosts(group: Group) -> Any:
    """A group whose ranks are told that each has a host of its own."""
    return SimpleNamespace(
        rank=group.rank, size=group.size, local_ranks=[group.rank], allgather=group.allgather
    )


def tuned(file: Path, rates: dict[str, float]) -> None:
    rows = {name: {"pays_below_gbit_per_s": rate} for name, rate in rates.items()}
    file.write_text(json.dumps({**json.loads(_core.built_in_tuning()), "codecs": rows}))


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


class Clock:
    """Exchanges that take as long as their bytes need, after barriers at which this rank waits for a late one."""

    def __init__(self, bytes_per_second: float) -> None:
        self.now, self.rate = 0.0, bytes_per_second
        self.calls: list[str] = []
        self.lengths: set[int] = set()

    def barrier(self, **_: object) -> None:
        self.calls.append("barrier")
        self.now += 10

    def exchange(self, result: Any, source: Any, **_: object) -> None:
        self.calls.append("exchange")
        assert len(result) == len(source)
        self.lengths.add(len(source))
        self.now += len(source) / self.rate


@pytest.mark.parametrize(
    ("local", "others"), [([0], 3), ([0, 1], 2), ([0, 1, 2, 3], 3)], ids=["alone", "pairs", "one_host"]
)
def test_a_link_is_measured_after_a_barrier_and_with_more_than_a_burst(
    local: list[int], others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(1e9)
    monkeypatch.setattr("onehop.links.perf_counter", lambda: clock.now)
    group = SimpleNamespace(size=4, local_ranks=local)
    # A quarter of the bytes goes to each rank.
    assert link_rate(group, clock.barrier, clock.exchange) == pytest.approx(8 * others / 4)
    assert clock.calls == ["barrier", "exchange"] * (len(clock.calls) // 2)
    assert clock.lengths == {4 << 20}


def test_torch_measures_links_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason=WITHOUT_TORCH)
    from onehop.torch import thresholds

    clock = Clock(1e9)  # 8 Gbit/s, half of them to this rank itself
    monkeypatch.setattr("onehop.links.perf_counter", lambda: clock.now)
    world = SimpleNamespace(
        barrier=clock.barrier,
        all_to_all_single=clock.exchange,
    )
    monkeypatch.setattr(thresholds, "dist", world)
    monkeypatch.setattr(thresholds, "gather_rows", lambda row, _: [row, row])
    group = SimpleNamespace(size=2, local_ranks=[0])
    assert thresholds._pays_on_links(None, group, 4.1) is True
    assert thresholds._pays_on_links(None, group, 3.9) is False
    assert clock.calls == ["barrier", "exchange"] * (len(clock.calls) // 2)
    assert clock.lengths == {4 << 20}


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
