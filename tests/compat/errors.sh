#!/bin/sh
# What a door says when it is misused or a peer is lost:  errors.sh PROGRAM...
# `PROGRAM errors` prints one line for each error that it can make: its name, the ranks to run as, the exit status expected
# of the run, and words expected on stderr. `PROGRAM error NAME` makes it.
set -u
here=$(dirname "$0")
failed=0
"$@" errors >"${TMPDIR:-/tmp}/door.$$" || exit 1
while read -r name ranks status words; do
  said=$("$here/run.sh" "$ranks" "$@" error "$name" 2>&1)
  found=$?
  case "$said" in *"$words"*) heard=yes ;; *) heard=no ;; esac
  if [ $found != "$status" ] || [ $heard = no ]; then
    echo "$name: expected status $status and \"$words\"; found status $found and: $said"
    failed=1
  fi
done <"${TMPDIR:-/tmp}/door.$$"
rm -f "${TMPDIR:-/tmp}/door.$$"
exit $failed
