"""`onehop quantum run --profile`: the time of each pass and exchange, as tables and as a plot."""

from __future__ import annotations

from itertools import cycle
from typing import Any

from onehop.cli.screen import Screen, Table, coloured
from onehop.figure import empty_figure, save_figure
from onehop.quantum.profile import KINDS, PARTS, Entry, Profile
from onehop.text import ranges, rate_text, seconds_text

MAX_PASSES = 60
_HATCHES = ("", "//", "||", "xx", "--", "\\\\", "++")  # to tell parts apart in grey
_COLOURS = {
    "first state": "tab:olive",
    "exchange": "tab:red",
    "planning": "tab:purple",
    "pass": "tab:blue",
    "measurement": "tab:orange",
    "sampling": "tab:green",
    "expectations": "tab:cyan",
}


def forms(engine_pass: dict[str, Any]) -> str:
    """List the engine's operations of a pass, such as "2 rotations, 1 matrix"."""
    names = {
        "rotations": "rotation",
        "pairs": "pair",
        "matrices": "matrix",
        "phases": "phase",
        "tables": "table",
    }
    found = {plural: engine_pass[plural] for plural in names if engine_pass[plural]}
    return ", ".join(f"{n} {names[plural] if n == 1 else plural}" for plural, n in found.items()) or "-"


def _operations(entry: Entry) -> tuple[str, str]:
    if not entry.tile_bits:
        return "one operation in memory", ""
    return forms(vars(entry)), ranges(entry.tile_bits)


def _entries(profile: Profile, rows: int) -> Table:
    shown = [e for e in profile.ranks[0] if e.kind in ("pass", "exchange")]
    slowest = sorted(shown, key=lambda e: -e.seconds)[:rows]
    table = Table(
        *(">stage", ">gates", "operations", "tile", ">flops", ">least", ">time", ">memory", ">peak"),
        title=f"passes and exchanges of rank 0; memory bandwidth {rate_text(profile.bandwidth)}, or a pass in "
        f"{seconds_text(profile.pass_seconds)}; arithmetic peak {rate_text(profile.peak, 'FLOP/s', 3)}",
        caption="tile: bits of an amplitude's place; flops: per amplitude, and those of the least known method;\n"
        "memory, peak: shares of the memory bandwidth and of the arithmetic peak",
    )
    for entry in shown:
        if entry not in slowest:
            continue
        rate = rate_text(entry.bytes / entry.seconds, digits=3) if entry.seconds > 0 else "-"
        stage, time = entry.stage + 1, seconds_text(entry.seconds, 3)
        if entry.kind == "exchange":
            table.add_row(stage, "", coloured(f"exchange at {rate}", "red"), "", "", "", time)
        else:
            what, tile = _operations(entry)
            work = (f"{entry.flops:.3g}", f"{entry.flops_least:.3g}") if entry.multiply_adds else ("", "")
            shares = [f"{100 * share:.3g} %" for share in (profile.share(entry), profile.peak_share(entry))]
            table.add_row(stage, entry.gates, what, tile, *work, time, *shares)
    if len(shown) > len(slowest):
        rest = sum(e.seconds for e in shown) - sum(e.seconds for e in slowest)
        table.add_row("", "", f"{len(shown) - len(slowest)} faster ones", "", "", "", seconds_text(rest, 3))
    return table


def _sums(profile: Profile) -> Table:
    table = Table("", *(f">rank {r}" for r in range(len(profile.ranks))), title="time")
    totals = [profile.totals(rank) for rank in range(len(profile.ranks))]
    parts = [profile.parts(rank) for rank in range(len(profile.ranks))]
    for kind in (*KINDS, "other"):
        if not any(of_rank[kind] > 0 for of_rank in totals):
            continue
        table.add_row(
            {"pass": "passes", "exchange": "exchanges"}.get(kind, kind),
            *(seconds_text(t[kind]) for t in totals),
        )
        if kind == "pass":
            for part in (*PARTS, "other"):
                if any(of_rank[part] > 1e-6 for of_rank in parts):
                    table.add_row(f"  {part}", *(coloured(seconds_text(p[part]), "dim") for p in parts))
    table.add_section()
    table.add_row("all", *(seconds_text(profile.seconds) for _ in totals))
    return table


def show(screen: Screen, profile: Profile, rows: int) -> None:
    """Print the `rows` slowest passes and exchanges of rank 0, and the sums for every rank."""
    screen.print(_entries(profile, rows))
    screen.print(_sums(profile))


def plot(file: str, profile: Profile, title: str) -> None:
    """Plot a timeline of every rank, and the parts of each pass of rank 0."""
    ranks = len(profile.ranks)
    figure = empty_figure(9.0, 5.0 + 0.3 * ranks)
    above, below = figure.subplots(2, 1, height_ratios=(1 + 0.3 * ranks, 4))
    for kind, hatch in zip(KINDS, cycle(_HATCHES), strict=False):
        for rank, entries in enumerate(profile.ranks):
            bars = [(1e3 * e.begin, 1e3 * e.seconds) for e in entries if e.kind == kind]
            if bars:
                label = kind if kind not in above.get_legend_handles_labels()[1] else None
                look = {"facecolor": _COLOURS[kind], "edgecolor": "white", "lw": 0.4, "hatch": hatch}
                above.broken_barh(bars, (rank - 0.4, 0.8), label=label, **look)
    above.set(
        xlabel="time in ms", yticks=range(ranks), yticklabels=[f"rank {r}" for r in range(ranks)], title=title
    )
    above.invert_yaxis()
    above.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")

    passes = [e for e in profile.ranks[0] if e.kind == "pass"]
    hidden = len(passes) - MAX_PASSES
    passes = passes[:MAX_PASSES]
    bottom = [0.0] * len(passes)
    for part, hatch in zip((*PARTS, "other"), cycle(_HATCHES), strict=False):
        heights = [1e3 * _part(e, part) for e in passes]
        if any(heights):
            below.bar(
                range(1, len(passes) + 1), heights, bottom=bottom, label=part, hatch=hatch, edgecolor="white"
            )
            bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    below.axhline(1e3 * profile.pass_seconds, color="black", linestyle="--", label="memory alone")
    first = f"the first {MAX_PASSES} passes" if hidden > 0 else "pass"
    below.set(xlabel=f"{first} of rank 0", ylabel="time in ms", xlim=(0.4, max(2, len(passes)) + 0.6))
    below.locator_params(axis="x", integer=True)
    below.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    save_figure(figure, file)


def _part(entry: Entry, part: str) -> float:
    parts = entry.parts or {}
    return parts.get(part, max(0.0, entry.seconds - sum(parts.values())) if part == "other" else 0.0)
