"""The commands of docs/howto/cluster.md, run on emulated hosts in place of node1 and node2."""

import importlib.util
import os
import re
import shlex
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from cluster_page import PAGE, PROGRAM, assert_right
from hosts_runner import PACKAGE
from onehop import BadInput, _core
from onehop.launch.mpi import find_mpi_launcher
from onehop_bench.hosts import EmulatedHosts
from ranks import completed


def _commands(word: str, containing: str) -> list[list[str]]:
    """The commands of the page that begin with `word`, as lists of words."""
    found = [
        shlex.split(line, comments=True)
        for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)
        for line in block.splitlines()
        if line.startswith(word + " ") and containing in line
    ]
    assert found, f"the page has no {word} with {containing}"
    return found


def _run(
    hosts: EmulatedHosts, folder: Path, command: list[str], host: int, **variables: str
) -> tuple[int, str]:
    """Run a command of the page on a host; the first word may be replaced by a path before."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    named = {"node1": hosts.hosts[0].name, "node2": hosts.hosts[1].name, "program.py": str(program)}
    words = [sys.executable if word == "python" else word for word in command]
    for name, value in named.items():
        words = [word.replace(name, value) for word in words]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PACKAGE),
        "ONEHOP_TIMEOUT": "60",
        **variables,
    }
    with tempfile.TemporaryFile("w+") as out, Path(os.devnull).open() as null:
        code = hosts.run(host, words, environment, (null.fileno(), out.fileno(), out.fileno()))
        out.seek(0)
        return code, out.read()


def _prrte(hosts: EmulatedHosts) -> dict[str, str]:
    return {
        "PRTE_MCA_plm_ssh_agent": hosts.remote_shell(),
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        **{f"{name}_ALLOW_RUN_AS_ROOT{end}": "1" for name in ("PRTE", "OMPI") for end in ("", "_CONFIRM")},
    }


def test_open_mpi(hosts: EmulatedHosts, tmp_path: Path) -> None:
    launcher = find_mpi_launcher("openmpi")
    (command,) = _commands("mpiexec", "--host ")
    variables = _prrte(hosts) | {"OMPI_MCA_osc": "^ucx", "OMPI_MCA_mpi_yield_when_idle": "1"}
    code, text = _run(hosts, tmp_path, [launcher.path, *command[1:]], 0, **variables)
    assert code == 0, text
    assert_right(text, "mpi mpi 60")


def test_mpich(hosts: EmulatedHosts, tmp_path: Path) -> None:
    try:
        launcher = find_mpi_launcher("mpich")
    except BadInput as error:
        pytest.skip(str(error))
    (command,) = _commands("mpiexec", "-genv ONEHOP_TIMEOUT")
    variables = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": hosts.remote_shell()}
    variables["ONEHOP_MPI"] = launcher.library or ""
    code, text = _run(hosts, tmp_path, [launcher.path, *command[1:]], 0, **variables)
    assert code == 0, text
    assert_right(text, "mpi mpi 300")


def test_intel_mpi(hosts: EmulatedHosts, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / ".impi"
    if not (folder / "bin/mpiexec").exists():
        pytest.skip(f"there is no {folder} (`make impi`)")
    (command,) = _commands("mpiexec", "LD_LIBRARY_PATH")
    words = [word.replace("/opt/impi", str(folder)) for word in command[1:]]
    variables = {
        f"I_MPI_HYDRA_BOOTSTRAP{end}": value for end, value in (("", "ssh"), ("_EXEC", hosts.remote_shell()))
    }
    code, text = _run(hosts, tmp_path, [str(folder / "bin/mpiexec"), *words], 0, **variables)
    assert code == 0, text
    assert_right(text, "mpi mpi 60")


@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
def test_prterun_without_mpi(hosts: EmulatedHosts, tmp_path: Path) -> None:
    prterun = Path(find_mpi_launcher("openmpi").path).with_name("prterun")
    if not prterun.exists():
        pytest.skip(f"there is no {prterun}: Open MPI is older than 5")
    (command,) = _commands("prterun", "--host ")
    moved = ["--prefix", str(prterun.parents[1])]  # as the page says of PyPI's
    code, text = _run(hosts, tmp_path, [str(prterun), *moved, *command[1:]], 0, **_prrte(hosts))
    assert code == 0, text
    assert_right(text, "pmix ucx 60")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch in this environment")
@pytest.mark.skipif(not _core.ucx_library()["path"], reason="no UCX library was found")
def test_torchrun(hosts: EmulatedHosts, tmp_path: Path) -> None:
    commands = _commands("torchrun", "--nnodes 2")
    assert len(commands) == 2
    results = [(1, "")] * 2

    def run(host: int) -> None:
        words = [sys.executable, "-m", "torch.distributed.run", *commands[host][1:]]
        results[host] = _run(hosts, tmp_path, words, host, OMP_NUM_THREADS="1")

    threads = [threading.Thread(target=run, args=(host,)) for host in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [code for code, _ in results] == [0, 0], results
    assert_right(results[0][1] + results[1][1], "allgather ucx 60")


def test_scripts_are_valid_for_a_shell() -> None:
    scripts = re.findall(r"^```bash\n(.*?)^```", PAGE, re.M | re.S)
    assert len(scripts) >= 3
    for script in scripts:
        done = completed(["bash", "-n"], input=script)
        assert done.returncode == 0, (script, done.stderr)
