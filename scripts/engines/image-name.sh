#!/usr/bin/env bash
# Prints the name of the image that redis-image.sh or mongodb-wire-image.sh builds. The tag is a hash of everything in the recipe:
# after a change, no image has that name yet, so a stale image is never used. The tests call this script, too.
# Usage: image-name.sh redis|mongodb-wire
# Fails if a program that goes into the image is not installed.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
case $1 in
  redis) files=("$scripts/redis-image.sh" "$(command -v redis-server)") ;;
  mongodb-wire) files=("$scripts/mongodb-wire-image.sh" "$scripts/mongodb-wire-entrypoint.sh") ;;
  *) echo "Unknown image: $1" >&2 && exit 2 ;;
esac
echo "petstore-test/$1:$(cat "${files[@]}" | sha256sum | cut -c 1-12)"
