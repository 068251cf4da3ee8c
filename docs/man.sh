#!/bin/bash
# man.sh: manual pages from what gpumemtop says of itself, one for it and one for each command, and from the documents on
# recordings and metrics.
#
#   man.sh GPUMEMTOP FOLDER    FOLDER/man1, man5 and man7
set -euo pipefail
program=$1 folder=$2 documents=$(dirname "$0") day=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%F)
mkdir -p "$folder"/man{1,5,7}

# wrap breaks lines of running text at 79 columns, which mandoc -T lint asks for. It counts a character beyond ASCII as \[uXXXX].
wrap() {
	LC_ALL=C awk '
		function width(text) { gsub(/[\300-\377][\200-\277]+/, "12345678", text); return length(text) }
		/^\.(nf|EX)/ { kept = 1 }
		/^\.(fi|EE)/ { kept = 0 }
		kept || /^\./ { print; next }
		{
			line = $1
			for (i = 2; i <= NF; i++) {
				if (width(line " " $i) <= 79) line = line " " $i
				else { print line; line = ($i ~ /^[.\047]/ ? "\\&" : "") $i }
			}
			print line
		}'
}

# page NAME SUMMARY COMMAND... writes a page.
page() {
	local name=$1 summary=$2
	shift 2
	"$program" "$@" --help-all < /dev/null | awk -f "$documents/help.awk" -v name="$name" -v day="$day" -v summary="${summary%.}" | wrap > "$folder/man1/$name.1"
}

page gpumemtop "watch the device memory of OpenCL programs, and serve it from a pool"
"$program" --help < /dev/null | awk '/^[A-Z].*:$/ { on = !/^(Usage|Examples):/ } on && /^  [a-z]+  +[A-Z]/' | while read -r command summary; do
	page "gpumemtop-$command" "$summary" "$command"
done

# document NAME SECTION SUMMARY FILE
document() {
	awk -f "$documents/man.awk" -v name="gpumemtop-$1" -v section="$2" -v day="$day" -v summary="$3" "$documents/$4" | wrap > "$folder/man$2/gpumemtop-$1.$2"
}
document recording 5 "the format of gpumemtop's recordings" FORMAT.md
document metrics 7 "what gpumemtop's figures mean" METRICS.md
