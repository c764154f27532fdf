#!/usr/bin/env bash
# hot_path.sh [BUILD_FOLDER]
# Counts the instructions of start() and finish() of a plan with ten neighbours, by callgrind. Each neighbour sends and receives
# 64 bytes in shared memory, and all messages have arrived when finish() begins. Needs valgrind and the C++ tests; BUILD_FOLDER
# is build/release by default.
# Valgrind pretends to be an Intel processor, so the built-in stores are those for Intel; ONEHOP_TUNING may name others.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=${1:-build/release}/onehop_tests
runs=1000  # as in the test
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
