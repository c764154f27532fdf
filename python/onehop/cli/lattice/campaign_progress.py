"""The progress of a campaign against its plan."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onehop.cli.common import write_json
from onehop.error import Error
from onehop.lattice.measurements import read_measurements
from onehop.launch.interpreter import end_with_parent
from onehop.text import seconds_text

SECONDS_BETWEEN = 30.0
_SETTLED = 60.0  # seconds after which the times so far tell those of the rest


class CampaignProgress:
    """What is made and measured, and the time left: as planned, or as much longer as the first minute or more took.

    `planned` has the hours of each part, if they can be predicted; `warm_up` is the part of the updates before the
    first configuration of `files`; `measured` is the file of measurements, `status` that of the progress as JSON.
    """

    def __init__(
        self,
        planned: dict[str, float] | None,
        warm_up: float,
        files: Sequence[str],
        measured: str | None,
        status: str | None,
    ) -> None:
        self._planned, self._warm_up, self._files = planned, warm_up, files
        self._measured, self._status = measured, status
        self._began, self._first = time.monotonic(), 0.0
        self._first = self._done()[0]

    def _done(self) -> tuple[float, int, int]:
        """Return the planned seconds of what is done, and the numbers of configurations and of those measured."""
        made, count = sum(Path(one).exists() for one in self._files), len(self._files)
        known = self._measured is not None and Path(self._measured).exists()
        measured = len(read_measurements(str(self._measured)).configurations) if known else 0
        share = self._warm_up + (1 - self._warm_up) * (made - 1) / max(count - 1, 1) if made else 0.0
        hours = (self._planned or {}).items()
        done = sum(each * (share if part == "generation" else measured / count) for part, each in hours)
        return 3600 * done, made, measured

    def tell(self, step: str) -> dict[str, Any]:
        """Print a line on stderr, and write the file."""
        done, made, measured = self._done()
        count, elapsed = len(self._files), time.monotonic() - self._began
        planned = left = None
        text = f"{step}: {made} of {count} configurations made, {measured} measured, in {seconds_text(elapsed, 2)}"
        if self._planned is not None:
            planned, new = 3600 * sum(self._planned.values()), done - self._first
            left = (planned - done) * (elapsed / new if elapsed > _SETTLED and new > 0 else 1.0)
            text += (
                f", about {seconds_text(left, 2)} left of {seconds_text(planned, 2)} planned" if left else ""
            )
        print(text, file=sys.stderr)
        found = {"step": step, "configurations": count, "made": made, "measured": measured}
        found |= {"elapsed_seconds": elapsed, "planned_seconds": planned, "left_seconds": left}
        write_json(self._status, found)
        return found

    def follow(self, step: str, line: Sequence[str], **how: Any) -> int:
        """Run a command, and tell the progress from time to time and at its end. Returns its exit status."""
        with subprocess.Popen(line, preexec_fn=end_with_parent, **how) as process:
            try:
                while process.poll() is None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(SECONDS_BETWEEN)
                    try:
                        self.tell(step)
                    except Error as error:  # a full disk ends no run
                        print(f"onehop: {error}", file=sys.stderr)
            except BaseException:
                process.kill()
                raise
        return process.returncode
