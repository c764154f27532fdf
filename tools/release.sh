#!/usr/bin/env bash
# release.sh [VERSION]
# The checklist of a release. Checks everything that a program can check, and prints the commands that are left; it changes nothing.
# Ends with 1 if anything is not in order. VERSION defaults to that of CMakeLists.txt, from which all others come.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0
good() { echo "ok       $*"; }
bad() {
  echo "NOT YET  $*" >&2
  status=1
}

stated=$(sed -n 's/^project(onehop VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
version=${1:-$stated}
if [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then good "version $version"; else bad "expected a version X.Y.Z, found '$version'"; fi
[ "$version" = "$stated" ] || bad "CMakeLists.txt states version $stated; edit its line 'project(onehop VERSION ...'"

if [ -z "$(git status --porcelain)" ]; then
  good "the tree is clean"
else
  bad "the tree has changes that are not committed: git status"
fi
branch=$(git symbolic-ref --short -q HEAD || echo "a detached commit")
if [ "$branch" = main ]; then good "on main"; else bad "expected the branch main, found $branch"; fi
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then bad "the tag v$version exists already"; else good "v$version is a new tag"; fi

if grep -qE "^## \[${version//./\\.}\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md; then
  good "CHANGELOG.md has a section for $version"
else
  bad "CHANGELOG.md has no line '## [$version] - YYYY-MM-DD': move the entries of Unreleased there"
fi
if [ -z "$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep '^- ')" ]; then
  good "nothing is left under Unreleased"
else
  bad "CHANGELOG.md has entries under Unreleased"
fi

for recipe in packaging/spack/spack_repo/onehop/packages/*/package.py packaging/conda/recipe.yaml; do
  if grep -qE "version(\(|: )\"${version//./\\.}\"" "$recipe"; then good "$recipe"; else bad "$recipe states another version"; fi
done

commit=$(git rev-parse HEAD)
for what in x86_64 aarch64 sdist; do
  if [ "$(cat build/wheels/dist/commit-$what 2>/dev/null)" = "$commit" ]; then
    good "$what was built from this commit"
  else
    bad "$what was not built from this commit: make wheels WHEELS=$what"
  fi
done

if [ $status -eq 0 ]; then
  cat <<TEXT

Left for you:
  bash .ci/run                  # everything, on a clean machine
  make wheel-test               # the wheel in a bare Debian
  git tag -a v$version -m "onehop $version"
  upload build/wheels/dist/onehop-$version*
TEXT
else
  echo "release: not yet" >&2
fi
exit $status
