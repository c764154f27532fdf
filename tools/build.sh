#!/usr/bin/env bash
# build.sh PRESET [TARGET]
# Configures a preset of CMakePresets.json if its inputs have changed, and builds all targets or the given one. The target
# configure_only builds nothing; it brings compile_commands.json up to date. With the Python extension _core come its stub and
# the extension of the benchmarks.
#   ONEHOP_WERROR=ON   treat warnings as errors, as the preset dev does
# The C++ tests, which need GoogleTest, are configured only once a target other than the Python extension _core is built.
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

# Another compiler, Python or source folder needs a build from scratch. Other settings need another configuration only.
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
# Ninja configures again before it builds if a source was added or a CMake file has changed, so let it build its own input.
[ "$target" = configure_only ] && exec cmake --build "$folder" --target build.ninja -- --quiet
targets=("$target")
[ "$target" = _core ] && targets+=(_core_stub _native)
cmake --build "$folder" --target "${targets[@]}" --parallel "${JOBS:-$(nproc)}"
