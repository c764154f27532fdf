#!/usr/bin/env bash
# Prints the C++ compiler to use: $CXX if it is set, else the first of the usual names that is new enough for C++20.
# If there is none, prints on stderr which compilers were found, and fails.
set -euo pipefail

# Prints why a compiler cannot be used, or nothing if it can.
complaint() {
  local macros gcc clang
  macros=$(echo '__GNUC__ __clang_major__' | $1 -x c++ -E -P - 2>/dev/null | tail -n 1) || { echo "does not run"; return; }
  read -r gcc clang <<<"$macros"
  if [[ $clang =~ ^[0-9]+$ ]]; then
    [ "$clang" -ge 15 ] || echo "is clang $clang"
  elif [[ $gcc =~ ^[0-9]+$ ]]; then
    [ "$gcc" -ge 12 ] || echo "is gcc $gcc"
  else
    echo "is neither gcc nor clang"
  fi
}

if [ -n "${CXX:-}" ]; then
  candidates=("$CXX")
else
  candidates=(g++ g++-{16..12} clang++ clang++-{22..15})
fi
found=""
for compiler in "${candidates[@]}"; do
  command -v "${compiler%% *}" >/dev/null || continue  # CXX may be two words: ccache g++
  why=$(complaint "$compiler")
  if [ -z "$why" ]; then
    echo "$compiler"
    exit 0
  fi
  found+=" $compiler $why;"
done
{
  echo "onehop: C++20 needs g++ 12 or clang++ 15, or newer. Found:${found:- none${CXX:+ (CXX=$CXX)}}"
  echo "    Install one (sudo apt-get install g++, or g++-12 where g++ is older) or name it: make CXX=/path/to/g++-12"
} >&2
exit 1
