"""Runs clang-tidy over C++ sources: `tidy.py BUILD_FOLDER SOURCE...`, all cores at once.

A source is left out when nothing has changed since it last passed: neither it, nor a header of ours that it includes,
nor the settings. So the second run takes no time, and the one after an edit a few seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
# Where an #include of one of our headers may start from, besides the folder of the file that includes it.
ROOTS = [Path(folder) for folder in ("include", ".")]


def closure(source: Path) -> list[Path]:
    """Return a source and all our headers that it includes, directly or not."""
    seen: dict[Path, None] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen[file] = None
        for name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            candidates = (root / name for root in [file.parent, *ROOTS])
            waiting += [path for path in candidates if path.is_file()][:1]
    return list(seen)


def state(source: Path) -> str:
    """Return a hash of all that clang-tidy's verdict on a source depends on."""
    contents = hashlib.sha256(Path(".clang-tidy").read_bytes())
    for file in sorted(closure(source)):
        contents.update(str(file).encode() + b"\0" + file.read_bytes())
    return contents.hexdigest()


def main() -> int:
    folder = Path(sys.argv[1])
    stamps = folder / "tidy"
    stamps.mkdir(exist_ok=True)
    commands = json.loads((folder / "compile_commands.json").read_text(encoding="utf-8"))
    compiled = {Path(entry["file"]).resolve() for entry in commands}

    def passes(source: Path) -> bool:
        stamp = stamps / str(source).replace("/", "_")
        now = state(source)
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == now:
            return True
        command = ["clang-tidy", "--quiet", "-p", str(folder), str(source)]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
        )
        print(run.stdout, end="", flush=True)
        if run.returncode == 0:
            stamp.write_text(now, encoding="utf-8")
        return run.returncode == 0

    # What the build leaves out has no options to be compiled with.
    sources = [Path(name) for name in sys.argv[2:] if Path(name).resolve() in compiled]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return 0 if all(list(pool.map(passes, sources))) else 1


if __name__ == "__main__":
    sys.exit(main())
