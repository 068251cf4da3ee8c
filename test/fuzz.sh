#!/bin/bash
# Runs every fuzz target below a folder for a time. A package is built once for all of its targets: instrumented, which takes
# minutes where it uses much and was not built before, and does not count. Goes on after a failure. Left to its default, Go would
# spend up to a minute on making each new input smaller, and try next to nothing else.
#
# What holds more than 512 MiB fails with status 99: each target is built with internal/testkit/heaplimit, whose own target shows
# where the limit is. What holds more for a moment only fails with status 2 beyond some 600 MiB. Go ends a worker with status 2, and
# no other word, if an input takes more than 10 s by the clock. Where that input alone takes less processor time, the machine was
# busy: the target runs once more.
#
#   fuzz.sh 10s [DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
for_each=$1 below=${2:-.}
out=build/fuzz
cache=$(go env GOCACHE)/fuzz
mkdir -p "$out"
ran=0 short=0 failed=() built= room=$((704 << 10)) # KiB
export GODEBUG=gcstoptheworld=1 # else garbage counts

# fuzz FOLDER BINARY TARGET CORPUS: one target.
fuzz() {
	(cd "$1" && ulimit -d "$room" && "$2" -test.run='^$' -test.fuzz="^$3\$" -test.fuzztime="$for_each" -test.fuzzminimizetime=20x \
		-test.fuzzcachedir="$4" 2>&1 </dev/null)
}

# stalled FOLDER BINARY TARGET OUTPUT: whether the input that the output names passes alone; then it goes.
stalled() {
	local input
	input=$(sed -n 's/^ *Failing input written to //p' <<<"$4")
	[[ $4 = *"hung or terminated unexpectedly"* ]] && [ -n "$input" ] &&
		(cd "$1" && ulimit -t 10 -d "$room" && "$2" -test.run="^$3\$/^${input##*/}\$" >/dev/null 2>&1 </dev/null && rm "$input")
}

while IFS=: read -r file target; do
	folder=./$(dirname "${file#./}") target=${target#func }
	binary=$PWD/$out/$(tr / - <<<"${folder#./}").test
	if [ "$folder" != "$built" ]; then
		SECONDS=0
		printf 'package %s_test\n\nimport _ "%s/internal/testkit/heaplimit"\n' "$(go list -f '{{.Name}}' "$folder")" "$(go list -m)" >"$out/limit.go"
		printf '{"Replace": {"%s/limit_test.go": "%s/limit.go"}}' "$PWD/${folder#./}" "$PWD/$out" >"$out/limit.json"
		go test -c -vet=off -fuzz=Fuzz -overlay "$out/limit.json" -o "$binary" "$folder"
		echo "$folder: built in $SECONDS s"
		built=$folder
	fi
	corpus=$cache/$(go list "$folder")
	ran=$((ran + 1))
	if said=$(fuzz "$folder" "$binary" "$target" "$corpus") || { stalled "$folder" "$binary" "$target" "$said" &&
		said=$(fuzz "$folder" "$binary" "$target" "$corpus"); }; then
		last=$(grep '^fuzz: elapsed' <<<"$said" | tail -1)
		[[ $last = *execs:* ]] || short=$((short + 1)) # it has only played its corpus
		echo "  $target: $last"
	else
		echo "$said"
		failed+=("$folder $target")
	fi
	if [ "$target" = FuzzHold ]; then
		[[ $(HOLDS=520 fuzz "$folder" "$binary" "$target" "$corpus") = *"exit status 99"* ]] || failed+=("$folder $target: 520 MiB pass")
		rm -rf "$folder/testdata"
	fi
done < <(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z]*' "$below" | sort)
echo "$ran fuzz targets for $for_each each, $short of them too short to get beyond their corpus, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ] || printf '  %s\n' "${failed[@]}"
[ "$ran" -gt 0 ] && [ ${#failed[@]} = 0 ]
