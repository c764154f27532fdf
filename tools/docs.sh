#!/usr/bin/env bash
# docs.sh
# Builds the documentation site in build/docs, with warnings as errors. It needs the extension _core and the packages of the
# group `docs`.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! .venv/bin/python -c 'import sphinx' 2>/dev/null; then
  echo "docs.sh: expected Sphinx in .venv, found none; run: rm -f .venv/stamps/docs && make docs" >&2
  exit 1
fi
command -v doxygen >/dev/null || tools/system_packages.sh doxygen
.venv/bin/python -m sphinx --builder html --jobs auto --fail-on-warning --keep-going --quiet docs build/docs
touch build/docs.stamp  # tests/docs builds the site only if a source is newer
echo "onehop: the documentation is in build/docs/index.html"
