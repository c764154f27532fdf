#!/usr/bin/env bash
# setup.sh GROUP...
# Makes .venv and installs into it the Python packages of the named groups of pyproject.toml, and by apt what has no other
# source: Python's venv module and headers where Debian left them out, and GoogleTest for the group `gtest`. What is there
# already costs nothing: a stamp per group holds the list that was installed last.
#   PYTHON=python3.12   the interpreter to start from
#   TORCH='torch==2.13.0'   what pip is told for the group `torch`, options included
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamps=$venv/stamps
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "onehop: $*"; }

# A virtual environment holds absolute paths: after its folder moved, or its Python went or is another one than asked for,
# it is made again.
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

# Everything that apt has to bring, in one go.
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
  if [ ${#packages[@]} -gt 0 ]; then tools/system_packages.sh "${packages[@]}"; fi
}

make_venv() {
  venv_is_good && return
  say "making $venv with $("$python" --version)"
  "$python" -m venv --clear $venv
  mkdir -p $stamps
  printf '%s\n%s\n' "$PWD" "${PYTHON:-python3}" >$stamps/venv
}

# The sources are imported where they lie, so that an edit needs no installation; `onehop` starts from them.
link_sources() {
  local site
  site=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" >"$site/onehop.pth"
  printf '#!%s\nfrom onehop.cli import main\n\nraise SystemExit(main())\n' "$PWD/$venv/bin/python" >$venv/bin/onehop
  chmod +x $venv/bin/onehop
}

# packages_of GROUP: one a line
packages_of() {
  case $1 in
    base) $venv/bin/python tools/requirements.py build-system project build plot ;;
    *) $venv/bin/python tools/requirements.py "$1" ;;
  esac
}

pip_install() {
  say "installing Python packages: $(echo "$*" | sed 's/[<>=!~,][^ ]*//g')"
  $venv/bin/pip install --quiet --quiet "$@"
}

# install GROUP: its packages, if the list is not the one of the stamp.
install() {
  local wanted packages
  wanted=$(packages_of "$1")
  [ "$(cat "$stamps/$1" 2>/dev/null)" = "$wanted" ] && return
  mapfile -t packages <<<"$wanted"
  pip_install "${packages[@]}"
  printf '%s' "$wanted" >"$stamps/$1"
}

# install_optional GROUP WHAT_FOR: the same for what onehop works without. What cannot be had is named and left out.
install_optional() {
  local wanted packages package
  wanted=$(packages_of "$1")
  [ "$(cat "$stamps/$1" 2>/dev/null)" = "$wanted" ] && return
  mapfile -t packages <<<"$wanted"
  if ! pip_install "${packages[@]}"; then
    for package in "${packages[@]}"; do
      pip_install "$package" || say "warning: no $package, so without $2. Everything else works. For another try: rm .venv/stamps/$1, then make again"
    done
  fi
  printf '%s' "$wanted" >"$stamps/$1"
}

# install_reference_simulators: other circuit simulators, in their own environment beside .venv. A peer without a wheel for this
# Python is named and left out; none is built from source.
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
      "${pip[@]}" "$package" || say "warning: no $package, so \`onehop bench circuits\` goes without it. For another try: rm -r $simulators, then make reference-simulators again"
    done
  fi
  printf '%s' "$PWD $wanted" >$simulators/stamp
}

# Not a group of pyproject.toml, and never installed unasked: it is large. A torch that is there already stays, unless
# TORCH asks for another.
install_torch() {
  local wanted=${TORCH:-torch==2.13.0} words found
  if [ -z "${TORCH:-}" ] && found=$($venv/bin/python -c 'import torch; print(torch.__version__)' 2>/dev/null); then
    say "torch $found is there; another one: make torch TORCH='torch==...'"
    return
  fi
  say "installing $wanted; a build for the processor alone is about 200 MB to fetch, one with CUDA several GB."
  say "Which one pip finds depends on its settings; TORCH may hold options of pip: make torch TORCH='--index-url ... torch'"
  read -ra words <<<"$wanted"
  $venv/bin/pip install --quiet "${words[@]}"
  $venv/bin/python -c 'import torch.distributed as dist; assert dist.is_available()' || {
    echo "onehop: this torch has no torch.distributed, which onehop.torch needs: $wanted" >&2
    exit 1
  }
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
    gtest) ;;
    torch) install_torch ;;
    mpi) install_optional mpi "an MPI to compare with" ;;
    hwloc) install_optional hwloc "the topology in onehop doctor" ;;
    quantum) install_optional quantum "circuits from OpenQASM files and the Qiskit backend" ;;
    reference-simulators) install_reference_simulators ;;
    *) install "$group" ;;
  esac
done
