"""Runs a benchmark of the QED-C suite, unmodified, on `OnehopBackend`.

The suite chooses its backend by name and knows only its own; its module `execute` has a function
`set_execution_target(backend_id, ..., provider_backend)`. Whenever a module of that name is imported by the suite, the
function is replaced by one that hands over our backend.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from onehop.error import BadInput

__all__ = ["run_benchmark", "use_backend"]

_FUNCTION = "set_execution_target"
# The interface to a cloud service: imported by the HamLib benchmark, of no use here.
_IMPORTED_ANYWAY = ("qiskit_ibm_runtime",)


def _with_backend(original: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    def set_execution_target(*arguments: Any, **options: Any) -> Any:
        """The suite's own function, told to use the given backend whatever was asked for."""
        options.update(provider_backend=backend)
        # Positional ones up to the backend are: its name, the provider's module and name, the backend.
        if arguments:
            arguments = (backend.name, *arguments[1:3])
        else:
            options["backend_id"] = backend.name
        # Hubs are ways to cloud services.
        options.pop("hub", None)
        return original(*arguments, **options)

    return set_execution_target


class _StandIn(ModuleType):
    """A package that the suite imports whether or not it is used; who uses something of it hears that it is missing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_arguments: Any, **_options: Any) -> Any:
            raise BadInput(f"{self.__name__}.{name} is missing here: `pip install {_package(self.__name__)}`")

        return missing


def _stand_in() -> None:
    for name in _IMPORTED_ANYWAY:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.modules[name] = _StandIn(name)


class _Patching(importlib.abc.MetaPathFinder):
    """Finds the suite's `execute` as everybody does, and replaces one function in it once it is loaded."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of `execute`, with a loader that replaces."""
        if name.rpartition(".")[2] != "execute":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            use_backend(module, self.backend)

        spec.loader.exec_module = exec_module
        return spec


def use_backend(module: ModuleType, backend: Any) -> None:
    """Make a module with `set_execution_target` use a backend, now and whenever it is asked for another."""
    original = getattr(module, _FUNCTION, None)
    if original is not None and hasattr(module, "backend"):
        setattr(module, _FUNCTION, _with_backend(original, backend))
        module.backend = backend


def run_benchmark(file: str | Path, arguments: Sequence[str], backend: Any) -> None:
    """Run a benchmark script as a program.

    Parameters
    ----------
    file : path
        Of the suite, such as `phase_estimation/pe_benchmark.py`.
    arguments : sequence of str
        What the script gets on its command line.
    backend : OnehopBackend
        What it runs on.

    Raises
    ------
    BadInput
        No such file, no Python script, or a package that the suite needs is missing.
    """
    path = Path(file).resolve()
    if not path.is_file():
        raise BadInput(f"there is no benchmark {file}; name a script of the suite, such as pe_benchmark.py")
    finder = _Patching(backend)
    _stand_in()
    saved = list(sys.argv), list(sys.path)
    sys.meta_path.insert(0, finder)
    sys.argv = [str(path), *arguments]
    sys.path[:0] = [str(path.parent), *_library(path)]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SyntaxError as error:
        if error.filename != str(path):
            raise
        raise BadInput(
            f"{file}:{error.lineno}: expected a Python script of the suite, found: {error.msg}"
        ) from error
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the suite needs the package {error.name}: `pip install {_package(error.name)}`"
        ) from error
    finally:
        sys.meta_path.remove(finder)
        sys.argv, sys.path[:] = saved


def _library(script: Path) -> list[str]:
    """The folder above the script that holds the suite's library, as in a checkout that is not installed."""
    return [str(folder) for folder in script.parents if (folder / "qedclib" / "__init__.py").is_file()][:1]


def _package(module: str | None) -> str:
    return {"sklearn": "scikit-learn"}.get(module or "", (module or "it").partition(".")[0].replace("_", "-"))
