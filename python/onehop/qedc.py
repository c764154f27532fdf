"""Run an unmodified benchmark of the QED-C suite on `OnehopBackend`.

The suite selects one of its own backends by name, in the function `set_execution_target(backend_id, ...,
provider_backend)` of its module `execute`. Whenever the suite imports a module of that name, an import hook replaces
the function by one that passes the backend of onehop.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from onehop.error import BadInput, Error

_FUNCTION = "set_execution_target"
# Packages that the suite imports although these runs do not use them. The HamLib benchmark imports the interface to a
# cloud service.
_UNUSED_PACKAGES = ("qiskit_ibm_runtime",)


def _with_backend(original: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    def set_execution_target(*arguments: Any, **options: Any) -> Any:
        """Call the suite's own function with the given backend, whatever backend the suite asked for."""
        options.update(provider_backend=backend)
        # The positional arguments are: backend name, provider module, provider name, backend.
        if arguments:
            arguments = (backend.name, *arguments[1:3])
        else:
            options["backend_id"] = backend.name
        # A hub would select a cloud service.
        options.pop("hub", None)
        return original(*arguments, **options)

    return set_execution_target


class _Placeholder(ModuleType):
    """Placeholder for a missing package that the suite imports but does not use. Using it raises BadInput."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_arguments: Any, **_options: Any) -> Any:
            raise BadInput(
                f"{self.__name__}.{name} needs the package {_package(self.__name__)}, which is not installed: "
                f"`pip install {_package(self.__name__)}`"
            )

        return missing


class _PatchingFinder(importlib.abc.MetaPathFinder):
    """Import hook that finds modules named `execute` and makes them use a backend once they are loaded."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module `execute` with a loader that patches it, or None for other modules."""
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
    """Make the suite's module `execute` use a backend, also when `set_execution_target` names another one."""
    original = getattr(module, _FUNCTION, None)
    if original is not None and hasattr(module, "backend"):
        setattr(module, _FUNCTION, _with_backend(original, backend))
        module.backend = backend


def run_benchmark(file: str | Path, arguments: Sequence[str], backend: Any) -> None:
    """Run a benchmark script as a program."""
    path = Path(file).resolve()
    if not path.is_file():
        raise BadInput(f"there is no benchmark {file}; name a script of the suite, such as pe_benchmark.py")
    finder = _PatchingFinder(backend)
    for name in _UNUSED_PACKAGES:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.modules[name] = _Placeholder(name)
    saved = list(sys.argv), list(sys.path)
    sys.meta_path.insert(0, finder)
    sys.argv = [str(path), *arguments]
    # Of a checkout that is not installed, the folder with the suite's library.
    library = [str(folder) for folder in path.parents if (folder / "qedclib/__init__.py").is_file()][:1]
    sys.path[:0] = [str(path.parent), *library]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SyntaxError as error:
        if error.filename not in (str(path), None):  # none if the file is not text
            raise
        where = file if error.lineno is None else f"{file}:{error.lineno}"
        raise BadInput(f"{where}: expected a Python script of the suite, found: {error.msg}") from error
    except ModuleNotFoundError as error:
        raise BadInput(
            f"the suite needs the package {error.name}: `pip install {_package(error.name)}`"
        ) from error
    except Error:
        raise
    except Exception as error:  # the script's own, whose author needs the traceback
        traceback.print_exc()
        raise Error(f"{file} has failed with {type(error).__name__}; see its traceback above") from error
    finally:
        sys.meta_path.remove(finder)
        sys.argv, sys.path[:] = saved


def _package(module: str | None) -> str:
    return {"sklearn": "scikit-learn"}.get(module or "", (module or "it").partition(".")[0].replace("_", "-"))
