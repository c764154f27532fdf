"""The precisions in which a circuit can run: memory, passes, and predicted time and fidelity of each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from onehop import _core
from onehop.cli.screen import Table, coloured
from onehop.error import Error
from onehop.machine import Machine
from onehop.predict import predict_circuit
from onehop.quantum import CircuitPlan
from onehop.quantum.circuit_plan import in_precision, predict
from onehop.text import bytes_text, seconds_text

# The infidelity of a pass over the amplitudes of random circuits, measured at 20 and 22 qubits, and the largest one:
# that of blocks in which every number is off by as much as the codec allows.
_LOST_PER_PASS = {"fp16": (4e-8, 2**-22), "q8": (5e-5, 32 / 252**2), "q6": (8e-4, 32 / 61.5**2)}


def choices_of(
    circuit_plan: CircuitPlan, machine: Machine | None, **divided: int | None
) -> list[dict[str, Any]]:
    """Plan a circuit in every precision; `divided` are the arguments of `plan` that divide the ranks over hosts.

    Noisy states are neither encoded nor in files, and those on devices are not encoded.
    """
    plans = {circuit_plan.precision: circuit_plan}
    may_encode = circuit_plan.kind == "state vector" and not (machine is not None and machine.device)
    rows = []
    for name in ("double", "single", *(_LOST_PER_PASS if may_encode else ())):
        # Encoded amplitudes have the passes of single precision.
        like = name if name == "double" else "single"
        if name not in plans and like not in plans:
            hosts = (divided["ranks_per_node"], divided["ranks_per_host"])
            plans[like] = in_precision(circuit_plan, like, hosts)
        one = plans.get(name) or _in_precision(plans[like], name)
        passes, seconds = _predicted(one, machine)
        fidelity, least = (math.exp(-passes * lost) for lost in _LOST_PER_PASS.get(name, (0, 0)))
        row = {
            "precision": name,
            "storage": "memory",
            "bytes_per_amplitude": _core.bytes_per_amplitude(name),
            "memory_per_rank": one.memory_per_rank,
            "memory_in_all": one.memory_in_all,
            "fits": one.fits if machine is None else one.memory_per_rank <= machine.memory.value,
            "passes": passes,
            "predicted_seconds": seconds,
            "predicted_fidelity": fidelity,
            "predicted_fidelity_range": [least, 1.0],
        }
        rows.append(row)
        if machine is None and one.ranks == 1 and may_encode and name in ("single", "q8"):
            rows += _on_disk(row, one)
    return rows


# Bytes per second of a disk: a usual NVMe drive.
_DISK_RATE = 1.5e9


def _on_disk(row: dict[str, Any], one: CircuitPlan) -> list[dict[str, Any]]:
    """Return the row of a state in a file, with half of the available memory."""
    memory = min(one.memory_available // 2, one.memory_per_rank)
    each = [_core.disk_passes(part.placement, one.precision, memory) for part in one.states]
    if min(each) < 0:
        return []
    parts = zip(one.states, each, strict=True)
    transfers = sum(part.memory_per_rank * (1 + 2 * passes) for part, passes in parts) / _DISK_RATE
    found = {"storage": "disk", "memory_per_rank": memory, "memory_in_all": memory, "fits": True}
    # With checkpoints, two files take turns.
    found |= {"disk_bytes": one.memory_per_rank, "disk_bytes_with_checkpoints": 2 * one.memory_per_rank}
    found |= {"disk_passes": sum(each)}
    return [row | found | {"predicted_seconds": max(transfers, row["predicted_seconds"])}]


def _in_precision(single: CircuitPlan, name: str) -> CircuitPlan:
    share = _core.bytes_per_amplitude(name) / _core.bytes_per_amplitude(single.precision)
    need = _core.memory_need(single.largest_state_qubits, single.ranks, name, single.ranks_per_node)
    return replace(
        single,
        precision=name,
        memory_per_rank=need.per_rank,
        memory_in_all=need.in_all,
        fits=need.fits,
        bytes_per_rank=round(single.bytes_per_rank * share),
        parts=tuple(_in_precision(part, name) for part in single.parts),
    )


def _predicted(one: CircuitPlan, machine: Machine | None) -> tuple[float, float | None]:
    if machine is None:
        return one.passes, predict(one)
    try:
        found = predict_circuit(one, machine)
    except Error:
        return one.passes, None  # it does not fit there
    return found.passes, found.predicted_seconds


def choices_table(rows: list[dict[str, Any]]) -> Table:
    """Tabulate the choices, without those on disk that would take no less memory."""
    headers = ("precision", ">memory in all", "fits", ">passes", ">predicted time", ">fidelity", ">at least")
    table = Table(*headers, title="choices of --precision")
    least: dict[str, int] = {}
    for row in rows:
        on_disk = row["storage"] == "disk"
        if least.setdefault(row["precision"], row["memory_in_all"]) <= row["memory_in_all"] and on_disk:
            continue
        seconds = row["predicted_seconds"]
        if on_disk:
            table.caption = "passes on disk are those over the file; a --checkpoint takes a second file"
        table.add_row(
            row["precision"] + (f", {bytes_text(row['disk_bytes'])} on disk" if on_disk else ""),
            bytes_text(row["memory_in_all"]),
            "yes" if row["fits"] else coloured("no", "bold red"),
            f"{row['disk_passes' if on_disk else 'passes']:.4g}",
            "" if seconds is None else seconds_text(seconds),
            f"{row['predicted_fidelity']:.7g}",
            f"{row['predicted_fidelity_range'][0]:.4g}",
        )
    return table
