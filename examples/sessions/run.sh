#!/bin/sh
# Clicks become visits, with state and timers; the driver is killed; every visit is there once. --help shows the options.
set -eu
cd "$(dirname "$0")"
exec ../with-broker.sh --spark demo.py "$@"
