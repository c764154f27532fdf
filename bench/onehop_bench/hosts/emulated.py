"""Make emulated hosts on this machine, joined by links of a set rate."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from onehop.cores import usable_processors
from onehop.error import BadInput, Error
from onehop.place import find_place, private_folder
from onehop_bench.hosts.keeper import (
    ShellServer,
    Unavailable,
    safe_environment,
    shell_script,
    start_command,
    start_host,
    tool,
)

__all__ = ["EmulatedHost", "EmulatedHosts", "Unavailable", "emulated_hosts"]

FEWEST_HOSTS, MOST_HOSTS = 2, 4
MOST_LINKS = 3
_PATIENCE = 5.0  # seconds until programs must have stopped
_TOOLS = ("ip", "tc", "nsenter", "unshare", "mount", "taskset")
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def _address(link: int, host: int) -> str:
    return f"10.213.{link + 1}.{host + 1}"


def _fields(pid: int) -> list[str]:
    """The state of a process, its parent and so on (proc(5)). Raise OSError if it is gone."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped, or gone."""
    try:
        return _fields(pid)[0] in "TtZX"
    except OSError:
        return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


@dataclass(frozen=True)
class EmulatedHost:
    """One host.

    Attributes
    ----------
    name : str
        Its host name, which resolves on all hosts to the address of the first link.
    pid : int
        Its first process. All its processes end when this one does.
    addresses : list of str
        Its address on each link; the devices are e0, e1, ...
    cores : str
        Numbers of the cores of its processes, with commas between them; empty: all.
    """

    name: str
    pid: int
    addresses: list[str]
    cores: str = ""

    @property
    def alive(self) -> bool:
        """Whether the host lives: its first process has not begun to exit (PF_EXITING, proc(5))."""
        with suppress(OSError):
            return not int(_fields(self.pid)[6]) & 4
        return False


