#!/bin/sh
# Twelve hosts ship their logs, a program adds them up minute by minute and is killed. --help shows the options.
set -eu
cd "$(dirname "$0")"
exec ../with-broker.sh demo.py "$@"
