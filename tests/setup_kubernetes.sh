#!/usr/bin/env bash
# Brings helm, etcd and kube-apiserver into .cache/kubernetes, for `poe helm`. Needs Go and Debian; ten minutes of processor time, for
# the API server. It is built from its module: a container registry is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."
helm=v3.22.0 kubernetes=1.34.4
folder=$PWD/.cache/kubernetes
mkdir -p "$folder/build"
export GOBIN=$folder
[ -x "$folder/helm" ] || go install "helm.sh/helm/v3/cmd/helm@$helm"
if [ ! -x "$folder/etcd" ]; then
  (cd "$folder/build" && apt-get download -qq etcd-server && dpkg-deb -x etcd-server_*.deb etcd)
  cp "$folder/build/etcd/usr/bin/etcd" "$folder/etcd"
fi
if [ ! -x "$folder/kube-apiserver" ]; then
  cd "$folder/build"
  # `go install` refuses a module that replaces others. Its own are published under the same minor version.
  published=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    echo "module apiserver"
    grep '^go ' "$published"
    echo "require k8s.io/kubernetes v$kubernetes"
    sed -n 's#^\s*\(k8s.io/[a-z-]*\) => ./staging.*#\1#p' "$published" | sort -u |
      while read -r name; do echo "replace $name => $name v0.${kubernetes#1.}"; done
  } > go.mod
  printf '//go:build tools\n\npackage apiserver\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' > tools.go
  go mod tidy -e
  nice go build -o "$folder/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
fi
"$folder/helm" version --short
