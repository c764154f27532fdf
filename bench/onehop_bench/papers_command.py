"""`onehop bench papers`: figures of papers beside predictions, as tables, plots and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.screen import Table
from onehop.figure import empty_figure
from onehop.options import argument, option
from onehop.output import make_folder
from onehop_bench.papers import STUDIES, Study, draw_study
from onehop_bench.result import Row


def _paper_text(row: Row) -> str:
    return f"{row.low:.4g}" if row.low == row.high else f"{row.low:.4g} to {row.high:.4g}"


def _show(study: Study, json_target: str | None) -> None:
    screen = console(json_target)
    if study.rows:
        table = Table("case", "paper", "model", "unit", "factor", title=study.source)
        for row in study.rows:
            factor = "fitted" if row.fitted else f"{row.factor:.2f}"
            table.add_row(row.case, _paper_text(row), f"{row.model:.4g}", row.unit, factor)
        screen.print(table)
    if study.predictions:
        table = Table("case", "predicted", "unit", "bound", title=study.source)
        for prediction in study.predictions:
            table.add_row(prediction.case, f"{prediction.value:.4g}", prediction.unit, prediction.bound)
        screen.print(table)
    for one in study.parameters:
        screen.print(f"fitted: {one.name} {one.value:.4g} {one.unit}".rstrip() + f", on {one.fitted_on}")


@dataclass(kw_only=True)
class Papers(JsonOptions):
    names: list[str] = argument("NAME", "Papers. All by default.", [], choices=tuple(STUDIES))
    folder: str | None = option(
        None, "Write paper_NAME.svg into this folder; its parent must exist.", "--to", metavar="FOLDER"
    )


def bench_papers(options: Papers) -> None:
    """Compare figures of papers with those that onehop simulate predicts for the same schedules."""
    folder = None if options.folder is None else Path(options.folder)
    if folder is not None:
        empty_figure(1, 1)  # raises Error without matplotlib, before the studies take minutes
        make_folder(folder, "--to")
    studies = [STUDIES[name]() for name in options.names or STUDIES]
    for study in studies:
        _show(study, options.json)
        if folder is not None:
            console(options.json).print(str(draw_study(study, folder)))
    write_json(options.json, {"studies": [study.to_dict() for study in studies]})
