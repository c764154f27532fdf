"""All-gathers through a key-value store, for groups of ranks that no launcher of MPI has started."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, Protocol

from onehop.error import BadInput, Error, PeerLost
from onehop.time_limit import Wait, call_within

AllGather = Callable[[bytes], list[bytes]]
_LONGEST = 1e6  # seconds that a store of torch takes as its limit
_EMPTY = b"\0"  # some stores keep no empty values


class Store(Protocol):
    """A key-value store that all ranks reach, such as `torch.distributed.Store`."""

    def set(self, key: str, value: bytes) -> Any:
        """Store a value."""

    def get(self, key: str) -> bytes:
        """Wait until the key has a value, and return it."""


def _own_limit(store: Any) -> float:
    """The time limit in seconds that a store of torch has for its own waits; 0: none is known."""
    seconds = getattr(getattr(store, "timeout", None), "total_seconds", None)
    return float(seconds()) if callable(seconds) else 0.0


def _get(
    store: Any,
    key: str,
    limit: float,
    describe: Callable[[], str],
    gone_rank: Callable[[], int],
    of_part: str,
) -> bytes:
    """Wait until a key has a value, within a limit in seconds (0: none) and until a rank is gone, and return it."""
    if not callable(getattr(store, "check", None)):
        return bytes(call_within(limit, describe, lambda: store.get(key)))
    wait = Wait(limit or _own_limit(store))
    pause = 0.0005
    while not store.check([key]):
        gone = gone_rank()
        # A value that it wrote before it ended counts.
        if gone >= 0 and not store.check([key]):
            raise PeerLost(
                f"rank {gone}{of_part} has ended or cannot be reached, and others wait for it in a store",
                gone,
            )
        wait.check(describe)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return bytes(store.get(key))


def allgathers_through(
    store: Store, prefix: str, limit: Callable[[], float]
) -> Callable[[str, int, int, Callable[[], int]], AllGather]:
    """Return a function that makes the all-gather of the ranks of a group, or of a part of it.

    Its arguments are the name of the part, rank and size there, and a function that returns a rank of the part that is
    known to have ended, or -1. The all-gather then raises `PeerLost` if the store has a method `check`. Entries that
    all ranks have read are deleted if it has a method `delete_key`.

    `prefix` begins every key; no other group, also of an earlier run, may have used it in this store. `limit` returns
    the time limit of a wait in seconds; 0: the store's own.
    """
    for name in ("set", "get"):
        if not callable(getattr(store, name, None)):
            raise BadInput(
                f"expected a store with the methods set(key, value) and get(key), found {type(store).__name__} "
                f"without {name}"
            )
    delete = getattr(store, "delete_key", None)

    def make(name: str, rank: int, size: int, gone_rank: Callable[[], int]) -> AllGather:
        if size == 1:
            return lambda mine: [mine]
        step = 0
        of_part = f" of the part {name[1:]}" if name else ""

        def key(number: int, of: int) -> str:
            return f"{prefix}{name}/{number}/{of}"

        def allgather(mine: bytes) -> list[bytes]:
            nonlocal step
            number, step = step, step + 1
            store.set(key(number, rank), mine or _EMPTY)
            parts = []
            for other in range(size):
                who = f"rank {other}{of_part}"
                parts.append(
                    _get(
                        store,
                        key(number, other),
                        limit(),
                        lambda who=who: (
                            f"rank {rank} waited in set-up (all-gather {number + 1}) for {who} in a store"
                        ),
                        gone_rank,
                        of_part,
                    )
                )
            # Every rank has reached step number - 1, so it has read the entries of step number - 2.
            if delete is not None and number >= 2:
                delete(key(number - 2, rank))
            return [b"" if part == _EMPTY else part for part in parts]

        return allgather

    return make


def refuse_used(store: Any, prefix: str, rank: int) -> None:
    """Raise BadInput if this rank has joined a group with this prefix before, if the store has a method `check`."""
    if not callable(check := getattr(store, "check", None)):
        return
    mark = f"{prefix}/joined/{rank}"
    if check([mark]):
        raise BadInput(
            f"expected a prefix that no group of this store has used, found {prefix!r}, with which rank {rank} has "
            "joined already; pass another prefix for each group and each run, and give each process its own rank"
        )
    store.set(mark, b"1")


def agree_on_survivors(
    store: Any, prefix: str, rank: int, size: int, lost: Collection[int], wait: float
) -> list[int]:
    """Agree with the other ranks that are left which ranks those are.

    Every rank that is left registers. The first that has seen all ranks but those in `lost`, or has waited `wait`
    seconds, decides for all: it writes the list with the store's atomic comparison, so there is one list only.

    The store has the methods `check(keys)`, whether all keys have values, and `compare_set(key, expected, desired)`,
    which writes a key without a value if `expected` is empty, and returns the value that the key has then; else
    BadInput. Raises PeerLost if the others have decided without this rank, which came too late.
    """
    for name in ("check", "compare_set"):
        if not callable(getattr(store, name, None)):
            raise BadInput(
                f"expected a store with the methods check(keys) and compare_set(key, expected, desired), found "
                f"{type(store).__name__} without {name}"
            )
    decision = f"{prefix}/decision"
    store.set(f"{prefix}/{rank}", b"here")
    end = time.monotonic() + wait
    while not store.check([decision]):
        here = [other for other in range(size) if store.check([f"{prefix}/{other}"])]
        if time.monotonic() > end or set(range(size)) <= {*here, *lost}:
            store.compare_set(decision, "", json.dumps(here))
            break
        time.sleep(0.01)
    left: list[int] = json.loads(bytes(store.get(decision)))
    if rank not in left:
        raise PeerLost(
            f"rank {rank} came too late: the ranks {', '.join(map(str, left))} have decided to go on without it; "
            f"let survivors wait longer than {wait:g} s",
            left[0],
        )
    return left


def store_of_torchrun() -> tuple[Any, int, int, str] | None:
    """Return the store of a torchrun on several machines, the rank, the number of ranks, and a prefix for keys.

    None if no torchrun has started this process, or one on this machine only, or if another launcher comes first.
    Raises Error if the store cannot be reached, or if torch is not installed.
    """
    from_environment = os.environ.get
    others = ("ONEHOP_CONTROL", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_ID")
    names = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    values = [from_environment(name) for name in names]
    if any(from_environment(name) for name in others) or not all(values):
        return None
    try:
        rank, size, here, port = (int(values[i] or "") for i in (0, 1, 2, 4))
    except ValueError:
        return None  # Group.world says which variable is wrong
    if here >= size:
        return None
    try:
        from torch.distributed import TCPStore
    except ImportError as error:
        raise Error(
            f"torchrun started {size} ranks on several machines, which connect through torch's store, but torch cannot "
            f"be imported: {error}"
        ) from error
    is_master = rank == 0 and from_environment("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        limit = float(from_environment("ONEHOP_TIMEOUT") or 0)
        more = {"timeout": timedelta(seconds=limit)} if 0 < limit < _LONGEST else {}  # else the store's own
        store = TCPStore(values[3], port, size, is_master, wait_for_workers=False, **more)
    except (RuntimeError, ValueError) as error:
        raise Error(f"the store of torchrun at {values[3]}:{port} cannot be reached: {error}") from error
    launch = [from_environment(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT")]
    return store, rank, size, "/".join(["onehop", "world", *launch])
