"""`onehop bench papers`: figures of papers beside predictions, as tables, plots and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from onehop.cli.common import JsonOption, console, write_json
from onehop.error import BadInput
from onehop.output import make_folder
from onehop_bench.papers import STUDIES, Row, Study, draw_study


def _paper_text(row: Row) -> str:
    return f"{row.low:.4g}" if row.low == row.high else f"{row.low:.4g} to {row.high:.4g}"


def _show(study: Study, json_target: str | None) -> None:
    screen = console(json_target)
    if study.rows:
        table = Table("case", "paper", "model", "unit", "factor", title=study.source, title_justify="left")
        for row in study.rows:
            factor = "fitted" if row.fitted else f"{row.factor:.2f}"
            table.add_row(row.case, _paper_text(row), f"{row.model:.4g}", row.unit, factor)
        screen.print(table)
    if study.predictions:
        table = Table("case", "predicted", "unit", "bound", title=study.source, title_justify="left")
        for prediction in study.predictions:
            table.add_row(prediction.case, f"{prediction.value:.4g}", prediction.unit, prediction.bound)
        screen.print(table)
    for one in study.parameters:
        screen.print(
            f"fitted: {one.name} {one.value:.4g} {one.unit}".rstrip() + f", on {one.fitted_on}", markup=False
        )


def bench_papers(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"Papers: {', '.join(STUDIES)}. All by default."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            help="Write paper_NAME.svg into this folder; its parent must exist.",
        ),
    ] = None,
    json_target: JsonOption = None,
) -> None:
    """Compare figures of papers with those that onehop simulate predicts for the same schedules."""
    for name in names or []:
        if name not in STUDIES:
            raise BadInput(f"expected names among {', '.join(STUDIES)}, found {name!r}")
    if folder is not None:
        make_folder(folder, "--to")
    studies = [STUDIES[name]() for name in names or STUDIES]
    for study in studies:
        _show(study, json_target)
        if folder is not None:
            console(json_target).print(str(draw_study(study, folder)), markup=False)
    write_json(json_target, {"studies": [study.to_dict() for study in studies]})
