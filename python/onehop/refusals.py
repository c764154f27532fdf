"""Collective functions whose arguments one rank alone refuses."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar, cast

from onehop import _core
from onehop.error import Mismatch, PeerLost, Timeout
from onehop.text import message_bytes

Function = TypeVar("Function", bound=Callable[..., Any])


def _group_of(value: Any) -> _core.Group | None:
    """Return the group of an argument of a collective function."""
    for one in (
        value,
        *(getattr(value, name, None) for name in ("_whole", "_group", "group", "_core", "_gauge")),
    ):
        found = one if isinstance(one, _core.Group) else getattr(one, "group", None)
        if isinstance(found, _core.Group):
            return found
    return None


def collective(function: Function) -> Function:
    """Return a function of which the other ranks raise Mismatch at once if one rank alone refuses its arguments.

    What this rank raises before the first all-gather of the call, the others hear in that all-gather.
    """

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        begun = _core.allgathers_begun()
        try:
            return function(*positional, **named)
        except (Mismatch, PeerLost, Timeout):
            raise
        except Exception as error:
            # A group among the arguments may have more ranks than the state that has this method.
            given = sorted((*positional, *named.values()), key=lambda one: not isinstance(one, _core.Group))
            group = next(filter(None, map(_group_of, given)), None)
            if group is not None and group.size > 1 and _core.allgathers_begun() == begun:
                text = f"{function.__name__}: {str(error) or type(error).__name__}"
                _core.refuse(group, message_bytes(text).decode())
            raise

    return cast("Function", call)


def make_collective(names: dict[str, Any], public: Iterable[str], but: Collection[str] = ()) -> None:
    """Let these functions of a module, and the public methods of these classes, be `collective`, but some."""
    for name in set(public) - set(but):
        value = names[name]
        if isinstance(value, types.FunctionType):
            names[name] = collective(value)
        elif isinstance(value, type) and not hasattr(value, "_fields"):
            for key, one in list(vars(value).items()):
                if (key.startswith("_") and key not in ("__init__", "__call__")) or key in but:
                    continue
                if isinstance(one, types.FunctionType):
                    setattr(value, key, collective(one))
                elif isinstance(one, classmethod):
                    setattr(value, key, classmethod(collective(one.__func__)))
