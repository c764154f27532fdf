"""The job scripts of docs/howto/cluster.md under Slurm, which runs on emulated hosts as on two nodes of a cluster."""

import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster_page import PAGE, PROGRAM, assert_right
from hosts_runner import PACKAGE
from onehop_bench.hosts import EmulatedHosts
from ranks import completed

# Every node needs files of its own where Slurm and munge have their defaults.
_START_MUNGE = (
    "mount -t tmpfs none /run && mkdir -p /run/munge /run/slurmd /run/slurmctld /run/tmp && chmod 755 /run/munge && "
    "munged --force -S /run/munge/munge.socket.2 --key-file={key} --pid-file=/run/munge/pid "
    "--log-file=/run/munge/log --seed-file=/run/munge/seed"
)
_CONFIGURATION = """ClusterName=emulated
SlurmctldHost={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
TmpFS=/run/tmp
{nodes}
PartitionName=all Nodes={names} Default=YES State=UP
"""


class Cluster:
    """Slurm on two hosts; commands run on the first."""

    def __init__(self, hosts: EmulatedHosts, folder: Path) -> None:
        self.hosts = hosts
        self.folder = folder
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        nodes = [f"NodeName={host.name} NodeAddr={host.addresses[0]} CPUs=32" for host in hosts.hosts]
        names = [host.name for host in hosts.hosts]
        configuration = folder / "slurm.conf"
        configuration.write_text(
            _CONFIGURATION.format(first=names[0], nodes="\n".join(nodes), names=",".join(names))
        )
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(configuration),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
            "PYTHONPATH": str(PACKAGE),
            **{f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")},
        }
        for number in range(2):
            code, text = self.run(["sh", "-c", _START_MUNGE.format(key=key)], number)
            assert code == 0, text
        self._stay(["slurmctld", "-D"], 0)
        for number, name in enumerate(names):
            self._stay(["slurmd", "-D", "-N", name], number)
        for _ in range(100):
            _, states = self.run(["sinfo", "-h", "-N", "-o", "%t"])
            if states.split() == ["idle", "idle"]:
                return
            time.sleep(0.1)
        raise AssertionError(f"the nodes do not get ready: {states}")

    def run(self, words: Sequence[str], host: int = 0) -> tuple[int, str]:
        with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
            code = self.hosts.run(host, words, self.environment, (null.fileno(), out.fileno(), out.fileno()))
            out.seek(0)
            return code, out.read()

    def _stay(self, words: list[str], host: int) -> None:
        """Start a server, which ends with its host."""
        threading.Thread(target=self.run, args=(words, host), daemon=True).start()

    def submit(self, script: str) -> str:
        """Run a job script and return what its ranks write."""
        job, out = self.folder / "job.sh", self.folder / "out"
        (self.folder / "program.py").write_text(PROGRAM)
        job.write_text(script)
        code, text = self.run(["sbatch", "-W", f"--chdir={self.folder}", f"--output={out}", str(job)])
        assert code == 0, text + (out.read_text() if out.exists() else "")
        return out.read_text()


@pytest.fixture
def cluster(own_hosts: EmulatedHosts, tmp_path: Path) -> Cluster:
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [
        name for name in ("munged", "slurmctld", "slurmd", "sbatch") if not shutil.which(name, path=path)
    ]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)} (Debian: munge, slurmctld, slurmd, slurm-client)")
    known = completed(["srun", "--mpi=list"])
    plugins = Path("/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so")
    if "pmix" not in known.stdout + known.stderr and not plugins.exists():
        pytest.skip("this Slurm has no PMIx (Debian: libpmix-dev)")
    return Cluster(own_hosts, tmp_path)


def _script(containing: str) -> str:
    (script,) = (one for one in re.findall(r"^```bash\n(#!.*?)^```", PAGE, re.M | re.S) if containing in one)
    return script


def test_a_job_with_mpi(cluster: Cluster) -> None:
    assert_right(cluster.submit(_script("OMP_NUM_THREADS")), "mpi mpi 300")


# Slurm 22.05 confuses the machines in fences of a list of ranks.
def test_a_job_with_pmix_alone(cluster: Cluster) -> None:
    script = _script("ONEHOP_MPI=none").replace("mlx5_0:1", "e0")
    cluster.environment["ONEHOP_TIMEOUT"] = "30"
    assert_right(cluster.submit(script), "pmix ucx 30")


def test_a_rank_without_pmix_says_so(cluster: Cluster) -> None:
    (cluster.folder / "program.py").write_text(PROGRAM)
    cluster.environment["ONEHOP_MPI"] = "none"
    code, text = cluster.run(
        ["srun", "--mpi=none", "-N2", "-n4", sys.executable, str(cluster.folder / "program.py")]
    )
    assert code == 1
    for rank in range(4):
        assert f"srun started this program as rank {rank} of 4" in text
    assert "srun --mpi=pmix" in text
