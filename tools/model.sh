#!/usr/bin/env bash
# Explores the model of the channel protocol in docs/model with SPIN. Installs SPIN by apt if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v spin >/dev/null || tools/system_packages.sh spin
exec docs/model/check.sh "$@"
