#!/bin/bash
# mutants.sh ROOM [EVERY]: how many changes of a room's code its tests notice, every one or every fifth, which may only rise:
# mutants.floors. Of the shim, mutants.py changes it; of Go, mutants_go.py does, where gremlins says, with the tests of that package alone.
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
	(cd "$tree" && "$OLDPWD/.tools/gremlins" unleash --dry-run --workers 1 "./$room") > "$out.log"
	python3 test/mutants_go.py "$room" "${2:-1}" < "$out.log" | tee "$out.out" ;;
esac
awk -v room="$room" '
	NR == FNR { if ($1 == room) floor = $2; next }
	/% killed$/ && $(NF - 2) < floor { print room ": below its floor of " floor " %"; bad = 1 }
	END { exit bad }' test/mutants.floors "$out.out"
