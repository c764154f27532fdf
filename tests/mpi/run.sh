#!/bin/sh
# Runs a test program under an MPI launcher:  run.sh open_mpi|mpich|standard RANKS PROGRAM [ARGS...]
# "standard" is MPICH with its library for MPI's standard binary interface.
# Ends with 77 and the reason if there is no launcher of that MPI. Looked for: the environments of this repository, PATH.
#   run.sh --ends open_mpi|mpich RANKS PROGRAM HOW: one rank ends early; the launch must end by itself, in time, and not well.
#   run.sh --hosts open_mpi|mpich RANKS PROGRAM: the ranks pretend to be on two hosts, and MPI takes its way between hosts, where
#   messages above a few KiB wait for their receiver.
#   run.sh --survivors open_mpi RANKS PROGRAM: the last rank is killed, and MPI told to leave the others alone; all others must name it.
set -u

ends=no
hosts=no
survivors=no
case $1 in
  --survivors) survivors=yes && shift ;;
  --ends) ends=yes && shift ;;
  --hosts) hosts=yes && shift ;;
esac
kind=$1 ranks=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)

is_of_kind() {
  version=$("$1" --version 2>/dev/null) || return 1
  case "$kind:$version" in
    open_mpi:*"Open MPI"* | open_mpi:*"OpenRTE"* | mpich:*HYDRA* | mpich:*MPICH*) return 0 ;;
    standard:*HYDRA*) standard_library "$1" >/dev/null ;;
    *) return 1 ;;
  esac
}

standard_library() {
  for library in "$(dirname "$1")"/../lib/libmpi_abi.so.*; do
    [ -e "$library" ] && echo "$library" && return 0
  done
  return 1
}

find_launcher() {
  folders="$root/.venv/bin:$root/.mpich/bin:$PATH"
  IFS=:
  for folder in $folders; do
    for name in mpiexec mpiexec.mpich mpiexec.hydra mpiexec.openmpi; do
      if [ -x "$folder/$name" ] && is_of_kind "$folder/$name"; then
        unset IFS
        echo "$folder/$name"
        return 0
      fi
    done
  done
  unset IFS
  return 1
}

# Open MPI refuses to start as root unless told twice, as in a container.
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
if ! launcher=$(find_launcher); then
  echo "skipped: no mpiexec of $kind found (looked in .venv, .mpich and PATH; \`make mpich\` installs MPICH)"
  exit 77
fi
# More ranks than cores is what these tests want; the window code of UCX only complains about itself.
if [ "$kind" = open_mpi ]; then
  set -- --map-by :OVERSUBSCRIBE --bind-to none "$@"
  export OMPI_MCA_osc=^ucx
fi
# What MPI libraries do not give back at the end is not onehop's to answer for.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
[ "$kind" = standard ] && ONEHOP_MPI=$(standard_library "$launcher") && export ONEHOP_MPI
if [ $hosts = yes ]; then
  set -- "$@" two_hosts
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_eager_limit=4096
  export MPIR_CVAR_NOLOCAL=1
fi
if [ $survivors = yes ]; then
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self
  said=$(timeout -k 5 60 "$launcher" --with-ft ulfm -n "$ranks" "$@" survive 2>&1)
  count=$(printf '%s\n' "$said" | grep -c "survivor: as it should be")
  [ "$count" = $((ranks - 1)) ] && exit 0
  printf '%s\nexpected: %s survivors that name the rank that was killed; found: %s\n' "$said" $((ranks - 1)) "$count"
  exit 1
fi
limit=170
[ $ends = yes ] && limit=30
timeout -k 5 $limit "$launcher" -n "$ranks" "$@"
status=$?
if [ $ends = yes ]; then
  if [ $status = 0 ] || [ $status -ge 124 ] && [ $status -le 137 ]; then
    echo "expected: the launch fails by itself within $limit s; found: exit status $status"
    exit 1
  fi
  exit 0
fi
exit $status
