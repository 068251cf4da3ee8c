#!/bin/bash
# man.sh: manual pages from what gpumemtop says of itself: one for it, and one for each command.
#
#   man.sh GPUMEMTOP FOLDER
set -euo pipefail
program=$1 folder=$2

# page NAME SUMMARY COMMAND... writes a page.
page() {
	local name=$1 summary=$2 help
	shift 2
	help=$("$program" "$@" --help < /dev/null)
	{
		echo ".TH ${name^^} 1"
		echo ".SH NAME"
		escaped <<<"$name - ${summary%.}" | sed 's/\\-/-/; s/-/\\-/'
		echo ".SH DESCRIPTION"
		echo ".nf"
		escaped <<<"$help"
		echo ".fi"
	} > "$folder/$name.1"
}

# escaped keeps roff from reading text as its own: backslashes, hyphens, and dots and quotes at the start of a line.
escaped() { sed "s/\\\\/\\\\e/g; s/-/\\\\-/g; s/^[.']/\\\\\&&/"; }

page gpumemtop "watch the device memory of OpenCL programs, and serve it from a pool"
"$program" --help | awk '/^[A-Z].*ommands.*:$/ { on = 1 } /^$/ { on = 0 } on && /^  [a-z]/' | while read -r command summary; do
	page "gpumemtop-$command" "$summary" "$command"
done
