#!/usr/bin/env bash
# Copies programs of this machine, and the libraries that they are linked with, into the root folder of an image.
# Usage: copy-programs.sh ROOT PROGRAM...
set -euo pipefail
root=${1:?the root folder of the image}

for name in "${@:2}"; do
  program=$(readlink -f "$(command -v "$name")")
  install -D -m 755 "$program" "$root/usr/bin/$name"
  ldd "$program" | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p; s/^[[:space:]]*(\/[^ ]+) .*/\1/p' |
    while read -r library; do install -D "$(readlink -f "$library")" "$root$library"; done
done
