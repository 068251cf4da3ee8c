#!/bin/bash
# Tries gpumemtop on this machine's OpenCL driver, the first platform that the loader gives, and writes one report to send
# back: what there is, what buffers cost, whether programs do under each policy what they do alone, how long they take, what
# --measure finds, in at most five minutes, and whether attach sees them. Run by make gpu-check.
#
#   gpu-check.sh REPORT [SIZE [TIME]]   of the buffers, default 16M; for one comparison of times, default 20s
set -uo pipefail
cd "$(dirname "$0")/.."
report=$1 size=${2:-16M} budget=${3:-20s} work=$(mktemp -d) wrong=0 runs=0
trap 'rm -rf "$work"' EXIT
policies=(none futhark pow2 slab buddy ualloc arena)
limit=(timeout -k 5 300)

title() { printf '\n== %s\n' "$*"; }

# same LABEL CMD...: bare, and under each policy.
same() {
	local label=$1 policy bare
	shift
	"${limit[@]}" "$@" > "$work/bare" 2> "$work/err"
	bare=$?
	if [ "$bare" != 0 ]; then
		echo "$label: fails without gpumemtop with $bare, so it is not compared: $(tail -n 1 "$work/err")"
		grep ' FAILED' "$work/bare"
		return
	fi
	for policy in "${policies[@]}"; do
		"${limit[@]}" bin/gpumemtop --headless --policy "$policy" -- "$@" > "$work/out" 2> "$work/err"
		local code=$?
		runs=$((runs + 1))
		if [ "$code" != 0 ] || ! cmp -s "$work/bare" "$work/out"; then
			wrong=$((wrong + 1))
			echo "$label under $policy: status $code, 0 without; what differs:"
			diff "$work/bare" "$work/out" | head -n 10
		fi
		grep -m 1 'hit rate' "$work/err" | sed "s/^ */$label $policy: /"
	done
}

attached() {
	bin/gpumemtop attach --headless --comm leak --duration 5s > "$work/out" 2> "$work/err" &
	local watcher=$!
	for _ in $(seq 100); do
		grep -q 'Ctrl-C ends' "$work/err" || ! kill -0 "$watcher" 2> "$work/null" && break
		sleep 0.1
	done
	"${limit[@]}" bin/examples/leak 4 16K
	wait "$watcher"
	cat "$work/err"
}

{
	title machine
	bin/gpumemtop version
	date -u
	uname -srm
	clinfo -l 2> "$work/null"
	bin/gpumemtop doctor
	title 'what buffers cost'
	bin/gpumemtop probe
	title 'programs and policies'
	for program in stencil pipeline staging mosaic frag multiqueue leak; do
		same "$program" "bin/examples/$program" 10 "$size"
	done
	same threads bin/examples/threads 4 20 "$size"
	same train bin/examples/train 10
	same tiles bin/test/tiles 10 "$size"
	same pointers bin/test/pointers 10 "$size"
	same neighbours bin/test/neighbours 500
	same conformance bin/test/conformance
	same conformance-buffers bin/test/conformance-buffers
	title 'times, with the pool and without'
	for program in examples/stencil examples/pipeline examples/frag test/tiles test/pointers; do
		for policy in none futhark slab; do
			"${limit[@]}" bin/gpumemtop compare --budget "$budget" --policy "$policy" -- "bin/$program" 20 "$size" 2> "$work/null"
		done
	done
	title 'what the pool is worth, inside one run and in whole runs'
	timeout -k 5 300 build/bench -only experiment -runs 6 -pick 'stencil 40,pipeline,pointers,train'
	title attach
	attached
	title result
	echo "$runs runs, $wrong differ"
} > "$report" 2>&1
tail -n 1 "$report"
echo "send back: $report"
[ "$wrong" = 0 ]
