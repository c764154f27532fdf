"""How plans and results show themselves in a notebook: tables in HTML, and the counts as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from onehop.figure import empty_figure
from onehop.text import bytes_text, counted, seconds_text

MOST_ROWS = 8
MOST_BARS = 24


def plan_text(plan: Any) -> str:
    """Say in a line what a circuit would take."""
    what = " as a density matrix" if plan.kind == "density matrix" else ""
    return (
        f"{counted(plan.qubits, 'qubit')}{what} on {counted(plan.ranks, 'rank')}: "
        f"{bytes_text(plan.memory_per_rank)} per rank, {counted(plan.exchanges, 'exchange')}, "
        f"{bytes_text(plan.bytes_per_rank)} sent by each, {counted(round(plan.passes), 'pass')}"
    )


def plan_html(plan: Any) -> str:
    """Return a table of what a circuit would take."""
    fewer = plan.largest_state_qubits < plan.qubits
    largest = f", {plan.largest_state_qubits} of them in the largest state" if fewer else ""
    fits = "it fits" if plan.fits else "it does not fit"
    here = f"{fits} into the {bytes_text(plan.memory_available)} that are free here"
    one_by_one = bytes_text(plan.one_swap_at_a_time_bytes_per_rank)
    saved = f" ({one_by_one} with one swap at a time)" if plan.exchanges else ""
    rows = [
        ("state", plan.kind),
        ("qubits", f"{plan.qubits}{largest}"),
        ("ranks", f"{plan.ranks}, {plan.precision} precision"),
        ("memory per rank", f"{bytes_text(plan.memory_per_rank)}; {here}"),
        ("exchanges", str(plan.exchanges)),
        ("sent by each rank", f"{bytes_text(plan.bytes_per_rank)}{saved}"),
        ("passes over the state", f"{plan.passes:.4g}"),
    ]
    return _table(rows)


def result_html(result: Any) -> str:
    """Return a table of the most frequent outcomes with bars, then expectation values and the run in a line."""
    counts = _by_frequency(result.counts) if result.shots else []
    rows = []
    for outcome, shots in counts[:MOST_ROWS]:
        width = max(round(12 * shots / counts[0][1], 1), 0.1)
        bar = f'<span style="display: inline-block; background: #4c78a8; height: 0.7em; width: {width}em"></span>'
        rows.append((f"<code>{escape(outcome)}</code>", f"{shots:,} {bar}"))
    if rest := counts[MOST_ROWS:]:
        rows.append((f"{len(rest)} others", f"{sum(shots for _, shots in rest):,}"))
    errors = getattr(result, "errors", [])
    for index, value in enumerate(result.expectations):
        error = f" ± {errors[index]:.2g}" if errors and errors[index] else ""
        rows.append((f"expectation {index}", f"{value:.6g}{error}"))
    run = f"{counted(result.shots, 'shot')} in {seconds_text(result.seconds)} on {counted(result.ranks, 'rank')}"
    return f"{_table(rows, marked=True)}<p>{run}, seed {result.seed}</p>"


def counts_figure(counts: Mapping[str, int], title: str = "", *, most: int = MOST_BARS) -> Any:
    """Draw the most frequent outcomes as bars, in the order of their bits, and say how many are not shown."""
    shots = sum(counts.values())
    shown = sorted(_by_frequency(counts)[:most])
    figure = empty_figure(9, 5)
    axes = figure.subplots()
    axes.bar([outcome for outcome, _ in shown], [number for _, number in shown], color="#4c78a8")
    axes.tick_params(axis="x", rotation=90 if len(shown) * len(shown[0][0] if shown else "") > 60 else 0)
    about = [title, counted(shots, "shot", commas=True)] if title else [counted(shots, "shot", commas=True)]
    if hidden := len(counts) - len(shown):
        about.append(f"{counted(hidden, 'outcome', commas=True)} not shown")
    axes.set(xlabel="outcome", ylabel="shots", title=", ".join(about))
    axes.locator_params(axis="y", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _by_frequency(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _table(rows: Sequence[tuple[str, str]], *, marked: bool = False) -> str:
    """Return a table of two columns. Unless they are `marked` up, texts are escaped."""
    cell = '<td style="text-align: left">'
    texts = rows if marked else [(escape(name), escape(value)) for name, value in rows]
    return (
        f"<table>{''.join(f'<tr>{cell}{name}</td>{cell}{value}</td></tr>' for name, value in texts)}</table>"
    )
