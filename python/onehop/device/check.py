"""`python -m onehop.device.check`: compare the kernels of a device with the processor's, and measure them.

Also `onehop doctor --device cuda`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np

from onehop import _core
from onehop.collective_plans import plans
from onehop.device import available
from onehop.device.arrays import array, device_array
from onehop.device.sums import DeviceSums
from onehop.error import BadInput, Error
from onehop.group import Group
from onehop.output import write_file

_GOAL = 0.6  # of the rate of a copy
_SEED = 43


def _sums(device: str, ranks: int, quick: bool) -> list[dict[str, Any]]:
    """Compare sums of several ranks, threads of this process on one device, with NumPy's."""
    barrier, shared = Barrier(ranks), [b""] * ranks

    def gather(rank: int) -> Callable[[bytes], list[bytes]]:
        def allgather(mine: bytes) -> list[bytes]:
            shared[rank] = mine
            barrier.wait(60)
            found = list(shared)
            barrier.wait(60)
            return found

        return allgather

    rng = np.random.default_rng(_SEED)
    counts = [1000, 100_001] if quick else [1, 1000, 100_001, 3_000_000]
    numbers = {count: rng.integers(-99, 99, (ranks, count)).astype(np.float32) for count in counts}

    def rank_of(rank: int) -> dict[str, bool]:
        group = Group.from_allgather(rank, ranks, gather(rank))
        sums = DeviceSums(plans(group), device)
        stream = sums.make_stream()
        found = {}
        # Freeing memory of a card waits for its kernels, those of other ranks, too: nothing is freed on the way.
        kept = [array(numbers[count][rank], device) for _ in range(2) for count in counts]
        group.barrier()
        for shots in (1, 2):
            for number, count in enumerate(counts):
                held = kept[(shots - 1) * len(counts) + number]
                place = device_array(held)
                assert place is not None
                sums.run(place, place, "sum", "raw", shots, stream.native)
                sums.core.wait(stream.native)
                same = np.array_equal(held.numpy(), numbers[count].sum(axis=0))
                found[f"sum of {ranks} ranks, {shots} shots, {count} numbers"] = bool(same)
        group.barrier()
        return found

    with ThreadPoolExecutor(ranks) as pool:
        results = list(pool.map(rank_of, range(ranks)))
    return [
        {"name": name, "ok": all(one[name] for one in results), "against": "NumPy", "error": ""}
        for name in results[0]
    ]


def check(
    device: str, quick: bool = False, show: Callable[[str], None] = lambda _text: None
) -> dict[str, Any]:
    """Compare the kernels of a device with the processor's, and measure them.

    Parameters
    ----------
    device : str
        "cuda", "hip", "cuda:1" or "processor".
    quick : bool
        Fewer numbers.
    show : callable
        Is called with the name of each step before it.

    Returns
    -------
    dict
        `device`, `ok`, `checks` (name, ok, against, error) and `rates` (name, value and limit in bytes per second,
        ratio).

    Raises
    ------
    BadInput, Error
        There is no such device, or it cannot be used.
    """
    core = _core.Device.named(device)
    show(f"kernels of codecs on {core}")
    checks = [
        {"name": name, "ok": ok, "against": against, "error": error}
        for name, ok, against, error in core.check(quick)
    ]
    for ranks in (2,) if quick else (2, 4, 8):
        show(f"sums of {ranks} ranks on {core}")
        try:
            checks += _sums(device, ranks, quick)
        except Error as error:
            checks.append(
                {"name": f"sums of {ranks} ranks", "ok": False, "against": "NumPy", "error": str(error)}
            )
    ok = all(one["ok"] for one in checks)
    rates = []
    if ok:
        show(f"rates of {core}")
        size = 1 << 20 if core.kind == "processor" or quick else 1 << 30
        rates = [
            {"name": name, "value": value, "limit": limit, "ratio": value / limit}
            for name, value, limit in core.rates(min(size, core.free_memory() // 4 // 4096 * 4096))
        ]
    return {"device": str(core), "ok": ok, "checks": checks, "rates": rates}


def lines(found: dict[str, Any]) -> list[str]:
    """Return a result of `check` as lines of text."""
    failed = [one for one in found["checks"] if not one["ok"]]
    text = [
        f"{found['device']}: {len(found['checks']) - len(failed)} of {len(found['checks'])} checks passed"
    ]
    text += [f"  {one['name']}: differs from {one['against']} {one['error']}".rstrip() for one in failed]
    for one in found["rates"]:
        goal = "" if one["ratio"] >= _GOAL else f"  (goal: {_GOAL})"
        text.append(f"  {one['name']}: {one['value'] / 1e9:.3g} GB/s, {one['ratio']:.2f} of a copy{goal}")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m onehop.device.check`; return the exit code: 1 if a kernel differs."""
    parser = argparse.ArgumentParser(
        prog="python -m onehop.device.check",
        description="Compare the kernels of a device with the processor's.",
    )
    parser.add_argument(
        "--device", default=None, help='such as "cuda:1" (default: the first card) or "processor"'
    )
    parser.add_argument("--quick", action="store_true", help="take fewer numbers")
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; -: to the standard output")
    options = parser.parse_args(arguments)
    try:
        cards = [card.name for card in available() if not card.error]
        if options.device is None and not cards:
            raise BadInput(
                "expected a card, found none (`onehop doctor` says why); --device processor checks the kernels here"
            )
        found = check(
            options.device or cards[0], options.quick, lambda text: print(text, file=sys.stderr, flush=True)
        )
        text = json.dumps(found, indent=2)
        if options.json not in (None, "-"):
            write_file(options.json, text + "\n", "the result")
    except Error as error:
        print(f"onehop: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    print(text if options.json == "-" else "\n".join(lines(found)))
    return 0 if found["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
