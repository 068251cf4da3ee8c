#!/bin/bash
# schedules.sh DIR [FLAGS...]: builds shim/test/schedules.c with shim/order in DIR and runs SCHEDULES (20,000) of its schedules; then
# with each fault of schedules.faults, which it has to find.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1 passed=0 failed=0
CC=${CC:-gcc}
export ASAN_OPTIONS=detect_leaks=0 # contexts stay
flags=(-std=gnu11 -O1 -pthread -w "${@:2}")
yields=(-include shim/test/yield.h)
mkdir -p "$out"
for source in shim/registry/{objects,memory,freed_handles,ranges}.c; do
	"$CC" "${flags[@]}" -c -o "$out/$(basename "$source" .c).o" "$source"
done
for source in shim/order/*.c shim/registry/host_range.c shim/base/lock.c shim/test/schedules.c; do
	"$CC" "${flags[@]}" "${yields[@]}" -c -o "$out/$(basename "$source" .c).o" "$source"
done

# link NAME [OBJECT]: with that object in place of the one of its name.
link() {
	local object objects=()
	for object in "$out"/*.o; do
		[ "$(basename "${2:-}")" = "$(basename "$object")" ] && objects+=("$2") || objects+=("$object")
	done
	"$CC" "${flags[@]}" -o "$out/$1" "${objects[@]}"
}

judge() { # NAME STATUS
	[ "$2" = 0 ] && passed=$((passed + 1)) || failed=$((failed + 1))
	[ "$2" = 0 ] && echo "ok    $1" || echo "FAIL  $1"
}

link schedules
[ -z "${BUILD_ONLY:-}" ] || exit 0
status=0
"$out/schedules" "${SCHEDULES:-20000}" || status=$?
judge schedules "$status"
mkdir -p "$out/fault"
while read -r file change; do
	sed -E "$change" "shim/order/$file" > "$out/fault/$file"
	status=0
	"$CC" "${flags[@]}" "${yields[@]}" -iquote shim/order -c -o "$out/fault/${file%.c}.o" "$out/fault/$file"
	link faulty "$out/fault/${file%.c}.o"
	! cmp -s "$out/fault/$file" "shim/order/$file" || status=1
	! "$out/faulty" 200000 > /dev/null || status=1
	judge "$file: $change" "$status"
done < <(grep -v '^#' shim/test/schedules.faults)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
