#!/bin/bash
# gains.sh: what gpumemtop gains programs of others: the table of docs/GAINS.md, as Markdown. Needs what its programs need:
# apt-get install clblast-utils darktable ffmpeg hashcat python3-pyopencl python3-opencv libviennacl-dev libboost-dev g++ mesa-opencl-icd
#
#   gains.sh [PROGRAM...]    DRIVERS="pocl rusticl" RUNS=5
#
# Times are processor seconds of program and gpumemtop, user and system: on these drivers the processor computes, and they
# depend least on what else runs. Modes alternate; each figure is the least of RUNS. Peaks are what the driver gave out.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${RUNS:-5}
gpumemtop=$PWD/bin/gpumemtop
work=$(mktemp -d)
root=$PWD
trap 'rm -rf "$work"' EXIT
cd "$work" # some programs write files
export OPENCV_OPENCL_DEVICE=:CPU: RUSTICL_ENABLE=llvmpipe HOME=$work PATH=/usr/bin:$PATH GPUMEMTOP_CONFIG=
TIMEFORMAT='%U %S'

declare -A programs=(
	[arrays]="python3 $root/bench/gains/arrays.py 20 1000"
	[arrays-large]="python3 $root/bench/gains/arrays.py 4 4096"
	[umat]="python3 $root/bench/gains/umat.py 5 2048"
	[umat-large]="python3 $root/bench/gains/umat.py 4 6000"
	[solver]="$work/solver 10 100000"
	[sort]="$work/sort 6 1000000"
	[ffmpeg]="ffmpeg -v error -nostdin -init_hw_device opencl=gpu -filter_hw_device gpu -f lavfi -i testsrc=size=1280x720:rate=5:duration=1
		-vf format=yuv420p,hwupload,avgblur_opencl=3,unsharp_opencl,hwdownload,format=yuv420p -f md5 -"
	[xdot]="clblast_tuner_xdot -runs 1 -n 1000000"
	[copy]="clblast_tuner_copy_pad -runs 1 -fraction 50"
	[gemm]="clblast_tuner_routine_xgemm -runs 1"
	[hashcat]="hashcat -m 0 -a 3 --potfile-disable --force -w 1 -D 1 --quiet --session g 23734cd52ad4a4fb877d8a1e26e5df5f ?l?l?l?d"
	# It takes no device that says that it is a processor, so there is no row for PoCL.
	[darktable]="env RUSTICL_DEVICE_TYPE=gpu darktable-cli $work/picture.png $work/developed.jpg --core --library :memory:
		--configdir $work/darktable --cachedir $work/darktable --conf opencl=true"
)

# seconds FILE COMMAND... prints the processor time; what the program prints goes to FILE.
seconds() {
	local out=$1
	shift
	{ time "$@" < /dev/null > "$out" 2> "$work/errors"; } 2>&1 | awk '{ printf("%.2f", $1 + $2) }'
}

# peak FILE KEY prints a figure of a summary, in MiB.
peak() { awk -v key="\"$2\":" '$1 == key { sum += $2; exit } END { printf("%.1f", sum / 1048576) }' "$1"; }

least() { sort -n "$1" | head -1; }

# row DRIVER PROGRAM
row() {
	local command mode run cells=
	read -r -d '' -a command <<< "${programs[$2]}" || true # it fails at the end of the text, and has read it
	rm -f "$work"/*.time
	if ! "${command[@]}" < /dev/null > "$work/expected" 2> /dev/null; then # this run also fills the driver's caches
		echo "| $2 | $1 | fails without gpumemtop | | | | |"
		return
	fi
	for ((run = 0; run < runs; run++)); do
		echo "$(seconds "$work/out" "${command[@]}")" >> "$work/bare.time"
		for mode in futhark slab arena auto; do
			echo "$(seconds "$work/out" "$gpumemtop" --headless --policy "$mode" --summary "$work/$mode.json" -f -- "${command[@]}")" >> "$work/$mode.time"
		done
	done
	"$gpumemtop" record --policy none -f -o "$work/run.gmt" --summary "$work/none.json" -- "${command[@]}" < /dev/null > /dev/null 2>&1
	cells="$(least "$work/bare.time") s, $(peak "$work/none.json" peak_reserved)"
	for mode in futhark slab arena auto; do
		cells+=" | $(least "$work/$mode.time") s, $(peak "$work/$mode.json" peak_reserved)"
	done
	echo "| $2 | $1 | $cells |"
	"$gpumemtop" report "$work/run.gmt" | sed -n '/^FINDINGS/,/^$/p' | sed '1d; s/^/<!-- /; s/$/ -->/' | head -4 >&2
}

g++ -O1 -w -DCL_TARGET_OPENCL_VERSION=120 "$root"/bench/gains/solver.cpp -o "$work/solver" -lOpenCL
g++ -O1 -w -DCL_TARGET_OPENCL_VERSION=120 "$root"/bench/gains/sort.cpp -o "$work/sort" -lOpenCL
ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=2400x1600 -frames:v 1 "$work/picture.png"
[ $# -gt 0 ] || set -- arrays arrays-large umat umat-large solver sort ffmpeg xdot copy gemm hashcat darktable
echo "| program | driver | bare | futhark | slab | arena | auto |"
echo "|---|---|---|---|---|---|---|"
for driver in ${DRIVERS:-pocl rusticl}; do
	export OCL_ICD_VENDORS=/etc/OpenCL/vendors/$driver.icd
	for program in "$@"; do
		[ "$program on $driver" = "darktable on pocl" ] || row "$driver" "$program"
	done
done
