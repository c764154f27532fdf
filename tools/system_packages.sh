#!/usr/bin/env bash
# system_packages.sh PACKAGE...
# Installs Debian or Ubuntu packages as root. For another user it prints the command to run, and fails.
set -euo pipefail

line="apt-get install -y --no-install-recommends $*"
if ! command -v apt-get >/dev/null; then
  echo "onehop: this system has no apt. Install its equivalents of these Debian packages, then run make again: $*" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "onehop: system packages are missing. Run this, then make again:" >&2
  echo "    sudo $line" >&2
  exit 1
fi
echo "onehop: installing with apt: $*"
export DEBIAN_FRONTEND=noninteractive
# The first attempt fails if the package lists are missing or outdated.
$line >/dev/null 2>&1 || { apt-get update -qq && $line >/dev/null; }
