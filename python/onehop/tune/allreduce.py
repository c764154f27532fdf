"""The part of `onehop tune` for all-reduce: algorithm and chunk by length, and the length from which a codec pays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from onehop import _core
from onehop.codec import CODECS, TABLE
from onehop.group import Group
from onehop.text import bytes_text, counted

# Arrays up to these sizes share a rule. Each rule is measured at its upper end, the last one at 4 MiB.
SIZES = (2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, None)
LARGE = 4 << 20
MORE_RANKS = 4
CHUNKS = (64 << 10, 256 << 10)
LOSSY = CODECS[1:]
# Above this a codec is tried only with two-shot, which encodes each number less often.
BOTH_UP_TO = 32 << 10

Variant = tuple[str, int]
Cost = Callable[[Sequence[float]], float]
Pick = Callable[[Sequence[Sequence[float]], int | None], int]


def lossy_for(ranks: int) -> list[str]:
    """The codecs that reductions over so many ranks take."""
    return [codec for codec in LOSSY if ranks <= TABLE[codec].most_ranks]


def variants_for(size: int, encoded: bool) -> list[Variant]:
    """The algorithms and chunks to try for arrays of `size` bytes."""
    chunks = [size] if size <= CHUNKS[0] else [chunk for chunk in CHUNKS if 2 * chunk <= size]
    variants = [("two_shot", chunk) for chunk in chunks]
    if not encoded or size <= BOTH_UP_TO:
        variants.insert(0, ("one_shot", chunks[0]))
    return variants


def block_that_fits(block_us: float, seconds: float, candidates: int) -> float:
    """A shorter block, in µs, if the time is too short for eight blocks of each candidate."""
    return min(block_us, seconds * 1e6 / (8 * candidates))


def measure_allreduce(group: Group, seconds: float) -> list[dict[str, Any]]:
    """Measure as one rank: for every size the samples of raw and of every codec, by variant; µs."""
    measured = []
    for up_to in SIZES:
        size = LARGE if up_to is None else up_to
        names = [("raw", variant) for variant in variants_for(size, False)]
        names += [(codec, variant) for codec in lossy_for(group.size) for variant in variants_for(size, True)]
        variants = [(f"{codec} {variant}", "variant", codec, *variant) for codec, variant in names]
        variants[0] = (variants[0][0], "ours", *variants[0][2:])
        block_us = block_that_fits(300.0 if group.size <= 2 else 3000.0, seconds / len(SIZES), len(variants))
        effort = _core.MeasureEffort(seconds=seconds / len(SIZES), block_us=block_us, min_rounds=3)
        samples = _core.measure_allreduce(group, size, effort, False, variants)
        us: dict[str, list[list[float]]] = {}
        for (codec, _), one in zip(names, samples, strict=True):
            us.setdefault(codec, []).append(one[2])
        measured.append({"up_to": up_to, "us": us})
    return measured


def _default(rules: list[dict[str, Any]], size: int, variants: list[Variant]) -> int:
    """The index of the variant nearest to the built-in one."""
    rule = next(rule for rule in rules if rule["up_to"] is None or size <= rule["up_to"])
    alike = [number for number, variant in enumerate(variants) if variant[0] == rule["algorithm"]]
    return min(alike, key=lambda number: abs(variants[number][1] - rule["chunk_bytes"]), default=0)


def _joined(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge neighbouring rules that are the same."""
    kept: list[dict[str, Any]] = []
    for rule in rules:
        if kept and all(kept[-1][key] == rule[key] for key in ("algorithm", "chunk_bytes")):
            kept[-1] = rule
        else:
            kept.append(rule)
    return kept


def choose_table(
    measured: list[dict[str, Any]],
    table: dict[str, Any],
    cost: Cost,
    pick: Pick,
    variants_of: Callable[[int, bool], list[Variant]] = variants_for,
) -> tuple[dict[str, Any], list[tuple[str, str, float, str, float]]]:
    """Make a table from the result of `measure_allreduce` and the built-in table for these ranks.

    Also return for each size a description, the built-in and the chosen variant, each with its time. `cost` and `pick`
    are the functions of onehop.tune.settings.
    """
    chosen: dict[str, Any] = {**table, "raw": [], "encoded": []}
    told, best = [], []
    for one in measured:
        size = LARGE if one["up_to"] is None else one["up_to"]
        costs = {codec: [cost(us) for us in variants] for codec, variants in one["us"].items()}
        now = {}
        for kind, codecs in (("raw", ["raw"]), ("encoded", [codec for codec in LOSSY if codec in costs])):
            variants = variants_of(size, kind == "encoded")
            default = _default(table[kind], size, variants)
            number = pick([costs[codec] for codec in codecs], default)
            algorithm, chunk = variants[number]
            chosen[kind].append({"up_to": one["up_to"], "algorithm": algorithm, "chunk_bytes": chunk})
            now.update({codec: costs[codec][number] for codec in codecs})
            if kind == "raw":
                texts = [
                    f"{variants[i][0]}, chunks of {bytes_text(variants[i][1], exact=True)}"
                    for i in (default, number)
                ]
                sizes = "longer arrays" if one["up_to"] is None else f"arrays up to {bytes_text(size)}"
                told.append((sizes, texts[0], costs["raw"][default], texts[1], costs["raw"][number]))
        best.append((size, now))
    for kind in ("raw", "encoded"):
        chosen[kind] = _joined(chosen[kind])
    chosen["compress_above"] = {codec: _pays_from(codec, best) for codec in LOSSY}
    return chosen, told


def _pays_from(codec: str, best: list[tuple[int, dict[str, float]]]) -> int | None:
    """The smallest size from which on the codec takes less time than raw; None if there is none, or no measurement."""
    above = None
    for size, costs in reversed(best):
        if codec not in costs or costs[codec] > costs["raw"]:
            break
        above = size
    return above


def checked(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Check the tables, and return them as the library reads them."""
    found: list[dict[str, Any]] = json.loads(_core.check_reduce_tables(json.dumps(tables)))
    return found


def built_in_tables() -> list[dict[str, Any]]:
    """The tables without a tuning file: for 2 ranks, for more ranks, and the same over a network."""
    found: list[dict[str, Any]] = json.loads(_core.built_in_reduce_tables())
    return found


def pays_text(table: dict[str, Any]) -> str:
    """A line with the length from which each codec pays."""
    parts = [
        f"{codec} {'never' if above is None else f'from {bytes_text(above)}'}"
        for codec, above in table["compress_above"].items()
    ]
    ranks = "more" if table["ranks"] is None else table["ranks"]
    return f"codecs that pay on {counted(ranks, 'rank')}: " + ", ".join(parts)
