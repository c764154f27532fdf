#!/bin/sh
# Checks what a drop-in interface says after misuse and after the loss of a peer:  errors.sh RANKS PROGRAM...
# `PROGRAM errors` prints one line for each error that it can provoke: its name, the number of ranks, the expected exit status of
# the run, and text expected on stderr. `PROGRAM error NAME` provokes it. A rank that ends prints one line and nothing else, such as
# a report of a sanitizer. Errors of fewer ranks than RANKS are provoked on as many.
set -u
least=$1
shift
here=$(dirname "$0")
list=$(mktemp "${TMPDIR:-/tmp}/compat.XXXXXX") || exit 1
trap 'rm -f "$list"' EXIT
failed=0
"$@" errors >"$list" || exit 1
while read -r name ranks status text; do
  [ "$ranks" -ge "$least" ] || ranks=$least
  said=$("$here/run.sh" "$ranks" "$@" error "$name" 2>&1)
  found=$?
  case "$said" in *"$text"*) heard=yes ;; *) heard=no ;; esac
  lines=$(printf '%s\n' "$said" | wc -l)
  others=$(printf '%s\n' "$said" | grep -vc '^onehop: \|^QuEST refuses: ')
  if [ $found != "$status" ] || [ $heard = no ] || [ "$lines" -gt "$ranks" ] || [ "$others" != 0 ]; then
    echo "$name: expected status $status and one line of each rank, with \"$text\"; found status $found and: $said"
    failed=1
  fi
done <"$list"
exit $failed
