#!/usr/bin/env bash
# wheel_speed.sh [OPTION...]
# Compares the speed of the wheel of `make wheels` (zig) with a build of the same sources by g++, both for the Python of the wheel:
# builds the second one in build/wheels/gcc, installs each in an environment of its own, and runs tools/wheel_speed.py. The options
# are those of wheel_speed.py.
set -euo pipefail
cd "$(dirname "$0")/.."

place=$PWD/build/wheels
python=$place/venv/bin/python
shopt -s nullglob
wheels=("$place"/dist/onehop-*"$(uname -m)".whl)
if [ ${#wheels[@]} != 1 ]; then
  echo "onehop: expected one wheel for $(uname -m) in build/wheels/dist, found ${#wheels[@]}; run: make wheels" >&2
  exit 1
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
CXX=$(tools/find_compiler.sh)
export CXX
echo "onehop: building the same sources with $("$CXX" --version | head -n 1)"
rm -rf "$place/gcc" && mkdir -p "$place/gcc"
CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} PATH="$place/venv/bin:$PATH" "$python" -m pip wheel . --quiet --no-deps \
  --no-build-isolation --wheel-dir "$place/gcc" -C "build-dir=$place/build-gcc" -C "install.strip=true"

# install NAME WHEEL: an environment with the wheel.
install() {
  [ -x "$place/$1/bin/python" ] || "$python" -m venv "$place/$1"
  "$place/$1/bin/pip" install --quiet "$2"
  "$place/$1/bin/pip" install --quiet --force-reinstall --no-deps "$2"
}
install speed-zig "${wheels[0]}"
install speed-gcc "$place"/gcc/onehop-*.whl
exec ${QUIETLY:-} "$python" tools/wheel_speed.py "$@" "wheel=$place/speed-zig/bin/python" "g++=$place/speed-gcc/bin/python"
