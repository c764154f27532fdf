#!/usr/bin/env bash
# fuzz.sh [OPTION...] [TARGET...]
# Builds the fuzz targets of the readers with clang, and runs them (tests/fuzz/fuzz.py). Installs clang by apt if there is none
# that is new enough and has libFuzzer.
set -euo pipefail
cd "$(dirname "$0")/.."

# Prints the first clang++ that can link a fuzz target.
find_clang() {
  local compiler
  for compiler in clang++ clang++-{22..15}; do
    command -v "$compiler" >/dev/null || continue
    CXX=$compiler tools/find_compiler.sh >/dev/null 2>&1 || continue
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
      "$compiler" -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null || continue
    echo "$compiler"
    return 0
  done
  return 1
}

if ! clang=$(find_clang); then
  newest=$(apt-cache search --names-only '^libclang-rt-[0-9]+-dev$' 2>/dev/null | sed 's/libclang-rt-\([0-9]*\)-dev.*/\1/' | sort -n | tail -n 1)
  tools/system_packages.sh "clang-${newest:-19}" "libclang-rt-${newest:-19}-dev"
  clang=$(find_clang) || { echo "onehop: make fuzz needs clang++ 15 or newer with libFuzzer, found none" >&2; exit 1; }
fi
CXX=$clang tools/build.sh fuzz
exec .venv/bin/python tests/fuzz/fuzz.py "$@"
