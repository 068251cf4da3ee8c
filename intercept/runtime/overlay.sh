#!/bin/bash
# overlay.sh DIR: writes DIR/overlay.json for go build -overlay, which puts our poller into Go's runtime, and lets the runtime go on
# where a program has the kernel refuse calls about signals. Another version of Go may have other functions; then the runtime
# stays as it is.
set -euo pipefail
ours=$(cd "$(dirname "$0")" && pwd)/netpoll.go.txt
runtime=$("${GO:-go}" env GOROOT)/src/runtime
mkdir -p "$1"
dir=$(cd "$1" && pwd)
replaced=()

if cmp -s <(grep '^func' "$ours") <(grep '^func' "$runtime/netpoll_epoll.go"); then
	replaced+=("\"$runtime/netpoll_epoll.go\": \"$ours\"")
else
	echo "overlay.sh: $runtime/netpoll_epoll.go has other functions than ours: the core will hold two descriptors in programs" >&2
fi

# The runtime crashes on purpose if sigprocmask or sigaltstack fails, by a store to an address that is not there.
for machine in amd64 arm64; do
	file=sys_linux_$machine.s
	awk '
		/^TEXT/ { signals = /^TEXT runtime·(rtsigprocmask|sigaltstack)\(SB\)/ }
		signals && sub(/MOVL\t\$0xf1, 0xf1 .*|MOVD\tR0, \(R0\).*/, machine == "amd64" ? "MOVL\tAX, AX" : "MOVD\tR0, R0") { changed++ }
		{ print }
		END { exit changed != 2 }
	' machine=$machine "$runtime/$file" >"$dir/$file.new" && {
		cmp -s "$dir/$file.new" "$dir/$file" || cp "$dir/$file.new" "$dir/$file"
		replaced+=("\"$runtime/$file\": \"$dir/$file\"")
	} || echo "overlay.sh: $runtime/$file is not what was expected: a filter of sigprocmask will end programs" >&2
done
(IFS=,; echo "{\"Replace\": {${replaced[*]}}}") >"$dir/overlay.json"
