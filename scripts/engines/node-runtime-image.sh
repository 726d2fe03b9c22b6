#!/usr/bin/env bash
# Builds the RUNTIME_IMAGE of the Dockerfile from the Node.js of this machine, for machines that cannot pull the official one.
# Like the official image, it contains Node.js, but no npm and no shell. It takes 2 s and 110 MB.
# Usage: node-runtime-image.sh IMAGE
# Requires Node.js and a running Docker.
set -euo pipefail
image=${1:?the name of the image to build}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -m 1777 "$root/tmp"
bash "$(dirname "$0")/copy-programs.sh" "$root" node

image_id=$(tar -C "$root" --numeric-owner -cf - . | docker import --change 'ENTRYPOINT ["/usr/bin/node"]' -)
# Tag the image only after Node.js has started from it.
docker run --rm --network none "$image_id" --version
docker tag "$image_id" "$image"
