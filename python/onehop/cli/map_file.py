"""The files of `onehop simulate --map` and `--rails`, which `onehop map -o` and `onehop rails -o` write."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from onehop.error import BadInput
from onehop.input_file import read_json
from onehop.machine import Machine, RailAssignment
from onehop.machine.traffic_rails import RAIL_RULES, host_level, hosts_of_ranks, rails_from_json
from onehop.options import LARGEST_SIZE


def read_map(file: str, machine: Machine) -> tuple[list[int], int | None]:
    """Read the map of `--map`: the place of every rank, and the number of processors of the job.

    Places are counted on the part of the machine that a job of so many processors gets; None: on the whole machine. A
    map with hosts must be for this machine. Raises BadInput.
    """
    expected = (
        "a list of the places of all ranks, such as [0, 2, 1, 3], or a map that `onehop map -o` has written"
    )
    found = read_json(file, expected, f"--map {file}")
    places = found.get("places") if isinstance(found, dict) else found
    processors = found.get("processors") if isinstance(found, dict) else None
    if (
        not isinstance(places, list)
        or not places
        or not all(type(one) is int and 0 <= one <= LARGEST_SIZE for one in places)
    ):
        raise BadInput(f"--map {file}: expected {expected}, found {json.dumps(found)[:60]}")
    if processors is not None and (type(processors) is not int or not 0 < processors <= LARGEST_SIZE):
        raise BadInput(
            f"--map {file}: expected processors as a number above 0, found {json.dumps(processors)[:60]}"
        )
    if isinstance(found, dict):
        _check_hosts(found, file, machine)
    return places, processors


def _check_hosts(found: dict[str, Any], file: str, machine: Machine) -> None:
    """Check that a map is for hosts as the machine has them."""
    processors = found.get("processors")
    expected: dict[str, object] = {}
    if found.get("machine") is not None:
        expected["machine"] = machine.name
    elif processors is not None:
        with naming(file):
            job = machine.job(processors)
        size = host_level(job)[1]
        expected = {"hosts": job.processors // size, "per_host": size}
    for key, value in expected.items():
        if key in found and found[key] != value:
            raise BadInput(
                f"--map {file}: expected a map for {key} {value}, found {json.dumps(found[key])[:60]}; make it with "
                f"`onehop map --machine {machine.name}`"
            )


def read_rails(
    text: str | None, machine: Machine, ranks: int, *, mapped: bool
) -> str | list[list[RailAssignment]] | None:
    """Return the value of --rails: the name of a rule, or the assignments in a file.

    The file must be for this machine, or for hosts of as many ranks; `mapped` says that ranks have a map, so hosts are
    not compared. Raises BadInput.
    """
    if text is None or text in RAIL_RULES:
        return text
    wanted = f"a rule ({', '.join(RAIL_RULES)}), or rails that `onehop rails --schedule -o` has written"
    found = read_json(text, wanted, f"--rails {text}")
    if isinstance(found, dict):
        expected: dict[str, object] = {"ranks": ranks}
        if found.get("machine") is not None:
            expected["machine"] = machine.name
        if not mapped:
            expected["hosts"] = max(hosts_of_ranks(machine.job(ranks), range(ranks))) + 1
        for key, value in expected.items():
            if key in found and found[key] != value:
                raise BadInput(
                    f"--rails {text}: expected rails for {key} {value}, found {json.dumps(found[key])[:60]}; "
                    "make them with `onehop rails --schedule` and the options of this simulation"
                )
    return rails_from_json(found, f"--rails {text}")


@contextlib.contextmanager
def naming(map_file: str | None) -> Iterator[None]:
    """Name the file of --map in errors about the places of ranks."""
    try:
        yield
    except BadInput as error:
        about = ("the map of ranks: ", "expected 1 to ")
        if map_file is None or not str(error).startswith(about):
            raise
        raise BadInput(f"--map {map_file}: {str(error).removeprefix(about[0])}") from error
