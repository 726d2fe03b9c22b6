#!/usr/bin/env bash
# Creates the secrets of docker-compose.yml in the folder secrets/, and a self-signed certificate for localhost. Files that exist stay unchanged.
# Usage: create-secrets.sh [HOST...]   Host names or IP addresses for the certificate, in addition to localhost and 127.0.0.1.
# SECRETS_FOLDER is the folder (default: secrets). Requires openssl.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${SECRETS_FOLDER:-secrets}
# Containers run as several users, and each must be able to read its files. On this machine, the folder keeps other users out.
mkdir -p "$folder"
chmod 700 "$folder"
umask 022
cd "$folder"

# Usage: create FILE COMMAND...
create() {
  if [ -e "$1" ]; then return; fi
  "${@:2}" > "$1.new"
  mv "$1.new" "$1"
}

create cursor-secret openssl rand -base64 32
create grafana-password openssl rand -hex 24
create mongodb-keyfile openssl rand -base64 756
for name in mongodb-root-password mongodb-password redis-password; do create "$name" openssl rand -hex 24; done
create mongodb-url printf 'mongodb://petstore:%s@mongodb:27017/petstore\n' "$(< mongodb-password)"
create redis-url printf 'redis://default:%s@redis:6379\n' "$(< redis-password)"
create redis.conf printf 'requirepass %s\n' "$(< redis-password)"

if [ ! -e certificate.pem ]; then
  names=DNS:localhost,IP:127.0.0.1
  for host in "$@"; do
    case $host in
      *:*) names+=,IP:$host ;;
      *[!0-9.]*) names+=,DNS:$host ;;
      *) names+=,IP:$host ;;
    esac
  done
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 365 -subj "/CN=${1:-localhost}" \
    -addext "subjectAltName=$names" -keyout certificate-key.pem -out certificate.pem 2> /dev/null
  chmod 644 certificate-key.pem
fi
