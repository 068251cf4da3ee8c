#!/bin/bash
# arm64.sh: what make arm64 built runs under qemu-user, with Debian's PoCL for 64-bit ARM: the shim's tests, and train and pipeline
# bare and under all policies, recorded and reported. It changes nothing outside its folder and needs no rights: PoCL is unpacked
# there, and the programs' interpreter is registered in a namespace of its own.
#
#   arm64.sh DIR    the folder that make arm64 filled
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(realpath "$1")
root=$dir/root
cross=${CROSS:-aarch64-linux-gnu-}
fail() { echo "arm64: $*" >&2; exit 1; }

# Packages of that machine, by a database of packages that is empty.
fetch() {
	local apt=$dir/apt file
	mkdir -p "$apt"/{state/lists,cache/archives}/partial "$root"/{proc,sys,dev,tmp,gpumemtop}
	: > "$apt/status"
	cat > "$apt/conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Install-Recommends "false";
		Dir::State "$apt/state";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Debug::NoLocking "true";
	END
	APT_CONFIG=$apt/conf apt-get -q update
	APT_CONFIG=$apt/conf apt-get -q -y --download-only install bash coreutils pocl-opencl-icd ocl-icd-libopencl1
	for file in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$file" "$root"; done
	rm -rf "$apt"
	touch "$root/complete"
}

programs() {
	local name
	mkdir -p "$dir/bin/examples"
	for name in train pipeline; do
		"${cross}gcc" -std=c11 -O2 -g -Iexamples -Itest/programs -pthread examples/{"$name",gpu,common}.c \
			"$root/usr/lib/aarch64-linux-gnu/libOpenCL.so.1" -o "$dir/bin/examples/$name"
	done
}

# The kernel gives programs for arm64 to qemu, here only.
register() {
	mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
	printf '%s' ':arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$(command -v qemu-aarch64-static)"':F' \
		> /proc/sys/fs/binfmt_misc/register
}

# What qemu-user (seccomp filters, limits of memory, fexecve, process_vm_readv, errors of programs that it starts itself) or a user
# namespace (another user) has not; and the shell of this machine is one for another.
beyond=(behind_a_filter_it_does_not_begin with_few_threads_left_it_only_watches without_address_space_it_only_watches
	without_data_it_only_watches lines_of_python_are_read_without_the_lock_once_they_were_right
	names_of_python_that_are_not_ascii_are_not_read out_of_reach_of_our_library_programs_start_without_it
	programs_for_another_machine_or_libc_start_without_our_library within_reach_of_our_library_the_environment_stays)

shim_tests() {
	local log=$dir/shim-test.log failed
	# It fails by the tests of beyond; what follows judges its log.
	QEMU_LD_PREFIX=$root CC=${cross}gcc ONLY=plain bash shim/test/run.sh "$dir/shim-test" > "$log" 2>&1 || true
	tail -1 "$log"
	grep -qE '^[1-9][0-9]* passed' "$log" || fail "the shim's tests did not run: see $log"
	failed=$(sed -n 's/^FAIL  \([^:]*\):.*/\1/p' "$log" | sort -u | grep -vxFf <(printf '%s\n' "${beyond[@]}") || true)
	[ -z "$failed" ] || fail "tests of the shim failed: $failed"
	[ "$(grep -c '^FAIL' "$log")" = "$(tail -1 "$log" | cut -d ' ' -f 3)" ] || fail "a program of tests died: see $log"
	echo "the shim's tests: all but ${#beyond[@]} that qemu-user cannot run"
}

# In the folder of PoCL's packages.
inside() {
	chroot "$root" /usr/bin/env -i HOME=/tmp PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
}

# same POLICY PROGRAM ARGUMENTS...: under that policy, a program prints what it prints alone, and its recording can be read.
same() {
	local policy=$1 name=$2 bare=$root/tmp/$2.bare out=$root/tmp/out
	shift
	[ -e "$bare" ] || inside "/gpumemtop/examples/$@" > "$bare" 2> /dev/null || fail "$name alone: status $?"
	inside /gpumemtop/gpumemtop record --policy "$policy" -f -o /tmp/run.gmt --summary /tmp/run.json -- "/gpumemtop/examples/$@" > "$out" 2> "$out.err" ||
		fail "$name under $policy: status $?: $(cat "$out.err")"
	cmp "$bare" "$out" || fail "$name under $policy prints something else"
	grep -q '"creates": *[1-9]' "$root/tmp/run.json" || fail "$name under $policy: no create was seen"
	inside /gpumemtop/gpumemtop report /tmp/run.gmt > "$out" || fail "report of $name under $policy: status $?"
	[ "$policy" = auto ] || grep -q "^policy *$policy" "$out" || fail "the report of $name under $policy has another policy"
	[ "$name" != train ] || grep -q 'train.c:[0-9]* create_' "$out" || fail "the report of train under $policy has no call site"
	echo "$name, $policy: as bare"
}

smoke() {
	local policy policies
	mount --rbind /proc "$root/proc"
	mount --rbind /sys "$root/sys"
	mount --rbind /dev "$root/dev"
	mount --bind "$dir/bin" "$root/gpumemtop"
	rm -f "$root"/tmp/*.bare
	inside /gpumemtop/gpumemtop attach -p 1 2> "$root/tmp/out" && fail "attach begins"
	grep -q 'tried on amd64 only' "$root/tmp/out" || fail "attach: $(cat "$root/tmp/out")"
	policies=$(inside /gpumemtop/gpumemtop __complete record --policy "" 2> /dev/null | grep -v '^:')
	[ "$(wc -l <<< "$policies")" -gt 10 ] || fail "policies: $policies"
	for policy in $policies; do
		same "$policy" train 3
		same "$policy" pipeline 3 64K
	done
}

if [ "${2:-}" = inside ]; then
	register
	shim_tests
	smoke
	exit
fi
[ -e "$root/complete" ] || fetch
programs
unshare --user --map-root-user --mount bash "$0" "$dir" inside
