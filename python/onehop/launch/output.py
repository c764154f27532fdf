"""Forward the output of ranks as whole lines, each after its rank."""

from __future__ import annotations

import os

LONGEST_LINE = 1 << 20


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`. Raises BrokenPipeError if the reader is gone."""
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
        """Write an unfinished last line with a line end."""
        if self._rest:
            self.feed(b"\n")


class Tail:
    """Keeps the end of what one rank writes, to be shown if this rank fails."""

    def __init__(self, keep: int = 8192) -> None:
        self._keep = keep
        self._data = b""

    def feed(self, data: bytes) -> None:
        """Keep the end of the previous data and `data`."""
        self._data = (self._data + data)[-self._keep :]

    def close(self) -> None:
        """Do nothing."""

    def show(self, descriptor: int, prefix: str) -> None:
        """Write the kept data with a prefix on each line."""
        lines = Lines(descriptor, prefix)
        lines.feed(self._data)
        lines.close()
