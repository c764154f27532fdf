"""Every environment variable of onehop that a source reads is in the table of src/base/env.cc."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onehop import _core

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "bench",
    "collectives",
    "compat",
    "examples",
    "include",
    "lattice",
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ONEHOP_SIMD", "mmx"),
        ("ONEHOP_THREADS", "many"),
        ("ONEHOP_THREADS", "0"),
        ("ONEHOP_SHARE_BUFFERS", "yes"),
        ("ONEHOP_TIMEOUT", "-1"),
        ("ONEHOP_TIMEOUT", "nan"),
        ("ONEHOP_TIMEOUT", "soon"),
    ],
)
def test_a_wrong_value_is_one_error_of_every_command(name: str, value: str) -> None:
    paths = filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")])
    done = subprocess.run(
        [sys.executable, "-m", "onehop", "doctor"],
        env={**os.environ, name: value, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count(f"{name}: expected") == 1
    assert f"found '{value}'" in " ".join(done.stderr.split())
