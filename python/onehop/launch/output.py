"""Forward the output of ranks as whole lines, each after its rank."""

from __future__ import annotations

import os

LONGEST_LINE = 1 << 20


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; raises BrokenPipeError when nobody reads any more."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class Lines:
    """Passes what one rank writes on to a descriptor, in whole lines, each with a prefix."""

    def __init__(self, descriptor: int, prefix: str) -> None:
        self._descriptor = descriptor
        self._prefix = prefix.encode()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Write the lines that `data` completes and keep the rest."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        if lines:
            write_all(self._descriptor, b"".join(self._prefix + line + b"\n" for line in lines))

    def close(self) -> None:
        """Write an unfinished last line as one."""
        if self._rest:
            self.feed(b"\n")


class Tail:
    """Keeps the end of what one rank writes, to be shown if that rank turns out to be the one that failed."""

    def __init__(self, keep: int = 8192) -> None:
        self._keep = keep
        self._data = b""

    def feed(self, data: bytes) -> None:
        """Add to what is kept."""
        self._data = (self._data + data)[-self._keep :]

    def close(self) -> None:
        """Nothing to write."""

    def show(self, descriptor: int, prefix: str) -> None:
        """Write what is kept."""
        lines = Lines(descriptor, prefix)
        lines.feed(self._data)
        lines.close()
