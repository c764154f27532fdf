#!/usr/bin/env bash
# Explores the model of the channel protocol with SPIN. One line per variant: those of the protocol as it is must be explored
# to the end without an error, those that are broken on purpose must show the error that is expected of them.
# Needs spin and a C compiler. `check.sh WORD` checks only the variants whose line contains WORD.
set -uo pipefail
cd "$(dirname "$0")"

only=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
compiler=$(command -v cc || command -v gcc || command -v clang) || compiler=
for tool in spin "$compiler"; do
  if ! command -v "$tool" >/dev/null; then
    echo "check.sh needs spin and a C compiler (Debian, Ubuntu: apt-get install spin gcc)" >&2
    exit 2
  fi
done

# explore OPTIONS MODEL FLAGS...: prints SPIN's verdict: "no error in N states", "deadlock", "assertion", "endless run", or
# what went wrong. Partial-order reduction is left out where a process may be killed, because SPIN's rules do not cover that well.
explore() {
  local build="$1 -w -DMEMLIM=3000" model=$2 search=()
  shift 2
  [[ $* == *-DDEATH* ]] && build+=" -DNOREDUCE"
  [[ $build == *-DNP* ]] && search=(-l)
  cp ./*.pml "$work"
  (
    cd "$work" || exit
    spin -a "$@" "$model.pml" >spin.log 2>&1 && "$compiler" $build -o pan pan.c 2>>spin.log || {
      echo "not built: $(tail -1 spin.log)"
      exit
    }
    timeout 100 ./pan ${search[@]+"${search[@]}"} -m1000000 >pan.log 2>&1
    if grep -q "^pan:1: invalid end state" pan.log; then
      echo deadlock
    elif grep -q "^pan:1: assertion violated" pan.log; then
      echo assertion
    elif grep -q "^pan:1: non-progress cycle" pan.log; then
      echo "endless run"
    elif grep -q "^pan:1:" pan.log || ! grep -q "errors: 0" pan.log; then
      echo "stopped: $(grep -m1 "^pan" pan.log)"
    elif grep -q "Search not completed\|max search depth too small" pan.log; then
      echo "not explored to the end"
    else
      echo "no error in $(awk '/states, stored/ {print $1}' pan.log) states"
    fi
  )
}

# check EXPECTED OPTIONS DESCRIPTION MODEL FLAGS...
check() {
  local expected=$1 options=$2 description=$3
  shift 3
  [[ $description == *"$only"* ]] || return 0
  local found
  found=$(explore "$options" "$@")
  if [[ $found == "$expected"* ]]; then
    passed=$((passed + 1))
    echo "ok      $description: $found$([ "$expected" = "no error" ] || echo ", as expected")"
  else
    failed=$((failed + 1))
    echo "FAILED  $description: expected $expected, found $found   ($*)"
  fi
}
holds() { check "no error" "-O1 -DSAFETY" "$@"; }
# The graph of states has no cycle.
ends() { check "no error" "-O1 -DNP" "$1, every run ends" "${@:2}"; }
# An error is found in few states: most of the time goes into compiling.
breaks() { check "$1" "-O0 -DSAFETY" "broken: $2" "${@:3}"; }

holds "channel, two slots of two chunks" channel
holds "channel, stores in any order that C++ allows" channel -DWEAK
holds "channel, one slot of three chunks" channel -DSLOTS=1 -DCHUNKS=3
holds "channel, four slots, every second release stored" channel -DSLOTS=4 -DCHUNKS=1 -DUSES=9 -DPERIOD=2
holds "channel, one end is killed at any moment" channel -DDEATH -DUSES=4
ends "channel, one end is killed at any moment" channel -DDEATH -DUSES=3
breaks deadlock "no membarrier before the second poll" channel -DNO_MEMBARRIER
breaks deadlock "sleep announced after the second poll" channel -DANNOUNCE_LATE
breaks deadlock "bell read after the second poll" channel -DBELL_LATE
breaks assertion "released before it is read" channel -DRELEASE_FIRST
breaks assertion "sender ignores what is released" channel -DIGNORE_RELEASED
breaks assertion "flag stored before the data" channel -DFLAG_FIRST
breaks assertion "flag stored without release order" channel -DWEAK -DFLAG_RELAXED
breaks assertion "data read before the flag" channel -DREAD_EARLY
breaks deadlock "released stored more rarely than there are slots" channel -DSLOTS=4 -DCHUNKS=1 -DUSES=9 -DPERIOD=5
breaks assertion "a dead peer's last message is not polled for" channel -DDEATH -DUSES=3 -DLOST_WITHOUT_POLLING

holds "one doorbell, two peers" waiting
holds "one doorbell, two threads asleep on it" waiting -DTWO_THREADS
holds "one doorbell, two peers, one is killed" waiting -DDEATH
breaks deadlock "only one of the conditions is checked" waiting -DCHECK_ONE
breaks deadlock "only one of two threads is woken" waiting -DTWO_THREADS -DWAKE_ONE

holds "exchange of three fragments through two slots" exchange
holds "exchange of three fragments through one slot" exchange -DSLOTS=1
holds "exchange in place" exchange -DIN_PLACE
holds "exchange in place through one slot" exchange -DIN_PLACE -DSLOTS=1
holds "exchange in place, every second release stored" exchange -DIN_PLACE -DSLOTS=4 -DPERIOD=2 -DBEFORE=1
holds "exchange, start() finds a free slot" exchange -DFRAGMENTS=1 -DRUNS=4 -DNEVER_WAITS
holds "exchange, one rank is killed" exchange -DDEATH -DFRAGMENTS=2 -DRUNS=1 -DSLOTS=1
ends "exchange, one rank is killed" exchange -DDEATH -DFRAGMENTS=2 -DRUNS=1 -DSLOTS=1
breaks deadlock "exchange without membarrier" exchange -DNO_MEMBARRIER
breaks deadlock "finish() sends everything before it unpacks" exchange -DSEND_ALL_FIRST
breaks deadlock "a free slot does not end the wait" exchange -DWAIT_FOR_ARRIVAL_ONLY
breaks assertion "in place, unpacked whatever is packed" exchange -DIN_PLACE -DSLOTS=1 -DUNPACK_EAGERLY
breaks deadlock "in place, unpacked before it is packed" exchange -DIN_PLACE -DSLOTS=1 -DUNPACK_FIRST
breaks assertion "one slot, and start() may not wait" exchange -DFRAGMENTS=1 -DSLOTS=1 -DNEVER_WAITS

holds "messages unpacked in the order of the round" order
breaks assertion "order, unpacked as they arrive" order -DAS_THEY_ARRIVE
breaks deadlock "order, messages list their parts in another one" order -DOTHER_ORDER

holds "in place, directly" direct
holds "in place, directly, stores leave in any order" direct -DWEAK
holds "in place, directly, one rank is killed" direct -DDEATH
breaks assertion "directly, without ready" direct -DNO_READY
breaks assertion "directly, without done" direct -DNO_DONE
breaks assertion "directly, done before it is" direct -DDONE_FIRST
breaks assertion "directly, ready is no release" direct -DWEAK -DPLAIN_READY
breaks assertion "directly, done is no release" direct -DWEAK -DPLAIN_DONE
breaks assertion "directly, one slot for ready and done" direct -DONE_SLOT
breaks deadlock "directly, without membarrier" direct -DNO_MEMBARRIER

holds "direct puts" put
holds "direct puts, stores leave in any order" put -DWEAK -DRUNS=2
holds "direct puts through one slot" put -DSLOTS=1
holds "direct puts, one rank is killed" put -DDEATH
breaks assertion "put, the receiver is not asked" put -DNO_EXPOSE
breaks assertion "put, an old exposure counts" put -DOLD_EPOCH
breaks assertion "put, the receiver takes the slot" put -DNO_MARK
breaks assertion "put, exposing is no release" put -DWEAK -DPLAIN_EXPOSE
breaks assertion "put, the flag is no release" put -DWEAK -DPLAIN_FLAG
breaks assertion "put, the mark comes behind the flag" put -DMARK_LATE
breaks deadlock "put, without membarrier" put -DNO_MEMBARRIER

holds "meetings of cards, numbers wrap" device
holds "meetings of cards, stores leave in any order" device -DWEAK -DMEETINGS=5
holds "meetings of three cards" device -DRANKS=3 -DMEETINGS=3
holds "meetings of three cards, one ends at any moment" device -DRANKS=3 -DMEETINGS=2 -DLOSS
ends "meetings of cards, one ends at any moment" device -DLOSS -DMEETINGS=4
breaks assertion "cards, one set of slots" device -DONE_SET
breaks deadlock "cards, a flag that is ahead does not count" device -DEQUAL
breaks assertion "cards, numbers that do not wrap" device -DNO_WRAP
breaks assertion "cards, flags stored before the data" device -DFLAG_FIRST
breaks assertion "cards, flags are no release" device -DWEAK -DPLAIN_FLAG
breaks assertion "cards, a barrier is missing before the next flags" device -DREAD_LATE
breaks assertion "cards, a kernel that is stopped goes on" device -DRANKS=3 -DMEETINGS=2 -DLOSS -DGO_ON
breaks assertion "cards, a kernel gives up and does not say so" device -DLOSS -DMEETINGS=2 -DSILENT
breaks assertion "cards, launches behind one that gave up" device -DRANKS=3 -DMEETINGS=2 -DLOSS -DLAUNCH_ON

holds "messages of plans between cards, numbers wrap" device_plan
holds "messages of plans between cards, one way" device_plan -DONE_WAY
holds "messages of plans between cards, stores leave in any order" device_plan -DWEAK -DRUNS=5
holds "messages of plans between cards, one way, stores leave in any order" device_plan -DONE_WAY -DWEAK
holds "messages of plans between three cards" device_plan -DRANKS=3 -DRUNS=4
holds "messages of plans between three cards, one ends at any moment" device_plan -DRANKS=3 -DRUNS=2 -DLOSS
ends "messages of plans between cards, one ends at any moment" device_plan -DLOSS -DRUNS=4
breaks assertion "plans on cards, one set of memory" device_plan -DONE_WAY -DONE_SET
breaks assertion "plans on cards, the sender does not wait" device_plan -DONE_WAY -DNO_SECOND_FLAG
breaks deadlock "plans on cards, a flag that is ahead does not count" device_plan -DEQUAL
breaks deadlock "plans on cards, numbers that do not wrap" device_plan -DNO_WRAP
breaks assertion "plans on cards, flags stored before the data" device_plan -DFLAG_FIRST
breaks assertion "plans on cards, flags are no release" device_plan -DWEAK -DPLAIN_FLAG
breaks assertion "plans on cards, a barrier is missing before the flag" device_plan -DONE_WAY -DREAD_LATE
breaks assertion "plans on cards, a kernel that is stopped goes on" device_plan -DRANKS=3 -DRUNS=2 -DLOSS -DGO_ON
breaks assertion "plans on cards, launches behind one that gave up" device_plan -DRANKS=3 -DRUNS=2 -DLOSS -DLAUNCH_ON

holds "a transport that must be driven" driven
ends "a transport that must be driven" driven
breaks deadlock "driven once, then asleep" driven -DSLEEP_WITHOUT_LIMIT
check "endless run" "-O0 -DNP" "broken: not driven while waiting in memory" driven -DNOT_DRIVEN

holds "collective operations of any kinds, three ranks" collective -DOPERATIONS=1 -DCHUNKS=1 -DSLOTS=1
holds "collective operations, two ranks, more chunks than slots" collective -DRANKS=2 -DOPERATIONS=3 -DCHUNKS=3
holds "collective operations, reduce phase, two ranks" collective -DRANKS=2 -DREDUCE -DCHUNKS=4
ends "collective operations, two ranks" collective -DRANKS=2
breaks assertion "after a mismatch, what was sent ahead is not dropped" collective -DRANKS=2 -DNOTHING_DROPPED
breaks assertion "after a mismatch, each rank drops as much as it had sent" collective -DRANKS=2 -DDROP_OWN_NUMBER
breaks assertion "after a mismatch, nobody settles" collective -DRANKS=2 -DNOT_SETTLED
breaks assertion "after a mismatch, headers stay in their slots" collective -DRANKS=2 -DHEADERS_STAY
breaks deadlock "finish() sends again what start() has sent" collective -DRANKS=2 -DSENT_AGAIN
breaks deadlock "start() waits for slots" collective -DRANKS=2 -DREDUCE -DCHUNKS=4 -DAHEAD_WAITS

holds "two rails that lose messages" rails
holds "two rails that lose messages, one slot" rails -DSLOTS=1
breaks assertion "rails, bytes that arrive again are taken" rails -DTAKE_AGAIN
breaks assertion "rails, a slot is reused when its message is sent" rails -DREUSE_SENT
breaks deadlock "rails, fragments are not sent again" rails -DNO_PARTS_AGAIN
breaks deadlock "rails, releases are not sent again" rails -DSLOTS=1 -DNO_RELEASES_AGAIN

holds "who is lost" life
breaks assertion "flag checked before the processes" life -DREADY_FIRST
breaks assertion "\`left\` checked before the processes" life -DLEFT_FIRST
breaks assertion "\`reported_lost\` checked before the processes" life -DREPORTED_LOST_FIRST

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
