"""The prepared collective operations of a group."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from onehop._core import Collective, Collectives
from onehop.arguments import instance
from onehop.group import Group
from onehop.links import Links

MAX_PLANS = 512


class Plans:
    """A cache of prepared collective operations of a group, which drops the least recently used. Collective."""

    def __init__(self, group: Group) -> None:
        self.collectives = Collectives(group)
        self.rank, self.size = group.rank, group.size
        self._operations: OrderedDict[tuple[Any, ...], Collective] = OrderedDict()
        self.links = Links()

    def get(self, kind: str, *arguments: Any) -> Collective:
        """Return the operation `Collectives.kind(*arguments)` from the cache, or prepare it."""
        key = (kind, *arguments)
        try:
            operation = self._operations.get(key)
        except TypeError:  # a list, for example, where a text belongs: the operation says so
            return getattr(self.collectives, kind)(*arguments)
        if operation is None:
            operation = getattr(self.collectives, kind)(*arguments)
            self._operations[key] = operation
            if len(self._operations) > MAX_PLANS:
                self._operations.popitem(last=False)
        else:
            self._operations.move_to_end(key)
        return operation

    def __len__(self) -> int:
        return len(self._operations)


def plans(group: Group) -> Plans:
    """Return the plan cache of a group. The first call makes it, which is collective."""
    found: Plans | None = instance(group, Group, "group").__dict__.get("_plans")
    if found is None:
        found = Plans(group)
        group.__dict__["_plans"] = found
    return found
