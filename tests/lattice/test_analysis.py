"""Statistics against exact results: autocorrelated series, Gaussian means, correlated fits, flows in closed form."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import onehop
from commands import Command
from onehop import BadInput
from onehop.lattice.measurements import (
    _AVERAGES,
    _OBSERVABLES,
    DIGEST,
    Measurements,
    read_measurements,
    write_measurements,
)

pytest.importorskip("pyerrors")

from onehop.lattice.analysis import (
    AnalysisSettings,
    Quantity,
    Statistics,
    analyse,
    bootstrap_error,
    jackknife_error,
    plateau,
)

EXTENTS = (4, 4, 4, 24)


def autoregressive(rng: np.random.Generator, count: int, a: float, *shape: int) -> np.ndarray:
    """A series of unit variance with the autocorrelation a^|t|, whose tau_int is (1 + a) / (2 (1 - a))."""
    series = rng.normal(size=(count, *shape))
    for i in range(1, count):
        series[i] = a * series[i - 1] + np.sqrt(1 - a * a) * series[i]
    return series


def measurements(**series: np.ndarray) -> Measurements:
    count = len(next(iter(series.values())))
    plain = {"plaquette": np.full(count, 0.5)}
    named = {name.replace("__", "/"): values for name, values in series.items()}
    times = np.arange(named["flow/t2_energy"].shape[1]) * 0.05 if "flow/t2_energy" in named else []
    about = [{"file": f"{i}.lime", "number": i, "checksums": {}, "hash": ""} for i in range(count)]
    return Measurements({"quarks": "wilson"}, EXTENTS, about, list(times), plain | named)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.8])
def test_the_gamma_method_on_a_series_with_a_known_autocorrelation(a: float) -> None:
    rng, count = np.random.default_rng(7), 20000
    series = 3 + autoregressive(rng, count, a)
    tau = (1 + a) / (1 - a) / 2
    found = Statistics(AnalysisSettings()).quantity("x", series[:, None], lambda means: means[..., 0])
    assert found.tau_int is not None
    assert found.error is not None
    assert found.tau_int == pytest.approx(tau, abs=4 * (found.tau_int_error or 0) + 0.01)
    assert found.error == pytest.approx(np.sqrt(2 * tau / count), rel=0.1)
    # Bins of four tau_int leave out about an eighth of the correlation.
    assert found.jackknife_error == pytest.approx(found.error, rel=0.15)
    assert found.bootstrap_error == pytest.approx(found.error, rel=0.15)
    assert abs((found.value or 0) - 3) < 4 * found.error


def test_errors_of_functions_are_those_of_their_derivatives() -> None:
    rng = np.random.default_rng(3)
    columns = np.array([2.0, 5.0]) + 0.1 * rng.normal(size=(4000, 2)) @ np.array([[1, 0.5], [0, 1]])
    found = Statistics(AnalysisSettings()).quantity("r", columns, lambda means: means[..., 0] / means[..., 1])
    gradient = np.array([1 / 5, -2 / 25])
    exact = np.sqrt(gradient @ np.cov(columns.T) @ gradient / 4000)
    assert found.error == pytest.approx(exact, rel=0.08)
    assert jackknife_error(columns, lambda means: means[..., 0] / means[..., 1]) == pytest.approx(
        exact, rel=0.02
    )
    assert bootstrap_error(columns, lambda m: m[..., 0] / m[..., 1], 2000, 1) == pytest.approx(
        exact, rel=0.06
    )
    mean = jackknife_error(columns, lambda means: means[..., 0])
    assert mean == pytest.approx(columns[:, 0].std(ddof=1) / np.sqrt(4000), rel=1e-12)


def test_a_plateau_is_the_generalised_least_squares_fit() -> None:
    from scipy.optimize import minimize_scalar
    from scipy.stats import chi2 as distribution

    rng = np.random.default_rng(5)
    root = np.eye(5) + 0.3 * rng.normal(size=(5, 5))
    covariance = 0.01 * root @ root.T
    values = 0.7 + np.linalg.cholesky(covariance) @ rng.normal(size=5)
    weights, chi2, p = plateau(values, covariance)

    def cost(mass: float) -> float:
        return float((values - mass) @ np.linalg.solve(covariance, values - mass))

    best = minimize_scalar(cost, bracket=(0, 1), tol=1e-12)
    assert weights @ values == pytest.approx(best.x, rel=1e-7)
    assert chi2 == pytest.approx(best.fun, rel=1e-9)
    assert p == pytest.approx(distribution.sf(best.fun, 4), rel=1e-9)
    drawn = 0.7 + rng.normal(size=(2000, 5)) @ np.linalg.cholesky(covariance).T
    ps = [plateau(one, covariance)[2] for one in drawn]
    assert np.mean(ps) == pytest.approx(0.5, abs=0.03)  # p is uniform


def correlators(rng: np.random.Generator, count: int, excited: float = 0.5) -> np.ndarray:
    times = np.arange(24)
    exact = np.cosh(0.4 * (times - 12)) + excited * np.cosh(0.4 * 12) * np.cosh(1.4 * (times - 12)) / np.cosh(
        1.4 * 12
    )
    noise = 0.01 * autoregressive(rng, count, 0.4, 24) + 0.05 * autoregressive(rng, count, 0.4)[:, None]
    return exact * (1 + noise)


def by_name(quantities: list[Quantity]) -> dict[str, Quantity]:
    return {one.name: one for one in quantities}


def test_masses_from_correlated_plateaus() -> None:
    rng = np.random.default_rng(11)
    found = measurements(correlators__pion=correlators(rng, 1500))
    quantities, masses = analyse(found)
    pion = by_name(quantities)["pion_mass"]
    assert pion.error is not None
    assert pion.fit_range is not None
    assert pion.fit_range[0] > 2  # behind the excited state
    assert abs((pion.value or 0) - 0.4) < 4 * pion.error < 0.01
    assert (pion.p or 0) > 0.05
    assert pion.jackknife_error == pytest.approx(pion.error, rel=0.3)
    np.testing.assert_allclose(masses[0].values[7:11], 0.4, atol=0.02)
    fixed = by_name(analyse(found, AnalysisSettings(fit=(6, 10)))[0])["pion_mass"]
    assert fixed.fit_range == [6, 10]
    with pytest.raises(BadInput, match="expected a plateau of the pion mass from 1 to 8, found p = "):
        analyse(found, AnalysisSettings(fit=(1, 8)))
    with pytest.raises(BadInput, match="expected --fit with times at which the pion has an effective mass"):
        analyse(found, AnalysisSettings(fit=(4, 30)))


def test_masses_of_a_nucleon_and_energies_of_momenta() -> None:
    rng, count, times = np.random.default_rng(6), 400, np.arange(24)

    def noisy(exact: np.ndarray) -> np.ndarray:
        return exact * (1 + 0.01 * autoregressive(rng, count, 0.3, 24))

    # A baryon falls until states of the other parity, of mass 0.9, come back from the other side.
    nucleon = np.exp(-0.6 * times) - np.exp(-0.9 * (24 - times))
    names = {
        "correlators/nucleon": nucleon,
        "correlators/a0": np.cosh(0.7 * (times - 12)),
        "correlators/pion": np.cosh(0.3 * (times - 12)),
        "correlators/pion(1,0,0)": 3 * np.cosh(0.5 * (times - 12)),
        "correlators/pion(0,1,0)": np.cosh(0.5 * (times - 12)),
    }
    found = measurements(**{name: noisy(exact) for name, exact in names.items()})
    masses = {"pion_mass": 0.3, "pion_energy(1,0,0)": 0.5, "nucleon_mass": 0.6, "a0_mass": 0.7}
    named = by_name(analyse(found, AnalysisSettings(correlators=("all",)))[0])
    assert {name for name in named if "_mass" in name or "_energy" in name} == masses.keys()
    for name, mass in masses.items():
        assert named[name].error is not None
        assert abs((named[name].value or 0) - mass) < 4 * (named[name].error or 0) < 0.02
    assert "a0_mass" not in by_name(analyse(found)[0])
    with pytest.raises(BadInput, match=r"expected correlators among pion, nucleon, a0, found b1"):
        analyse(found, AnalysisSettings(correlators=("b1",)))
    momenta = [("pion", (0, 0, 0)), ("pion", (1, 0, 0)), ("pion", (0, 1, 0))]
    assert list(found.correlators()) == [*momenta, ("nucleon", (0, 0, 0)), ("a0", (0, 0, 0))]


def test_the_static_potential_from_wilson_loops() -> None:
    """W(r, t) = (1 - c_t) exp(-V(r) t), where c_t = 0.3 exp(-2 t) is a higher state that the plateau leaves out."""
    rng, t = np.random.default_rng(6), np.arange(1, 9)
    potential = {r: 0.55 - 0.26 / r + 0.05 * r for r in (1, 2, 10)}
    loops = {
        f"wilson_loops__{r}": (1 - 0.3 * np.exp(-2.0 * t))
        * np.exp(-v * t)
        * (1 + 0.01 * rng.normal(size=(400, 8)) + 0.01 * rng.normal(size=(400, 1)))
        for r, v in potential.items()
    }
    quantities, _ = analyse(measurements(**loops))
    found = {one.name: one for one in quantities}
    assert list(found)[-3:] == ["potential_1", "potential_2", "potential_10"]
    for r, v in potential.items():
        one = found[f"potential_{r}"]
        assert one.value is not None
        assert one.fit_range is not None
        assert 0 < (one.error or 0) < 1e-3
        assert abs(one.value - v) < 4 * one.error
        assert one.fit_range[0] > 1
        assert (one.p or 0) > 0.05


def test_t0_w0_and_susceptibility_in_closed_form() -> None:
    rng, count = np.random.default_rng(2), 3000
    scale = 1 + 0.05 * autoregressive(rng, count, 0.5)
    times = np.arange(100) * 0.05
    charges = np.repeat(2 * autoregressive(rng, count, 0.5)[:, None], 100, axis=1)
    found = measurements(flow__t2_energy=0.12 * scale[:, None] * times, flow__charge=charges)
    named = by_name(analyse(found)[0])
    # t² E = c t, so that t0 = 0.3 / c, and t d/dt (t² E) = c t, so that w0² = t0; their errors follow from that of c.
    c = 0.12 * scale.mean()
    tau = 1.5  # of the series
    error = 0.3 / c * 0.05 / scale.mean() * np.sqrt(2 * tau / count)
    assert named["t0"].value == pytest.approx(0.3 / c, rel=1e-9)
    assert named["w0"].value == pytest.approx(np.sqrt(0.3 / c), rel=1e-9)
    assert named["t0"].error == pytest.approx(error, rel=0.15)
    assert named["w0"].error == pytest.approx(error / (2 * np.sqrt(0.3 / c)), rel=0.15)
    chi = named["topological_susceptibility"]
    assert chi.value == pytest.approx((charges[:, 0] ** 2).mean() / np.prod(EXTENTS))
    assert chi.said.startswith("at the flow time 2.5")
    short = measurements(flow__t2_energy=0.12 * scale[:, None] * times[:20], flow__charge=charges[:, :20])
    assert "does not reach 0.3 up to the flow time 0.95" in by_name(analyse(short)[0])["t0"].said


def test_w0_where_the_last_flow_times_are_closer() -> None:
    # As of --flow 1 --flow-every 7 with steps of 0.02: the last two times are 0.98 and 1.
    times = np.array([*np.arange(8) * 0.14, 1.0])
    c = 0.31 + 1e-4 * np.random.default_rng(5).normal(size=40)
    found = measurements(**{"flow/t2_energy": np.outer(c, times), "flow/charge": np.zeros((40, 9))})
    found.flow_times = times.tolist()
    w0 = by_name(analyse(found)[0])["w0"]
    assert w0.value == pytest.approx(np.sqrt(0.3 / c.mean()), rel=1e-9)


def test_measurements_that_grow_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is read than the memory was compared for."""
    path = tmp_path / "m.h5"
    write_measurements(str(path), measurements(plaquette=np.linspace(0.1, 0.9, 9)))
    length = path.stat().st_size

    def compared(count: int, _: str) -> None:
        assert count == 4 * length
        os.truncate(path, 1 << 42)

    monkeypatch.setattr(onehop.lattice.measurements, "require_memory", compared)
    assert len(read_measurements(str(path)).series["plaquette"]) == 9


