#!/bin/sh
# A bank of events: commands, a writer that is killed, a lookup service that is killed, a table on Spark; all agree.
# --no-spark leaves the table out. --help shows the options.
set -eu
cd "$(dirname "$0")"
case " $* " in
    *" --no-spark "*) exec ../with-broker.sh demo.py "$@" ;;
    *) exec ../with-broker.sh --spark demo.py "$@" ;;
esac
