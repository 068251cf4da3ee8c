#!/bin/bash
# nightly.sh TARGET...: makes each of them, one after the other, and says how long each took and which failed. Their output goes to
# build/nightly/TARGET.log.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build/nightly
failed=()
for target in "$@"; do
	begun=$SECONDS result=passed
	make "$target" >"build/nightly/$target.log" 2>&1 || { result="FAILED: build/nightly/$target.log"; failed+=("$target"); }
	took=$((SECONDS - begun))
	printf '%-14s %3d:%02d min  %s\n' "$target" $((took / 60)) $((took % 60)) "$result" | tee -a build/nightly/log
done
[ ${#failed[@]} = 0 ]
