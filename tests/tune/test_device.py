"""`onehop tune --device`: the table of cards, and what sums do with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from cards import environment
from onehop import _core
from onehop.error import Error
from onehop.tune import device
from onehop.tune.allreduce import choose_table
from onehop.tune.settings import cost, pick
from ranks import Ranks

PROGRAM = """
    import numpy as np, onehop
    from onehop import device

    group = onehop.Group.world()
    held = device.array(np.linspace(-1, 1, 16 << 10, dtype=np.float32), "processor")
    near = onehop.allreduce(group, held, codec="q8", compress_above="auto").numpy()
    print("shots", device.explain(group, held)["shots"], "exact", bool(np.all(near == 2 * held.numpy())), flush=True)
"""


def _tuning(one_shot_up_to: int, compress_above: int | None) -> str:
    tables = json.loads(_core.built_in_reduce_tables())
    for table in tables:
        if table["transport"] == "cards":
            table["raw"][0]["up_to"] = one_shot_up_to
            table["compress_above"]["q8"] = compress_above
    return json.dumps({**json.loads(_core.built_in_tuning()), "allreduce": tables})


@pytest.mark.parametrize(
    ("one_shot", "above", "said"), [(1 << 20, None, "shots 1 exact True"), (512, 4096, "shots 2 exact False")]
)
def test_sums_follow_the_table(one_shot: int, above: int | None, said: str, ranks: Ranks) -> None:
    # Rank 0's file counts for all. Numbers between two codes are not exact in q8.
    file = ranks.folder / "tuning.json"
    file.write_text(_tuning(one_shot, above))
    run = ranks.launch(2, PROGRAM, "--env", f"ONEHOP_TUNING={file}", status=0)
    assert run.stdout.count(said) == 2, run.stdout


def test_what_is_measured_is_chosen(ranks: Ranks, tmp_path: Path) -> None:
    ranks.environment = {**environment("cuda", tmp_path), **ranks.environment}
    file = ranks.folder / "new.json"
    ranks.environment["ONEHOP_TUNING"] = str(file)
    run = ranks.onehop("tune", "--device", "cuda", "--seconds", 2, "--json", "-", status=0)
    result = json.loads(run.stdout)
    saved = json.loads(file.read_text())
    assert saved == result["tuning"]
    assert saved["rules"] == json.loads(_core.built_in_tuning())["rules"]
    assert {row["what"].split(",")[0] for row in result["rows"]} == {"sums on 2 cards"}
    assert [one["ranks"] for one in saved["allreduce"] if one["transport"] == "cards"] == [2, 4, None]


def test_the_faster_number_of_shots_is_chosen() -> None:
    def samples(one: float, two: float, codec: float) -> dict[str, Any]:
        us = {name: [[codec], [codec]] for name in device.lossy_for(2)}
        return {"raw": [[one], [two]], **us}

    sizes = device.SIZES
    measured = [
        {"up_to": up_to, "us": samples(1, 2, 3) if number < 4 else samples(4, 2, 1)}
        for number, up_to in enumerate(sizes)
    ]
    built_in = next(one for one in json.loads(_core.built_in_reduce_tables()) if one["transport"] == "cards")
    chosen, _ = choose_table(measured, built_in, cost, pick, device.variants_for)
    assert [(one["up_to"], one["algorithm"]) for one in chosen["raw"]] == [
        (sizes[3], "one_shot"),
        (None, "two_shot"),
    ]
    assert chosen["compress_above"]["q8"] == sizes[4]


def test_one_card_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "device_count", lambda kind: (1, ""))
    with pytest.raises(Error, match=r"expected two cards of cuda or more.*found 1"):
        device.ranks_on("cuda")
    monkeypatch.setattr(_core, "device_count", lambda kind: (5, ""))
    assert device.ranks_on("hip") == [2, 4]


def test_a_file_without_cards_has_the_built_in_table() -> None:
    tables = json.loads(_core.built_in_reduce_tables())
    older = [one for one in tables if one["transport"] != "cards"]
    assert json.loads(_core.check_reduce_tables(json.dumps(older))) == tables
