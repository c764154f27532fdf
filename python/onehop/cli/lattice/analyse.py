"""`onehop lattice analyse`: an ensemble's quantities with errors, from a file of measurements."""

from __future__ import annotations

import itertools
import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onehop.cli.common import JsonOptions, console, write_json
from onehop.cli.screen import Column, Table
from onehop.error import BadInput, Error
from onehop.figure import empty_figure, save_figure
from onehop.lattice.analysis import AnalysisSettings, EffectiveMasses, Quantity
from onehop.lattice.analysis import analyse as quantities_of
from onehop.lattice.measurements import HADRONS, Measurements, read_measurements
from onehop.options import LARGEST_INT, LARGEST_SEED, argument, file_option, option
from onehop.text import counted


@dataclass(kw_only=True)
class Analyse(JsonOptions):
    title = "Options"

    file: str = argument("FILE", "Measurements of `onehop lattice measure -o FILE`.")
    skip: int = option(0, "Number of configurations to leave out at the beginning.", low=0, high=LARGEST_INT)
    bin_size: int | None = option(
        None,
        "Configurations in a bin of jackknife and bootstrap.",
        low=1,
        high=LARGEST_INT,
        default="four autocorrelation times",
    )
    bootstraps: int = option(1000, "Number of bootstrap samples.", low=2, high=1_000_000)
    seed: int = option(1, "Random seed of the bootstrap.", low=0, high=LARGEST_SEED)
    fit: str | None = option(
        None,
        "First and last time of the plateaus of effective masses.",
        metavar="FIRST-LAST",
        default="the longest range up to the last time with a good error, with p of at least 0.05",
    )
    correlator: list[str] = option(
        [], "Also fit the mass of this hadron, for example a0, or all; repeat the option.", metavar="NAME"
    )
    plot: str | None = file_option(
        "Plot histories, t² E, and effective masses with their plateaus to FILE.", "the plot"
    )

    def settings(self) -> AnalysisSettings:
        """Return how to analyse. Raises BadInput if the range of the fit is none."""
        fit = None
        if self.fit is not None:
            parts = re.fullmatch(r"(\d{1,6})-(\d{1,6})", self.fit)
            fit = (0, 0) if parts is None else (int(parts[1]), int(parts[2]))
            if fit[0] >= fit[1]:
                raise BadInput(f"expected --fit as FIRST-LAST, for example 4-9, found {self.fit!r}")
        return AnalysisSettings(
            self.skip, self.bin_size, self.bootstraps, self.seed, fit, tuple(self.correlator)
        )


def with_error(value: float | None, error: float | None) -> str:
    """Return a number with its error in units of its last two digits: 0.12345(67)."""
    if value is None:
        return ""
    if not error:
        return f"{value:.6g}"
    digits = max(0, 1 - int(np.floor(np.log10(error))))
    return f"{value:.{digits}f}({round(error * 10**digits)})" if digits < 15 else f"{value:g} ± {error:.2g}"


def with_power(value: float, error: float) -> str:
    """Return a number with its error and a power of ten: 1.2345(67)e-03."""
    if not value or not np.isfinite([value, error]).all():
        return f"{value:g} ± {error:.2g}"
    power = int(np.floor(np.log10(abs(value))))
    return f"{with_error(value / 10.0**power, error / 10.0**power)}e{power:+03d}"


