"""Print the lines of the product, of its tests and pages, without generated files and notebooks.

The product is what people read to maintain it: C++, Python, C, shell, CMake and TOML of the folders below.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = [
    "src",
    "include",
    "quantum",
    "lattice",
    "collectives",
    "poisson",
    "machine",
    "measure",
    "compat",
    "c",
    "python",
    "bench",
    "tools",
    "cmake",
]
CODE = {".cc", ".cpp", ".h", ".c", ".py", ".sh", ".cmake", ".toml"}


def lines_of(paths: list[Path]) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def main() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]

    def below(folder: str) -> list[Path]:
        return [
            path
            for path in files
            if path.is_relative_to(ROOT / folder) and (path.suffix in CODE or path.name == "CMakeLists.txt")
        ]

    rows = {folder: below(folder) for folder in PRODUCT}
    product = [path for paths in rows.values() for path in paths]
    for folder, paths in rows.items():
        print(f"{folder:14}{len(paths):6,} files{lines_of(paths):10,} lines")
    sizes = [lines_of([path]) for path in product]
    print(
        f"{'product':14}{len(product):6,} files{sum(sizes):10,} lines, median {median(sizes):.0f}, largest {max(sizes)}"
    )
    print(f"{'wheel, Python':14}{'':12}{lines_of(below('python/onehop')):10,} lines")
    print(f"{'tests':14}{len(below('tests')):6,} files{lines_of(below('tests')):10,} lines")
    words = sum(len(path.read_text().split()) for path in files if path.suffix == ".md")
    drawn = lines_of([path for path in files if path.suffix == ".svg"])
    print(f"{'Markdown':14}{'':12}{words:10,} words")
    print(f"{'SVG':14}{'':12}{drawn:10,} lines")


if __name__ == "__main__":
    main()
