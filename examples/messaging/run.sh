#!/bin/sh
# Three workers share jobs, one of them is killed, and every job is done once. --help shows the options.
set -eu
cd "$(dirname "$0")"
exec ../with-broker.sh demo.py "$@"
