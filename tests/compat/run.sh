#!/bin/sh
# Runs a program as several ranks of this machine, as torchrun would:  run.sh RANKS PROGRAM [ARGS...]
# Ends with the status of the first rank, in the order of ranks, that failed; with 3 only where no rank failed otherwise.
set -u
ranks=$1
shift
export WORLD_SIZE="$ranks" LOCAL_WORLD_SIZE="$ranks" MASTER_ADDR=127.0.0.1 MASTER_PORT=1
export TORCHELASTIC_RUN_ID="compat.$$.$(date +%s%N)"
unset ONEHOP_CONTROL OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_ID
pids=
rank=0
while [ $rank -lt "$ranks" ]; do
  RANK=$rank LOCAL_RANK=$rank timeout -k 5 250 "$@" &
  pids="$pids $!"
  rank=$((rank + 1))
done
result=0
for pid in $pids; do
  wait "$pid"
  status=$?
  if [ $status != 0 ] && { [ $result = 0 ] || [ $result = 3 ]; }; then result=$status; fi
done
exit $result