def _table(found: Measurements, quantities: list[Quantity], skip: int) -> Table:
    extents = "x".join(map(str, found.extents))
    count = counted(len(found.configurations) - skip, "configuration")
    table = Table(
        "quantity",
        ">value",
        ">tau_int",
        ">jackknife",
        ">bootstrap",
        ">bin",
        title=f"{count} of {extents}; errors by the Gamma method",
    )

    def number(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    for one in quantities:
        tau = "" if one.tau_int is None else with_error(one.tau_int, one.tau_int_error)
        table.add_row(
            one.name,
            with_error(one.value, one.error),
            tau,
            number(one.jackknife_error, ".2g"),
            number(one.bootstrap_error, ".2g"),
            number(one.bin_size, "d"),
        )
    return table


def _correlators(masses: list[EffectiveMasses]) -> Table:
    """Tabulate correlators and effective masses, in lattice units, with their errors."""
    table = Table(">t / a", title="Correlators and effective masses, in lattice units")
    table.caption = "errors of C(t): standard deviations of the mean, without autocorrelations"
    columns: list[list[str]] = []
    for one in masses:
        series = one.columns
        table.columns += [Column(f">{one.name} C(t)"), Column(">a m")]
        errors = series.std(axis=0, ddof=1) / np.sqrt(len(series)) if len(series) > 1 else 0 * series[0]
        columns.append(list(map(with_power, series.mean(axis=0), errors)))
        pairs = zip(one.values, one.errors, strict=True)
        columns.append([with_error(v, e) if np.isfinite([v, e]).all() else "" for v, e in pairs])
    for time, cells in enumerate(itertools.zip_longest(*columns, fillvalue="")):
        table.add_row(time, *cells)
    return table


def _plot(
    file: str, found: Measurements, quantities: list[Quantity], masses: list[EffectiveMasses], skip: int
) -> None:
    named = {one.name: one for one in quantities}
    rows = 1 + (1 if masses else 0)
    figure = empty_figure(9, 4 * rows)
    axes = figure.subplots(rows, 2, squeeze=False)
    axes[0][0].plot(found.series["plaquette"], linewidth=1)
    axes[0][0].set_ylabel("plaquette")
    axes[0][0].axvspan(-0.5, skip - 0.5, color="0.5", alpha=0.2)
    axes[0][0].set_xlabel("configuration")
    if found.flow_times:
        curves = found.series["flow/t2_energy"][skip:]
        width = curves.std(axis=0)
        axes[0][1].plot(found.flow_times, curves.mean(axis=0))
        axes[0][1].fill_between(
            found.flow_times, curves.mean(axis=0) - width, curves.mean(axis=0) + width, alpha=0.3
        )
        axes[0][1].axhline(0.3, color="0.5", linestyle=":")
        axes[0][1].set_xlabel("flow time / a²")
        axes[0][1].set_ylabel("t² E")
    else:
        name = "charge" if "charge" in found.series else "plaquette_time"
        axes[0][1].plot(found.series.get(name, []), linewidth=1)
        axes[0][1].set_ylabel(name.replace("_", " "))
    for panel, one in zip(axes[-1], masses, strict=False):
        good = np.isfinite(one.errors)
        panel.errorbar(np.flatnonzero(good), one.values[good], one.errors[good], fmt="o", markersize=4)
        fitted = named[one.fitted]
        if fitted.value is not None and fitted.fit_range is not None:
            width = fitted.error or 0.0
            panel.fill_between(fitted.fit_range, fitted.value - width, fitted.value + width, alpha=0.4)
        panel.set_ylim(0, 1.5 * float(np.median(one.values[good])) if good.any() else 1)
        panel.set_xlabel("t / a")
        panel.set_ylabel(f"{one.name} effective mass, a m")
    save_figure(figure, file)


def analyse(options: Analyse) -> None:
    """Analyse the measurements of an ensemble: mean values with autocorrelation times and errors, and fits.

    Errors are those of the Gamma method, beside jackknife and bootstrap of bins. With a flow the command also gives t0,
    w0 and the topological susceptibility, with correlators effective masses with correlated plateau fits. A series
    shorter than 50 autocorrelation times gets no error, a correlator without a plateau no mass, and the output says so.
    The exit status is 1 if none of the correlators has a plateau.
    """
    settings = options.settings()
    found = read_measurements(options.file)
    quantities, masses = quantities_of(found, settings)
    screen = console(options.json)
    screen.print(_table(found, [one for one in quantities if one.value is not None], options.skip))
    if masses:
        screen.print(_correlators([one for one in masses if one.name in HADRONS] or masses[:3]))
    for one in quantities:
        if one.fit_range is not None:
            times = f"{one.fit_range[0]} to {one.fit_range[1]}"
            screen.print(
                f"{one.name}: plateau from t = {times}, chi² / dof = {one.chi2_per_dof:.3g}, p = {one.p:.3g}"
            )
    for said in dict.fromkeys(one.said for one in quantities if one.said):
        screen.print(f"{', '.join(one.name for one in quantities if one.said == said)}: {said}")
    if options.plot is not None:
        _plot(options.plot, found, quantities, masses, options.skip)

    def numbers(values: Any) -> list[float | None]:
        return [float(one) if np.isfinite(one) else None for one in values]

    report = {
        "file": options.file,
        "extent": list(found.extents),
        "options": found.options,
        "configurations": len(found.configurations) - options.skip,
        "quantities": [asdict(one) for one in quantities],
        "effective_masses": [
            {"name": one.name, "values": numbers(one.values), "errors": numbers(one.errors)} for one in masses
        ],
    }
    write_json(options.json, report)
    fitted = {one.fitted for one in masses}
    without = [one for one in quantities if one.name in fitted and one.value is None]
    if len(without) == len(fitted) > 0:
        raise Error("; ".join(f"{one.name}: {one.said}" for one in without))
