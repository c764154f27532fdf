"""The C++ library as other projects use it: find_package, pkg-config, and add_subdirectory."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from onehop.cli import main
from ranks import completed

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/release"
EXAMPLE = ROOT / "examples/halo.cc"
VERSION = re.search(r"project\(onehop VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]  # type: ignore[index]
CONSUMER = f"""
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(onehop {VERSION.rpartition(".")[0]} REQUIRED)
add_executable(halo {EXAMPLE})
target_link_libraries(halo PRIVATE onehop::onehop onehop::onehop_quantum onehop::onehop_lattice)
"""
CONTAINER = f"""
cmake_minimum_required(VERSION 3.25)
project(container LANGUAGES CXX)
add_subdirectory({ROOT} onehop)
add_executable(halo {EXAMPLE})
target_link_libraries(halo PRIVATE onehop::onehop)
if(NOT TARGET onehop::onehop_quantum OR NOT TARGET onehop::onehop_lattice)
  message(FATAL_ERROR "the simulations are missing")
endif()
if(TARGET _core OR TARGET onehop_tests)
  message(FATAL_ERROR "the library alone was wanted")
endif()
"""


def tool(name: str) -> str:
    """Return the path of a program of the environment, or else of the system."""
    own = ROOT / ".venv/bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def run(*line: object, folder: Path) -> str:
    done = completed([str(one) for one in line], cwd=folder)
    assert done.returncode == 0, f"{' '.join(map(str, line))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def compiler() -> str:
    cache = (BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]  # type: ignore[index]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An install tree that has been moved since it was made."""
    if not all((BUILD / f"libonehop{part}.a").exists() for part in ("", "_machine", "_lattice", "_quantum")):
        pytest.skip("the C++ library is not built; `make build` builds it")
    folder = tmp_path_factory.mktemp("installed")
    prefix = folder / "first"
    run(tool("cmake"), "--install", BUILD, "--component", "cpp", "--prefix", prefix, folder=folder)
    return prefix.rename(folder / "moved")


def test_find_package(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER)
    setting = (f"-DCMAKE_PREFIX_PATH={installed}", f"-DCMAKE_CXX_COMPILER={compiler()}")
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", *setting, folder=tmp_path)
    run(tool("cmake"), "--build", tmp_path / "build", folder=tmp_path)
    assert "rank 0 sends" in run(tmp_path / "build/halo", folder=tmp_path)


def test_pkg_config(installed: Path, tmp_path: Path) -> None:
    (found,) = installed.rglob("onehop.pc")
    asked = ["env", f"PKG_CONFIG_PATH={found.parent}", tool("pkg-config")]
    assert run(*asked, "--modversion", "onehop", folder=tmp_path).strip() == VERSION
    flags = run(*asked, "--cflags", "--libs", "onehop", folder=tmp_path).split()
    assert any(
        Path(flag[2:]).resolve() == (installed / "include").resolve() for flag in flags if flag[:2] == "-I"
    )
    run(*compiler().split(), EXAMPLE, "-o", tmp_path / "halo", *flags, folder=tmp_path)
    assert "rank 0 sends" in run(tmp_path / "halo", folder=tmp_path)


