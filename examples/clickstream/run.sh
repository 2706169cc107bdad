#!/bin/sh
# Everything that the example needs, in an environment of its own beside this file; then the example.
# HEADRACE names the package: a wheel that you built, for instance.
set -eu
cd "$(dirname "$0")"
if [ ! -x .venv/bin/headrace ]; then
    python3 -m venv .venv
    .venv/bin/pip install --quiet "${HEADRACE:-headrace}[spark,audit]" confluent-kafka
fi
.venv/bin/headrace spark jars > /dev/null
exec .venv/bin/python -m clickstream "$@"
