#!/usr/bin/env bash
# wheel_test.sh [SUITE [ARCHITECTURE]]
# Installs the wheel of build/wheels/dist in a bare Debian without a compiler, and uses it there: the tour on two ranks, circuits, a
# gauge file, plots, pages, a program that calls QMP, and errors where something is missing. Makes that Debian with debootstrap in build/wheels, from the mirror of this machine,
# which takes root. What pip needs is downloaded outside: nothing inside reaches the network.
#   SUITE          trixie (default), whose Python is 3.13
#   ARCHITECTURE   x86_64 or aarch64; default: that of this machine. Another one runs under qemu-user, for which this script registers
#                  a handler of the kernel (binfmt_misc) unless there is one, and removes it at its end. There, C++ tests (`make wheels
#                  WHEELS=aarch64-tests`) and some Python tests run as well.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-trixie}
architecture=${2:-$(uname -m)}
place=$PWD/build/wheels
root=$place/debian-$suite-$architecture
[ "$(id -u)" = 0 ] || { echo "onehop: a bare Debian can be made by root only: sudo make wheel-test" >&2; exit 1; }
case $architecture in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) echo "onehop: expected the architecture x86_64 or aarch64, found $architecture" >&2; exit 1 ;;
esac
shopt -s nullglob
found=("$place"/dist/onehop-*"$architecture".whl)
if [ ${#found[@]} != 1 ]; then
  echo "onehop: expected one wheel for $architecture in build/wheels/dist, found ${#found[@]}; run: make wheels WHEELS=$architecture" >&2
  exit 1
fi
wheel=${found[0]}
exec 8>"$place/$suite-$architecture.lock"
flock -n 8 || { echo "onehop: another run uses $root; wait for it" >&2; exit 1; }
command -v debootstrap >/dev/null || tools/system_packages.sh debootstrap

mounted=()
registered=
finish() {
  local one
  for one in "${mounted[@]}"; do umount "$one" || true; done
  if [ -n "$registered" ]; then echo -1 >"$registered"; fi
}
trap finish EXIT

# Lets the kernel start programs of another architecture, also in a chroot (flag F: the emulator is opened now).
emulate() {
  local kernel=/proc/sys/fs/binfmt_misc line qemu
  command -v "qemu-$architecture-static" >/dev/null || tools/system_packages.sh qemu-user-static
  qemu=$(command -v "qemu-$architecture-static")
  if [ ! -e $kernel/register ]; then mount -t binfmt_misc none $kernel; fi
  for line in "$kernel"/qemu-*"$architecture"*; do
    if grep -q '^flags:.*F' "$line"; then return; fi
  done
  line=$(sed -n "s|^:qemu-$architecture:\(M::.*\):[^:]*:[A-Z]*$|\1|p" "/usr/lib/binfmt.d/qemu-$architecture.conf")
  printf '%s' ":onehop-$architecture:$line:$qemu:F" >$kernel/register
  registered=$kernel/onehop-$architecture
}
if [ "$architecture" != "$(uname -m)" ]; then emulate; fi

if [ ! -e "$root/made" ]; then
  # A debootstrap that failed leaves the kernel's files mounted there.
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
  rm -rf --one-file-system "$root"
  # shellcheck disable=SC2016  # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  echo "onehop: making a bare Debian $suite for $architecture"
  debootstrap --arch "$debian" --variant=minbase --include=python3,python3-venv "$suite" "$root" "$mirror" >"$place/debootstrap.log" 2>&1 || {
    tail -n 5 "$place/debootstrap.log" >&2
    exit 1
  }
  touch "$root/made"
fi
if chroot "$root" sh -c 'command -v cc || command -v g++ || command -v mpiexec'; then
  echo "onehop: expected a Debian without compiler and MPI" >&2
  exit 1
fi

# The wheels of the requirements, for the Python inside.
python=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
case $(basename "$wheel") in
  *-cp312-abi3-* | *"-cp${python/./}-"*) ;;
  *)
    echo "onehop: expected a wheel for Python $python, which is that of Debian $suite, or with the stable ABI; found $(basename "$wheel")." \
      "Build it with Python 3.12 or newer: make wheels WHEELS=$architecture PYTHON=python3.12" >&2
    exit 1
    ;;
esac
rm -rf "$root/wheels" "$root/venv" "$root/samples" "$root/onehop" && mkdir "$root/wheels" "$root/samples"
cp "$wheel" "$root/wheels"
"$place/venv/bin/pip" download --quiet --only-binary :all: --python-version "$python" --platform "manylinux_2_28_$architecture" \
  --platform "manylinux2014_$architecture" --dest "$root/wheels" "$wheel[plot,quantum]" 'hypothesis>=6.80' 'pytest>=7.4' 'pytest-timeout>=2.2'
cp tests/data/qasm/*.qasm "$root/samples"
cp tests/packaging/{installed.sh,emulated.sh,numpy_products.py} "$root/samples"

mount -t proc proc "$root/proc" && mounted+=("$root/proc")
mount -t tmpfs tmpfs "$root/dev/shm" 2>/dev/null && mounted+=("$root/dev/shm")
# OpenBLAS would choose its kernels for SME, whose products are wrong under qemu-user 7.2 (docs/howto/install.md).
processor=()
if [ "$architecture" = aarch64 ] && [ "$(uname -m)" != aarch64 ]; then processor=(QEMU_CPU=max,sme=off); fi
inside() { unshare --net env -i "${processor[@]}" PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"; }
inside sh /samples/installed.sh
# A program that calls QMP, compiled outside against what the wheel has inside.
read -r -a qmp <<<"$(inside /venv/bin/onehop compat qmp --cflags --libs)"
qmp=("${qmp[@]/#-I/-I$root}")
"$place/zig-$architecture/cc" tests/packaging/sum.c "${qmp[@]/#-L/-L$root}" -o "$root/samples/sum"
inside /venv/bin/onehop launch -n 2 /samples/sum
if [ "$architecture" != "$(uname -m)" ]; then
  mkdir "$root/onehop"
  cp -r tests pyproject.toml "$root/onehop"
  cp "$place/tests-$architecture/onehop_tests" "$root/onehop"
  inside sh /samples/emulated.sh
fi