def test_mpi_program(installed: Path, tmp_path: Path) -> None:
    """The project on the page about MPI programs configures and builds, and its program prints what the page says."""
    page = (ROOT / "docs/tutorials/mpi_program.md").read_text()
    (project,) = re.findall(r"```cmake\n(.*?)```", page, re.S)
    (output,) = re.findall(r"```text\n(2 x 2 ranks.*?)```", page, re.S)
    mpicxx, mpiexec = tool("mpicxx"), tool("mpiexec")
    (tmp_path / "CMakeLists.txt").write_text(project.replace("examples/", f"{ROOT}/examples/"))
    setting = (
        f"-DCMAKE_PREFIX_PATH={installed}",
        f"-DCMAKE_CXX_COMPILER={compiler()}",
        f"-DMPI_CXX_COMPILER={mpicxx}",
    )
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", *setting, folder=tmp_path)
    run(tool("cmake"), "--build", tmp_path / "build", folder=tmp_path)
    root = ("env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    ranks = ("--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", 4)
    assert run(*root, mpiexec, *ranks, tmp_path / "build/mpi_stencil", folder=tmp_path) == output


def test_another_version_is_not_accepted(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        CONSUMER.replace("find_package(onehop 0", "find_package(onehop 7")
    )
    done = completed(
        [tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}"]
    )
    assert done.returncode != 0
    assert "onehop" in done.stderr


QMP = """
#include <qmp.h>
#include <stdio.h>
int main(int argc, char** argv) {
  QMP_thread_level_t level;
  QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, &level);
  int sum = QMP_get_node_number();
  QMP_sum_int(&sum);
  printf("%d\\n", sum);
  QMP_finalize_msg_passing();
  return 0;
}
"""
QMP_CONSUMER = """
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C)
find_package(QMP 2.5 REQUIRED)
add_executable(sums sums.c)
target_link_libraries(sums PRIVATE QMP::qmp)
"""


def test_qmp(installed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By qmp-config, by CMake, as MILC links it, and by `onehop compat qmp` in the checkout."""
    prefix = installed / "qmp"
    if not (prefix / "lib/libonehop_qmp.so").exists():
        pytest.skip("the drop-in interfaces are not built")
    (tmp_path / "sums.c").write_text(QMP)
    (tmp_path / "CMakeLists.txt").write_text(QMP_CONSUMER)
    assert main(["compat", "qmp", "--cflags", "--libs"]) == 0
    told = capfd.readouterr().out.split()
    asked = run(prefix / "bin/qmp-config", "--cflags", "--ldflags", "--libs", folder=tmp_path).split()
    milc = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lqmp", f"-Wl,-rpath,{prefix}/lib"]
    programs = []
    for number, flags in enumerate((told, asked, milc)):
        programs.append(tmp_path / f"sums{number}")
        run(tool("cc"), "sums.c", "-o", programs[-1], *flags, folder=tmp_path)
    run(
        tool("cmake"),
        "-S",
        tmp_path,
        "-B",
        tmp_path / "build",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        folder=tmp_path,
    )
    run(tool("cmake"), "--build", tmp_path / "build", folder=tmp_path)
    for program in (*programs, tmp_path / "build/sums"):
        done = completed([sys.executable, "-m", "onehop", "launch", "-n", "3", "--prefix", "raw", program])
        assert sorted(done.stdout.split()) == ["3"] * 3, done.stderr


@pytest.mark.alone  # it compiles the library
@pytest.mark.timeout(900)
def test_subproject(tmp_path: Path) -> None:
    """The program and the library that it needs are built; the simulations are configured only."""
    if not (ROOT / ".venv/bin/python").exists():
        pytest.skip("nlohmann/json comes with the environment of `make`")
    (tmp_path / "CMakeLists.txt").write_text(CONTAINER)
    setting = [
        f"-DPython_EXECUTABLE={ROOT / '.venv/bin/python'}",
        "-DCMAKE_BUILD_TYPE=Debug",
    ]  # compiles faster
    if (BUILD / "CMakeCache.txt").exists():
        setting.append(f"-DCMAKE_CXX_COMPILER={compiler()}")
    run(tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", *setting, folder=tmp_path)
    run(tool("cmake"), "--build", tmp_path / "build", "--target", "halo", "--parallel", 2, folder=tmp_path)
    assert "rank 0 sends" in run(tmp_path / "build/halo", folder=tmp_path)
    run(tool("cmake"), "--install", tmp_path / "build", "--prefix", tmp_path / "prefix", folder=tmp_path)
    assert not (tmp_path / "prefix/include").exists()


def test_parts(tmp_path: Path) -> None:
    """The library alone is configured without Python and without nlohmann/json, and wrong parts are refused."""
    header = (
        ROOT
        / ".venv/lib"
        / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        / "site-packages/nlohmann_json"
    )
    if not header.exists():
        pytest.skip("nlohmann/json comes with the environment of `make`")
    words = [tool("cmake"), "-S", str(ROOT), "-B", str(tmp_path), "-DPython_EXECUTABLE=/bin/false"]
    words += [
        f"-DFETCHCONTENT_SOURCE_DIR_NLOHMANN_JSON={header}",
        "-DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON",
    ]
    preset = [*words, "--preset", "cpp"]
    done = completed([*preset, "-DONEHOP_PARTS=core;collectives"], cwd=ROOT, status=0)
    assert "Libs: -L${libdir} -lonehop_collectives -lonehop -pthread" in (tmp_path / "onehop.pc").read_text()
    assert "/quantum$" in (tmp_path / "cmake_install.cmake").read_text()  # headers that are left out
    alone = [word for word in preset if "FETCHCONTENT" not in word and word != str(tmp_path)]
    alone.insert(alone.index("-B") + 1, str(tmp_path / "alone"))
    offline = {**os.environ, "https_proxy": "http://127.0.0.1:9"}
    done = completed(alone, cwd=ROOT, env=offline, status=1)
    assert "download failed: " in done.stderr
    assert "Run `pip install nlohmann-json`" in " ".join(done.stderr.split())
    assert len(done.stderr.splitlines()) < 12
    for line, told in (
        ([*preset, "-DONEHOP_PARTS=quantum"], 'found "quantum"'),
        ([*preset, "-DONEHOP_PARTS=core;qcd"], 'found "core;qcd"'),
        ([*words, "-DONEHOP_PARTS=core", "-DONEHOP_PYTHON=ON"], "cmake --preset cpp"),
    ):
        done = completed(line, cwd=ROOT)
        assert done.returncode != 0
        assert told in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize("name", ["", "g++", "x86_64-linux-gnu-g++ -pthread"])  # as scikit-build-core sets it
def test_a_machine_without_compiler(tmp_path: Path, name: str) -> None:
    line = [tool("cmake"), "-S", str(ROOT), "-B", str(tmp_path)]
    done = completed(line, env={"PATH": str(tmp_path), "CXX": name})
    assert done.returncode != 0
    assert "expected a C++ compiler, found none; install g++ 12" in " ".join(done.stderr.split())
