"""The C interface and the Fortran module, as programs use them: installed, compiled, and started in several ways."""

import re
import shutil
from pathlib import Path

import pytest

from onehop.error import BadInput
from onehop.launch.mpi import find_mpi_launcher, mpi_command
from ranks import Ranks, completed

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
#: name: sources, and whether it needs MPI
PROGRAMS = {
    "c": ["tests/c/test_onehop.c"],
    "c_mpi": ["tests/c/test_onehop.c"],
    "fortran": ["tests/c/test_onehop.f90"],
    "fortran_mpi": ["tests/c/test_onehop.f90"],
    "example_c": ["examples/halo.c"],
    "example_fortran": ["examples/halo.f90"],
}


def tool(*names: str) -> str:
    """Return the first of these programs that is there, in the environment or the system."""
    for name in names:
        own = ROOT / ".venv/bin" / name
        if found := str(own) if own.exists() else shutil.which(name):
            return found
    pytest.skip(f"there is no {' and no '.join(names)}")


def compiled(line: list[str], folder: Path) -> None:
    done = completed(line, cwd=folder)
    assert done.returncode == 0, f"{' '.join(line)}\n{done.stderr}"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The headers, the module and the library, where another project finds them."""
    if not (BUILD / "libonehop_c.so").exists() or not (BUILD / "libonehop_quantum.a").exists():
        pytest.skip("the C++ library is not built; `make build` builds it")
    prefix = tmp_path_factory.mktemp("installed")
    compiled([tool("cmake"), "--install", str(BUILD), "--component", "cpp", "--prefix", str(prefix)], ROOT)
    return prefix


@pytest.fixture(scope="module")
def module(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled Fortran module, without a warning of the compiler."""
    folder = tmp_path_factory.mktemp("module")
    source = installed / "include/onehop.f90"
    compiled([tool("gfortran"), "-std=f2018", *WARNINGS, "-c", str(source)], folder)
    return folder


def build(name: str, installed: Path, folder: Path, request: pytest.FixtureRequest) -> Path:
    """Compile a program of PROGRAMS."""
    (source,) = PROGRAMS[name]
    flags = [
        f"-L{next(installed.glob('lib*'))}",
        "-lonehop_c",
        "-lm",
        f"-Wl,-rpath,{next(installed.glob('lib*'))}",
    ]
    target = ["-o", name]
    mpi = "-DUSE_MPI" if name.endswith("mpi") else "-UUSE_MPI"
    if source.endswith(".c"):
        compiler = [
            tool("mpicc") if mpi == "-DUSE_MPI" else tool("cc", "gcc"),
            "-std=c99",
            "-Wpedantic",
            *WARNINGS,
        ]
        compiled([*compiler, mpi, f"-I{installed}/include", str(ROOT / source), *target, *flags], folder)
        return folder / name
    made = request.getfixturevalue("module")
    line = [
        tool("gfortran"),
        "-cpp",
        mpi,
        f"-I{made}",
        str(ROOT / source),
        str(made / "onehop.o"),
        *target,
        *flags,
    ]
    if mpi == "-DUSE_MPI":
        shown = completed([tool("mpicc"), "--showme"]).stdout.split()
        compiled([tool("mpicc"), "-c", str(ROOT / "tests/c/mpi_number.c")], folder)
        line += ["mpi_number.o", *(word for word in shown if word.startswith(("-l", "-L", "-Wl")))]
    compiled(line, folder)
    return folder / name


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, installed: Path, ranks: Ranks, request: pytest.FixtureRequest) -> None:
    """On 1, 2 and 4 ranks: under `onehop launch`, and those with a communicator under mpiexec; the examples on 2."""
    program = str(build(name, installed, ranks.folder, request))
    is_example = name.startswith("example")
    for number in (2,) if is_example else (1, 2, 4):
        for way in (
            ("launch", "mpiexec") if is_example else ("mpiexec",) if name.endswith("mpi") else ("launch",)
        ):
            if way == "launch":
                done = ranks.onehop("launch", "-n", number, "--prefix", "raw", program)
            else:
                try:
                    line, environment = mpi_command(find_mpi_launcher(), number, [program])
                except BadInput as error:
                    pytest.skip(str(error))
                done = ranks.run(line, env={**environment, **ranks.environment})
            assert done.returncode == 0, done.stderr
            wanted = {f"rank {rank} of {number} is right" for rank in range(number)}
            if is_example:
                wanted = {
                    f"rank {one} sends 65536 bytes per step and has rank {1 - one} below it" for one in (0, 1)
                }
            assert {line.strip() for line in done.stdout.splitlines()} == wanted


def test_functions_agree() -> None:
    """The Fortran module has every function of the header, and the library exports no other one."""
    header = (ROOT / "include/onehop.h").read_text()
    functions = set(re.findall(r"^ONEHOP_API .*?(onehop_\w+)\(", header, re.M))
    assert len(functions) > 50
    module = (BUILD / "onehop.f90").read_text() if (BUILD / "onehop.f90").exists() else ""
    if not module:
        pytest.skip("the C++ library is not built; `make build` builds it")
    public = set(re.findall(r"\bonehop_\w+", "\n".join(re.findall(r"^  public :: (.*)$", module, re.M))))
    helpers = {
        "onehop_interface_version",
        "onehop_check_length",
        "onehop_group_from_mpi_handle",
        "onehop_group_from_mpi_fint",
    }
    assert public == functions - helpers | {"onehop_group_from_mpi"}
    shown = completed([tool("nm"), "-D", "--defined-only", str(BUILD / "libonehop_c.so")]).stdout
    assert functions == set(re.findall(r" T (\w+)", shown))
    for name, number in re.findall(r"^  (ONEHOP_\w+) = (\d+)", header, re.M):
        if found := re.search(rf"\b{name} = (\d+)", module):
            assert found[1] == number, name
