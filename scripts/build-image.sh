#!/usr/bin/env bash
# Builds the container image of the service.
# Usage: build-image.sh [OPTION]...   Options of docker build, for example: --tag petstore
# NODE_IMAGE and RUNTIME_IMAGE replace the base images of the Dockerfile. On a machine that cannot pull those,
# scripts/set-up-engines.sh builds substitutes from the machine's Node.js, and this script uses them.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(--build-arg "REVISION=$(git rev-parse HEAD 2> /dev/null || echo unknown)")

# Usage: choose_base ARGUMENT RECIPE
choose_base() {
  local official image
  official=$(sed -n "s/^ARG $1=//p" Dockerfile)
  image=${!1:-$(bash scripts/engines/choose-image.sh "$official" "$2")}
  echo "$1: $image" >&2
  options+=(--build-arg "$1=$image")
}

choose_base NODE_IMAGE node-build
choose_base RUNTIME_IMAGE node-runtime
exec docker build "${options[@]}" "$@" .
