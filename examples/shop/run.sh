#!/bin/sh
# Changes of a Postgres database are captured, joined, mirrored and written into another one. --help shows the options.
set -eu
cd "$(dirname "$0")"
exec ../with-broker.sh --connect demo.py "$@"
