"""Running small programs on emulated hosts."""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
from pathlib import Path

from onehop.hosts import EmulatedHosts, launch_on_hosts

SUPPORT = Path(__file__).parent
PACKAGE = Path(__file__).parents[2] / "python"


class OnHosts:
    """Runs programs on hosts."""

    def __init__(self, hosts: EmulatedHosts, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder

    def run(self, source: str, per_host: int = 2, options: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run a Python program on `per_host` ranks a host; return the exit code and what the ranks write."""
        program = self.folder / "program.py"
        program.write_text(textwrap.dedent(source))
        environment = {
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(SUPPORT), os.environ.get("PYTHONPATH", "")]),
            "ONEHOP_TIMEOUT": "60",
        }
        with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
            descriptors = (null.fileno(), out.fileno(), out.fileno())
            code = launch_on_hosts(
                self.hosts,
                per_host,
                [sys.executable, str(program)],
                environment=environment,
                options=options,
                descriptors=descriptors,
            )
            out.seek(0)
            return code, out.read()

    def check(self, source: str, per_host: int = 2) -> str:
        """Run a program that must succeed on all ranks."""
        code, text = self.run(source, per_host)
        assert code == 0, text
        return text
