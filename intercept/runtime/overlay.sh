#!/bin/bash
# overlay.sh DIR: writes DIR/overlay.json for go build -overlay, which puts our poller into Go's runtime. Another version of Go
# may have a poller with other functions; then the runtime stays as it is.
set -euo pipefail
ours=$(cd "$(dirname "$0")" && pwd)/netpoll.go.txt
theirs=$("${GO:-go}" env GOROOT)/src/runtime/netpoll_epoll.go
mkdir -p "$1"
if cmp -s <(grep '^func' "$ours") <(grep '^func' "$theirs"); then
	echo "{\"Replace\": {\"$theirs\": \"$ours\"}}"
else
	echo "overlay.sh: $theirs has other functions than ours: the core will hold two descriptors in programs" >&2
	echo "{}"
fi >"$1/overlay.json"
