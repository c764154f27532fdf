#!/usr/bin/env bash
# wheel_test.sh [SUITE]
# Installs the wheel of build/wheels/dist in a bare Debian without a compiler, and uses it there: the tour on two ranks, a circuit, a
# gauge file, `import onehop.torch` without torch. Makes that Debian with debootstrap in build/wheels/debian, from the mirror of this
# machine, which takes root. What pip needs is downloaded outside: nothing inside reaches the network.
#   SUITE   trixie (default), whose Python is 3.13
set -euo pipefail
cd "$(dirname "$0")/.."

suite=${1:-trixie}
place=$PWD/build/wheels
root=$place/debian-$suite
[ "$(id -u)" = 0 ] || { echo "onehop: a bare Debian can be made by root only: sudo make wheel-test" >&2; exit 1; }
shopt -s nullglob
found=("$place"/dist/onehop-*"$(uname -m)".whl)
[ ${#found[@]} = 1 ] || { echo "onehop: expected one wheel for $(uname -m) in build/wheels/dist, found ${#found[@]}; run: make wheels" >&2; exit 1; }
wheel=${found[0]}
command -v debootstrap >/dev/null || tools/system_packages.sh debootstrap

if [ ! -e "$root/made" ]; then
  rm -rf "$root"
  # shellcheck disable=SC2016  # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  echo "onehop: making a bare Debian $suite"
  debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root" "$mirror" >"$place/debootstrap.log" 2>&1 || {
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
rm -rf "$root/wheels" "$root/venv" "$root/samples" && mkdir "$root/wheels" "$root/samples"
cp "$wheel" "$root/wheels"
"$place/venv/bin/pip" download --quiet --only-binary :all: --python-version "$python" --platform "manylinux_2_28_$(uname -m)" \
  --platform "manylinux2014_$(uname -m)" --dest "$root/wheels" "$wheel[quantum]"
cp tests/data/qasm/*.qasm "$root/samples"
cp tests/packaging/installed.sh "$root/samples"

mounted=()
finish() {
  local one
  for one in "${mounted[@]}"; do umount "$one" || true; done
}
trap finish EXIT
mount -t proc proc "$root/proc" && mounted+=("$root/proc")
mount -t tmpfs tmpfs "$root/dev/shm" 2>/dev/null && mounted+=("$root/dev/shm")
unshare --net env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" sh /samples/installed.sh
