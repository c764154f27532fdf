"""Run qiskit-aer's own tests with `OnehopBackend` in place of its simulators.

    python aer_driver.py FOLDER RESULTS.json [FILE ...]

FOLDER is a checkout of qiskit-aer's repository. Without files, all of test/terra/backends run that need a backend. The
results are a JSON object: for each test, without the arguments of its cases, the numbers of "passed", "failed" and
"skipped" cases, and the last line of every different error. Parts of a test (`subTest`) that fail count as cases of
the same test.
"""

import json
import re
import sys
import unittest
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

import qiskit_aer  # noqa: E402  before the checkout, whose package of this name is not built

folder, results = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
sys.path.insert(0, str(folder))  # its package `test` comes before Python's own

from onehop.qiskit import OnehopBackend  # noqa: E402

OWN = ("seed_simulator", "precision", "method", "noise_model", "shots", "memory")
METHODS = ("automatic", "statevector", "density_matrix")


def _known(options: dict[str, Any]) -> dict[str, Any]:
    method = options.get("method")
    if method is not None and method.removesuffix("_cpu") not in METHODS:
        raise unittest.SkipTest(f"other method: {method}")
    return {name: value for name, value in options.items() if name in OWN}


class Swapped(OnehopBackend):
    """`OnehopBackend` with the constructor of `AerSimulator`, whose other options it ignores."""

    def __init__(self, *_: Any, **options: Any) -> None:
        super().__init__()
        self.set_options(**_known(options))

    def set_options(self, **options: Any) -> None:
        """Set the options that there are."""
        super().set_options(**_known(options))

    def run(self, circuits: Any, *arguments: Any, **options: Any) -> Any:
        """Run circuits, with the other options ignored after a warning."""
        _known(options)
        return super().run(circuits, *arguments, **options)

    def available_methods(self) -> tuple[str, ...]:
        """Return the methods whose cases run."""
        return METHODS

    def available_devices(self) -> tuple[str, ...]:
        """Return the devices whose cases run."""
        return ("CPU",)


class WithVector(Swapped):
    """The same, for the old `StatevectorSimulator`, which saves the state vector at the end of every circuit."""

    def run(self, circuits: Any, *arguments: Any, **options: Any) -> Any:
        """Run circuits with `save_statevector`."""
        listed = circuits if isinstance(circuits, list) else [circuits]
        copies = [circuit.copy() for circuit in listed]
        for circuit in copies:
            circuit.save_statevector()
        job = super().run(copies, *arguments, **options)
        for circuit, found in zip(listed, job.result().results, strict=True):
            found.header["name"] = circuit.name  # of the circuit and not of its copy
        return job


class WithUnitary(Swapped):
    """The old `UnitarySimulator`: another method."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise unittest.SkipTest("other method: unitary")


for name, replacement in {
    "AerSimulator": Swapped,
    "QasmSimulator": Swapped,
    "StatevectorSimulator": WithVector,
    "UnitarySimulator": WithUnitary,
}.items():
    setattr(qiskit_aer, name, replacement)


class Tally(unittest.TestResult):
    """Outcomes by test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, Counter[str]] = {}
        self.reasons: dict[str, Counter[str]] = {}

    def _add(self, test: Any, outcome: str, reason: str = "") -> None:
        owner = getattr(test, "test_case", test)  # of a part of a test
        file, *_, name = (
            owner.id().removeprefix("test.terra.backends.").replace("aer_simulator.", "").split(".")
        )
        name = f"{file}." + re.sub(r"_\d+(_.*)?$", "", name)
        self.outcomes.setdefault(name, Counter())[outcome] += 1
        if reason:
            self.reasons.setdefault(name, Counter())[reason] += 1

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        super().addSuccess(test)
        self._add(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self._add(test, "failed", f"{err[0].__name__}: {str(err[1])[:160]}")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self._add(test, "failed", f"{err[0].__name__}: {str(err[1])[:160]}")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self._add(test, "skipped", reason[:160])

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._add(test, "failed", f"{err[0].__name__}: {str(err[1])[:160]}")


def names() -> list[str]:
    """List the modules to run."""
    if sys.argv[3:]:
        return sys.argv[3:]
    found = sorted((folder / "test/terra/backends").rglob("test_*.py"))
    return [".".join(path.relative_to(folder).with_suffix("").parts) for path in found]


tally = Tally()
unittest.defaultTestLoader.loadTestsFromNames(names()).run(tally)
total = sum(tally.outcomes.values(), Counter())
report = {
    "total": dict(total),
    "tests": {
        name: {**outcome, "reasons": dict(tally.reasons.get(name, {}))}
        for name, outcome in tally.outcomes.items()
    },
}
results.write_text(json.dumps(report, indent=1))
print(dict(total))
for name, outcome in sorted(tally.outcomes.items()):
    if outcome["failed"]:
        print(outcome["failed"], name, dict(tally.reasons[name].most_common(2)))
