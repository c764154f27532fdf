#!/bin/sh
# Uses an installed wheel in a bare system: run by tools/wheel_test.sh inside it, with wheels in /wheels and samples in /samples.
set -eu
cd "$(mktemp -d)"  # fresh: the system of an earlier test is used again
python3 -m venv /venv
install() { /venv/bin/pip install --quiet --no-compile --no-index --find-links /wheels "$@"; }
install onehop
PATH=/venv/bin:$PATH

# refused WORDS COMMAND...: the command fails, and its last line has the words.
refused() {
  words=$1
  shift
  if "$@" >/dev/null 2>error || ! tail -n 1 error | grep -qF "$words"; then
    echo "expected an error with '$words' from '$*', found:" >&2
    cat error >&2
    exit 1
  fi
}

# With NumPy alone: OpenQASM needs no Qiskit, plots need matplotlib.
python /samples/numpy_products.py
onehop --version
onehop tour -n 2
for qasm in /samples/*.qasm; do onehop plan "$qasm" -n 2 >/dev/null; done
onehop run /samples/teleport.qasm -n 2 --shots 100 --seed 1
refused "pip install" onehop run /samples/teleport.qasm --shots 100 --plot counts.svg
refused "did you mean --shots?" onehop run /samples/teleport.qasm --shotz 100
onehop docs quantum_circuits | grep -q OpenQASM
onehop completion bash | bash -n
test -s /venv/share/man/man1/onehop.1
onehop compat qmp
python -c "from onehop import device; assert len(device.images()) > 3"  # kernels for cards
install "onehop[plot,quantum]"
onehop run /samples/teleport.qasm --shots 100 --plot counts.svg
grep -q "</svg>" counts.svg
onehop lattice thermalize --extent 4 4 4 4 --sweeps 2 -o field.lime
onehop lattice measure field.lime -n 2
onehop lattice convert field.lime -o field.nersc
# Without torch, a clear error.
refused "ImportError: onehop.torch needs PyTorch with torch.distributed, which onehop does not install: \`pip install torch\`" \
  python -c "import onehop.torch"
# The benchmarks are another package.
refused "pip install ./bench" onehop bench pingpong
du -sh /venv/lib/python3*/site-packages/onehop | cut -f 1
echo "the wheel works"
