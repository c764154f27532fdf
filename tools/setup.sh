#!/usr/bin/env bash
# setup.sh GROUP...
# Makes .venv and installs into it the Python packages of the named groups of pyproject.toml. What is there already costs
# nothing: a stamp per group holds the list that was installed last.
#   PYTHON=python3.12   the interpreter to start from
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
stamps=$venv/stamps
python=${PYTHON:-python3}
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "onehop: $*"; }

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

# A virtual environment holds absolute paths: after its folder moved, or its Python went, it is made again.
make_venv() {
  local here
  here="$PWD $("$python" -c 'import sys; print(sys.executable, sys.version_info[:2])')"
  if [ -f $stamps/venv ] && [ "$(cat $stamps/venv)" = "$here" ] && $venv/bin/python -c '' 2>/dev/null; then
    return
  fi
  local version
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -c 'import venv, ensurepip' 2>/dev/null ||
    tools/system_package.sh "python$version-venv" "Python's venv module is missing."
  say "making $venv with $("$python" --version)"
  "$python" -m venv --clear $venv
  mkdir -p $stamps
  printf '%s' "$here" >$stamps/venv
}

# Headers are needed once, for the extension; Debian's python3 has them in a package of their own.
need_headers() {
  local include version
  include=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ -f "$include/Python.h" ] && return
  version=$($venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  tools/system_package.sh "libpython$version-dev" "Python.h is missing."
}

# The sources are imported where they lie, so that an edit needs no installation; `onehop` starts from them.
link_sources() {
  local site
  site=$($venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/python" >"$site/onehop.pth"
  printf '#!%s\nfrom onehop.cli import main\n\nraise SystemExit(main())\n' "$PWD/$venv/bin/python" >$venv/bin/onehop
  chmod +x $venv/bin/onehop
}

# install GROUPS NAME: the packages of the groups, if the list is not the one of the stamp.
install() {
  local wanted
  # shellcheck disable=SC2086  # the groups are words
  wanted=$($venv/bin/python tools/requirements.py $1)
  [ "$(cat "$stamps/$2" 2>/dev/null)" = "$wanted" ] && return
  say "installing Python packages: $(echo "$wanted" | sed 's/[<>=!~].*//' | paste -sd ' ')"
  # shellcheck disable=SC2086
  $venv/bin/pip install --quiet $wanted || return
  printf '%s' "$wanted" >"$stamps/$2"
}

# The same for what onehop works without: where it cannot be had, say what is missing then, and go on.
install_optional() {
  [ -f "$stamps/$1.left_out" ] && return
  install "$1" "$1" && return
  say "warning: could not install the packages of '$1' ($2). Everything else works; try again with \`make clean setup\`."
  touch "$stamps/$1.left_out"
}

check_python
make_venv
for group in "$@"; do
  case $group in
    base)
      install "build-system build project plot" base
      need_headers
      link_sources
      ;;
    mpi) install_optional mpi "an MPI to compare with" ;;
    hwloc) install_optional hwloc "the topology in onehop doctor" ;;
    *) install "$group" "$group" ;;
  esac
done
