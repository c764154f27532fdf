"""Machines as data, and the time that schedules take on them.

A machine is a TOML file (docs/reference/machine.md): `machine_names` lists those that are installed with onehop, and
`load_machine` reads one. `simulate` predicts how long a schedule takes on it (docs/reference/simulate.md).
"""

from __future__ import annotations

from onehop._core import (
    Figure,
    Level,
    LinkLoad,
    Machine,
    RailAssignment,
    SimulatedRound,
    Simulation,
    TimeTable,
    Traffic,
)
from onehop.error import explain_public
from onehop.machine.reader import (
    figures_of,
    load_machine,
    machine_names,
    machine_path,
    parse_machine,
    time_tables_of,
)
from onehop.machine.simulate import (
    allreduce_traffic,
    broadcast_traffic,
    goal,
    halo_traffic,
    loggops,
    message_traffic,
    permutation_traffic,
    simulate,
    traffic_of,
)
from onehop.machine.trace_rounds import trace_rounds
from onehop.machine.traffic_rails import machine_rails, rails_from_json, rails_to_json

__all__ = [
    "Figure",
    "Level",
    "LinkLoad",
    "Machine",
    "RailAssignment",
    "SimulatedRound",
    "Simulation",
    "TimeTable",
    "Traffic",
    "allreduce_traffic",
    "broadcast_traffic",
    "figures_of",
    "goal",
    "halo_traffic",
    "load_machine",
    "loggops",
    "machine_names",
    "machine_path",
    "machine_rails",
    "message_traffic",
    "parse_machine",
    "permutation_traffic",
    "rails_from_json",
    "rails_to_json",
    "simulate",
    "time_tables_of",
    "trace_rounds",
    "traffic_of",
]

explain_public(globals())
