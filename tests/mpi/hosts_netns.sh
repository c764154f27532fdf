#!/bin/bash
# Runs a test program with Open MPI on two hosts that are namespaces of this machine: each has a network, a host name and process
# numbers of its own, and they are joined by one cable:  hosts_netns.sh RANKS PROGRAM [ARGS...]
# Ends with 77 and the reason where it cannot be: it needs root, `ip`, and Open MPI in the environment of this repository.
set -u
if [ "${1:-}" = --agent ]; then # stands in for ssh:  --agent PREFIX [-options] ADDRESS COMMAND...
  prefix=$2
  shift 2
  while [[ ${1:-} == -* ]]; do shift; done
  host=$prefix${1##*.}
  shift
  exec ip netns exec "$host" unshare --uts --pid --fork --mount-proc --kill-child bash -c "hostname $host; $*"
fi

ranks=$1
shift
root=$(cd "$(dirname "$0")/../.." && pwd)
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can make network and PID namespaces"
command -v ip >/dev/null || skip "there is no \`ip\` (iproute2)"
[ -x "$root/.venv/bin/mpiexec" ] || skip "there is no .venv/bin/mpiexec"

prefix=onehop$$h
end() {
  for number in 1 2; do ip netns del "$prefix$number" 2>/dev/null; done
}
trap end EXIT
for number in 1 2; do
  ip netns add "$prefix$number" 2>/dev/null || skip "network namespaces cannot be made here"
  ip -n "$prefix$number" link set lo up
done
ip link add e0 netns "${prefix}1" type veth peer name e0 netns "${prefix}2" 2>/dev/null || skip "there are no veth links here"
for number in 1 2; do
  ip -n "$prefix$number" addr add "10.77.0.$number/24" dev e0
  ip -n "$prefix$number" link set e0 up
done

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# MPI keeps memory of its own until the end; leaks of onehop's are looked for in the other tests.
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,sm OMPI_MCA_btl_tcp_eager_limit=4096
each=$(((ranks + 1) / 2))
timeout -k 5 150 "$0" --agent "$prefix" 10.77.0.1 "$root/.venv/bin/mpiexec" \
  --prtemca plm_ssh_agent "'$(realpath "$0") --agent $prefix'" --host "10.77.0.1:$each,10.77.0.2:$each" \
  --map-by slot:OVERSUBSCRIBE --bind-to none -x ASAN_OPTIONS -n "$ranks" "$@"
