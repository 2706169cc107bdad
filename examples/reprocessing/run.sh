#!/bin/sh
# A view with a mistake is built anew from the first record, beside the old one, and switched. --help shows the options.
set -eu
cd "$(dirname "$0")"
exec ../with-broker.sh --spark demo.py "$@"
