#!/usr/bin/env bash
# lint.sh [--fix] [FILE...]
# Looks at the given files, else at all that git knows: formatting (clang-format, ruff) and common mistakes (clang-tidy,
# ruff). --fix rewrites what can be rewritten. clang-tidy, the slow one, skips a source for which nothing has changed since
# it last passed.
set -uo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

fix=false
[ "${1:-}" = --fix ] && fix=true && shift
if [ $# -eq 0 ]; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard --deduplicate)
else
  files=("$@")
fi

cpp=() sources=() python=() shell=()
for file in "${files[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    *.cc) cpp+=("$file") sources+=("$file") ;;
    *.h) cpp+=("$file") ;;
    *.py | *.pyi) python+=("$file") ;;
    *.sh | .ci/run) shell+=("$file") ;;
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

# What clang-tidy sees of a source: the source, every header of ours, and its own settings.
folder=build/dev
if [ ${#sources[@]} -gt 0 ] && ! $fix; then
  tools/build.sh dev configure_only || exit 1
  common=$(git ls-files --cached --others --exclude-standard '*.h' .clang-tidy | sort | xargs cat | cksum)
  mkdir -p $folder/tidy
  tidy_one() {
    local stamp
    stamp=$folder/tidy/$(echo "$1" | tr / _)
    [ "$(cat "$stamp" 2>/dev/null)" = "$common $(cksum <"$1")" ] && return
    # A source that the build leaves out (no entry in the list of compilations) has nothing to say how it is compiled.
    grep -qF "/$1\"" $folder/compile_commands.json || return 0
    clang-tidy --quiet -p $folder "$1" 2>/dev/null && echo "$common $(cksum <"$1")" >"$stamp"
  }
  export -f tidy_one
  export folder common
  printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} bash -c 'tidy_one {}' || status=1
fi
[ $status -eq 0 ] && echo "lint: ${#cpp[@]} C++ and ${#python[@]} Python files are clean"
exit $status
