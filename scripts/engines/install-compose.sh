#!/usr/bin/env bash
# Installs Docker Compose 2 from Debian 13, as the plugin "docker compose". Debian 12 has only Compose 1, but can run this package.
# It takes 15 s and 64 MB.
# Requires root, a Debian mirror, and the keys of Debian 13 (package debian-archive-keyring).
# Settings: MIRROR (default: the mirror that apt uses on this machine).
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mirror=$(bash "$(dirname "$0")/debian-mirror.sh")
mkdir -p "$folder/lists/partial"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" > "$folder/sources.list"
# Reads only this source, and leaves the lists of this machine unchanged.
options=(-q -y -o "Dir::Etc::SourceList=$folder/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/lists"
  -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false)
apt-get "${options[@]}" update
apt-get "${options[@]}" -o DPkg::Lock::Timeout=600 install --no-install-recommends docker-compose
docker compose version
