#!/usr/bin/env bash
# Sets up what the tests need: Redis, MongoDB (or a server that speaks its protocol), the base images of the Dockerfile, nginx,
# Docker Compose, Chromium, curl, openssl, Python 3, and the client generators and HTTP clients of test/clients.
# Everything stays on the machine for the next run. If nothing is missing, the script takes less than a second.
#   - If Docker responds, it pulls the official images, or those that REDIS_IMAGE, MONGODB_IMAGE, NGINX_IMAGE, NODE_IMAGE and
#     RUNTIME_IMAGE name.
#   - On Debian as root, it also installs packages and the client tools, starts dockerd, and builds the images that it cannot pull.
#   - With ENGINES=found-only, it does nothing.
# DOCKERD_LOG is the log file of the dockerd that it starts (default: /var/log/petstore-test-dockerd.log).
# Exits with 1 if setting up failed, and with 0 otherwise, even if this machine cannot be set up.
set -euo pipefail
recipes=$(cd "$(dirname "$0")" && pwd)/engines
export DEBIAN_FRONTEND=noninteractive
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # "su" without "-" keeps the PATH of the user.
dockerd_log=${DOCKERD_LOG:-/var/log/petstore-test-dockerd.log}
registry_responds_within_s=20
log=$(mktemp)
client_tools_log=$(mktemp)
client_tools=
trap 'rm -f "$log" "$client_tools_log"' EXIT

skip() {
  finish_client_tools
  echo "Engines: $1. Tests that need a missing engine are skipped."
  exit 0
}

fail() {
  printf 'Engines: %s. The end of the log:\n%s\n' "$1" "$(tail -n 20 "$log")" >&2
  echo 'If this machine cannot be set up, set ENGINES=found-only to skip the tests that need what is missing.' >&2
  exit 1
}

# Runs a command that takes a while. Usage: step DESCRIPTION COMMAND...
step() {
  local started=$SECONDS
  echo "Engines: $1 ..."
  "${@:2}" > "$log" 2>&1 || fail "$1 failed"
  echo "Engines: $1: done in $((SECONDS - started)) s"
}

is_installed() { command -v "$1" > /dev/null; }

docker_responds() { docker version > /dev/null 2>&1; }

has_image() { docker image inspect "$1" > /dev/null 2>&1; }

install_packages() {
  # If one of several package sources fails, the others may be enough.
  apt-get -o DPkg::Lock::Timeout=600 -q -y update || true
  apt-get -o DPkg::Lock::Timeout=600 -q -y install --no-install-recommends "$@"
}

# dockerd outlives the tests. It must not hold their output open, because a CI may wait for the end of that output.
start_dockerd() {
  if [ -d /run/systemd/system ]; then
    systemctl start docker || return
  else
    setsid dockerd > "$dockerd_log" 2>&1 < /dev/null &
  fi
  for attempt in {1..60}; do
    if docker_responds; then return; fi
    # A dockerd that exits early may have found another one that is starting.
    if [ "$attempt" -gt 10 ] && [ -z "$(jobs -r)" ]; then break; fi
    sleep 1
  done
  cat "$dockerd_log"
  return 1
}

# Gives up if the registry does not respond: Docker prints its first line when the registry has responded.
pull() {
  echo "Engines: pulling $1 ..."
  : > "$log"
  docker pull "$1" > "$log" 2>&1 &
  local pull=$! attempts=$((registry_responds_within_s * 5))
  while [ ! -s "$log" ] && kill -0 "$pull" 2> /dev/null && [ $((attempts -= 1)) -gt 0 ]; do sleep 0.2; done
  [ -s "$log" ] || kill "$pull" 2> /dev/null || true
  wait "$pull" 2> /dev/null || true
  has_image "$1"
}

# Usage: set_up_image CONFIGURED OFFICIAL RECIPE
set_up_image() {
  local image
  if [ -n "$1" ]; then
    has_image "$1" || pull "$1" || fail "pulling $1 failed"
    return
  fi
  image=$(bash "$recipes/image-name.sh" "$3" 2> /dev/null) || image=
  if has_image "$2" || { [ -n "$image" ] && has_image "$image"; } || pull "$2"; then return; fi
  [ -z "$why_not" ] || skip "$2 cannot be pulled, and $why_not"
  step "building $image" bash "$recipes/$3-image.sh" "$image"
}

# Installs the client tools while the rest is set up.
start_client_tools() {
  bash "$recipes/client-tools.sh" is-installed && return
  echo 'Engines: installing the client tools in the background ...'
  bash "$recipes/client-tools.sh" install > "$client_tools_log" 2>&1 &
  client_tools=$!
}

finish_client_tools() {
  [ -n "$client_tools" ] || return 0
  local pid=$client_tools
  client_tools=
  wait "$pid" || { cat "$client_tools_log" > "$log" && fail 'installing the client tools failed'; }
}

case ${ENGINES:-} in
  '') ;;
  found-only) skip 'not set up, because of ENGINES=found-only' ;;
  *) echo "ENGINES=$ENGINES is not valid: the only value is found-only" >&2 && exit 1 ;;
esac

why_not=
is_installed apt-get || why_not='only Debian can be set up'
[ "$(id -u)" = 0 ] || why_not='only root can set up a machine'

if [ -z "$why_not" ]; then
  packages=()
  for program in redis-server nginx debootstrap curl openssl python3; do
    is_installed "$program" || packages+=("$program")
  done
  python3 -c 'import ensurepip' 2> /dev/null || packages+=(python3-venv)
  [ -n "${CHROMIUM_PATH:-}" ] || is_installed chromium || packages+=(chromium)
  docker_responds || is_installed dockerd || packages+=(docker.io)
  [ ${#packages[@]} -eq 0 ] || step "installing ${packages[*]}" install_packages "${packages[@]}"
  start_client_tools
  # Since Debian 13, docker.io does not contain the client.
  is_installed docker || step 'installing docker-cli' install_packages docker-cli
  if ! docker_responds; then
    [ -z "${DOCKER_HOST:-}" ] || fail "Docker does not respond at DOCKER_HOST, which is $DOCKER_HOST"
    step 'starting dockerd, which keeps running' start_dockerd
  fi
fi

docker compose version > /dev/null 2>&1 || [ -n "$why_not" ] || step 'installing Docker Compose' bash "$recipes/install-compose.sh"

docker_responds || skip "Docker does not respond, and $why_not"
set_up_image "${REDIS_IMAGE:-}" redis:7 redis
set_up_image "${MONGODB_IMAGE:-}" mongo:8 mongodb-wire
set_up_image "${NGINX_IMAGE:-}" nginx:1.28 nginx
set_up_image "${NODE_IMAGE:-}" node:24-trixie-slim node-build
set_up_image "${RUNTIME_IMAGE:-}" gcr.io/distroless/nodejs24-debian13 node-runtime
finish_client_tools
