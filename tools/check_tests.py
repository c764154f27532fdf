"""List the public headers and Python modules that no test is named after, with where they are tested.

A folder without an entry in `ELSEWHERE` must have a test for each: tests/.../test_NAME.cc or test_NAME.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Where the others of a folder are tested.
ELSEWHERE = {
    "include/onehop": "plain data and parts of a class: with the class that has them",
    "include/onehop/detail": "the insides of channels: with channels",
    "include/onehop/lattice": "with the operators that use them",
    "include/onehop/quantum": "with the simulator, in both languages",
    "python/onehop": "options and helpers: with the functions that use them",
    "python/onehop/cli": "the commands, as a user runs them: tests/cli, and the folder of what they show",
    "python/onehop/cli/lattice": "the commands, as a user runs them: tests/lattice",
    "python/onehop/cli/quantum": "the commands, as a user runs them: tests/quantum",
    "python/onehop/doctor": "tests/cli/test_doctor.py",
    "python/onehop/lattice": "options and parts of operators: with the operators",
    "python/onehop/lattice/files": "a test for each format: tests/lattice",
    "python/onehop/launch": "tests/cli/test_launch.py and its siblings, with real ranks",
    "python/onehop/machine": "figures and options: with the commands that draw and take them",
    "python/onehop/pennylane": "through PennyLane's device",
    "python/onehop/predict": "with the predicted commands: tests/predict",
    "python/onehop/qiskit": "through Qiskit's interfaces",
    "python/onehop/quantum": "parts of circuits and runs: with `Circuit` and `simulate`",
    "python/onehop/quantum/io": "through `load_qasm`, `State.load` and hostile files: tests/quantum, tests/fuzz",
    "python/onehop/quantum/noise": "through `simulate_density` and `simulate_trajectories`",
    "python/onehop/quantum/run": "through the executors, and with hostile messages: tests/base",
    "python/onehop/topology": "through `onehop.topology` and `onehop map`: tests/machine",
    "python/onehop/torch": "one program for each subject, run with gloo beside it: tests/torch",
    "python/onehop/tune": "with `onehop tune`: tests/tune",
}


def main() -> int:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [Path(name) for name in listing.stdout.splitlines()]
    tested = {file.stem.removeprefix("test_") for file in files if file.parts[0] == "tests"}
    missing: dict[str, list[str]] = {}
    for file in files:
        public = file.is_relative_to("include/onehop") and file.suffix == ".h"
        module = file.is_relative_to("python/onehop") and file.suffix == ".py" and file.name[0] != "_"
        if (public or module) and file.stem not in tested:
            missing.setdefault(str(file.parent), []).append(file.stem)
    for folder, names in sorted(missing.items()):
        if folder in ELSEWHERE:
            print(f"{folder}: {', '.join(names)}\n    {ELSEWHERE[folder]}")
        else:
            print(
                f"{folder}: expected tests named after {', '.join(names)}, or an entry in ELSEWHERE",
                file=sys.stderr,
            )
    return int(not missing.keys() <= ELSEWHERE.keys())


if __name__ == "__main__":
    sys.exit(main())
