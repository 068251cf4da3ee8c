# help.awk: a manual page from what a command says with --help-all, and from what all of them share.
#
#   gpumemtop report --help-all | awk -f help.awk -v name=gpumemtop-report -v day=2026-01-31 -v summary='show figures'

# plain keeps roff from reading text as its own.
function plain(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text ~ /^[.']/ ? "\\&" text : text
}

# as_it_is shows lines that are not to be filled.
function as_it_is(lines) { return lines == "" ? "" : ".nf\n" lines ".fi\n" }

# part ends a row: a flag or a command, and what explains it.
function part() {
	if (term != "") rows = rows ".TP\n.B " plain(term) "\n" plain(about) "\n"
	term = about = ""
}

# Sections begin with lines like "Usage:". Before the first stands the description, and after the last are sentences on all flags.
/^[A-Z].*:$/ && (place != "" || /^Usage:/) {
	part()
	place = substr($0, 1, length($0) - 1)
	if (place != "Usage" && place != "Examples") heading = ".SS " place "\n"
	next
}
place == "" {
	if ($0 == "") description = description (block ? ".fi\n" : "") ".PP\n"
	block = $0 == "" ? 0 : block
	if (/^ / && !block) { description = description ".nf\n"; block = 1 }
	if ($0 != "") description = description plain($0) "\n"
	next
}
/^$/ { next }
place == "Usage" { usage = usage plain(substr($0, 3)) "\n"; next }
place == "Examples" { examples = examples plain(substr($0, 3)) "\n"; next }
/^[^ ]/ { part(); notes = notes plain($0) "\n"; next }
/^  [^ ]/ {
	part()
	rows = rows heading
	heading = ""
	gap = match(substr($0, 3), /   *[^ ]/) # two blanks or more
	term = gap ? substr($0, 3, gap - 1) : substr($0, 3)
	about = gap ? substr($0, gap + 2) : ""
	sub(/^ +/, "", about)
	next
}
{ sub(/^ +/, ""); about = about (about == "" ? "" : " ") $0 }

END {
	part()
	sub(/\.PP\n$/, "", description)
	printf(".TH %s 1 %s\n.SH NAME\n%s \\- %s\n", toupper(name), day, plain(name), plain(summary))
	printf(".SH SYNOPSIS\n%s.SH DESCRIPTION\n%s", as_it_is(usage), description)
	if (rows != "") printf(".SH OPTIONS\n%s", rows)
	printf(".SH ENVIRONMENT\n%sNO_COLOR turns colours off.\n", notes)
	printf(".SH FILES\n.TP\n.I ~/.config/gpumemtop/config.toml\nsettings, which 'gpumemtop config' shows\n")
	printf(".TP\n.I ~/.local/state/gpumemtop\nwhat the dashboard remembers of its layout\n")
	printf(".SH EXIT STATUS\n.TP\n.B 0\nsuccess; commands that run a program end with the program's own status\n")
	printf(".TP\n.B 1\nwhat was asked for does not hold, where the description says so\n.TP\n.B 125\ngpumemtop failed, and says why\n")
	printf(".TP\n.B 126, 127\nthe program cannot be executed, or was not found\n")
	if (examples != "") printf(".SH EXAMPLES\n%s", as_it_is(examples))
	printf(".SH SEE ALSO\n%s.BR gpumemtop\\-recording (5),\n.BR gpumemtop\\-metrics (7)\n", name == "gpumemtop" ? "" : ".BR gpumemtop (1),\n")
}
