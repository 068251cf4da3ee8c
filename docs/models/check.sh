#!/bin/sh
# check.sh [MODEL...]: has spin visit every state of each model, several models at a time. With each fault that a model can be built
# with (FAULT=1 to FAULTS), spin has to find an error: a model that cannot fail proves nothing. LARGE=1 gives larger bounds, for
# minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run LOG CC-FLAGS PAN-FLAGS
run() {
	cc $how -w $2 -o pan pan.c
	./pan -m1000000 $3 >"$1"
	! grep -E '^pan:1: |max search depth too small|out of memory' "$1"
}

# visit MODEL FAULT: prints what spin finds wrong, and how many states it visited.
visit() {
	rm -f ./*
	how=-O0 # the states are visited sooner than compilers optimize
	[ -z "${LARGE:-}" ] || how='-O1 -DCOLLAPSE'
	spin -a -DFAULT="$2" ${LARGE:+-DLARGE} "$here/$1.pml" >spin.log 2>&1 || { cat spin.log; exit 1; }
	run safety.log '-DNOCLAIM -DSAFETY' '' || return 0
	claims=$(sed -n 's/^ltl \([a-z_]*\) .*/\1/p' "$here/$1.pml")
	for claim in $claims; do
		run "$claim.log" '' "-a -f -N $claim" 2>/dev/null || return 0
	done
	sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1 states/p' safety.log
}

status=0
[ $# -gt 0 ] || set -- $(cd "$here" && ls ./*.pml | sed 's,^./,,; s,\.pml$,,')
if [ $# -gt 1 ]; then # the large ones one after the other, because of their memory
	printf '%s\n' "$@" | xargs -n 1 -P "${LARGE:-$(nproc)}" "$here/check.sh"
	exit
fi
for model; do
	found=$(visit "$model" 0)
	case $found in
	*pan:* | *depth* | *memory*) echo "$model: FAILS: $found"; status=1 ;;
	*) echo "$model: $found, no error" ;;
	esac
	for fault in $(seq "$(sed -n 's/^#define FAULTS *//p' "$here/$model.pml")"); do
		case $(visit "$model" "$fault") in
		*pan:*) ;;
		*) echo "$model: spin does not find fault $fault"; status=1 ;;
		esac
	done
done
exit $status
