#!/bin/sh
# Checks the error messages of a drop-in interface after misuse and after the loss of a peer:  errors.sh PROGRAM...
# `PROGRAM errors` prints one line for each error that it can provoke: its name, the number of ranks, the expected exit status of
# the run, and text expected on stderr. `PROGRAM error NAME` provokes it.
set -u
here=$(dirname "$0")
failed=0
"$@" errors >"${TMPDIR:-/tmp}/compat.$$" || exit 1
while read -r name ranks status text; do
  said=$("$here/run.sh" "$ranks" "$@" error "$name" 2>&1)
  found=$?
  case "$said" in *"$text"*) heard=yes ;; *) heard=no ;; esac
  if [ $found != "$status" ] || [ $heard = no ]; then
    echo "$name: expected status $status and \"$text\"; found status $found and: $said"
    failed=1
  fi
done <"${TMPDIR:-/tmp}/compat.$$"
rm -f "${TMPDIR:-/tmp}/compat.$$"
exit $failed
