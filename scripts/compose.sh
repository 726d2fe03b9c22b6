#!/usr/bin/env bash
# Runs Docker Compose on a machine that cannot pull the official images: with the substitutes that scripts/set-up-engines.sh has built.
# Usage: compose.sh ARGUMENT...   Arguments of docker compose, for example: up --detach --wait
# NGINX_IMAGE, MONGODB_IMAGE, REDIS_IMAGE, NODE_IMAGE and RUNTIME_IMAGE name other images. An official image that Docker has is preferred.
set -euo pipefail
cd "$(dirname "$0")/.."
files=(--file docker-compose.yml)

# Usage: choose VARIABLE RECIPE
choose() {
  local official
  official=$(sed -nE "s/^ARG $1=(.+)/\1/p; s/.*\\$\{$1:-([^}]+)\}.*/\1/p" Dockerfile docker-compose.yml)
  if [ -z "${!1:-}" ]; then export "$1=$(bash scripts/engines/choose-image.sh "$official" "$2")"; fi
}

choose NGINX_IMAGE nginx
choose REDIS_IMAGE redis
choose NODE_IMAGE node-build
choose RUNTIME_IMAGE node-runtime
choose MONGODB_IMAGE mongodb-wire
case $MONGODB_IMAGE in petstore-test/*) files+=(--file scripts/engines/docker-compose.mongodb-wire.yml) ;; esac
exec docker compose "${files[@]}" "$@"
