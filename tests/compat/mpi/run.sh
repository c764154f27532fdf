#!/bin/sh
# Compiles a program that is linked with MPI, and with a door if one is given, and runs it as two ranks:
#   run.sh SOURCE [FOLDER_OF_HEADERS LIBRARY]
# Ends with 77 and the reason where Open MPI has no mpicc here. Looked for: the environment of this repository, PATH.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
PATH="$root/.venv/bin:$PATH"
if ! mpicc --showme:version >/dev/null 2>&1; then
  echo "skipped: no mpicc of Open MPI found (looked in .venv and PATH)"
  exit 77
fi
program=$(mktemp "${TMPDIR:-/tmp}/door.XXXXXX") || exit 1
trap 'rm -f "$program"' EXIT
source=$1
shift
if [ $# -gt 0 ]; then set -- "-I$1" "$2" "-Wl,-rpath,$(dirname "$2")"; fi
mpicc -std=gnu11 -Wall -Wextra -O1 "$source" "$@" -o "$program" || exit 1
"$root/tests/mpi/run.sh" open_mpi 2 "$program"
