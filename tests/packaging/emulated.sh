#!/bin/sh
# Runs C++ tests and some Python tests with an installed wheel under qemu-user: run by tools/wheel_test.sh inside a bare system of
# another architecture, after installed.sh, with the tests in /onehop.
set -eu
cd /onehop
/venv/bin/pip install --quiet --no-compile --no-index --find-links /wheels pytest pytest-timeout hypothesis
PATH=/venv/bin:$PATH
export ONEHOP_TIMEOUT=120

status=0
./onehop_tests --gtest_brief=1 || status=1
pytest -q -p no:cacheprovider tests/schedule tests/codec || status=1
exit $status
