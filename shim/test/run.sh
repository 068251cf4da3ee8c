#!/bin/bash
# Builds the shim against a fake OpenCL and runs its tests three times: plain, under address and undefined behaviour
# sanitizers, and those that start threads under the thread sanitizer. Output goes to build/shim-test, or to the folder that is given.
#
#   run.sh [DIR]            all of it
#   ONLY=tsan FILTER=ring run.sh    of one set, whether they start threads or not
#   BUILD_ONLY=1 run.sh             no test
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-build/shim-test}
CC=${CC:-gcc}
warnings=(-Wall -Wextra -Werror -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wvla -Wformat=2)
common=(-std=gnu11 -g -fPIC -fvisibility=hidden -pthread -DGMT_TEST_STACKS -DGMT_FILL_MOST=64 "${warnings[@]}")

# Stacks are walked by the shim itself on amd64 only. Elsewhere the compiler's unwinder does that, and their tests are left out.
frames=(narrow=40 wide=72)
case $("$CC" -dumpmachine) in
x86_64-*) left_out= ;;
*) left_out=shim/test/test_stack.c frames=() ;;
esac

newest=$(find shim internal/wire -name '*.h' -o -name '*.def' | xargs ls -t | head -1)

# compile OBJECT SOURCE FLAGS...: unless the object is newer than the source and all headers.
compile() {
	[ "$1" -nt "$2" ] && [ "$1" -nt "$newest" ] && [ "$1" -nt shim/test/run.sh ] || "$CC" "${@:3}" -c -o "$1" "$2"
}

# The driver is linked into several libraries, and by simulate.sh into its program.
driver=(shim/test/fake_{driver,queue,sync,event,memory,command,image,kernel,more,svm,ext,python}.c)

# driver_objects DIR: the driver's objects in the folder of a set.
driver_objects() {
	local source
	for source in "${driver[@]}"; do echo "$1/$(basename "$source" .c).o"; done
}

