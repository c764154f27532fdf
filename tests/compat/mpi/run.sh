#!/bin/sh
# Compiles a program that is linked with MPI and with a drop-in interface, and runs it as two ranks:
#   run.sh SOURCE FOLDER_OF_HEADERS LIBRARY
# Prints the reason and exits with 77 if there is no mpicc of Open MPI in this repository's environment or in PATH.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
PATH="$root/.venv/bin:$PATH"
if ! mpicc --showme:version >/dev/null 2>&1; then
  echo "skipped: no mpicc of Open MPI found (looked in .venv and PATH)"
  exit 77
fi
program=$(mktemp "${TMPDIR:-/tmp}/compat.XXXXXX") || exit 1
trap 'rm -f "$program"' EXIT
mpicc -std=gnu11 -Wall -Wextra -O1 "$1" "-I$2" "$3" "-Wl,-rpath,$(dirname "$3")" -o "$program" || exit 1
"$root/tests/mpi/run.sh" open_mpi 2 "$program"