def test_altered_measurements_are_refused(tmp_path: Path) -> None:
    found, path = measurements(plaquette=np.linspace(0.1, 0.9, 9)), tmp_path / "m.h5"
    write_measurements(str(path), found)
    whole = path.read_bytes()
    number = whole.index(np.float64(0.5).tobytes())
    for place in (0, 9, len(whole) // 2, number, number + 7, len(whole) - 100, len(whole) - 1):
        altered = bytearray(whole)
        altered[place] ^= 4
        path.write_bytes(altered)
        with pytest.raises(BadInput, match="the file was altered"):
            read_measurements(str(path))
    for place in range(
        len(whole) - 64 - len(DIGEST), len(whole) - 64
    ):  # the mark of the digest, and a number
        altered = bytearray(whole)
        altered[place] ^= 1
        altered[number] ^= 4
        path.write_bytes(altered)
        with pytest.raises(BadInput, match="the file was altered"):
            read_measurements(str(path))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match="cannot read measurements"):
        read_measurements(str(path))
    path.write_bytes(whole)
    np.testing.assert_array_equal(read_measurements(str(path)).series["plaquette"], found.series["plaquette"])


def sets(name: str, values: object) -> Callable[[Any], object]:
    def change(file: Any) -> None:
        if name in file:
            del file[name]
        file[name] = values

    return change


