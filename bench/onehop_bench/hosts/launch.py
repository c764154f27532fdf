"""Start ranks on emulated hosts with an MPI's mpiexec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.exit_code import FAILURE
from onehop.launch.mpi import MpiLauncher, find_mpi_launcher, mpi_command
from onehop_bench.hosts.emulated import EmulatedHosts

# Which describes the hosts to the ranks: "hosts=2 per_host=2 rate=1gbit links=1"; "per_host=4,3" and "by_node=1" where
# their numbers of ranks differ and ranks are dealt in turns.
DESCRIPTION = "ONEHOP_EMULATED_HOSTS"


def ranks_of_hosts(hosts: int, per_host: int | Sequence[int]) -> list[int]:
    """Return the number of ranks on each host, from one number for all or one for each."""
    ranks = [per_host] if isinstance(per_host, int) else list(per_host)
    if len(ranks) == 1:
        ranks *= hosts
    if len(ranks) != hosts:
        raise BadInput(f"expected one number of ranks, or one for each of {hosts} hosts, found {len(ranks)}")
    if min(ranks) < 1:
        raise BadInput(f"expected at least 1 rank on each host, found {min(ranks)}")
    return ranks


def host_turns(ranks: Sequence[int]) -> list[int]:
    """Return the host of each rank if the ranks are dealt to the hosts in turns."""
    return [host for turn in range(max(ranks)) for host, count in enumerate(ranks) if turn < count]


def _open_mpi(hosts: EmulatedHosts, ranks: list[int], by_node: bool) -> tuple[list[str], dict[str, str]]:
    where = ",".join(f"{host.name}:{count}" for host, count in zip(hosts.hosts, ranks, strict=True))
    options = ["--prtemca", "plm_ssh_agent", hosts.remote_shell(), "--prtemca", "plm_ssh_no_tree_spawn", "1"]
    options += ["--host", where, "--map-by", "node" if by_node else "slot"]
    variables = {}
    if max(ranks) > max(usable_cores() // len(hosts.hosts), 1):
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"  # ranks of a host share its cores
    return options, variables


def _hydra(hosts: EmulatedHosts, ranks: list[int], by_node: bool) -> tuple[list[str], dict[str, str]]:
    turns = host_turns(ranks) if by_node else [host for host, count in enumerate(ranks) for _ in range(count)]
    names = ",".join(f"{hosts.hosts[host].name}:1" for host in turns)
    options = [
        "-launcher",
        "ssh",
        "-launcher-exec",
        hosts.remote_shell(),
        "-hosts",
        names,
    ]
    return options, {}


def mpi_command_on_hosts(
    hosts: EmulatedHosts, ranks: list[int], by_node: bool, words: Sequence[str], launcher: MpiLauncher
) -> tuple[list[str], dict[str, str]]:
    """The command line, to be run on the first host, and the environment that start `words` on every host."""
    options, more = (_open_mpi if launcher.kind == "openmpi" else _hydra)(hosts, ranks, by_node)
    line, environment = mpi_command(launcher, sum(ranks), words, bind=False)
    environment.update(more)
    # mpi_command counts the ranks against this machine's cores, and may have asked Open MPI to go beyond its slots.
    environment.pop("PRTE_MCA_rmaps_default_mapping_policy", None)
    each = ",".join(map(str, ranks if len(set(ranks)) > 1 else ranks[:1]))
    environment[DESCRIPTION] = (
        f"hosts={len(hosts.hosts)} per_host={each} rate={hosts.rate or '0'} links={hosts.links}"
        + (" by_node=1" if by_node else "")
    )
    export = ["-x", DESCRIPTION] if launcher.kind == "openmpi" else []
    return [line[0], *options, *export, *line[1:]], environment


def launch_on_hosts(
    hosts: EmulatedHosts,
    per_host: int | Sequence[int],
    words: Sequence[str],
    *,
    by_node: bool = False,
    mpi: str | None = None,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    descriptors: Sequence[int] = (0, 1, 2),
) -> int:
    """Run a command on ranks on every host, and wait for it.

    Parameters
    ----------
    hosts : EmulatedHosts
        The hosts.
    per_host : int or sequence of int
        Ranks on each host, one number or one for each.
    words : sequence of str
        The command line of each rank.
    by_node : bool
        Whether ranks are dealt to the hosts in turns. Otherwise ranks of one host have successive numbers.
    mpi : str, optional
        The MPI, as for `find_mpi_launcher`.
    environment : mapping of str to str, optional
        Further variables for mpiexec and the ranks.
    options : sequence of str
        Further options for mpiexec.
    descriptors : sequence of int
        Standard input, output and error of mpiexec.

    Returns
    -------
    int
        The exit code of mpiexec; 1 if it is 0 although a host has died.

    Raises
    ------
    BadInput
        There is no such MPI, `per_host` does not fit, or there is no command.
    """
    ranks = ranks_of_hosts(len(hosts.hosts), per_host)
    if not words:
        raise BadInput("expected the command line of a rank, found an empty one")
    launcher = find_mpi_launcher(mpi)
    line, variables = mpi_command_on_hosts(hosts, ranks, by_node, words, launcher)
    given = dict(environment or {})
    variables.update(given)
    export = [word for name in given for word in ("-x", name)] if launcher.kind == "openmpi" else []
    code = hosts.run(0, [line[0], *options, *export, *line[1:]], variables, descriptors)
    # Open MPI ends the ranks of a launch that lost a host, but its exit code may be 0.
    return code or (0 if all(hosts.alive()) else FAILURE)
