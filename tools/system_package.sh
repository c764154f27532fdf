#!/usr/bin/env bash
# system_package.sh PACKAGE WHY...
# Installs one Debian or Ubuntu package, or says the one line with which its user can, and fails.
set -euo pipefail

package=$1
shift
line="apt-get install -y --no-install-recommends $package"
if ! command -v apt-get >/dev/null; then
  echo "onehop: $* This system has no apt: install its equivalent of the Debian package '$package' and run make again." >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "onehop: $* Run this, then make again:" >&2
  echo "    sudo $line" >&2
  exit 1
fi
echo "onehop: $* Installing $package with apt."
export DEBIAN_FRONTEND=noninteractive
# The first try fails where the package lists are missing or old.
$line >/dev/null 2>&1 || { apt-get update -qq && $line >/dev/null; }
