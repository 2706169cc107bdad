#!/bin/sh
# with-broker.sh [--spark|--connect] PROGRAM [OPTION...]: what the run.sh of each use case does.
#
# It takes a Python with what the program needs, starts a broker on a free port, runs the program against it in
# the current directory, and ends with its status. Whoever has brokers needs none of this:
#     python demo.py --bootstrap HOST:PORT
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
modules="confluent_kafka, headrace" extra="" name=""
if [ "$1" = --spark ]; then
    shift
    modules="$modules, pyspark" extra="[spark]" name="-spark"
elif [ "$1" = --connect ]; then
    shift
    modules="$modules, pyspark, psycopg, starlette" extra="[connect,postgres]" name="-connect"
fi

# The environment that is active, if it has everything (`uv run examples/messaging/run.sh` in a checkout); else one
# of its own, with this checkout in it, or with the wheel that HEADRACE names.
if [ -n "${HEADRACE:-}" ] || ! python -c "import $modules" 2> /dev/null; then
    environment="$examples/.venv$name"
    if [ ! -x "$environment/bin/headrace" ]; then
        echo "making an environment in $environment"
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet "${HEADRACE:-$examples/..}$extra" confluent-kafka
    fi
    PATH="$environment/bin:$PATH"
fi
if [ -n "$extra" ]; then
    headrace spark jars > /dev/null    # once, with Maven
    headrace spark archive > /dev/null # once: each Spark starts a third sooner
fi

run=$(mktemp -d)
broker=
stop() {
    [ -z "$broker" ] || { kill "$broker" 2> /dev/null && wait "$broker"; } || true
    rm -rf "$run"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
: > "$run/ready"
headrace up --port 0 --dir "$run/data" > "$run/ready" 2> "$run/broker.log" &
broker=$!
until grep -q bootstrap= "$run/ready"; do
    kill -0 "$broker" 2> /dev/null || { cat "$run/broker.log" >&2; exit 1; }
    sleep 0.1
done
bootstrap=$(sed -n 's/.*bootstrap=//p' "$run/ready")
echo "a broker serves at $bootstrap"

python "$@" --bootstrap "$bootstrap"
