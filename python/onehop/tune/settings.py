"""Tuning: onehop's settings, measured in turn and chosen so that none is slow in any state of the machine.

Run as a module, this is one rank of the measurement; `tune` starts the ranks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehop import _core, codec, lossless
from onehop.compression_speed import Speed
from onehop.error import Error
from onehop.exit_code import INTERRUPTED
from onehop.group import Group
from onehop.launch import Output, launch
from onehop.launch.interpreter import python_module
from onehop.output import unfinished_file
from onehop.place import private_folder
from onehop.text import bytes_text, counted
from onehop.tune.allreduce import (
    LOSSY,
    MORE_RANKS,
    block_that_fits,
    built_in_tables,
    checked,
    choose_table,
    measure_allreduce,
)
from onehop.tune.device import KINDS, measure_device, ranks_on, tables_of
from onehop.tune.device import variants_for as variants_of
from onehop.tune.machine_times import MachineTimes, measure_machine, times_from

Stores = tuple[str, int, int, int]
Waits = tuple[int, int, int]

# Messages up to these sizes share a rule. Each rule is measured at its upper end, the last one at 4 MiB.
CLASSES = (256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, None)
LARGE = 4 << 20
CHUNKS = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10)
SLOTS = (128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
SPINS = (100, 300, 1000, 3000)
OVERSUBSCRIBED = (0, 2, 10, 50)
YIELDS = (5, 20, 100)

# Everything is measured this many times, unless the time is too short for that many.
PASSES = 4
SHORTEST_PASS = 2.0  # seconds

# A setting replaces the built-in one only if it gains more than two measurements of one setting differ.
WORTHWHILE = 0.03


@dataclass(frozen=True)
class Choice:
    """The choice for a setting ("messages up to 1024 bytes", "slots", "waiting"), with the mean times of both."""

    what: str
    built_in: str
    built_in_us: float
    chosen: str
    chosen_us: float

    @property
    def gain(self) -> float:
        """The fraction of the time that is saved."""
        return 1 - self.chosen_us / self.built_in_us

    def to_dict(self) -> dict[str, Any]:
        """The choice as an object for JSON."""
        return {**asdict(self), "gain": self.gain}


@dataclass(frozen=True)
class Tuned:
    """A tuning as the library reads it, and the choices that led to it."""

    tuning: dict[str, Any]
    choices: list[Choice]


def cost(us: Sequence[float]) -> float:
    """The mean time of a setting, without the slowest 5 % of the rounds, in which other programs had the processor.

    A median would choose for the most frequent state of the machine and ignore the others.
    """
    values = np.sort(np.asarray(us, dtype=float))
    return float(values[: max(1, int(np.ceil(0.95 * len(values))))].mean())


def pick(costs: Sequence[Sequence[float]], default: int | None) -> int:
    """Choose a setting by its costs in each measurement (the rows); keep the default unless one is clearly better."""
    table = np.asarray(costs, dtype=float)
    score = (table / table.min(axis=1, keepdims=True)).mean(axis=0)
    best = int(score.argmin())
    if default is not None and score[default] <= score[best] * (1 + WORTHWHILE):
        return default
    return best


def store_choices(size: int, demote: bool) -> list[Stores]:
    """The settings to try for messages of `size` bytes."""
    kinds = ["plain"]
    if size >= 512:
        kinds += ["prefetch", "nontemporal"]
    if demote and size <= 16 << 10:
        kinds.append("demote")
    chunks = [chunk for chunk in CHUNKS if chunk < size <= 256 * chunk]
    whole = next((chunk for chunk in CHUNKS if chunk >= size), None)
    chunks += [] if whole is None else [whole]
    return [(kind, chunk, 0, 0) for kind in kinds for chunk in chunks]


def _rule_for(tuning: dict[str, Any], size: int) -> dict[str, Any]:
    rules = tuning["rules"]
    return next((rule for rule in rules if rule["up_to"] is None or size <= rule["up_to"]), rules[-1])


# The ranks' part


def _costs(*passes: list[tuple[str, str, list[float]]]) -> list[float]:
    """The cost of every setting over all passes."""
    return [cost([us for one in passes for us in one[setting][2]]) for setting in range(len(passes[0]))]


def _store_settings(up_to: int | None, built_in: dict[str, Any], demote: bool) -> dict[str, Any]:
    size = LARGE if up_to is None else up_to
    rule = _rule_for(built_in, size)
    default = (rule["stores"], rule["chunk_bytes"], 0, 0)
    choices = store_choices(size, demote)
    if default not in choices:
        choices.insert(0, default)
    return {"up_to": up_to, "size": size, "choices": choices, "default": default, "costs": []}


def _measure_stores(group: Group, seconds: float, demote: bool) -> dict[str, Any]:
    built_in = json.loads(_core.built_in_tuning())
    classes = [_store_settings(up_to, built_in, demote) for up_to in CLASSES]
    rule = _rule_for(built_in, LARGE)
    # A sender in shared memory finds the better kind of stores by itself, so the better one counts.
    other = "nontemporal" if rule["stores"] == "plain" else "plain"
    slots = [(stores, rule["chunk_bytes"], slot, 0) for stores in (rule["stores"], other) for slot in SLOTS]
    tries = [(one["size"], both, one["choices"]) for one in classes for both in (False, True)]
    tries.append((LARGE, False, slots))
    count = min(PASSES, 1 + int(seconds / SHORTEST_PASS))
    effort = _core.MeasureEffort(seconds=seconds / (len(tries) * count), block_us=150.0, min_rounds=3)
    # Each is measured several times over the whole duration, so that all see every state of the machine.
    passes = [[_core.measure_stores(group, *one, effort) for one in tries] for _ in range(count)]
    costs = [_costs(*(each[number] for each in passes)) for number in range(len(tries))]
    for number, one in enumerate(classes):
        one["costs"] = costs[2 * number : 2 * number + 2]
    lengths = len(SLOTS)
    of_slots = [min(pair) for pair in zip(costs[-1][:lengths], costs[-1][lengths:], strict=True)]
    return {"classes": classes, "slots": {"choices": slots[:lengths], "costs": [of_slots]}}


def _measure_waits(group: Group, seconds: float, oversubscribed: bool) -> dict[str, Any]:
    built_in = json.loads(_core.built_in_tuning())
    default = (built_in["spins"], built_in["spins_oversubscribed"], built_in["yields"])
    if oversubscribed:
        choices = [(default[0], spins, yields) for spins in OVERSUBSCRIBED for yields in YIELDS]
    else:
        choices = [(spins, default[1], default[2]) for spins in SPINS]
    if default not in choices:
        choices.insert(0, default)
    block_us = block_that_fits(15000.0 if oversubscribed else 300.0, seconds / 2, len(choices))
    effort = _core.MeasureEffort(seconds=seconds / 2, block_us=block_us, min_rounds=3)
    costs = [_costs(_core.measure_waits(group, us, choices, effort)) for us in (0.0, 10.0)]
    return {"choices": choices, "default": default, "costs": costs}


def _rank_main(part: str, seconds: float, demote: bool, out: Path) -> None:
    group = Group.world()
    result: Any
    if part == "stores":
        result = _measure_stores(group, seconds, demote)
    elif part == "machine":
        result = measure_machine(group, seconds)
    elif part in KINDS:
        result = measure_device(group, part, seconds)
    elif part.startswith("allreduce"):
        result = measure_allreduce(group, seconds)
    else:
        result = _measure_waits(group, seconds, part == "oversubscribed")
    if group.rank == 0:
        out.write_text(json.dumps(result))
    group.barrier()


# The launcher's part


def _on_ranks(ranks: int, part: str, seconds: float, demote: bool, folder: Path) -> Any:
    """Measure a part on new ranks, with the built-in tuning."""
    out = folder / part
    command = python_module("onehop.tune.settings", part, str(seconds), str(int(demote)), str(out))
    return result_of_ranks(ranks, command, out, json.loads(_core.built_in_tuning()))


def result_of_ranks(ranks: int, command: list[str], out: Path, tuning: dict[str, Any]) -> Any:
    """Run a command, which writes JSON to `out`, on new ranks with a tuning, and return what it wrote."""
    # An existing tuning file must not influence the measurement.
    file = out.with_name("tuning.json")
    file.write_text(json.dumps(tuning))
    environment = {**os.environ, "ONEHOP_TUNING": str(file)}
    code = launch(ranks, command, output=Output.RANK0, report=True, environment=environment)
    if code == INTERRUPTED:
        raise KeyboardInterrupt("the launcher has said so")
    if code != 0:
        raise Error(
            f"measuring on {counted(ranks, 'rank')} failed with exit code {code}; see the messages above"
        )
    return json.loads(out.read_text())


def _text(stores: Sequence[Any]) -> str:
    return f"{stores[0]}, chunks of {bytes_text(stores[1], exact=True)}"


def _choose_rules(measured: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Choice]]:
    rules, choices = [], []
    for one in measured:
        settings = one["choices"]
        default = settings.index(one["default"])
        chosen = pick(one["costs"], default)
        stores, chunk, *_ = settings[chosen]
        rules.append({"up_to": one["up_to"], "chunk_bytes": chunk, "stores": stores})
        what = "longer messages" if one["up_to"] is None else f"messages up to {bytes_text(one['up_to'])}"
        before, after = (float(np.mean([row[i] for row in one["costs"]])) for i in (default, chosen))
        choices.append(Choice(what, _text(settings[default]), before, _text(settings[chosen]), after))
    return rules, choices


def choose(
    stores: dict[str, Any], waits: dict[str, Any], oversubscribed: dict[str, Any], built_in: dict[str, Any]
) -> Tuned:
    """Make a tuning from the measurements."""
    tuning = dict(built_in)
    tuning["rules"], choices = _choose_rules(stores["classes"])

    slots = [choice[2] for choice in stores["slots"]["choices"]]
    default = slots.index(built_in["slot_bytes"]) if built_in["slot_bytes"] in slots else None
    chosen = pick(stores["slots"]["costs"], default)
    tuning["slot_bytes"] = slots[chosen]
    costs = stores["slots"]["costs"][0]
    before = costs[chosen if default is None else default]
    choices.append(Choice("slots", str(built_in["slot_bytes"]), before, str(slots[chosen]), costs[chosen]))

    for measured, name, parts in (
        (waits, "spinning", {"spins": 0}),
        (oversubscribed, "waiting, more ranks than cores", {"spins_oversubscribed": 1, "yields": 2}),
    ):
        settings = measured["choices"]
        default = settings.index(measured["default"])
        chosen = pick(measured["costs"], default)
        for key, place in parts.items():
            tuning[key] = settings[chosen][place]
        texts = [
            ", ".join(f"{key} {settings[i][place]}" for key, place in parts.items())
            for i in (default, chosen)
        ]
        before, after = (float(np.mean([row[i] for row in measured["costs"]])) for i in (default, chosen))
        choices.append(Choice(name, texts[0], before, texts[1], after))
    return Tuned(json.loads(_core.check_tuning(json.dumps(tuning))), choices)


def tune(seconds: float, *, demote: bool, cores: int, advance: Callable[[float], None]) -> Tuned:
    """Measure on ranks of this machine, `seconds` in all, and choose.

    `demote` says whether the processor can move lines out of its cache (cldemote); `cores` is at least two; `advance`
    is called with 1 after each of four parts.
    """
    with private_folder("onehop-tune-") as folder:
        stores = _on_ranks(2, "stores", seconds * 0.55, demote, folder)
        advance(1)
        waits = _on_ranks(2, "waits", seconds * 0.08, demote, folder)
        advance(1)
        oversubscribed = _on_ranks(2 * cores, "oversubscribed", seconds * 0.15, demote, folder)
        advance(1)
        reductions = [
            _on_ranks(ranks, f"allreduce-{ranks}", seconds * 0.11, demote, folder)
            for ranks in (2, MORE_RANKS)
        ]
        advance(1)
    tuned = choose(stores, waits, oversubscribed, json.loads(_core.built_in_tuning()))
    return with_links(with_allreduce(tuned, reductions))


def tune_device(kind: str, seconds: float, advance: Callable[[float], None]) -> Tuned:
    """Measure sums on the cards of this machine, and choose for them; the other settings stay those in use."""
    ranks = ranks_on(kind)
    with private_folder("onehop-tune-") as folder:
        measured = {}
        for count in ranks:
            measured[count] = _on_ranks(count, kind, seconds / len(ranks), False, folder)
            advance(1 / len(ranks))
    tables, told = tables_of(measured, lambda one, table: choose_table(one, table, cost, pick, variants_of))
    choices = [
        Choice(f"sums on {cards}, {what}", one.partition(",")[0], one_us, two.partition(",")[0], two_us)
        for cards, rows in told
        for what, one, one_us, two, two_us in rows
    ]
    text = _core.tuning_text() if _core.tuning_origin() == _core.tuning_file() else None
    kept = json.loads(_core.tuning() if text is None else text)
    return Tuned({**kept, "allreduce": checked(tables)}, choices)


def with_links(tuned: Tuned) -> Tuned:
    """Add the speed of every compression on one core, and the rates of links below which it pays."""

    def rows(speeds: dict[str, Speed]) -> dict[str, dict[str, float]]:
        return {
            name: {**asdict(speed), "pays_below_gbit_per_s": speed.pays_below_gbit_per_s}
            for name, speed in speeds.items()
        }

    codecs = rows({name: codec.measure_speed(name) for name in LOSSY})
    exact = rows({kind: lossless.measure_speed(kind) for kind in lossless.TYPES})
    return Tuned({**tuned.tuning, "codecs": codecs, "lossless": exact}, tuned.choices)


def with_allreduce(tuned: Tuned, reductions: Sequence[list[dict[str, Any]]]) -> Tuned:
    """Add the tables of all-reduce, from measurements on two and on more ranks."""
    two, more, *_ = built_in_tables()
    others = [one for one in json.loads(_core.reduce_tables()) if one["transport"] != "shared_memory"]
    tables, choices = [], list(tuned.choices)
    for measured, table in zip(reductions, (two, more), strict=True):
        chosen, told = choose_table(measured, table, cost, pick)
        tables.append(chosen)
        ranks = "2 ranks" if table["ranks"] == 2 else "more ranks"
        choices += [Choice(f"all-reduce on {ranks}, {what}", *rest) for what, *rest in told]
    return Tuned({**tuned.tuning, "allreduce": checked([*tables, *others])}, choices)


def machine_times(seconds: float, tuning: dict[str, Any] | None) -> MachineTimes:
    """Measure on two ranks, `seconds` in all, what a machine file says about messages and copies.

    `tuning` is the tuning to measure with; None: that of this process.
    """
    with private_folder("onehop-tune-") as folder:
        used = json.loads(_core.tuning()) if tuning is None else tuning
        out = folder / "machine"
        command = python_module("onehop.tune.settings", "machine", str(seconds), "0", str(out))
        return times_from(result_of_ranks(2, command, out, used))


def save(tuning: dict[str, Any], file: Path) -> None:
    """Write a tuning atomically, so that no reader ever sees half of one. Raise Error if the file cannot be written."""
    try:
        with unfinished_file(file, make_parents=True) as output:
            output.write((json.dumps(tuning, indent=2) + "\n").encode())
    except OSError as error:
        raise Error(
            f"cannot write {file}: {error.strerror}; set ONEHOP_TUNING to write to another file"
        ) from error


if __name__ == "__main__":
    try:
        _rank_main(sys.argv[1], float(sys.argv[2]), sys.argv[3] == "1", Path(sys.argv[4]))
    except Error as error:
        raise SystemExit(f"error: {error}") from error
