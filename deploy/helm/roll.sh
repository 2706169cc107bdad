#!/bin/sh
# Restarts the brokers of a release one after the other, those of all groups: roll.sh NAMESPACE RELEASE
# For a release of several groups, whose StatefulSets restart nothing by themselves. It begins, and goes on, only while every pod is
# ready, and a pod is ready when its broker is in sync. It stops at the first doubt; begin it again when that is cleared.
set -eu
namespace=$1 release=$2
selector="app.kubernetes.io/name=headrace,app.kubernetes.io/instance=$release"
patience=${HEADRACE_ROLL_TIMEOUT:-3600}

ask() { kubectl --namespace "$namespace" "$@"; }
identity() { ask get pod "$1" --ignore-not-found --output 'jsonpath={.metadata.uid}'; }
all_ready() { ask wait pod --selector "$selector" --for condition=Ready --timeout "$1"; }

pods=$(ask get pods --selector "$selector" --output 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}')
[ -n "$pods" ] || { echo "no pods of $release in $namespace" >&2; exit 1; }
all_ready 60s
for pod in $pods; do
  before=$(identity "$pod")
  echo "restarting $pod"
  ask delete pod "$pod" --wait=true
  waited=0
  # Not before the new pod is there: the others are ready all the time.
  while now=$(identity "$pod"); [ -z "$now" ] || [ "$now" = "$before" ]; do
    [ "$waited" -lt "$patience" ] || { echo "$pod does not come back" >&2; exit 1; }
    sleep 1; waited=$((waited + 1))
  done
  all_ready "${patience}s"
done
