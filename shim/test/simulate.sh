#!/bin/bash
# simulate.sh OBJECTS DIR [FLAGS...]: builds shim/test/simulate in DIR, from the objects that run.sh has put into OBJECTS with those
# FLAGS. Runs SEEDS programs from FIRST on; a tenth of them twice; LONG of 3,600 steps; some with the Go core, if CORE names it; and
# with FAULTS=1 each fault of simulate.faults, which it has to find.
set -euo pipefail
cd "$(dirname "$0")/../.."
objects=$1 out=$2 passed=0 failed=0
CC=${CC:-gcc} SEEDS=${SEEDS:-2000} FIRST=${FIRST:-1}
export ASAN_OPTIONS=detect_leaks=0 # runs end with what the shim keeps
flags=(-std=gnu11 -g -fPIC -fvisibility=hidden -pthread -DGMT_FILL_MOST=64 -Wall -Wextra -Werror -Wshadow -Wconversion "${@:3}")
rm -f "$out"/*.o
mkdir -p "$out/fault"
cp "$objects"/fake_*.o "$out"
for source in shim/test/simulate*.c; do
	"$CC" "${flags[@]}" -c -o "$out/$(basename "$source" .c).o" "$source"
done
# The driver's functions have the names of the hooks: fake_clFinish.
nm -g --defined-only "$out"/fake_*.o | awk '$3 ~ /^cl[A-Z]/ { print $3, "fake_" $3 }' > "$out/names"
for object in "$out"/fake_*.o; do
	objcopy --redefine-syms="$out/names" "$object"
done
ls "$objects"/shim/{base,registry,order,pool,spill,hooks}/*.o | grep -v '/clock\.o$' > "$out/objects"
# The Go core wants a library of this name.
"$CC" -shared -Wl,-soname,libgpumemtop.so -o "$out/libgpumemtop.so" -x c /dev/null

# What the core calls. Long programs have no other names, so that tests which watch all programs beside this one do not see them.
echo '{ gmt_*; };' > "$out/exported"

# link NAME [OBJECT INSTEAD]
link() {
	sed "s|^${2:-}$|${3:-}|" "$out/objects" > "$out/linked"
	"$CC" "${flags[@]}" ${LONG:+-s} -Wl,--dynamic-list="$out/exported" -o "$out/$1" "$out"/*.o "@$out/linked" -Wl,--wrap=gmt_pause -Wl,--no-as-needed -Wl,-rpath,"\$ORIGIN" \
		-L"$out" -l:libgpumemtop.so -ldl
}

judge() { # NAME STATUS
	[ "$2" = 0 ] && passed=$((passed + 1)) || failed=$((failed + 1))
	[ "$2" = 0 ] && echo "ok    $1" || echo "FAIL  $1"
}

# simulates NAME ARGUMENTS...
simulates() {
	local status=0
	"$out/simulate" "${@:2}" || status=$?
	judge "$1" "$status"
}

core=${CORE:-}
unset CORE # Go's runtime would run in each
link simulate
simulates simulate "$SEEDS" "$FIRST"
simulates "simulate twice" -twice "$((SEEDS / 10))" "$FIRST"
[ -z "${LONG:-}" ] || simulates "simulate long programs" "$LONG" "$FIRST" 3600
if [ -e "$core" ]; then
	CORE=$core simulates "simulate with the Go core" "$((SEEDS / 250))" "$FIRST"
	# Collecting garbage all the time, its runtime moves to other threads.
	GOGC=1 CORE=$core simulates "simulate with the Go core twice" -twice "$((SEEDS / 250))" "$FIRST"
fi
while read -r file change; do
	[ -n "${FAULTS:-}" ] || break
	faulty=$out/fault/$(basename "$file")
	sed -E "$change" "shim/$file" > "$faulty"
	status=0
	! cmp -s "$faulty" "shim/$file" || status=1
	"$CC" "${flags[@]}" -w -iquote "shim/$(dirname "$file")" -c -o "${faulty%.c}.o" "$faulty" || status=1
	link faulty "$objects/shim/${file%.c}.o" "${faulty%.c}.o" || status=1
	! "$out/faulty" -found 2000 > "$out/found" 2>&1 || status=1
	judge "$file: $change" "$status"
done < <(grep -v '^#' shim/test/simulate.faults)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
