# What every shell of a page begins with. A server goes to the background, and the next line waits for it.
_stop_servers() {
  local pid
  [ -e "$PAGE_STATE/servers" ] || return 0
  while read -r pid; do
    kill "$pid" 2> /dev/null || true
    for _ in $(seq 600); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
  done < "$PAGE_STATE/servers"
  rm "$PAGE_STATE/servers"
}

_serve() { # COMMAND...: until the page ends, or another takes its place
  local log
  log=$(mktemp "$PAGE_STATE/server.XXXXXX")
  setsid "$@" > "$log" 2>&1 < /dev/null &
  local pid=$!
  echo "$pid" >> "$PAGE_STATE/servers"
  for _ in $(seq 1200); do
    grep -q '^ready\|registry is ready\|Uvicorn running' "$log" && return 0
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.1
  done
  cat "$log" >&2
  return 1
}

headrace() {
  case "$1" in
    up) _stop_servers; _serve "$(type -P headrace)" "$@" --port "$PAGE_PORT" ;;
    broker | host) _stop_servers; _serve "$(type -P headrace)" "$@" ;;
    registry) _serve "$(type -P headrace)" "$@" ;;
    *) command headrace "$@" ;;
  esac
}

_toml() { # PAGE FILE: the file that the page shows, with this page's port and directory
  awk '/^```toml/ { p = 1; next } /^```/ { p = 0 } p' "$PAGE_CHECKOUT/$1" |
    sed "s#[/]data/#$PWD/data/#; s#127.0.0.1:909[2]#127.0.0.1:$PAGE_PORT#" > "$2"
}

_scene() { # NAME ARGUMENT...: a program of tests/documents/scenes
  _serve python "$PAGE_CHECKOUT/tests/documents/scenes/$1.py" "${@:2}"
}
