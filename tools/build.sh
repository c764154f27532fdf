#!/usr/bin/env bash
# build.sh PRESET [TARGET]
# Configures a preset of CMakePresets.json if its inputs changed, and builds it: everything, or one target, or (target
# configure_only) nothing.
# The C++ tests, and with them GoogleTest, come in when target `all` is built for the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
target=${2:-all}
export PATH="$PWD/.venv/bin:$PATH"
CXX=$(tools/find_compiler.sh)
export CXX
folder=build/$preset

tests=ON
if [ "$target" = all ] || [ "$target" = configure_only ]; then
  echo '#include <gtest/gtest.h>' | $CXX -E -x c++ - >/dev/null 2>&1 ||
    tools/system_package.sh libgtest-dev "GoogleTest, for the C++ tests, is missing."
elif ! grep -qs '^ONEHOP_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; then
  tests=OFF
fi

# Another compiler, Python or place: from scratch. Other settings: configure again, and keep what is compiled.
origin="$PWD $CXX $(command -v "$CXX") $(cat .venv/stamps/venv)"
settings="$tests $(cksum <CMakePresets.json)"
if [ "$(cat "$folder/origin" 2>/dev/null)" != "$origin" ]; then
  rm -rf "$folder"
fi
if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/settings" 2>/dev/null)" != "$settings" ]; then
  mkdir -p "$folder"
  cmake --preset "$preset" "-DONEHOP_TESTS=$tests" "-DPython_EXECUTABLE=$PWD/.venv/bin/python" >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    exit 1
  }
  printf '%s' "$origin" >"$folder/origin"
  printf '%s' "$settings" >"$folder/settings"
fi
[ "$target" = configure_only ] && exit
cmake --build "$folder" --target "$target" --parallel "${JOBS:-$(nproc)}"
