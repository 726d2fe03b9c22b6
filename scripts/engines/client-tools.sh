#!/usr/bin/env bash
# Installs the client generators and HTTP clients of test/clients: the npm packages in node_modules, the Python packages in venv.
# They stay in a folder of the user's cache. Its name is a hash of everything that is installed: after a change, no folder has
# that name yet, so stale packages are never used. The tests call this script, too.
# Usage: client-tools.sh print-folder|is-installed|install
# Requires npm, and Python 3 with venv. Both use the registries that they are configured for.
set -euo pipefail
clients=$(cd "$(dirname "$0")" && pwd)/../../test/clients
folder=${XDG_CACHE_HOME:-$HOME/.cache}/petstore-test/clients-$(
  { cat "$clients"/{package,package-lock}.json "$clients/requirements.txt" "$0" && python3 --version; } | sha256sum | cut -c 1-12
)

case $1 in
  print-folder) echo "$folder" ;;
  is-installed) [ -e "$folder/complete" ] ;;
  install)
    mkdir -p "$folder"
    # Two test runs may install at the same time.
    exec 9> "$folder/lock"
    flock 9
    [ ! -e "$folder/complete" ] || exit 0
    cp "$clients"/{package,package-lock}.json "$clients/.npmrc" "$folder"
    npm ci --prefix "$folder" --ignore-scripts &
    npm=$!
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --disable-pip-version-check --only-binary :all: --requirement "$clients/requirements.txt"
    wait "$npm"
    : > "$folder/complete"
    ;;
  *) echo "Unknown command: $1" >&2 && exit 2 ;;
esac
