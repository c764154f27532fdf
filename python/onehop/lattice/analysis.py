"""Statistics of an ensemble: errors with autocorrelation, effective masses with plateau fits, t0, w0, susceptibility.

The Gamma method and the covariance of correlated data are those of pyerrors, which is installed by the extra
`lattice`; jackknife and bootstrap, of bins, are independent checks of its errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onehop.error import BadInput, Error
from onehop.lattice.measurements import HADRONS, Measurements, correlator_key
from onehop.lattice.mesons import effective_mass, logarithmic_mass

__all__ = ["AnalysisSettings", "EffectiveMasses", "Quantity", "Statistics", "analyse", "plateau"]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

SHORTEST = 50  # in autocorrelation times; a shorter series has no error bar
REFERENCE = 0.3  # of t² E at t0, and of t d/dt (t² E) at w0²
LEAST_P = 0.05  # of a plateau
LEAST_POINTS = 3
LARGEST_ERROR = 0.5  # of an effective mass in a plateau, relative


@dataclass(frozen=True)
class AnalysisSettings:
    """How an ensemble is analysed.

    Attributes
    ----------
    skip : int
        The number of configurations that are left out at the beginning.
    bin_size : int, optional
        Configurations in a bin of jackknife and bootstrap. Default: four autocorrelation times.
    bootstraps, seed : int
        The number of bootstrap samples, and the seed of their random numbers.
    correlators : tuple of str
        The hadrons beside pion, rho and nucleon whose masses are fitted; "all" for all of them.
    fit : tuple of int, optional
        First and last time of plateaus. Default: the longest range up to the last good time with a p of 0.05 or more.
    """

    skip: int = 0
    bin_size: int | None = None
    bootstraps: int = 1000
    seed: int = 1
    fit: tuple[int, int] | None = None
    correlators: tuple[str, ...] = ()


@dataclass
class Quantity:
    """A number with its errors.

    Attributes
    ----------
    name : str
        The name.
    value : float, optional
        The value; None if there is none, and then `said` gives the reason.
    error, tau_int, tau_int_error : float, optional
        Error and integrated autocorrelation time, in configurations, by the Gamma method. The error is None if the
        series is shorter than 50 autocorrelation times.
    jackknife_error, bootstrap_error : float, optional
        The errors by jackknife and bootstrap of bins of `bin_size` configurations.
    chi2_per_dof, p : float, optional
        Those of a correlated fit.
    fit_range : list of int, optional
        First and last time of a fit.
    said : str
        What is to be known about it.
    """

    name: str
    value: float | None = None
    error: float | None = None
    tau_int: float | None = None
    tau_int_error: float | None = None
    jackknife_error: float | None = None
    bootstrap_error: float | None = None
    bin_size: int | None = None
    chi2_per_dof: float | None = None
    p: float | None = None
    fit_range: list[int] | None = None
    said: str = ""


@dataclass
class EffectiveMasses:
    """Effective masses of a correlator: NaN where there is none.

    The plateau is that of the quantity with the name `fitted`. With a momentum, the correlator is the mean over the
    directions of the momentum.
    """

    name: str
    values: Array
    errors: Array
    columns: Array

    @property
    def fitted(self) -> str:
        """The name of the fitted quantity: `pion_mass`, `pion_energy(1,0,0)`."""
        hadron, _, momentum = self.name.partition("(")
        return f"{hadron}_energy({momentum}" if momentum else f"{hadron}_mass"


def require_pyerrors() -> Any:
    """Return the module pyerrors. Raises Error if it is not installed."""
    try:
        import pyerrors
    except ImportError as error:
        raise Error(f"the analysis needs pyerrors ({error}): `pip install pyerrors`") from error
    return pyerrors


class Statistics:
    """Errors of functions of the means of series.

    A function takes means of shape (..., columns) and returns values of shape (...).
    """

    def __init__(self, settings: AnalysisSettings) -> None:
        self._pe = require_pyerrors()
        self.settings = settings

    def observable(self, columns: Array, function: Function) -> Any:
        """Return the Obs of pyerrors of a function of the means of columns, of shape (configurations, columns)."""
        means = columns.mean(axis=0)
        # Far smaller than the error of a column: one column alone, without those that it is correlated with, may move
        # a function such as a slope by far more than all of them together.
        steps = 1e-6 * np.maximum(abs(means), columns.std(axis=0)) + 1e-300
        shifted = means + np.concatenate([np.diag(steps), -np.diag(steps)])
        values = function(shifted)
        gradient = (values[: len(means)] - values[len(means) :]) / (2 * steps)
        if not np.isfinite(gradient).all():
            raise ValueError("the function has no derivative")
        projected = (columns - means) @ gradient + function(means)
        made = self._pe.Obs([projected], ["run"])
        made.gamma_method()
        return made

    def quantity(self, name: str, columns: Array, function: Function, **fields: Any) -> Quantity:
        """Return a function of means with its errors."""
        value = float(function(columns.mean(axis=0)))
        made = self.observable(columns, function)
        tau = max(float(made.e_tauint["run"]), 0.5)
        found = Quantity(name, value, tau_int=float(made.e_tauint["run"]), **fields)
        found.tau_int_error = float(made.e_dtauint["run"])
        if len(columns) < SHORTEST * tau:
            reason = f"no error, because {len(columns)} configurations are fewer than {SHORTEST} autocorrelation times"
            found.said = "; ".join(filter(None, [found.said, reason]))
            return found
        found.error = float(made.dvalue)
        found.bin_size = self.settings.bin_size or max(1, math.ceil(4 * tau))
        bins = len(columns) // found.bin_size
        if bins >= 2:
            means = (
                columns[len(columns) - bins * found.bin_size :].reshape(bins, found.bin_size, -1).mean(axis=1)
            )
            found.jackknife_error = jackknife_error(means, function)
            found.bootstrap_error = bootstrap_error(
                means, function, self.settings.bootstraps, self.settings.seed
            )
        return found

    def covariance(self, observables: Sequence[Any]) -> Array:
        """Return the covariance of observables: errors by the Gamma method, correlations of the fluctuations."""
        return np.asarray(self._pe.covariance(list(observables)), np.float64)


def jackknife_error(bins: Array, function: Function) -> float | None:
    """Return the jackknife error of a function of the means of bins, of shape (bins, columns)."""
    count = len(bins)
    values = function((bins.sum(axis=0) - bins) / (count - 1))
    return _finite(math.sqrt((count - 1) * np.var(values)))


def bootstrap_error(bins: Array, function: Function, samples: int, seed: int) -> float | None:
    """Return the bootstrap error of a function of the means of bins, of shape (bins, columns)."""
    count = len(bins)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=samples)
    return _finite(float(np.std(function(drawn @ bins / count), ddof=1)))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def plateau(values: Array, covariance: Array) -> tuple[Array, float, float]:
    """Fit a constant to correlated values; return the weights of the values, chi² and p."""
    from scipy.special import gammaincc

    inverse = np.linalg.inv(covariance)
    weights = inverse.sum(axis=0) / inverse.sum()
    rest = values - weights @ values
    chi2 = float(rest @ inverse @ rest)
    return weights, chi2, float(gammaincc((len(values) - 1) / 2, chi2 / 2))


def _first(columns: Array) -> Array:
    return columns[..., 0]


def _crossing(points: Array) -> int | None:
    """Return the last index before a curve first reaches the reference value from below."""
    over = np.flatnonzero((points[:-1] < REFERENCE) & (points[1:] >= REFERENCE))
    return int(over[0]) if len(over) else None


def _reference_times(statistics: Statistics, times: Array, curves: Array) -> list[Quantity]:
    """Return t0 and w0, by linear interpolation in the flow time."""

    def slope(means: Array) -> Array:
        return times[1:-1] * (means[..., 2:] - means[..., :-2]) / (times[2:] - times[:-2])

    def at_crossing(points: Function, abscissae: Array, low: int) -> Function:
        def found(means: Array) -> Array:
            one, other = points(means)[..., low], points(means)[..., low + 1]
            return abscissae[low] + (REFERENCE - one) / (other - one) * (abscissae[low + 1] - abscissae[low])

        return found

    quantities = []
    mean = curves.mean(axis=0)
    for name, points, abscissae in (("t0", lambda means: means, times), ("w0", slope, times[1:-1])):
        low = _crossing(points(mean))
        if low is None:
            what = "t² E" if name == "t0" else "t d/dt (t² E)"
            said = f"{what} does not reach {REFERENCE} up to the flow time {times[-1]:g}: flow for longer"
            quantities.append(Quantity(name, said=said))
            continue
        function = at_crossing(points, abscissae, low)
        root = function if name == "t0" else lambda means, of=function: np.sqrt(of(means))
        quantities.append(statistics.quantity(name, curves, root))
    return quantities


def _log_ratios(loops: Array) -> Array:
    """Return ln W(t) / W(t + 1) of Wilson loops, NaN where it does not exist."""
    first, then = loops[..., :-1], loops[..., 1:]
    return np.log(np.divide(first, then, out=np.full_like(first, np.nan), where=(first > 0) & (then > 0)))


def _masses(
    statistics: Statistics, name: str, columns: Array, mass_of: Function
) -> tuple[EffectiveMasses, Quantity]:
    """Return the effective masses of a correlator, and their plateau."""
    values = mass_of(columns.mean(axis=0))
    errors = np.full(len(values), np.nan)
    observables: dict[int, Any] = {}
    for t in np.flatnonzero(np.isfinite(values)):
        try:
            made = statistics.observable(columns, lambda means, t=t: mass_of(means)[..., t])
        except ValueError:
            continue
        if made.dvalue > 0:
            observables[int(t)], errors[t] = made, made.dvalue
    masses = EffectiveMasses(name, values, errors, columns)
    good = [t for t in observables if t > 0 and errors[t] < LARGEST_ERROR * values[t]]
    last = next((t for t in good if t + 1 not in good), 0)
    chosen = statistics.settings.fit
    if chosen is not None and not set(range(chosen[0], chosen[1] + 1)) <= set(observables):
        raise BadInput(
            f"expected --fit with times at which the {name} has an effective mass, {', '.join(map(str, observables))}, "
            f"found {chosen[0]} to {chosen[1]}"
        )
    most = len(columns) // 5  # more points make a covariance that is noise
    # A baryon's partner of opposite parity comes back through the boundary, so that its plateau may end earlier.
    ends = range(last, LEAST_POINTS - 1, -1) if name.startswith("nucleon") else [last]
    ranges = [(first, end) for end in ends for first in range(max(1, end + 1 - most), end + 2 - LEAST_POINTS)]
    ranges = [chosen] if chosen is not None else sorted(ranges, key=lambda one: one[0] - one[1])
    p = chi2 = math.nan
    for first, end in ranges:
        times = list(range(first, end + 1))
        try:
            covariance = statistics.covariance([observables[t] for t in times])
            weights, chi2, p = plateau(values[times], covariance)
        except (KeyError, np.linalg.LinAlgError):
            continue
        if p >= LEAST_P:
            fit: dict[str, Any] = {"chi2_per_dof": chi2 / (len(times) - 1), "p": p, "fit_range": [first, end]}
            function = _fitted(mass_of, times, weights)
            return masses, statistics.quantity(masses.fitted, columns, function, **fit)
    if chosen is not None:
        raise BadInput(
            f"expected a plateau of the {name} mass from {chosen[0]} to {chosen[1]}, found p = {p:.2g} (chi² / dof = "
            f"{chi2 / max(len(times) - 1, 1):.3g}); take another range, or leave --fit out"
        )
    tried = f"no range of {LEAST_POINTS} times or more up to {last} has p >= {LEAST_P}"
    if not ranges:
        tried = (
            f"expected {LEAST_POINTS} times with an error below {100 * LARGEST_ERROR:.0f} % and 5 configurations "
            f"for each, found {len(good)} times and {len(columns)} configurations"
        )
    return masses, Quantity(masses.fitted, said=f"no plateau: {tried}")


def _fitted(mass_of: Function, times: list[int], weights: Array) -> Function:
    return lambda means: mass_of(means)[..., times] @ weights


def _chosen(found: Measurements, settings: AnalysisSettings) -> dict[str, Array]:
    """Return the correlators whose masses are fitted, as means over momenta of one length up to permutations."""
    known = found.correlators()
    names = dict.fromkeys(name for name, _ in known)
    unknown = [name for name in settings.correlators if name != "all" and name not in names]
    if unknown:
        raise BadInput(
            f"expected correlators among {', '.join(names) or 'none, without --quarks'}, found {', '.join(unknown)}"
        )
    wanted = [name for name in (*HADRONS, *names) if name in names]
    if "all" not in settings.correlators:
        wanted = [name for name in wanted if name in (*HADRONS, *settings.correlators)]
    parts: dict[str, list[Array]] = {}
    for name in dict.fromkeys(wanted):
        for (hadron, momentum), values in known.items():
            if hadron == name:
                same = sorted((abs(one) for one in momentum), reverse=True)
                parts.setdefault(correlator_key(name, same), []).append(values[settings.skip :])
    return {name: np.mean(values, axis=0) for name, values in parts.items()}


def analyse(
    found: Measurements, settings: AnalysisSettings | None = None
) -> tuple[list[Quantity], list[EffectiveMasses]]:
    """Return all quantities of measurements with their errors, and the effective masses.

    Raises
    ------
    BadInput
        Fewer than five configurations are left; or the range of a fit has no effective mass at each time, or no
        plateau.
    Error
        pyerrors is not installed.
    """
    settings = settings or AnalysisSettings()
    statistics = Statistics(settings)
    series = {name: values[settings.skip :] for name, values in found.series.items()}
    count = len(series["plaquette"])
    if count < 5:
        raise BadInput(f"expected at least 5 configurations behind those that are skipped, found {count}")
    single = {name: values for name, values in series.items() if values.ndim == 1}
    if "polyakov_loop" in series:
        single["polyakov_loop_re"], single["polyakov_loop_im"] = series["polyakov_loop"].T
        single["polyakov_loop_abs"] = np.hypot(*series["polyakov_loop"].T)
    quantities = [statistics.quantity(name, values[:, None], _first) for name, values in single.items()]
    if found.flow_times:
        times = np.array(found.flow_times)
        t0, w0 = _reference_times(statistics, times, series["flow/t2_energy"])
        at = len(times) - 1 if t0.value is None else int(np.argmin(abs(times - t0.value)))
        charges = series["flow/charge"][:, at]
        said = f"at the flow time {times[at]:g}"
        volume = math.prod(found.extents)
        quantities += [
            t0,
            w0,
            statistics.quantity("charge_after_flow", charges[:, None], _first, said=said),
            statistics.quantity(
                "topological_susceptibility", charges[:, None] ** 2 / volume, _first, said=said
            ),
        ]
    masses = []
    staggered = found.options.get("quarks") not in ("wilson", "clover")
    for name, columns in _chosen(found, settings).items():
        distance = 2 if staggered and name.partition("(")[0] != "pion" else 1
        kind = logarithmic_mass if name.startswith("nucleon") else effective_mass
        mass_of: Function = lambda means, by=distance, of=kind: of(means, by)  # noqa: E731
        one, fitted = _masses(statistics, name, columns, mass_of)
        masses.append(one)
        quantities.append(fitted)
    free = Statistics(replace(settings, fit=None))  # loops have other times than correlators
    for name in sorted((one for one in series if one.startswith("wilson_loops/")), key=len):
        loops = np.insert(series[name], 0, 1, axis=1)  # W(r, 0) = 1
        fitted = _masses(free, name, loops, _log_ratios)[1]
        quantities.append(replace(fitted, name=name.replace("wilson_loops/", "potential_")))
    return quantities, masses
