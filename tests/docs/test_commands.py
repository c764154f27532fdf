"""The commands of guides, reference and design run in this process, on one rank and in small sizes.

Tests of their own run the commands of README and tutorials (test_pages.py).
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from onehop.cli import main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)

# Beginnings of commands that do not run here, with the reason.
NOT_RUN = {
    "launch": "starts a program of the reader",
    "bench": "measures for seconds or minutes; tests/bench has short runs of each",
    "tune": "measures for minutes; tests/tune has short runs",
    "status": "needs a running program; tests/group has them",
    "doctor": "examines the machine, and cards; tests/doctor does",
    "quantum hamlib": "downloads from a server",
    "quantum circuit hamlib": "needs a file that was downloaded",
    "quantum qedc": "needs a benchmark suite that was downloaded",
    "lattice measure run/*.lime": "needs an ensemble; the tutorial on lattices makes one",
    "lattice analyse": "needs its measurements",
    "lattice solve --fat": "needs a source in a file of another code",
    "lattice solve cfg.milc": "needs fields of another code",
    "lattice measure weak_field": "needs a field of another code",
}
SMALLER = [
    (r"^(run|lattice [a-hj-z]\w+|poisson)(.*?) -n \d+", r"\1\2"),  # one rank: this process
    (r"^(lattice thermalize .*)--extent \S+", r"\1--extent 4x4x4x4"),
    (r"^(poisson .*)--extent \S+", r"\1--extent 20x30"),
    (r"--grid 50x48 --hosts 50 --per-host 48", "--grid 5x4 --hosts 5 --per-host 4"),
    (r"--(sweeps|trajectories|steps|count|every) \d+", r"--\1 2"),
    (r"--(qubits|first) \d+", r"--\1 6"),
    (r"--keep \d+", "--keep 12"),
    (r"run/000400", "run/000004"),
    (r"--plot \S+", ""),  # tests/cli has plots
]
CIRCUIT = (
    'OPENQASM 3.0;\ninclude "stdgates.inc";\n{}qubit[2] q;\nrx({}) q[0];\nry({}) q[1];\ncx q[0], q[1];\n'
)


def commands(page: Path) -> list[str]:
    """The commands of a page without "onehop" and comments, with pieces of a line joined."""
    lines = (
        line for block in BLOCK.findall(page.read_text()) for line in block.replace("\\\n", " ").splitlines()
    )
    found = (re.match(r"(?:ONEHOP_\w+=\S+ )*onehop (.*?)(?: # .*)?$", line) for line in lines)
    return [" ".join(one[1].split()) for one in found if one]


ALL = {
    f"{folder}/{page.stem}": commands(page)
    for folder in ("howto", "reference", "design", "performance")
    for page in sorted((ROOT / "docs" / folder).glob("*.md"))
}
RUN = {
    page: [line for line in lines if not line.startswith(tuple(NOT_RUN))]
    for page, lines in ALL.items()
    if not page.startswith("performance")  # those measure
}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that pages speak of as the reader's own."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("qpe", "qft"):
        assert main(["quantum", "circuit", name, "--qubits", "6", "-o", str(folder / f"{name}.qasm")]) == 0
    (folder / "FILE.qasm").write_text(CIRCUIT.format("", 0.3, 1.2))
    free = CIRCUIT.format("input float theta;\ninput float phi;\n", "theta", "phi")
    (folder / "circuit.qasm").write_text(free)
    field = str(folder / "cfg.lime")
    assert main(["lattice", "thermalize", "--extent", "4x4x4x4", "--sweeps", "2", "-o", field]) == 0
    single = str(folder / "single.lime")
    assert main(["lattice", "convert", field, "--precision", "single", "-o", single]) == 0
    return folder


@pytest.mark.parametrize("page", [page for page, lines in RUN.items() if lines])
def test_commands_run(
    page: str,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for line in RUN[page]:
        if line.startswith("run circuit.qasm") and "--bind" not in line:
            Path("circuit.qasm").write_text(CIRCUIT.format("", 0.3, 1.2))
        for long, short in SMALLER:
            line = re.sub(long, short, line)
        words = shlex.split(line)
        if "-o" in words:  # a page may write a file twice
            Path(words[words.index("-o") + 1]).unlink(missing_ok=True)
        code = main(words)
        assert code == 0, f"onehop {line}\n{capsys.readouterr().err}"


def test_a_page_has_what_is_not_run() -> None:
    everything = [line for lines in ALL.values() for line in lines]
    for start in NOT_RUN:
        assert any(line.startswith(start) for line in everything), start
    assert sum(map(len, RUN.values())) > 60
