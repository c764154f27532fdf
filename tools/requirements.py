"""Print the Python packages that pyproject.toml requires, one per line: `requirements.py build project mpi test ...`.

An argument is `build-system`, `project` (the requirements of an installed onehop) or the name of an optional group.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10: pip brings the same parser
    from pip._vendor import tomli as tomllib


def main() -> None:
    text = (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)
    for word in sys.argv[1:]:
        if word == "build-system":
            packages = settings["build-system"]["requires"]
        elif word == "project":
            packages = settings["project"]["dependencies"]
        else:
            packages = settings["project"]["optional-dependencies"][word]
        print("\n".join(packages))


if __name__ == "__main__":
    main()
