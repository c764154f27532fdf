"""`onehop tune`: its choices, and that onehop uses the saved ones."""

import json
import os
import sys
from pathlib import Path

import pytest

from onehop import _core
from onehop.codec import CODECS
from onehop.error import Error
from onehop.tune.allreduce import (
    LOSSY,
    SIZES,
    block_that_fits,
    built_in_tables,
    choose_table,
    variants_for,
)
from onehop.tune.settings import CLASSES, choose, cost, pick, save, store_choices
from ranks import Ranks

needs_two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")


def test_cost_sees_a_bad_phase_that_a_median_does_not() -> None:
    steady = [12.0] * 100
    fast_then_slow = [10.0] * 60 + [40.0] * 40
    assert cost(steady) < cost(fast_then_slow)


def test_cost_forgets_the_rounds_in_which_somebody_else_ran() -> None:
    assert cost([10.0] * 97 + [5000.0] * 3) == 10


def test_the_built_in_setting_stays_unless_another_is_clearly_better() -> None:
    assert pick([[1.00, 0.99, 2.0]], default=0) == 0
    assert pick([[1.00, 0.80, 2.0]], default=0) == 1
    assert pick([[1.00, 0.99, 2.0]], default=None) == 1


def test_blocks_are_shorter_if_the_time_is_short() -> None:
    assert block_that_fits(15000, 45 * 0.15 / 2, 13) == 15000
    assert block_that_fits(15000, 0.013, 13) == pytest.approx(125)


def test_both_ways_of_measuring_count_alike() -> None:
    # The second is a little faster to and fro, and far slower both ways; the scales differ.
    assert pick([[1.0, 0.9], [1000.0, 2000.0]], default=None) == 0


@pytest.mark.parametrize("size", [256, 1 << 10, 16 << 10, 1 << 20, 4 << 20])
def test_choices_are_sensible(size: int) -> None:
    choices = store_choices(size, demote=True)
    assert len(set(choices)) == len(choices)
    assert any(kind == "plain" for kind, *_ in choices)
    assert all(size <= 256 * chunk for _, chunk, *_ in choices)
    assert ("demote" in {kind for kind, *_ in choices}) == (size <= 16 << 10)
    assert "demote" not in {kind for kind, *_ in store_choices(size, demote=False)}


def test_choose_makes_a_tuning_that_onehop_reads() -> None:
    built_in = json.loads(_core.built_in_tuning())
    default, better = ["plain", 4096, 0, 0], ["nontemporal", 8192, 0, 0]
    classes = [
        {
            "up_to": up_to,
            "size": up_to,
            "choices": [default, better],
            "default": default,
            "costs": [[2.0, 1.0], [2.0, 1.0]],
        }
        for up_to in CLASSES
    ]
    slots = {
        "choices": [["plain", 4096, size, 0] for size in (built_in["slot_bytes"], 1 << 17)],
        "costs": [[2.0, 1.0]],
    }
    waiting = [built_in["spins"], built_in["spins_oversubscribed"], built_in["yields"]]
    waits = {"choices": [waiting, [777, 0, 0]], "default": waiting, "costs": [[2.0, 1.0]]}
    oversubscribed = {"choices": [waiting, [0, 7, 33]], "default": waiting, "costs": [[1.0, 2.0]]}
    tuned = choose({"classes": classes, "slots": slots}, waits, oversubscribed, built_in)
    assert [rule["up_to"] for rule in tuned.tuning["rules"]] == list(CLASSES)
    assert {(rule["stores"], rule["chunk_bytes"]) for rule in tuned.tuning["rules"]} == {
        ("nontemporal", 8192)
    }
    assert tuned.tuning["slot_bytes"] == 1 << 17
    assert tuned.tuning["spins"] == 777
    assert (tuned.tuning["spins_oversubscribed"], tuned.tuning["yields"]) == tuple(waiting[1:])
    assert tuned.choices[0].chosen == "nontemporal, chunks of 8 KiB"
    assert [one.gain for one in tuned.choices] == [0.5] * (len(CLASSES) + 2) + [0.0]
    assert json.loads(_core.check_tuning(json.dumps(tuned.tuning))) == tuned.tuning


