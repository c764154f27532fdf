"""The table of environment variables in src/base/env.cc is complete, and every command refuses wrong values."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import refused
from onehop import BadInput, _core
from onehop.cli.commands import leaves
from onehop.launch.environment import check_paths
from ranks import completed

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "bench",
    "collectives",
    "compat",
    "examples",
    "include",
    "lattice",
    "machine",
    "measure",
    "poisson",
    "python",
    "quantum",
    "src",
)
# The name of a variable as a string of its own: what is passed to getenv or looked up in os.environ, at once or through
# a constant. Names inside messages are longer strings. Macros of the sources are no strings.
NAME = re.compile(r"""["'](ONEHOP_[A-Z0-9_]+)["']""")
READ = re.compile(r"""(?:getenv\(|environ(?:\.get\(|\.pop\(|\[))\s*["'](ONEHOP_[A-Z0-9_]+)""")


def names_read() -> dict[str, set[str]]:
    """The names that sources read, each with the sources."""
    found: dict[str, set[str]] = {}
    sources = [(path, NAME) for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    sources += [(path, READ) for path in (ROOT / "tests").rglob("*")]
    for path, pattern in sources:
        if path.suffix not in {".cc", ".h", ".py"} or path == ROOT / "src/base/env.cc":
            continue
        for name in pattern.findall(path.read_text()):
            found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


def test_the_table_has_every_variable_that_is_read() -> None:
    table = {variable["name"] for variable in _core.environment_variables()}
    unknown = {name: sorted(places) for name, places in names_read().items() if name not in table}
    assert not unknown, "add them to the table of src/base/env.cc"


def test_the_table_is_sorted_and_names_sources_that_read() -> None:
    variables = _core.environment_variables()
    assert [v["name"] for v in variables] == sorted({v["name"] for v in variables})
    for variable in variables:
        assert variable["name"] in (ROOT / variable["read_in"]).read_text(), variable
        assert variable["set_by"] in {"user", "launcher", "test"}
        assert variable["meaning"].endswith(".")


# Wrong values of every variable that has wrong values. Texts have none, and paths are known only to their readers.
WRONG = {
    "ONEHOP_DEVICE_CHECK": ("2", "yes"),
    "ONEHOP_GUARD": ("2", "yes"),
    "ONEHOP_LAUNCHER_PID": ("init", "0"),
    "ONEHOP_LAUNCHER_SPACE": ("own", "0", "2.5"),
    "ONEHOP_LONG_FAULTS": ("2", "yes"),
    "ONEHOP_NETWORK": ("pigeons", "mpi or ucx"),
    "ONEHOP_QASM_MEMORY_MIB": ("-1", "16 GiB"),
    "ONEHOP_QASM_OPERATIONS": ("0", "many", "0.5", "1.5"),
    "ONEHOP_QASM_SECONDS": ("never", "inf", "nan", "1e300"),
    "ONEHOP_QSPI_TOGETHER": ("2", "yes"),
    "ONEHOP_RANK": ("-1", "first", "16777217"),
    "ONEHOP_RANKS": ("2.5", "two", "1e300"),
    "ONEHOP_RESTARTED": ("yes",),
    "ONEHOP_SHARE_BUFFERS": ("yes", "00x"),
    "ONEHOP_SILENCE": ("-1", "long"),
    "ONEHOP_SIMD": ("mmx",),
    "ONEHOP_TEST_FREE_MEMORY": ("1.5", "-1"),
    "ONEHOP_TEST_MPI_TAGS": ("0", "few", "1.5"),
    "ONEHOP_THREADS": ("many", "0", "1025", "2x"),
    "ONEHOP_TIMEOUT": ("-1", "nan", "soon", "1 s"),
    "ONEHOP_TRACEBACK": ("2", "yes"),
    "ONEHOP_UCX_MODE": ("pigeons", "put"),
    "ONEHOP_VERIFY": ("2", "yes"),
}
WITHOUT_WRONG_VALUES = {
    *("path", "path, or none", "process number and file descriptor", "text"),
    "auto, none, or interfaces",
}
WORDS = {"ONEHOP_NETWORK", "ONEHOP_SIMD", "ONEHOP_UCX_MODE"}  # no numbers


def test_every_variable_that_can_be_wrong_is_checked() -> None:
    found = {v["name"] for v in _core.environment_variables() if v["values"] not in WITHOUT_WRONG_VALUES}
    assert found == WRONG.keys()


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_one_error(name: str) -> None:
    paths = filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])
    done = completed(
        [sys.executable, "-m", "onehop", "run", "-n", "2", "none.qasm"],
        env={**os.environ, name: WRONG[name][0], "PYTHONPATH": os.pathsep.join(paths)},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"error: {name}: expected .*, found '{WRONG[name][0]}'\n", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in WRONG if name not in WORDS for value in WRONG[name]]
)
def test_a_wrong_value_names_the_form(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (form,) = [one["values"] for one in _core.environment_variables() if one["name"] == name]
    monkeypatch.setenv(name, value)
    message = rf"^{name}: expected (a )?{re.escape(form)}, found '{re.escape(value)}'$"
    with pytest.raises(BadInput, match=message):
        _core.check_environment()
    with pytest.raises(BadInput, match=message):
        _core.environment_number(name)


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("ONEHOP_TIMEOUT", "0.25", 0.25),
        ("ONEHOP_TIMEOUT", "1e2", 100),
        ("ONEHOP_TIMEOUT", "", None),
        ("ONEHOP_THREADS", "1024", 1024),
        ("ONEHOP_QASM_OPERATIONS", "1e7", 1e7),
        ("ONEHOP_SHARE_BUFFERS", "0", 0),
    ],
)
def test_numbers(name: str, value: str, number: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    _core.check_environment()
    assert _core.environment_number(name) == number


@pytest.mark.parametrize("name", ["ONEHOP_MPI", "ONEHOP_PEERS"])
def test_a_path_to_nothing_is_refused(name: str, tmp_path: Path) -> None:
    for wrong in ("mpich", str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(
            BadInput, match=rf"^{name}: expected .*, found '{wrong}', which is not an? .*file; "
        ):
            check_paths({name: wrong})
    check_paths({name: sys.executable})
    check_paths({name: ""})
    check_paths({"ONEHOP_MPI": "none"})
    check_paths({"ONEHOP_MPI": "libmpi.so.40"})


def test_a_text_is_no_number() -> None:
    for name in ("ONEHOP_MPI", "ONEHOP_SIMD", "NO_SUCH_VARIABLE"):
        with pytest.raises(
            BadInput, match=f"expected an environment variable that is a number, found {name}"
        ):
            _core.environment_number(name)


@pytest.mark.parametrize("path", [path for path, _ in leaves()], ids=" ".join)
def test_every_command_refuses_a_wrong_value_before_it_starts_anything(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(*_arguments: Any, **_options: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", started)
    for name in ("execv", "execve", "posix_spawn", "fork"):
        monkeypatch.setattr(os, name, started)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    for name, value, told in (
        (
            "OMPI_COMM_WORLD_RANK",
            "first",
            "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE in the environment must",
        ),
        ("OMPI_COMM_WORLD_RANK", "0", ""),
        (
            "ONEHOP_MPI",
            "/none/libmpi.so",
            "ONEHOP_MPI: expected the path of an MPI library (libmpi.so), or none",
        ),
        (
            "ONEHOP_QASM_SECONDS",
            "never",
            "ONEHOP_QASM_SECONDS: expected a number of seconds above 0, at most 1e9",
        ),
    ):
        monkeypatch.setenv(name, value)
        if told:
            assert refused(path, capsys).startswith(told)
