"""What papers measured, beside what `onehop.machine.simulate` predicts (docs/performance/machines.md).

Figures of the papers are data, in published.toml. At most two numbers are fitted on one column of a paper; a study
lists them with what they were fitted on, and all other rows are predictions.
"""

from __future__ import annotations

from collections.abc import Callable

from onehop_bench.papers.circuits import circuits
from onehop_bench.papers.figures import draw_study
from onehop_bench.papers.limits import limits
from onehop_bench.papers.mira import mira
from onehop_bench.papers.quickreduce import quickreduce
from onehop_bench.papers.qws import qws
from onehop_bench.papers.study import Study, published

__all__ = ["STUDIES", "Study", "draw_study", "published"]

STUDIES: dict[str, Callable[[], Study]] = {
    "quickreduce": quickreduce,
    "mira": mira,
    "qws": qws,
    "circuits": circuits,
    "limits": limits,
}
