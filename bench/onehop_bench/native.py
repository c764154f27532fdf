"""The native module of the benchmarks. Its library is the one inside onehop's own module, which is imported first."""

from __future__ import annotations

from onehop._core import __version__
from onehop.error import Error

try:
    from onehop_bench._native import *  # noqa: F403
    from onehop_bench._native import __version__ as _version
except ImportError as error:
    raise Error(
        f"the benchmarks do not fit the installed onehop {__version__} ({error}); install both from one checkout: "
        "`pip install . ./bench`"
    ) from error
if _version != __version__:
    raise Error(
        f"expected benchmarks of onehop {__version__}, found those of {_version}; install both from one checkout: "
        "`pip install . ./bench`"
    )
