#!/usr/bin/env bash
# setup.sh GROUP...
# Makes .venv and installs the Python packages of the named groups of pyproject.toml into it. Installs by apt what has no other
# source: Python's venv module and headers if Debian left them out, GoogleTest for the group `gtest`, bubblewrap and gfortran for the
# groups of these names. A stamp per group stores the list that was installed last, so that nothing is installed twice.
#   PYTHON=python3.12   the interpreter to start from
#   TORCH='torch==2.13.0'   arguments of pip for the groups `torch` and `torch-cpu`
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamps=$venv/stamps
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "onehop: $*"; }

# A virtual environment contains absolute paths. It is made again if its folder has moved, or if its Python is gone or is not
# the requested one.
venv_is_good() {
  local here asked
  { read -r here && read -r asked; } 2>/dev/null <$stamps/venv || return
  [ "$here" = "$PWD" ] && [ "$asked" = "${PYTHON:-$asked}" ] && $venv/bin/python -c '' 2>/dev/null
}

check_python() {
  command -v "$python" >/dev/null || {
    echo "onehop: needs Python 3.10 or newer, found no '$python'. Run: sudo apt-get install python3" >&2
    exit 1
  }
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "onehop: needs Python 3.10 or newer, found $("$python" --version). Name another: make PYTHON=python3.12" >&2
    exit 1
  }
}

