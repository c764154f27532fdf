"""List the C++ types that two files define under one name, outside unnamed namespaces.

The linker would take templates of one for the other without a word: a vector of the larger type would get the
room of the smaller one. The formatter makes one form of namespaces and types, so that lines suffice to find them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENS = re.compile(r"(?:inline )?namespace ?([\w:]*) \{(?!.*\})")
DEFINES = re.compile(
    r"(?:struct|class|enum class|union) (?:alignas\(.*\) |\[\[\w+\]\] )?(\w+) (?:final )?(?::[^:].*)?\{"
)


def types_of(text: str) -> dict[str, int]:
    """Return the qualified names of the types that a source defines, with their lines."""
    namespaces: list[str] = []
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if opened := OPENS.match(line):
            namespaces.append(opened[1])
        elif line.startswith("}  // namespace"):
            namespaces.pop()
        elif (defined := DEFINES.match(line)) and "" not in namespaces:
            found["::".join([*namespaces, defined[1]])] = number
    return found


def main() -> int:
    """Print the types that several files define; exit status 1 if there are any."""
    sources = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cc"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    places = defaultdict(list)
    for source in filter(lambda one: (ROOT / one).is_file(), sources):
        for name, line in types_of((ROOT / source).read_text()).items():
            places[name].append(f"{source}:{line}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in twice.items():
        print(f"{name} has several definitions: {', '.join(where)}", file=sys.stderr)
    return 1 if twice else 0


raise SystemExit(main())
