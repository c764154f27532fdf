"""Maps as files that launchers read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from onehop._core import RankMap
from onehop.error import BadInput
from onehop.text import counted


def _check_names(names: Sequence[str], hosts: int) -> None:
    if len(names) < hosts:
        raise BadInput(f"map: expected names of {counted(hosts, 'host')}, found {len(names)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise BadInput(f"map: expected different names of hosts, found {twice!r} twice")
    for name in names:
        if not name or any(letter.isspace() or letter in "=:,#" for letter in name):
            raise BadInput(f"map: expected names of hosts without spaces and without = : , #, found {name!r}")


def _positions_of_hosts(found: RankMap) -> dict[int, list[int]]:
    positions: dict[int, list[int]] = {}
    for position, host in enumerate(found.host_at):
        positions.setdefault(host, []).append(position)
    return dict(sorted(positions.items()))


def _openmpi(found: RankMap, names: Sequence[str]) -> str:
    used: dict[int, int] = {}
    lines = []
    for position, host in enumerate(found.host_at):
        slot = used.get(host, 0)
        used[host] = slot + 1
        lines.append(f"rank {position}={names[host] if names else f'+n{host}'} slot={slot}\n")
    return "".join(lines)


def _mpich(found: RankMap, names: Sequence[str]) -> str:
    if not names:
        raise BadInput("map: expected the names of the hosts for the format mpich (--host-names), found none")
    return "".join(f"{names[host]}:{len(list(run))}\n" for host, run in groupby(found.host_at))


def _rankmap(found: RankMap, names: Sequence[str]) -> str:
    used = dict.fromkeys(sorted(set(found.host_at)))
    number = {host: place for place, host in enumerate(used)}
    return ",".join(str(number[host]) for host in found.host_at) + "\n"


def _reorder(found: RankMap, names: Sequence[str]) -> str:
    return "".join(",".join(map(str, positions)) + "\n" for positions in _positions_of_hosts(found).values())


def _list(found: RankMap, names: Sequence[str]) -> str:
    return "".join(f"{position}\n" for position in found.position_of)


_WRITERS = {
    "openmpi": _openmpi,
    "mpich": _mpich,
    "mpich-rankmap": _rankmap,
    "reorder": _reorder,
    "list": _list,
}
FORMATS = tuple(_WRITERS)


def map_text(found: RankMap, form: str, names: Sequence[str] = ()) -> str:
    """Return a map as the text of a file for a launcher.

    Parameters
    ----------
    found : RankMap
        The map.
    form : str
        "openmpi": a rankfile of Open MPI (`mpiexec --map-by rankfile:file=FILE`). "mpich": a machine file of MPICH's
        Hydra (`mpiexec -f`) with the hosts in the order of ranks. "mpich-rankmap": the number of the host of every
        rank, for `mpiexec -rankmap`, beside a machine file that names every host once. "reorder": the file
        MPICH_RANK_ORDER that Cray's MPI reads with MPICH_RANK_REORDER_METHOD=3. In these four, rank p of MPI is at
        position p of the grid. "list": one line per rank with its position, -1 if the grid does not need it, for
        programs that pass it as the key to MPI_Comm_split before MPI_Cart_create.
    names : sequence of str
        Names of the hosts. Required for "mpich"; the default for "openmpi" is its relative notation +n0, +n1, ...

    Raises
    ------
    BadInput
        There is no such format, or names are missing, doubled or malformed.
    """
    if form not in _WRITERS:
        raise BadInput(f"map: expected a format (one of: {', '.join(FORMATS)}), found {form!r}")
    if names:
        _check_names(names, max(found.host_at) + 1)
    return _WRITERS[form](found, names)
