"""Start ranks on emulated hosts with an MPI's mpiexec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onehop.cores import usable_cores
from onehop.error import BadInput
from onehop.exit_code import FAILURE
from onehop.launch.mpi import MpiLauncher, find_mpi_launcher, mpi_command
from onehop_bench.hosts.emulated import EmulatedHosts

# Which describes the hosts to the ranks: "hosts=2 per_host=2 rate=1gbit links=1".
DESCRIPTION = "ONEHOP_EMULATED_HOSTS"


def _open_mpi(hosts: EmulatedHosts, per_host: int) -> tuple[list[str], dict[str, str]]:
    where = ",".join(f"{host.name}:{per_host}" for host in hosts.hosts)
    options = ["--prtemca", "plm_ssh_agent", hosts.remote_shell(), "--prtemca", "plm_ssh_no_tree_spawn", "1"]
    options += ["--host", where, "--map-by", "slot"]
    variables = {}
    if per_host > max(usable_cores() // len(hosts.hosts), 1):
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"  # ranks of a host share its cores
    return options, variables


def _hydra(hosts: EmulatedHosts, per_host: int) -> tuple[list[str], dict[str, str]]:
    names = ",".join(host.name for host in hosts.hosts)
    options = [
        "-launcher",
        "ssh",
        "-launcher-exec",
        hosts.remote_shell(),
        "-hosts",
        names,
        "-ppn",
        str(per_host),
    ]
    return options, {}


def mpi_command_on_hosts(
    hosts: EmulatedHosts, per_host: int, words: Sequence[str], launcher: MpiLauncher
) -> tuple[list[str], dict[str, str]]:
    """The command line, to be run on the first host, and the environment that start `words` on every host."""
    options, more = (_open_mpi if launcher.kind == "openmpi" else _hydra)(hosts, per_host)
    line, environment = mpi_command(launcher, per_host * len(hosts.hosts), words, bind=False)
    environment.update(more)
    # mpi_command counts the ranks against this machine's cores, and may have asked Open MPI to go beyond its slots.
    environment.pop("PRTE_MCA_rmaps_default_mapping_policy", None)
    environment[DESCRIPTION] = (
        f"hosts={len(hosts.hosts)} per_host={per_host} rate={hosts.rate or '0'} links={hosts.links}"
    )
    export = ["-x", DESCRIPTION] if launcher.kind == "openmpi" else []
    return [line[0], *options, *export, *line[1:]], environment


def launch_on_hosts(
    hosts: EmulatedHosts,
    per_host: int,
    words: Sequence[str],
    *,
    mpi: str | None = None,
    environment: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    descriptors: Sequence[int] = (0, 1, 2),
) -> int:
    """Run a command on `per_host` ranks on each host, ranks of one host with successive numbers, and wait for it.

    Parameters
    ----------
    hosts : EmulatedHosts
        The hosts.
    per_host : int
        Ranks on each host.
    words : sequence of str
        The command line of each rank.
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
        There is no such MPI, `per_host` is below 1, or there is no command.
    """
    if per_host < 1:
        raise BadInput(f"expected at least 1 rank on each host, found {per_host}")
    if not words:
        raise BadInput("expected the command line of a rank, found an empty one")
    launcher = find_mpi_launcher(mpi)
    line, variables = mpi_command_on_hosts(hosts, per_host, words, launcher)
    given = dict(environment or {})
    variables.update(given)
    export = [word for name in given for word in ("-x", name)] if launcher.kind == "openmpi" else []
    code = hosts.run(0, [line[0], *options, *export, *line[1:]], variables, descriptors)
    # Open MPI ends the ranks of a launch that lost a host, but its exit code may be 0.
    return code or (0 if all(hosts.alive()) else FAILURE)
