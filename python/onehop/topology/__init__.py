"""Maps of ranks to hosts: choose which rank takes which position of a grid, so that few bytes leave a host.

A map is computed from plain data, without communication. Equal inputs give equal maps on every rank.
"""

from onehop._core import HostLayout, MapCandidate, MapCost, RankMap
from onehop.error import explain_public
from onehop.topology.export import FORMATS, map_text
from onehop.topology.figure import check_map_figure, save_map_figure
from onehop.topology.grid import Grid, map_schedule, renumber
from onehop.topology.machine_hosts import machine_hosts
from onehop.topology.switches import switch_hosts

__all__ = [
    "FORMATS",
    "Grid",
    "HostLayout",
    "MapCandidate",
    "MapCost",
    "RankMap",
    "check_map_figure",
    "machine_hosts",
    "map_schedule",
    "map_text",
    "renumber",
    "save_map_figure",
    "switch_hosts",
]

explain_public(globals())
