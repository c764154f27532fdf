#!/bin/sh
# Uses an installed wheel in a bare system: run by tools/wheel_test.sh inside it, with wheels in /wheels and samples in /samples.
set -eu
cd "$(mktemp -d)"  # fresh: the system of an earlier test is used again
python3 -m venv /venv
/venv/bin/pip install --quiet --no-compile --no-index --find-links /wheels "onehop[quantum]"
PATH=/venv/bin:$PATH

python /samples/numpy_products.py
onehop --version
onehop tour -n 2
onehop run /samples/teleport.qasm -n 2 --shots 100 --seed 1
onehop lattice thermalize --extent 4 4 4 4 --sweeps 2 -o field.lime
onehop lattice measure field.lime -n 2
onehop lattice convert field.lime -o field.nersc
# Without torch, a clear error.
if python -c "import onehop.torch" 2>error; then
  echo "expected an error from onehop.torch without torch" >&2
  exit 1
fi
expected="ImportError: onehop.torch needs PyTorch with torch.distributed, which onehop does not install: \`pip install torch\` (No module named 'torch')"
if [ "$(tail -n 1 error)" != "$expected" ]; then
  echo "expected '$expected', found:" >&2
  cat error >&2
  exit 1
fi
# The benchmarks are another package.
if onehop bench pingpong 2>error || ! grep -q "pip install ./bench" error; then
  echo "expected an error from onehop bench that says how to install it, found:" >&2
  cat error >&2
  exit 1
fi
du -sh /venv/lib/python3*/site-packages/onehop | cut -f 1
echo "the wheel works"
