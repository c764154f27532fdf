#!/usr/bin/env bash
# How many instructions start() and finish() of a plan with ten neighbours take (64 bytes to and from each, in shared memory,
# everything there when finish() looks): callgrind counts inside these two calls only. Needs valgrind and the C++ tests.
#   tools/hot_path.sh [BUILD FOLDER, build/release by default]
set -euo pipefail
cd "$(dirname "$0")/.."

tests=${1:-build/release}/onehop_tests
runs=1000 # of the test
command -v valgrind >/dev/null || {
  echo "valgrind is missing (Debian, Ubuntu: apt-get install valgrind)" >&2
  exit 2
}
[ -x "$tests" ] || {
  echo "$tests is missing: run \`make test-cpp\` first, or name a build folder with the tests" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for step in start finish; do
  valgrind --tool=callgrind --callgrind-out-file="$work/$step" --toggle-collect="onehop::hot_path_$step*" \
    "$tests" --gtest_filter=HotPath.TenNeighboursOf64Bytes >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
  collected=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$work/log")
  printf '%-8s %6d instructions, %4d per neighbour\n' "$step()" $((collected / runs)) $((collected / runs / 10))
done
