#!/bin/bash
# mutants.sh ROOM [EVERY]: how many changes of a room's code its tests notice, which may only rise: mutants.floors. Of the shim,
# mutants.py changes it, every one or every fifth; of Go, gremlins, with the tests of that package alone.
set -euo pipefail
cd "$(dirname "$0")/.."
room=$1
out=build/mutants/${room//\//_}
mkdir -p build/mutants
case $room in
shim/*) python3 test/mutants.py "$@" | tee "$out.out" ;;
*)
	# gremlins copies all that lies beside go.mod once for each worker.
	tree=$(mktemp -d)
	trap 'rm -rf "$tree"' EXIT
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$tree"
	(cd "$tree" && "$OLDPWD/.tools/gremlins" unleash --workers "$(nproc)" --timeout-coefficient 20 -S lt "./$room") > "$out.log" || true # its status says whether mutants lived: the floor decides
	grep -E 'LIVED|TIMED' "$out.log" || true # there may be none
	awk -v room="$room" '
		/^Killed:/ { killed = $2; lived = $4; missed = $7 }
		END {
			if (killed + lived == 0) exit 1
			printf "%s: %d killed, %d lived, %d not covered: %.1f %% killed\n", room, killed, lived, missed, 100 * killed / (killed + lived)
		}' FS='[ ,]+' "$out.log" | tee "$out.out" ;;
esac
awk -v room="$room" '
	NR == FNR { if ($1 == room) floor = $2; next }
	/% killed$/ && $(NF - 2) < floor { print room ": below its floor of " floor " %"; bad = 1 }
	END { exit bad }' test/mutants.floors "$out.out"
