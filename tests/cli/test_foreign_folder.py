"""Files in the current folder with the names of modules that onehop imports: no process of any command runs them."""

import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from onehop.launch.interpreter import find_program
from ranks import PYTHON_FOLDER, Ranks

NAMES = (
    "qiskit",
    "rich",
    "h5py",
    "numpy",
    "typer",
    "onehop_torch",
    "torch",
    "mpi4py",
    "matplotlib",
    "json",
    "typing",
    "re",
)
TRAP = """
import itertools
import os
with open(os.environ["ONEHOP_TRAP"], "a") as stream:
    print(__name__, os.getpid(), file=stream)
raise ImportError("imported from the current folder")
"""
CIRCUIT = "OPENQASM 3.0;\ninclude 'stdgates.inc';\nqubit[3] q;\nbit[3] c;\nh q[0];\ncx q[0], q[1];\nc = measure q;\n"
SPEAKS = "print('here', flush=True)"


@pytest.fixture
def trap(ranks: Ranks, tmp_path: Path) -> Path:
    """Such a folder; `marks` beside it has a line for every file that was imported."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(TRAP)
    (folder / "circuit.qasm").write_text(CIRCUIT)
    (folder / "own.py").write_text(SPEAKS)
    ranks.environment["ONEHOP_TRAP"] = str(tmp_path / "marks")
    return folder


def _marks(folder: Path) -> str:
    marks = folder.parent / "marks"
    return marks.read_text() if marks.exists() else ""


def _run(ranks: Ranks, folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return ranks.run(command, cwd=folder, timeout=110)


COMMANDS = {
    "a circuit": "run circuit.qasm --shots 10",
    "a circuit on ranks": "run circuit.qasm -n 2 --shots 10",
    "a plan": "plan circuit.qasm -n 2",
    "another command on ranks": "poisson -n 2 --local 8x8 --iterations 2",
    "lattice on ranks": "lattice info --extent 4 4 4 4 -n 2",
    "a module of onehop": "launch -n 2 -m onehop.doctor.selftest shared_memory",
    "doctor": "doctor",
    "tune": "tune --seconds 0.1 --dry-run",
}


# doctor reports what it cannot do in time; tune measures on all cores.
_MARKED = {"doctor": pytest.mark.alone, "tune": pytest.mark.alone}


@pytest.mark.parametrize("name", [pytest.param(name, marks=_MARKED.get(name, ())) for name in COMMANDS])
def test_commands_import_nothing_from_the_current_folder(ranks: Ranks, trap: Path, name: str) -> None:
    done = _run(ranks, trap, [*_command(), *COMMANDS[name].split()])
    assert _marks(trap) == ""
    assert done.returncode == 0, done.stderr


def _command() -> list[str]:
    """The command `onehop`, whose own folder is the one of programs."""
    found = shutil.which("onehop", path=sysconfig.get_path("scripts"))
    return [found] if found else [sys.executable, "-P", "-m", "onehop"]


@pytest.mark.parametrize("arguments", ["run circuit.qasm -n 2 --shots 10", "doctor --help"])
def test_python_m_onehop_imports_nothing_from_there_either(ranks: Ranks, trap: Path, arguments: str) -> None:
    for name in ("json", "re"):  # Python itself may import those before any line of onehop runs
        (trap / f"{name}.py").unlink()
    for python in ([sys.executable, "-m", "onehop"], [sys.executable, "-Wignore", "-monehop"]):
        done = _run(ranks, trap, [*python, *arguments.split()])
        assert _marks(trap) == ""
        assert done.returncode == 0, done.stderr


def test_worker_processes_of_a_program(ranks: Ranks, trap: Path) -> None:
    pytest.importorskip("qiskit")
    program = ranks.script(
        """
        from onehop.quantum import Circuit
        from onehop.quantum.run.executor import ProcessExecutor
        from onehop.quantum.run.task import Task
        executor = ProcessExecutor(2)
        print(executor.run([Task(Circuit(2, 2).x(0).measure([0, 1], [0, 1]), shots=3)])[0].values)
        executor.close()
        """
    )
    done = _run(ranks, trap, [sys.executable, program])
    assert _marks(trap) == ""
    assert (done.returncode, done.stdout) == (0, "[1]\n"), done.stderr


def test_programs_of_the_user_find_what_lies_beside_them(ranks: Ranks, trap: Path) -> None:
    """Python's ordinary behaviour: a script's folder, and with -m the current one."""
    (trap / "program.py").write_text("import own")
    for how in (["program.py"], ["-m", "program"]):
        done = _run(ranks, trap, [*_command(), "launch", "-n", "2", "--prefix", "rank0", *how])
        assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr


def test_python_m_onehop_in_the_folder_of_the_package(ranks: Ranks, tmp_path: Path) -> None:
    """Its children find the package where `python -m` found it."""
    (tmp_path / "circuit.qasm").write_text(CIRCUIT)
    del ranks.environment["PYTHONPATH"]
    command = [
        sys.executable,
        "-m",
        "onehop",
        "run",
        str(tmp_path / "circuit.qasm"),
        "-n",
        "2",
        "--shots",
        "10",
    ]
    done = _run(ranks, PYTHON_FOLDER, command)
    assert done.returncode == 0, done.stderr


def test_no_mpiexec_of_the_current_folder_is_run(ranks: Ranks, trap: Path) -> None:
    mpiexec = trap / ".mpich" / "bin" / "mpiexec"
    mpiexec.parent.mkdir(parents=True)
    mpiexec.write_text('#!/bin/sh\necho mpiexec >> "$ONEHOP_TRAP"\necho "HYDRA build details"\n')
    mpiexec.chmod(0o755)
    (trap / "pyproject.toml").write_text("")
    code = "from onehop.launch.mpi import find_mpi_launcher\nfind_mpi_launcher('mpich')"
    program = ranks.script(code)
    ranks.environment["PATH"] = os.fspath(trap.parent)
    _run(ranks, trap, [sys.executable, program])
    assert _marks(trap) == ""


def test_the_way_without_p_leaves_the_folder_out_too(
    ranks: Ranks, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python 3.10 is started with, run by this one."""
    from onehop.launch import interpreter

    monkeypatch.setattr(interpreter.sys, "version_info", (3, 10))
    commands = (
        interpreter.python_module("onehop", "run", "circuit.qasm", "--shots", "10"),
        interpreter.python_code("import sys, numpy; print(sys.argv)", "a"),
    )
    monkeypatch.undo()
    assert all("-P" not in command for command in commands)
    for command in commands:
        done = _run(ranks, trap, command)
        assert _marks(trap) == ""
        assert done.returncode == 0, done.stderr
    assert "'a'" in done.stdout