# Installs all missing system packages in one call of apt.
install_system_packages() {
  local version has_ensurepip headers
  local packages=()
  read -r version has_ensurepip headers < <("$python" -c 'import sys, sysconfig, importlib.util as u
print("%d.%d" % sys.version_info[:2], int(u.find_spec("ensurepip") is not None), sysconfig.get_path("include"))')
  venv_is_good || [ "$has_ensurepip" = 1 ] || packages+=("python$version-venv")
  [ -f "$headers/Python.h" ] || packages+=("libpython$version-dev")
  if [[ " $1 " == *" gtest "* ]]; then
    echo '#include <gtest/gtest.h>' | $compiler -E -x c++ - >/dev/null 2>&1 || packages+=(libgtest-dev)
  fi
  if [[ " $1 " == *" bubblewrap "* ]]; then command -v bwrap >/dev/null || packages+=(bubblewrap); fi
  if [ ${#packages[@]} -gt 0 ]; then tools/system_packages.sh "${packages[@]}"; fi
  if [[ " $1 " == *" gfortran "* ]] && ! command -v gfortran >/dev/null; then
    tools/system_packages.sh gfortran || say "without gfortran the tests of the Fortran module are skipped"
  fi
}

make_venv() {
  venv_is_good && return
  say "making $venv with $("$python" --version)"
  "$python" -m venv --clear $venv
  mkdir -p $stamps
  printf '%s\n%s\n' "$PWD" "${PYTHON:-python3}" >$stamps/venv
}

# Installs the sources in place, so that an edit needs no installation: Python imports them, pip knows them, PennyLane and torch find
# their entry points, and the command `onehop` runs them. `pip install --editable` would build the extension once more.
link_sources() {
  local site facts
  site=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  facts="$PWD $(cksum <pyproject.toml) $(cksum <CMakeLists.txt)"
  if [ "$(cat $stamps/metadata 2>/dev/null)" != "$facts" ]; then
    rm -rf "$site"/onehop-*.dist-info
    $venv/bin/python - "$site" >/dev/null <<'END'
import json, pathlib, sys
from scikit_build_core.build import prepare_metadata_for_build_wheel

site = pathlib.Path(sys.argv[1])
about = site / prepare_metadata_for_build_wheel(str(site))
where = {"dir_info": {"editable": True}, "url": pathlib.Path.cwd().as_uri()}
about.joinpath("direct_url.json").write_text(json.dumps(where))
about.joinpath("INSTALLER").write_text("make\n")
files = [*(f"{about.name}/{path.name}" for path in about.iterdir()), f"{about.name}/RECORD", "onehop.pth"]
about.joinpath("RECORD").write_text("".join(f"{file},,\n" for file in files))
END
    printf '%s' "$facts" >$stamps/metadata
  fi
  printf '%s\n' "$PWD/python" "$PWD/bench" >"$site/onehop.pth"
  printf '#!%s\nfrom onehop.cli import main\n\nraise SystemExit(main())\n' "$PWD/$venv/bin/python" >$venv/bin/onehop
  chmod +x $venv/bin/onehop
}

# packages_of GROUP: prints the packages of a group, one per line.
packages_of() {
  case $1 in
    base) $venv/bin/python tools/requirements.py build-system project build plot ;;
    *) $venv/bin/python tools/requirements.py "$1" ;;
  esac
}

pip_install() {
  say "installing Python packages: $(printf '%s\n' "$@" | sed 's/[<>=!~;, ].*//' | tr '\n' ' ')"
  $venv/bin/pip install --quiet --quiet "$@"
}

# install GROUP: installs the packages of a group if the list differs from its stamp.
install() {
  local wanted packages
  wanted=$(packages_of "$1")
  [ "$(cat "$stamps/$1" 2>/dev/null)" = "$wanted" ] && return
  mapfile -t packages <<<"$wanted"
  pip_install "${packages[@]}"
  printf '%s' "$wanted" >"$stamps/$1"
}

# install_optional GROUP PURPOSE: the same for a group that onehop can do without. Packages that cannot be installed are named
# and left out.
install_optional() {
  local wanted packages package
  wanted=$(packages_of "$1")
  [ "$(cat "$stamps/$1" 2>/dev/null)" = "$wanted" ] && return
  mapfile -t packages <<<"$wanted"
  if ! pip_install "${packages[@]}"; then
    for package in "${packages[@]}"; do
      pip_install "$package" || say "warning: could not install $package, which provides $2. Everything else works. To try again: rm .venv/stamps/$1, then make"
    done
  fi
  printf '%s' "$wanted" >"$stamps/$1"
}

# install_reference_simulators: installs other circuit simulators into their own environment beside .venv. A simulator without a
# wheel for this Python is named and left out; none is built from source.
install_reference_simulators() {
  local wanted packages package simulators=.reference-simulators
  wanted=$(packages_of reference-simulators)
  if [ "$(cat $simulators/stamp 2>/dev/null)" = "$PWD $wanted" ] && $simulators/bin/python -c '' 2>/dev/null; then return; fi
  mapfile -t packages <<<"$wanted"
  say "installing into $simulators: ${packages[*]}"
  "$python" -m venv --clear $simulators
  local pip=("$simulators/bin/pip" install --quiet --quiet --only-binary "${wanted//$'\n'/,}")
  if ! "${pip[@]}" "${packages[@]}"; then
    for package in "${packages[@]}"; do
      "${pip[@]}" "$package" || say "warning: could not install $package; \`onehop bench circuits\` works without it. To try again: rm -r $simulators, then make reference-simulators"
    done
  fi
  printf '%s' "$PWD $wanted" >$simulators/stamp
}

# Installs torch, which is no group of pyproject.toml and is installed only on request, because it is large. An installed torch
# is kept unless TORCH names another one.
install_torch() {
  local wanted=${TORCH:-torch==2.13.0} words found
  if [ -z "${TORCH:-}" ] && found=$($venv/bin/python -c 'import torch; print(torch.__version__)' 2>/dev/null); then
    say "torch $found is installed already; for another one: make setup-torch TORCH='torch==...'"
    return
  fi
  say "installing $wanted; a build for the CPU alone is a download of about 200 MB, one with CUDA of several GB."
  say "The settings of pip determine the build; TORCH may contain options of pip: make setup-torch TORCH='--index-url ... torch'"
  read -ra words <<<"$wanted"
  $venv/bin/pip install --quiet "${words[@]}"
  $venv/bin/python -c 'import torch.distributed as dist; assert dist.is_available()' || {
    echo "onehop: expected a torch with torch.distributed, which onehop.torch needs, found $wanted without it; name another in TORCH" >&2
    exit 1
  }
}

# Installs torch and what its tests need if pip would install a build for the processor; one with CUDA is a download of several GB.
install_torch_cpu() {
  local words
  read -ra words <<<"${TORCH:-torch==2.13.0}"
  if ! $venv/bin/python -c 'import torch' 2>/dev/null; then
    # The report names every package that would be installed; a build with CUDA brings packages of NVIDIA.
    if ! $venv/bin/pip install --quiet --quiet --dry-run --report - "${words[@]}" 2>/dev/null | $venv/bin/python -c '
import json, sys
sys.exit(any(part["metadata"]["name"].startswith("nvidia") for part in json.load(sys.stdin)["install"]))' 2>/dev/null; then
      say "warning: the settings of pip give no build of torch for the processor alone, so tests of onehop.torch are skipped"
      return
    fi
  fi
  install_torch
  install_optional examples "an example that trains"
  install_optional torch-tests "the kernels for GPUs in their interpreter"
}

python=${PYTHON:-python3}
if venv_is_good; then python=$venv/bin/python; fi
check_python
compiler=$(tools/find_compiler.sh)
install_system_packages "$*"
make_venv
for group in "$@"; do
  case $group in
    base)
      install base
      link_sources
      ;;
    gtest | bubblewrap | gfortran) ;;
    torch) install_torch ;;
    torch-cpu) install_torch_cpu ;;
    interfaces) install_optional interfaces "an interface to another library" ;;
    device) install_optional device "kernels for cards" ;;
    mpi) install_optional mpi "an MPI to compare with" ;;
    quantum) install_optional quantum "circuits from Qiskit, its backend, states in files" ;;
    reference-simulators) install_reference_simulators ;;
    *) install "$group" ;;
  esac
done
