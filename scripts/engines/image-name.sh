#!/usr/bin/env bash
# Prints the name of the image that a recipe in this folder builds. The tag is a hash of everything in the recipe:
# after a change, no image has that name yet, so a stale image is never used. The tests call this script, too.
# Usage: image-name.sh redis|mongodb-wire|nginx|node-build|node-runtime
# Fails if a program that goes into the image is not installed.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
case $1 in
  redis) files=("$scripts/redis-image.sh" "$scripts/copy-programs.sh" "$(command -v redis-server)") ;;
  mongodb-wire) files=("$scripts/mongodb-wire-image.sh" "$scripts/mongodb-wire-entrypoint.sh") ;;
  nginx) files=("$scripts/nginx-image.sh" "$scripts/copy-programs.sh" "$(command -v nginx)" "$(command -v curl)") ;;
  node-build)
    npm=$(dirname "$(readlink -f "$(command -v npm)")")/../package.json
    files=("$scripts/node-build-image.sh" "$scripts/copy-programs.sh" "$npm" "$(command -v node)")
    ;;
  node-runtime) files=("$scripts/node-runtime-image.sh" "$scripts/copy-programs.sh" "$(command -v node)") ;;
  *) echo "Unknown image: $1" >&2 && exit 2 ;;
esac
echo "petstore-test/$1:$(cat "${files[@]}" | sha256sum | cut -c 1-12)"
