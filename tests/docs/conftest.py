"""The built documentation site."""

import fcntl
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("sphinx", "furo", "myst_parser", "breathe", "sphinx_copybutton")


@pytest.fixture(scope="session")
def site() -> Path:
    """Bring the site of `make docs` up to date and return its folder. Several processes of tests share it."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    missing += [] if shutil.which("doxygen") else ["doxygen"]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; `make docs` brings what the site is built with")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_built():
            done = subprocess.run(["tools/docs.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return ROOT / "build/docs"


def _is_built() -> bool:
    stamp = ROOT / "build/docs.stamp"
    names = ("docs", "include", "notes", "python/onehop", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
    sources = [
        path
        for name in names
        for path in ((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name])
    ]
    made = (".pyc", ".pyi", ".so")
    newest = max(path.stat().st_mtime for path in sources if path.is_file() and path.suffix not in made)
    return stamp.exists() and stamp.stat().st_mtime >= newest
