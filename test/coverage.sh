#!/bin/bash
# coverage.sh: how much of each room the unit tests reach: lines and branches of the shim (gcov), statements of Go, which knows no
# branches. A room below its floor in coverage.floors is a failure; a floor only rises. E2E=. adds what the end-to-end tests of that
# name reach of Go in gpumemtop, not in programs, whose core writes no figures.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/coverage
rm -rf "$out"
mkdir -p "$out"

# One test needs room for the files that count, and fails.
ONLY=coverage bash shim/test/run.sh "$out/shim" > "$out/shim.log" 2>&1 || true
for room in base registry order pool spill entry hooks; do
	gcov -b -n "$out/shim/coverage/shim/$room"/*.gcda 2> /dev/null | awk -v room="shim/$room" '
		/^File/ { mine = index($2, "\047" room "/") == 1 }
		mine && /^Lines executed/ { split($2, part, ":"); lines += $4; hit += part[2] * $4 / 100 }
		mine && /^Taken at least/ { split($4, part, ":"); branches += $6; taken += part[2] * $6 / 100 }
		END { printf "%s %.1f %.1f\n", room, 100 * hit / lines, 100 * taken / branches }'
done > "$out/table"

go=${GO:-go}
$go test -vet=off -coverpkg=./... -coverprofile="$out/go" ./... > "$out/go.log" || { grep -v '^ok' "$out/go.log"; exit 1; }
if [ -n "${E2E:-}" ]; then
	mkdir "$out/runs"
	$go build -cover -coverpkg=./... -o bin/gpumemtop ./cmd/gpumemtop
	# Tests that examine the program's file fail with this one. They reach the same statements.
	(cd test/e2e && GOCOVERDIR=$OLDPWD/$out/runs $go test -vet=off -count=1 -timeout 2h -run "$E2E" .) > "$out/e2e.log" ||
		echo "end-to-end tests failed: $(grep -c '^--- FAIL' "$out/e2e.log"), see $out/e2e.log"
	$go tool covdata textfmt -i="$out/runs" -o "$out/go.e2e"
	sed 1d "$out/go.e2e" >> "$out/go"
	rm bin/gpumemtop # make builds the usual one again
fi
# A block stands there once for each package whose tests were run.
awk -F '[/:, ]' '
	NR > 1 {
		key = $0
		sub(/ [0-9]+$/, "", key)
		statements[key] = $(NF - 1)
		of[key] = $4 == "internal" ? $4 "/" $5 : $4
		if ($NF > 0) hit[key] = 1
	}
	END {
		for (key in statements) { all[of[key]] += statements[key]; if (key in hit) some[of[key]] += statements[key] }
		for (room in all) printf "%s %.1f\n", room, 100 * some[room] / all[room]
	}' "$out/go" | sort >> "$out/table"

awk '
	NR == FNR { lines[$1] = $2; branches[$1] = $3; next }
	{ low = $2 < lines[$1] || $3 < branches[$1]; bad += low
	  printf "%-24s %5s %% of lines %s%s\n", $1, $2, $3 == "" ? "" : $3 " % of branches", low ? "  below its floor" : "" }
	END { exit bad > 0 }' test/coverage.floors "$out/table"
