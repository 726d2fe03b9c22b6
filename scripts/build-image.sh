#!/usr/bin/env bash
# Builds the container image of the service.
# Usage: build-image.sh [OPTION]...   Options of docker build, for example: --tag petstore
# NODE_IMAGE and RUNTIME_IMAGE replace the base images of the Dockerfile. On a machine that cannot pull those,
# scripts/set-up-engines.sh builds substitutes from the machine's Node.js, and this script uses them.
set -euo pipefail
cd "$(dirname "$0")/.."
options=(--build-arg "REVISION=$(git rev-parse HEAD 2> /dev/null || echo unknown)")

has_image() { docker image inspect "$1" > /dev/null 2>&1; }

# Usage: choose_base ARGUMENT RECIPE
choose_base() {
  local official substitute image=${!1:-}
  official=$(sed -n "s/^ARG $1=//p" Dockerfile)
  if [ -z "$image" ] && ! has_image "$official" && substitute=$(bash scripts/engines/image-name.sh "$2" 2> /dev/null); then
    if has_image "$substitute"; then image=$substitute; fi
  fi
  echo "$1: ${image:-$official}" >&2
  if [ -n "$image" ]; then options+=(--build-arg "$1=$image"); fi
}

choose_base NODE_IMAGE node-build
choose_base RUNTIME_IMAGE node-runtime
exec docker build "${options[@]}" "$@" .