def test_pythons_are_started_in_one_way() -> None:
    """Sources that use sys.executable: the module that adds -P, and those that do not need it."""
    allowed = {
        "bench/onehop_bench/reference_simulators/__init__.py",  # runs a script, whose folder is that of the package
        "python/onehop/doctor/examination.py",  # a line for the user to type
        "bench/onehop_bench/hosts/keeper.py",  # -I
        "python/onehop/launch/interpreter.py",
        "python/onehop/launch/local.py",  # the user's own programs
        "python/onehop/launch/mpi.py",  # looks for an mpiexec beside it
        "python/onehop/hdf5.py",  # -I
    }
    root = PYTHON_FOLDER.parent
    named = {
        str(file.relative_to(root))
        for folder in ("python/onehop", "bench")
        for file in (root / folder).rglob("*.py")
        if "sys.executable" in file.read_text()
    }
    assert named <= allowed


# The programs that onehop starts by name.
PROGRAMS = ("nvidia-smi", "mpiexec", "mpirun", "ip", "tc", "nsenter", "unshare", "mount", "sh")


def test_no_program_of_the_current_folder_is_run(ranks: Ranks, trap: Path) -> None:
    """Entries of PATH that begin there do not count."""
    (trap / "bin").mkdir()
    for name, folder in itertools.product(PROGRAMS, (trap, trap / "bin")):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho {name} >> "$ONEHOP_TRAP"\necho "HYDRA build details"\n')
        program.chmod(0o755)
    ranks.environment["PATH"] = ".::bin:../foreign:./bin:/bin:/usr/bin:/usr/sbin"
    code = """
        from onehop.doctor.software import cuda_devices, mpi_launcher
        from onehop.error import Error
        from onehop_bench.hosts import emulated_hosts
        cuda_devices()
        mpi_launcher("mpich")
        try:
            with emulated_hosts(2):
                print("made")
        except Error as error:
            print(error)
    """
    done = _run(ranks, trap, [sys.executable, ranks.script(code)])
    assert _marks(trap) == ""
    assert done.returncode == 0, done.stderr


def test_programs_of_folders_that_path_names_are_found(
    trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trap / "nvidia-smi").write_text("#!/bin/sh\n")
    (trap / "nvidia-smi").chmod(0o755)
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PATH", f".:{tmp_path}:{trap}")
    assert find_program("nvidia-smi") == str(trap / "nvidia-smi")
    monkeypatch.setenv("PATH", f".:{tmp_path}")
    assert find_program("nvidia-smi") is None
