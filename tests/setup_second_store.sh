#!/usr/bin/env bash
# Brings versitygw, a second real S3 server, into .cache/versitygw-1.8.0, for `poe tier-second-store`. Minutes of processor time, once.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/find_go.sh
source tests/find_go.sh
version=1.8.0
folder=$PWD/.cache/versitygw-$version
mkdir -p "$folder"
(
  flock 9
  [ -x "$folder/versitygw" ] && exit
  read -ra go <<< "$(find_go)"
  GOBIN=$folder nice "${go[@]}" install "github.com/versity/versitygw/cmd/versitygw@v$version"
) 9> "$folder/setup.lock"
"$folder/versitygw" --version
