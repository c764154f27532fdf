#!/usr/bin/env bash
# build.sh PRESET [TARGET]
# Configures a preset of CMakePresets.json if its inputs changed, and builds it: everything, or one target, or (target
# configure_only) nothing.
#   ONEHOP_WERROR=ON   warnings are errors, as in the preset dev
# The C++ tests, and with them GoogleTest, stay out until something else than the Python extension _core is built.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
target=${2:-all}
export PATH="$PWD/.venv/bin:$PATH"
CXX=$(tools/find_compiler.sh)
export CXX
folder=build/$preset

tests=ON
if [ "$target" = _core ] && ! grep -qs '^ONEHOP_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; then
  tests=OFF
fi

# Another compiler, Python or place: from scratch. Other settings: configure again, and keep what is compiled.
origin="$PWD $CXX $(command -v "$CXX") $(cat .venv/stamps/venv)"
settings="$tests ${ONEHOP_WERROR:-} $(cksum <CMakePresets.json)"
if [ "$(cat "$folder/origin" 2>/dev/null)" != "$origin" ]; then
  rm -rf "$folder"
fi
if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/settings" 2>/dev/null)" != "$settings" ]; then
  mkdir -p "$folder"
  cmake --preset "$preset" "-DONEHOP_TESTS=$tests" ${ONEHOP_WERROR:+"-DONEHOP_WERROR=$ONEHOP_WERROR"} "-DPython_EXECUTABLE=$PWD/.venv/bin/python" >"$folder/configure.log" 2>&1 || {
    cat "$folder/configure.log" >&2
    exit 1
  }
  printf '%s' "$origin" >"$folder/origin"
  printf '%s' "$settings" >"$folder/settings"
fi
[ "$target" = configure_only ] && exit
cmake --build "$folder" --target "$target" --parallel "${JOBS:-$(nproc)}"