class EmulatedHosts:
    """A set of emulated hosts; `emulated_hosts` makes one.

    Attributes
    ----------
    hosts : list of EmulatedHost
        The hosts, in the order of their numbers.
    rate : str or None
        The rate of each link in each direction; None: as fast as the machine.
    links : int
        Links of each host.
    folder : Path
        A folder with the socket of the server through which hosts start commands on each other.
    """

    def __init__(self, hosts: list[EmulatedHost], rate: str | None, links: int, folder: Path) -> None:
        self.hosts = hosts
        self.rate = rate
        self.links = links
        self.folder = folder
        self._spaces = [Path(f"/proc/{host.pid}/ns/pid").readlink() for host in hosts]
        # The unshare of each host, which waits for its first process.
        self._makers = [int(_fields(host.pid)[1]) for host in hosts]

    def _host(self, number: int) -> EmulatedHost:
        """The host with this number. Raise BadInput if there is none."""
        if not isinstance(number, int) or not 0 <= number < len(self.hosts):
            raise BadInput(
                f"expected the number of a host, from 0 to {len(self.hosts) - 1}, found {number!r}"
            )
        return self.hosts[number]

    def _living(self, number: int) -> EmulatedHost:
        """The host with this number. Raise BadInput if there is none, and Error if it was killed."""
        host = self._host(number)
        if not host.alive:
            raise Error(f"the emulated host {host.name} is gone: it was killed, or all hosts have ended")
        return host

    def remote_shell(self) -> str:
        """The program that MPI launchers call instead of ssh; its path has no blanks, at which they would split it."""
        with find_place(self.folder / "ssh") as place:
            around = os.fstat(place.folder)
            if around.st_uid != os.geteuid() or around.st_mode & 0o022:
                raise Error(
                    f"expected that only user {os.geteuid()} may write to {self.folder}, the folder of the emulated "
                    f"hosts, found a folder of user {around.st_uid} with permissions {around.st_mode & 0o777:o}; make "
                    "the hosts anew"
                )
            with os.fdopen(place.open(os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode=0o700), "w") as agent:
                agent.write(shell_script(str(self.folder)))
            return str(self.folder / place.name)

    def run(
        self,
        host: int,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (0, 1, 2),
    ) -> int:
        """Run a command on a host, in the current folder, and return its exit code (128 + the number of a signal).

        Parameters
        ----------
        host : int
            Number of the host.
        words : sequence of str
            The command line.
        environment : mapping of str to str, optional
            All variables of the command; by default those of this process.
        descriptors : sequence of int
            Its standard input, output and error.

        Raises
        ------
        Error
            The host was killed.
        """
        environment = os.environ if environment is None else environment
        found = self._living(host)
        process = start_command(found.pid, found.cores, words, environment, str(Path.cwd()), descriptors)
        try:
            status = process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
            return 128 + signal.SIGINT
        return status if status >= 0 else 128 - status

    def start(
        self,
        name: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        descriptors: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        """Start a command on the host with a name. Raise OSError if there is no such host, or if it was killed."""
        for host in self.hosts:
            if host.name == name and host.alive:
                return start_command(host.pid, host.cores, words, environment, folder, descriptors)
        raise FileNotFoundError(name)

    def output(self, host: int, words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
        """Run a command on a host and return what it writes to standard output.

        Raises
        ------
        Error
            Its exit code is not 0.
        """
        with tempfile.TemporaryFile("w+") as file, Path(os.devnull).open() as null:
            code = self.run(host, words, environment, (null.fileno(), file.fileno(), 2))
            file.seek(0)
            if code != 0:
                raise Error(f"`{' '.join(words)}` on {self._host(host).name} ended with exit code {code}")
            return file.read()

    def kill(self, host: int) -> None:
        """End a host as if its power had failed: all its processes are killed, and its links vanish."""
        with suppress(ProcessLookupError):
            os.kill(self._host(host).pid, signal.SIGKILL)

    def pause(self, host: int, paused: bool = True) -> None:
        """Stop all programs of a host (SIGSTOP), or let them go on (SIGCONT)."""
        self._living(host)
        if not paused:
            self._continue(host)
            return
        end = time.monotonic() + _PATIENCE
        # A command's nsenter, outside, stops itself once the command has stopped. A SIGCONT before that would be lost,
        # so this waits for it; a command that was being started is inside by then, and is stopped, too.
        while running := [pid for pid in self._programs(host) if not _is_stopped(pid)]:
            if time.monotonic() > end:
                raise Error(f"processes {running} of {self.hosts[host].name} did not stop in {_PATIENCE:g} s")
            for pid in set(self._programs(host, "pid")).intersection(running):
                _signal(pid, signal.SIGSTOP)
            time.sleep(0.002)

    def _continue(self, host: int) -> None:
        """Let the programs of a host go on: those inside before the nsenter outside that waits for each command."""
        for kind in ("pid", "pid_for_children"):
            for pid in self._programs(host, kind):
                _signal(pid, signal.SIGCONT)

    def continue_all(self) -> None:
        """Let the programs of all hosts go on, also of hosts that were killed: a stopped nsenter keeps its host."""
        for host in range(len(self.hosts)):
            self._continue(host)

    def _programs(self, host: int, kind: str = "pid_for_children") -> list[int]:
        """The processes inside a host but its first ("pid"), or also those outside that started them."""
        kept = {self.hosts[host].pid, self._makers[host]}
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if (
                    folder.name.isdigit()
                    and int(folder.name) not in kept
                    and (folder / "ns" / kind).readlink() == self._spaces[host]
                ):
                    found.append(int(folder.name))
        return found

    def alive(self) -> list[bool]:
        """Return for each host whether it lives."""
        return [host.alive for host in self.hosts]

    def set_link(self, host: int, link: int, up: bool) -> None:
        """Switch the host's side of a link off or on."""
        if not isinstance(link, int) or not 0 <= link < self.links:
            raise BadInput(f"expected the number of a link, from 0 to {self.links - 1}, found {link!r}")
        _ip(self._living(host).pid, [f"link set e{link} {'up' if up else 'down'}"])


def _batch(name: str, pid: int, lines: Sequence[str]) -> None:
    """Run commands of `ip` or `tc` in the network of a process."""
    done = subprocess.run(
        [tool("nsenter"), "--target", str(pid), "--net", tool(name), "-batch", "-"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().replace("\n", "; ")
        raise Unavailable(f"links between emulated hosts cannot be made here: `{name}` failed: {said}")


_ip = partial(_batch, "ip")
_tc = partial(_batch, "tc")


def _check(count: int, rate: str | None, links: int) -> None:
    if not FEWEST_HOSTS <= count <= MOST_HOSTS:
        raise BadInput(f"expected {FEWEST_HOSTS} to {MOST_HOSTS} emulated hosts, found {count}")
    if not 1 <= links <= MOST_LINKS:
        raise BadInput(f"expected 1 to {MOST_LINKS} links between emulated hosts, found {links}")
    if rate is not None and not re.fullmatch(r"0*[1-9]\d*(\.\d+)?[kmg]bit", rate.lower()):
        raise BadInput(
            f"expected the rate of a link such as 1gbit or 100mbit, or 0 for no limit, found {rate!r}"
        )
    if os.geteuid() != 0:
        raise Unavailable("emulated hosts are network namespaces, which only root may make: run it with sudo")
    for name in _TOOLS:
        tool(name)


def _cores_of(host: int, count: int) -> str:
    """The cores of one of `count` hosts: an equal share of this process's; all of them if there are too few."""
    cores = sorted(usable_processors())
    share = len(cores) // count
    return ",".join(map(str, cores[host * share : (host + 1) * share])) if share else ""


def _bucket(rate: str) -> tuple[str, int]:
    """The size of a link's bucket of tokens, and the longest packet, in bytes.

    The bucket fills while the link is idle, so it is small, or short messages would exceed the rate. Packets are cut
    before they reach it, so that one never takes longer than the bucket holds. From 1 Gbit/s on the kernel needs longer
    packets to reach the rate (with 8 KiB and 4096 bytes it stayed at 0.63 Gbit/s).
    """
    fast = float(rate[:-4]) * _UNITS[rate[-4].lower()] >= 1e9
    return ("16kb", 8192) if fast else ("8kb", 4096)


def _limits(device: str, rate: str | None) -> list[str]:
    if rate is None:
        return []
    return [f"qdisc add dev {device} root tbf rate {rate} burst {_bucket(rate)[0]} latency 20ms"]


def _join(pids: Sequence[int], switch: int | None, rate: str | None, links: int) -> None:
    """Make the links: each is a cable between two hosts, or a switch with a cable to each of more hosts."""
    for link in range(links):
        device = f"e{link}"
        if switch is None:
            # The kernel reports a change of a link up to a second later if both ends have the same number.
            _ip(
                pids[0],
                [f"link add {device} index {100 + link} type veth peer name {device} netns {pids[1]}"],
            )
        else:
            _ip(switch, [f"link add br{link} type bridge", f"link set br{link} up"])
            ports = [f"p{link}h{host}" for host in range(len(pids))]
            for port, pid in zip(ports, pids, strict=True):
                _ip(switch, [f"link add {port} type veth peer name {device} netns {pid}"])
                _ip(switch, [f"link set {port} master br{link} up"])
            if rate is not None:
                _tc(switch, [line for port in ports for line in _limits(port, rate)])
    for host, pid in enumerate(pids):
        lines = ["link set lo up"]
        for link in range(links):
            lines.append(f"addr add {_address(link, host)}/24 dev e{link}")
            packets = "" if rate is None else f" gso_max_size {_bucket(rate)[1]}"
            lines.append(f"link set e{link} up{packets}")
        _ip(pid, lines)
        if rate is not None:
            _tc(pid, [line for link in range(links) for line in _limits(f"e{link}", rate)])


def _await_links(hosts: EmulatedHosts) -> None:
    """Wait until every host sees that its links are up, which the kernel reports a moment after it is so."""
    states = " ".join(f"/sys/class/net/e{link}/operstate" for link in range(hosts.links))
    wait = f"for i in $(seq 500); do [ $(cat {states} | grep -c '^up$') = {hosts.links} ] && exit; sleep 0.01; done"
    for host in range(len(hosts.hosts)):
        hosts.output(host, ["/bin/sh", "-c", f"{wait}; exit 1"], safe_environment())


def _temporary_folder() -> str:
    """Where to make the folder of the sockets: no TMPDIR that is too long for these, or that an MPI would split."""
    usual = tempfile.gettempdir()
    return usual if re.fullmatch(r"[\w./+-]{1,60}", usual) else "/tmp"


@contextmanager
def emulated_hosts(count: int = 2, rate: str | None = None, links: int = 1) -> Iterator[EmulatedHosts]:
    """Emulate hosts by namespaces of this machine.

    Each host has a network, a host name, process numbers, System V memory, /dev/shm and /proc of its own, so nothing is
    shared by accident but the files. Its processes run on an equal share of this process's cores. The hosts end with
    the context, and also if this process is killed.

    Parameters
    ----------
    count : int
        Number of hosts, 2 to 4.
    rate : str, optional
        The rate of each link in each direction, such as "1gbit"; by default there is no limit.
    links : int
        Links of each host, 1 to 3. Each is a network of its own.

    Raises
    ------
    BadInput
        A number or the rate is invalid.
    Unavailable
        Hosts cannot be emulated here: this process is not root's, or a program or part of the kernel is missing.
    """
    rate = None if rate in (None, "0") else rate
    _check(count, rate, links)
    names = [f"onehop{number}" for number in range(count)]
    table = "127.0.0.1 localhost\n" + "".join(f"{_address(0, i)} {name}\n" for i, name in enumerate(names))
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("onehop-hosts-", _temporary_folder()))
        pids = [start_host(name, str(folder), table, stack) for name in names]
        switch = start_host("switch", str(folder), table, stack) if count > 2 else None
        _join(pids, switch, rate, links)
        hosts = [
            EmulatedHost(name, pid, [_address(link, i) for link in range(links)], _cores_of(i, count))
            for i, (name, pid) in enumerate(zip(names, pids, strict=True))
        ]
        made = EmulatedHosts(hosts, rate, links, folder)
        stack.callback(made.continue_all)
        server = stack.enter_context(ShellServer(str(folder / "shell.sock"), made.start))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        stack.callback(server.shutdown)
        _await_links(made)
        yield made