def test_choose_makes_a_table_of_all_reduce() -> None:
    # One-shot is better up to 16 KiB with any codec; q8 pays from 64 KiB on, fp16 wherever it is, q4 never.
    measured = []
    for up_to in SIZES:
        size = up_to or 1 << 22
        scale = {"raw": 1.0, "fp16": 0.5, "q8": 1.2 if size < 64 << 10 else 0.8, "q4": 1.1}
        us = {}
        for codec in ("raw", *LOSSY):
            variants = variants_for(size, codec != "raw")
            prefers = "one_shot" if size <= 16 << 10 else "two_shot"
            us[codec] = [
                [scale.get(codec, 0.9) * (1 if variant[0] == prefers else 2) * (1 + variant[1] / 1e7)]
                for variant in variants
            ]
        measured.append({"up_to": up_to, "us": us})
    table, told = choose_table(measured, built_in_tables()[0], cost, pick)
    for kind in ("raw", "encoded"):
        by_size = [(rule["up_to"], rule["algorithm"]) for rule in table[kind]]
        assert by_size[:4] == [(size, "one_shot") for size in SIZES[:4]]
        assert {algorithm for _, algorithm in by_size[4:]} == {"two_shot"}
        assert by_size[-1][0] is None
    above = table["compress_above"]
    assert (above["fp16"], above["q8"], above["q4"]) == (SIZES[0], 64 << 10, None)
    assert len(told) == len(SIZES)
    assert all(text.endswith((" B", " KiB")) for row in told for text in (row[1], row[3]))


def test_save_leaves_nothing_but_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "tuning.json"
    save({"a": 1}, file)
    save({"a": 2}, file)
    assert json.loads(file.read_text()) == {"a": 2}
    assert list(file.parent.iterdir()) == [file]
    (tmp_path / "blocked").write_text("")
    with pytest.raises(Error, match="ONEHOP_TUNING"):
        save({}, tmp_path / "blocked" / "tuning.json")


@pytest.mark.alone
@needs_two_cores
def test_tune_keeps_what_onehop_then_uses(ranks: Ranks, tmp_path: Path) -> None:
    file = tmp_path / "cache" / "tuning.json"
    ranks.environment["ONEHOP_TUNING"] = str(file)
    done = ranks.onehop("tune", "--seconds", "0.2", "--dry-run", "--json", "-", timeout=100, status=0)
    assert json.loads(done.stdout)["written"] is False
    assert not file.exists()

    done = ranks.onehop("tune", "--seconds", "0.2", "--json", "-", timeout=100, status=0)
    result = json.loads(done.stdout)
    assert result["written"] is True
    assert len(result["rows"]) == len(CLASSES) + 3 + 2 * len(SIZES)
    kept = json.loads(file.read_text())
    assert kept == result["tuning"]
    reductions = kept.pop("allreduce")
    assert [(one["transport"], one["ranks"]) for one in reductions] == [
        ("shared_memory", 2),
        ("shared_memory", None),
        ("network", 2),
        ("network", None),
        ("cards", 2),
        ("cards", 4),
        ("cards", None),
    ]
    rates = kept.pop("lossless")
    assert list(rates) == ["float32", "bfloat16"]
    assert all(0.6 < one["share"] < 0.9 for one in rates.values()), rates
    codecs = kept.pop("codecs")
    assert list(codecs) == list(CODECS[1:])
    assert codecs["q8"]["share"] == 34 / 128
    for one in (*rates.values(), *codecs.values()):
        seconds = 1 / one["encode_gb_per_s"] + 1 / one["decode_gb_per_s"]  # of a GB
        assert one["pays_below_gbit_per_s"] == pytest.approx(8 * (1 - one["share"]) / seconds)
    assert json.loads(_core.check_reduce_tables(json.dumps(reductions))) == reductions
    assert json.loads(_core.check_tuning(file.read_text())) == kept

    # All-reduces, too: as a file says that says something odd.
    reductions[0]["compress_above"]["q4"] = 12345
    reductions[0]["raw"] = [{"up_to": None, "algorithm": "two_shot", "chunk_bytes": 512}]
    file.write_text(json.dumps({**kept, "allreduce": reductions}))
    program = ranks.script(
        "import onehop; from onehop import collectives; group = onehop.Group.world();"
        "c = collectives.Collectives(group); o = c.allreduce(9000, 'float32');"
        "print(c.compress_above('q4'), o.algorithm, o.chunk_bytes)"
    )
    used = ranks.onehop("launch", "-n", "2", sys.executable, program)
    assert used.stdout.split("\n")[0].endswith("12345 two_shot 512"), used.stderr

    program = ranks.script("from onehop import _core; print(_core.tuning_origin()); print(_core.tuning())")
    used = ranks.onehop("launch", "-n", "1", sys.executable, program)
    origin, _, text = used.stdout.replace("[0] ", "").partition("\n")
    assert origin == str(file), used.stderr
    assert json.loads(text) == kept


def test_tune_is_not_for_ranks(ranks: Ranks) -> None:
    done = ranks.onehop("launch", "-n", "2", sys.executable, "-m", "onehop", "tune", status=2)
    assert "expected no launch" in done.stderr


def test_tune_needs_time(ranks: Ranks) -> None:
    assert ranks.onehop("tune", "--seconds", "-1").returncode == 2