# build NAME FLAGS...: one set of libraries and programs in $out/NAME. Leaves the objects of the tests in tests.
build() {
	local name=$1 dir=$out/$1
	shift
	local flags=("${common[@]}" "$@")
	mkdir -p "$dir"
	(
		for source in "${driver[@]}" shim/test/fake_{core,carve}.c; do
			compile "$dir/$(basename "$source" .c).o" "$source" "${flags[@]}"
		done
		"$CC" "${flags[@]}" -shared -Wl,-soname,libOpenCL.so.1 -o "$dir/libOpenCL.so.1" $(driver_objects "$dir")
		ln -sf libOpenCL.so.1 "$dir/libOpenCL.so"
		"$CC" "${flags[@]}" -shared -o "$dir/libgpumemtop-core.so" "$dir"/fake_{core,carve}.o
	) &
	local fakes=$!
	local source objects=()
	for source in shim/{base,registry,order,pool,spill,entry,hooks}/*.c; do
		mkdir -p "$dir/$(dirname "$source")"
		objects+=("$dir/${source%.c}.o")
		compile "${objects[-1]}" "$source" "${flags[@]}"
	done
	"$CC" "${flags[@]}" -shared -Wl,-soname,libgpumemtop.so -Wl,-z,now -Wl,-z,nodelete -Wl,--version-script=shim/shim.map -o "$dir/libgpumemtop.so" \
		"${objects[@]}" -ldl
	wait "$fakes"
	local object frame
	for frame in "${frames[@]}"; do
		"$CC" -shared -DFRAME="${frame#*=}" -o "$dir/lib${frame%=*}.so" shim/test/entry_through.c
	done
	tests=()
	for source in shim/test/{harness,world}.c shim/test/test_*.c; do
		[ "$source" != "$left_out" ] || continue
		object=$dir/$(basename "$source" .c).o
		compile "$object" "$source" "${flags[@]}" $([ "$name" != plain ] || echo -O0) # in half the time: the shim is what is tested
		tests+=("$object")
	done
	"$CC" "${flags[@]}" -o "$dir/tests" "${tests[@]}" -Wl,--no-as-needed -Wl,-rpath,"\$ORIGIN" \
		-L"$dir" -l:libgpumemtop.so -l:libOpenCL.so.1 -ldl
}

# build_layers NAME FLAGS...: a driver, loaders of any name in front of it, another vendor's layer, and programs that use them.
build_layers() {
	local name=$1 dir=$out/$1
	shift
	local flags=("${common[@]}" "$@")
	"$CC" "${flags[@]}" -shared -Wl,-soname,libfakedriver.so -o "$dir/libfakedriver.so" $(driver_objects "$dir")
	"$CC" "${flags[@]}" -shared -Wl,-soname,libmine.so -o "$dir/libmine.so" shim/test/fake_{loader,entries}.c -ldl
	cp "$dir/libmine.so" "$dir/libyours.so"
	"$CC" "${flags[@]}" -shared -o "$dir/libother.so" shim/test/fake_layer.c
	"$CC" "${flags[@]}" -o "$dir/layers" "$dir/harness.o" shim/test/layers.c -ldl
	mkdir -p "$dir/layered"
	ln -sf ../libfakedriver.so "$dir/layered/libfakedriver.so"
	"$CC" "${flags[@]}" -shared -Wl,-soname,libOpenCL.so.1 -o "$dir/layered/libOpenCL.so.1" \
		shim/test/fake_{loader,entries}.c -ldl
	cp "$dir/layered/libOpenCL.so.1" "$dir/layered/libOpenCL_second.so"
	"$CC" "${flags[@]}" -o "$dir/tests_both" "${tests[@]}" shim/test/both.c -Wl,--no-as-needed \
		-Wl,-rpath,"\$ORIGIN/layered:\$ORIGIN" -L"$dir/layered" -L"$dir" -l:libgpumemtop.so -l:libOpenCL.so.1 -l:libfakedriver.so -ldl
}

# run_layers NAME LOG PRELOAD: the shim as a layer, outermost.
run_layers() {
	local dir
	dir=$(cd "$out/$1" && pwd)
	local layers=$dir/libother.so:$dir/libgpumemtop.so
	echo "== $2"
	mkdir -p "$out/$2"
	LD_PRELOAD=$3 OPENCL_LAYERS=$layers EXPECTED_LAYERS=$layers "$dir/layers" ${FILTER:-} | tee "$out/$2/log" || bad=1
}

# run_both NAME [TESTS]: the shim in front of a loader that is linked, and its layer, too.
run_both() {
	local dir
	dir=$(cd "$out/$1" && pwd)
	echo "== $1-both"
	mkdir -p "$out/$1-both"
	OPENCL_LAYERS=$dir/libgpumemtop.so "$dir/tests_both" ${FILTER:-${2:-}} | tee "$out/$1-both/log" || bad=1
}

# What is preloaded for real, in the plain run only: a program that is linked with OpenCL, and one that opens it itself.
run_preloaded() {
	local dir
	dir=$(cd "$out/plain" && pwd)
	local link=(-L"$dir" -Wl,--no-as-needed -Wl,-rpath,"\$ORIGIN")
	"$CC" "${common[@]}" -O2 -shared -Wl,-soname,libbehind.so -o "$dir/libbehind.so" shim/test/entry_behind.c
	# Its own calls must not be tail calls, or the program would be the one that asks.
	"$CC" "${common[@]}" -O2 -fno-optimize-sibling-calls -shared -Wl,-soname,libneighbour.so -o "$dir/libneighbour.so" shim/test/entry_neighbour.c -ldl
	cp "$dir/libOpenCL.so.1" "$dir/libOpenCL_second.so"
	"$CC" "${common[@]}" -O2 -o "$dir/entries" shim/test/{harness,entries}.c "${link[@]}" -lneighbour -lbehind -ldl
	"$CC" "${common[@]}" -O2 -o "$dir/linked" shim/test/{harness,world,test_pool}.c "${link[@]}" -l:libOpenCL.so.1
	local images=(shim/test/{harness,world,images}.c "${link[@]}" -l:libOpenCL.so.1 -ldl)
	"$CC" "${common[@]}" -O2 -shared -o "$dir/libplugin.so" shim/test/entry_plugin.c
	"$CC" "${common[@]}" -O2 -o "$dir/images_later" "${images[@]}"
	"$CC" "${common[@]}" -O2 -no-pie -DMAKES_IMAGES -o "$dir/images" "${images[@]}"
	local program
	for program in entries linked images images_later; do
		echo "== $program"
		mkdir -p "$out/$program"
		LD_PRELOAD=$dir/libgpumemtop.so LD_LIBRARY_PATH=$dir "$dir/$program" | tee "$out/$program/log" || bad=1
	done
}

run_schedules() {
	echo "== schedules"
	mkdir -p "$out/schedules"
	bash shim/test/schedules.sh "$out/schedules" | tee "$out/schedules/log" || bad=1
}

# run_simulation NAME FLAGS...: a set's objects under the simulation, with two million calls, or few where sanitizers make it slow. A call
# takes half the time in long programs, because each has a process of its own. make simulate makes 10^7.
run_simulation() {
	local programs=1250 long=1000 core=$PWD/build/libgpumemtop-core.so
	[ "$1" = plain ] || programs=100 long= core=
	echo "== $1-simulation"
	mkdir -p "$out/$1-simulation"
	SEEDS=$programs LONG=$long CORE=$core nice bash shim/test/simulate.sh "$out/$1" "$out/$1-simulation" "${@:2}" | tee "$out/$1-simulation/log" || bad=1
}

# run NAME FLAGS...: everything about one set. Its status is 1 if a program has failed.
run() {
	local name=$1 bad=0 wanted=()
	[ "$name" != tsan ] || [ ! -e "$THREADED" ] || mapfile -t wanted < "$THREADED"
	shift
	build "$name" "$@"
	[ -z "${BUILD_ONLY:-}" ] || return 0
	echo "== $name"
	"$out/$name/tests" ${wanted[@]:-${FILTER:-}} | tee "$out/$name/log" || bad=1
	build_layers "$name" "$@"
	run_layers "$name" "$name-layers" ""
	local some="" # under sanitizers, and emulators, the usual tests have just run
	[ "$name" = plain ] && [ -z "$left_out" ] || some="both_entries a_loader"
	run_both "$name" "$some"
	if [ "$name" = plain ]; then
		run_layers "$name" "$name-layers-preloaded" "$(cd "$out/$name" && pwd)/libgpumemtop.so"
		run_preloaded
		[ -n "${FILTER:-}" ] || run_schedules
	fi
	case $name${FILTER:-}$left_out in
	plain | asan) run_simulation "$name" "$@" ;;
	esac
	return "$bad"
}

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:atexit_sleep_ms=0 # it sleeps where threads are left, as the core's are
export THREADED=$out/threaded # tests that start threads
rm -f "$out"/*/log "$THREADED"
mkdir -p "$out"
declare -A flags=(
	[plain]="-O2 -DGMT_NOTES_THREADS -DGMT_CHECKS_LOCKS"
	[asan]="-O1 -DGMT_NO_DLSYM -fsanitize=address,undefined -fno-sanitize-recover=all"
	[tsan]="-O1 -DGMT_NO_DLSYM -fsanitize=thread"
	[coverage]="-O0 --coverage -fprofile-update=atomic" # for make coverage
)
# Side by side, with the output of one after the other. The thread sanitizer waits for the plain tests' list.
declare -A running
names=(${ONLY:-plain asan tsan})
for name in "${names[@]}"; do
	if [ "$name" = tsan ] && [ -n "${running[plain]:-}" ]; then
		wait "${running[plain]}" || true # whether they passed is asked below
	fi
	run "$name" ${flags[$name]} > "$out/$name.out" 2>&1 &
	running[$name]=$!
done
bad=0 # 1: a program has failed
for name in "${names[@]}"; do
	wait "${running[$name]}" || bad=1
	cat "$out/$name.out"
done
[ -z "${BUILD_ONLY:-}" ] || exit "$bad"

# A program that dies, before it has counted its tests or after, or that finds none to run, is a failure, too.
awk -v bad="$bad" '
	/^[0-9]+ passed, [0-9]+ failed$/ { passed += $1; failed += $3; counted[FILENAME] = 1 }
	/^0 passed, 0 failed$/ && !ENVIRON["FILTER"] { print FILENAME ": no test of that name"; failed++ }
	END {
		for (i = 1; i < ARGC; i++)
			if (!(ARGV[i] in counted)) {
				print ARGV[i] ": no count of tests at its end"
				failed++
			}
		printf "%d passed, %d failed\n", passed, failed
		exit failed > 0 || passed == 0 || bad
	}' "$out"/*/log