def attribute(name: str, value: object) -> Callable[[Any], object]:
    return lambda file: file.attrs.__setitem__(name, value)


CHANGES = {
    "one number": sets("series/plaquette", 0.5),
    "three dimensions": sets("series/plaquette", np.ones((9, 2, 2))),
    "no data": sets("series/plaquette", h5py.Empty("f8")),
    "text": sets("series/plaquette", "text"),
    "squares of squares beyond floating point": sets("series/plaquette", np.full(9, 1e99)),
    "zeros that take no bytes": lambda file: file.create_dataset(
        "series/x", (9, 2**40), "f8", chunks=(1, 2**9)
    ),
    "options in a list": attribute("options", "[1]"),
    "infinite extents": attribute("extents", [np.inf, 4, 4, 4]),
    "three extents": attribute("extents", [4, 4, 4]),
    "a number that is text": sets("configurations/number", ['"x"'] * 9),
    "a flow time": sets("flow/time", 0.5),
    "flow times of others": sets("flow/time", [0.5, 1.0, 1.5]),
    "flow times NaN": sets("flow/time", [np.nan, np.nan]),
    "a series of series": sets("series", [1.0]),
    "a momentum of two numbers": sets("series/correlators/pion(1,0)", np.ones((9, 24))),
    "numbers in another file": lambda file: file.create_dataset(
        "series/x", (9,), "f8", external=[("/proc/self/exe", 0, 72)]
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_contents_that_no_measurement_has_are_refused(name: str, tmp_path: Path) -> None:
    """Files without a digest, as other programs write them."""
    path = tmp_path / "m.h5"
    flow = {f"flow__{name}": np.ones((9, 2)) for name in ("t2_energy", "charge")}
    write_measurements(str(path), measurements(plaquette=np.linspace(0.1, 0.9, 9), **flow))
    path.write_bytes(path.read_bytes().rpartition(DIGEST)[0])
    assert read_measurements(str(path)).flow_times == [0, 0.05]
    with h5py.File(path, "a") as file:
        CHANGES[name](file)
    with pytest.raises(BadInput, match=r"m\.h5"):
        read_measurements(str(path))


def test_other_observables_than_those_of_the_other_configurations() -> None:
    """A field with open boundaries has neither a Polyakov loop nor an energy."""
    periodic = dict.fromkeys((*_AVERAGES, *_OBSERVABLES), 0.5) | {"file": "a", "number": 1, "checksums": {}}
    periodic["sha256"] = ""
    found = Measurements({}, EXTENTS)
    found.add([periodic])
    with pytest.raises(
        BadInput, match=r"b: expected the observables of the other .* found charge on one side"
    ):
        found.add([periodic | {"file": "b", "charge": None}])


def test_the_command_says_what_has_no_error_or_no_plateau(tmp_path: Path, command: Command) -> None:
    rng = np.random.default_rng(4)
    stored, plot = tmp_path / "run.h5", tmp_path / "plot.svg"
    slow = 3 + autoregressive(rng, 200, 0.95)
    parts = {"correlators__pion": correlators(rng, 200), "correlators__rho": rng.normal(size=(200, 24))}
    write_measurements(str(stored), measurements(**parts, charge=slow))
    done = command("lattice", "analyse", stored, "--plot", plot, "--json", "-", status=0)
    named = {one["name"]: one for one in json.loads(done.stdout)["quantities"]}
    assert named["charge"]["error"] is named["charge"]["jackknife_error"] is None
    assert (
        "charge: no error, because 200 configurations are fewer than 50 autocorrelation times" in done.stderr
    )
    assert {"value", "error", "tau_int", "chi2_per_dof"} <= named["pion_mass"].keys()
    assert named["pion_mass"]["chi2_per_dof"] < 3
    assert named["rho_mass"]["value"] is None
    assert "rho_mass: no plateau" in done.stderr
    assert plot.stat().st_size > 1000
    noise = measurements(correlators__pion=rng.normal(size=(100, 24)))
    write_measurements(str(stored), noise)
    done = command("lattice", "analyse", stored, status=1)
    assert "error: pion_mass: no plateau" in done.stderr
    for words, says in (
        ((stored, "--skip", 96), "expected at least 5 configurations behind those that are skipped, found 4"),
        ((stored, "--fit", "5"), "expected --fit as FIRST-LAST"),
        ((tmp_path / "none.h5",), "none.h5: No such file"),
        ((plot,), "cannot read measurements from"),
    ):
        refused = command("lattice", "analyse", *words, status=2)
        assert says in refused.stderr


def test_a_correlator_and_its_error_have_one_power_of_ten() -> None:
    from onehop.cli.lattice.analyse import with_power

    found = [with_power(*pair) for pair in ((0.49909, 0.0040), (-7.8763e-3, 2.1e-4), (0.0, 0.1), (5.0, 0.0))]
    assert found == ["4.991(40)e-01", "-7.88(21)e-03", "0 ± 0.1", "5e+00"]
