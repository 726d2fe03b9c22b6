#!/usr/bin/env bash
# Prints the URL of the Debian mirror that apt uses on this machine. MIRROR replaces it.
set -euo pipefail

# apt knows which of its sources is Debian itself, but only after the first "apt-get update". Before that, read the source files.
mirror=${MIRROR:-}
if [ -z "$mirror" ]; then
  mirror=$(apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" {print $3; exit}' || true)
fi
if [ -z "$mirror" ]; then
  mirror=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2> /dev/null |
    awk '/^URIs:/ {print $2; exit} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; exit}}' || true)
fi
[ -n "$mirror" ] || { echo 'No Debian mirror is configured on this machine: set MIRROR' >&2; exit 1; }
echo "$mirror"
