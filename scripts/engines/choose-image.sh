#!/usr/bin/env bash
# Prints the image to use: the substitute that set-up-engines.sh has built, if Docker has it and does not have the official image.
# Usage: choose-image.sh OFFICIAL RECIPE
set -euo pipefail
has_image() { docker image inspect "$1" > /dev/null 2>&1; }

if ! has_image "$1" && substitute=$(bash "$(dirname "$0")/image-name.sh" "$2" 2> /dev/null) && has_image "$substitute"; then
  echo "$substitute"
else
  echo "$1"
fi
