#!/bin/bash
# overlay.sh DIR: writes DIR/overlay.json for go build -overlay, which puts our poller into Go's runtime, and lets the runtime go on
# where a program has the kernel refuse calls about signals, or gives up the processor's counter. Another version of Go may have
# other functions; then the runtime stays as it is.
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

# patch FILE FUNCTIONS PATTERN INSTEAD TIMES WITHOUT: replaces instructions in functions of the runtime. Where there are not as many of
# them, it says what happens WITHOUT.
patch() {
	awk -v functions="^TEXT runtime·($2)[(]SB[)]" -v pattern="$3" -v instead="$4" -v times="$5" '
		/^TEXT/ { within = $0 ~ functions }
		within && sub(pattern, instead) { changed++ }
		{ print }
		END { exit changed != times }
	' "$runtime/$1" >"$dir/$1.new" && {
		cmp -s "$dir/$1.new" "$dir/$1" || cp "$dir/$1.new" "$dir/$1"
		replaced+=("\"$runtime/$1\": \"$dir/$1\"")
	} || echo "overlay.sh: $runtime/$1 is not what was expected: $6" >&2
}

# The runtime crashes on purpose if sigprocmask or sigaltstack fails, by a store to an address that is not there.
ends="a filter of sigprocmask will end programs"
patch sys_linux_amd64.s "rtsigprocmask|sigaltstack" 'MOVL.[$]0xf1, 0xf1 .*' 'MOVL\tAX, AX' 2 "$ends"
patch sys_linux_arm64.s "rtsigprocmask|sigaltstack" 'MOVD.R0, [(]R0[)].*' 'MOVD\tR0, R0' 2 "$ends"
# A thread that waits for another in the runtime reads the processor's counter, for profiles that the core does not make. A program may
# have given that up: it would end.
patch asm_amd64.s cputicks "CMPB.*HasRDTSCP.*|RDTSCP?\$" 'MOVQ\t$0, ret+0(FP)\n\tRET' 3 "a program that gives up the time stamp counter may end"
(IFS=,; echo "{\"Replace\": {${replaced[*]}}}") >"$dir/overlay.json"
