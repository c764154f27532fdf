#!/usr/bin/env bash
# lint.sh [--fix | --quick] [FILE...]
# Checks the given files, or all files that git knows: formatting (clang-format, ruff, rumdl), common mistakes (clang-tidy, ruff),
# the dependencies between parts (tools/check_layers.py), whether public headers and Python modules have tests that are named
# after them (tools/check_tests.py). --fix applies the fixes that the tools offer. --quick leaves out clang-tidy, which takes most
# of the time.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

fix=false quick=false
[ "${1:-}" = --fix ] && fix=true && shift
[ "${1:-}" = --quick ] && quick=true && shift
all=false
if [ $# -eq 0 ]; then
  all=true
  mapfile -t files < <(git ls-files --cached --others --exclude-standard --deduplicate)
else
  files=("$@")
fi

cpp=() sources=() python=() shell=() markdown=()
for file in "${files[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    # clang-tidy reads tests only when they are named, as by pre-commit: they would take a third of its time.
    tests/*.cc) cpp+=("$file") && { $all || sources+=("$file"); } ;;
    *.cc) cpp+=("$file") sources+=("$file") ;;
    *.c | *.cpp | *.h) cpp+=("$file") ;;
    *.py | *.pyi) python+=("$file") ;;
    *.sh | .ci/run) shell+=("$file") ;;
    *.md) markdown+=("$file") ;;
  esac
done

status=0
if [ ${#cpp[@]} -gt 0 ]; then
  if $fix; then clang-format -i "${cpp[@]}"; else clang-format --dry-run -Werror "${cpp[@]}" || status=1; fi
fi
if [ ${#python[@]} -gt 0 ]; then
  if $fix; then
    ruff format --quiet "${python[@]}"
    ruff check --quiet --fix "${python[@]}" || status=1
  else
    ruff format --quiet --diff "${python[@]}" || status=1
    ruff check --quiet "${python[@]}" || status=1
  fi
fi
for file in ${shell[@]+"${shell[@]}"}; do bash -n "$file" || status=1; done
if [ ${#markdown[@]} -gt 0 ]; then
  rumdl check --quiet --no-cache $($fix && echo --fix) "${markdown[@]}" || status=1
fi

python tools/check_layers.py >/dev/null || status=1
python tools/check_tests.py >/dev/null || status=1
python tools/check_names.py || status=1

if [ ${#sources[@]} -gt 0 ] && ! $fix && ! $quick; then
  tools/build.sh dev configure_only || exit 1
  # The runner takes regular expressions of paths, and skips sources that the preset does not compile.
  patterns=$(printf '|%s' "${sources[@]//./\\.}")
  run-clang-tidy.py -p build/dev -extra-arg=-Wno-error -quiet -hide-progress -j "${JOBS:-$(nproc)}" "^$PWD/(${patterns:1})\$" >build/dev/tidy.log 2>&1 || {
    grep -vE '^([0-9]+ warnings|\[[0-9]+/[0-9]+\]|$)' build/dev/tidy.log
    status=1
  }
fi
[ $status -eq 0 ] && echo "lint: ${#cpp[@]} C++ and ${#python[@]} Python files are clean"
exit $status
