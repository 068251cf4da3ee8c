# man.awk: a manual page from one of the documents beside it, which use only part of Markdown: sections, paragraphs, points,
# quotes, blocks, tables, and words in bold, italics or code.
#
#   awk -f man.awk -v name=gpumemtop-recording -v section=5 -v summary='what it is' FORMAT.md

BEGIN {
	printf(".TH %s %d %s\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", toupper(name), section, day, plain(name), plain(summary))
}

# plain keeps roff from reading text as its own.
function plain(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# line is a line of its own: no request, whatever it begins with.
function line(text) { return text ~ /^[.']/ ? "\\&" text : text }

# words has fonts for what is between marks, and of a link its text.
function words(text, parts, n, i, out) {
	n = split(text, parts, "`")
	for (i = 1; i <= n; i++) out = out (i % 2 ? styled(plain(parts[i])) : "\\fB" plain(parts[i]) "\\fP")
	return line(out)
}

function styled(text, link) {
	text = between(text, "[*][*][^*]+[*][*]", 2, "\\fB", "\\fP")
	text = between(text, "[*][^* ][^*]*[*]", 1, "\\fI", "\\fP")
	while (match(text, /\[[^]]+\]\([^)]*\)/)) {
		link = substr(text, RSTART + 1, RLENGTH - 1)
		text = substr(text, 1, RSTART - 1) substr(link, 1, index(link, "](") - 1) substr(text, RSTART + RLENGTH)
	}
	return text
}

# between puts what a pattern finds, without its marks, into a font.
function between(text, pattern, marks, on, off, out) {
	while (match(text, pattern)) {
		out = out substr(text, 1, RSTART - 1) on substr(text, RSTART + marks, RLENGTH - 2 * marks) off
		text = substr(text, RSTART + RLENGTH)
	}
	return out text
}

# row shows a row of a table as what stands in its first cell, with the next, and the others after their titles.
function row(cells, n, i, text) {
	n = split(substr($0, 3, length($0) - 4), cells, / *\| */)
	if (!titles) { titles = n; for (i = 1; i <= n; i++) title[i] = cells[i]; return }
	for (i = 2; i <= n; i++) if (cells[i] != "") text = text (text == "" ? "" : "; ") (i == 2 ? "" : title[i] ": ") cells[i]
	if (cells[1] !~ /^-*$/) print ".TP\n.B " words(cells[1]) "\n" words(text)
}

/^<!--/ { next }
/^\|/ { row(); next }
{ titles = 0 }
/^```/ { print block ? ".EE" : ".PP\n.EX"; block = !block; next }
block { print line(plain($0)); next }
# The empty line after a heading starts no paragraph.
/^##* / { getline empty; apart = 0 }
/^# / { next }
/^## / { print ".SH " words(toupper(substr($0, 4))); next }
/^### / { print ".SS " words(substr($0, 5)); next }
/^$/ { if (quote) print ".RE"; quote = 0; apart = 1; next }
/^\* / { print ".IP \\(bu 2\n" words(substr($0, 3)); apart = 0; next }
/^> / { print ".PP\n.RS 2\n" words(substr($0, 3)); apart = 0; quote = 1; next }
{
	if (apart) print ".PP"
	apart = 0
	sub(/^ +/, "")
	print words($0)
}
