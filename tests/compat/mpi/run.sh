#!/bin/sh
# Compiles a program that is linked with MPI and with a door, and runs it as two ranks:  run.sh SOURCE FOLDER_OF_HEADERS LIBRARY
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
mpicc -std=gnu11 -Wall -Wextra -O1 "-I$2" "$1" "$3" "-Wl,-rpath,$(dirname "$3")" -o "$program" || exit 1
"$root/tests/mpi/run.sh" open_mpi 2 "$program"
