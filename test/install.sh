#!/bin/bash
# install.sh: what make install puts into a folder works from there, and make uninstall leaves nothing of it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

make -s install DESTDIR="$folder" PREFIX=/opt/x > /dev/null
[ "$("$folder/opt/x/bin/gpumemtop" version)" = "$(bin/gpumemtop version)" ] || fail "another version"
"$folder/opt/x/bin/gpumemtop" record -o "$folder/tiny.gmt" -- bin/examples/tiny > /dev/null 2>&1 || fail "it runs no program"
"$folder/opt/x/bin/gpumemtop" info "$folder/tiny.gmt" | grep -q tiny || fail "it recorded nothing"
rm "$folder/tiny.gmt"
share=$folder/opt/x/share
for file in doc/gpumemtop/LICENSE doc/gpumemtop/grafana.json man/man1/gpumemtop.1 man/man1/gpumemtop-report.1 man/man5/gpumemtop-recording.5 man/man7/gpumemtop-metrics.7 zsh/site-functions/_gpumemtop \
	fish/vendor_completions.d/gpumemtop.fish bash-completion/completions/gpumemtop; do
	[ -s "$share/$file" ] || fail "no $file"
done
bash -n "$share/bash-completion/completions/gpumemtop" || fail "the completions for bash are none"
grep -q '^\.TH GPUMEMTOP-REPORT 1' "$share/man/man1/gpumemtop-report.1" || fail "the manual page has no title"
for page in "$share"/man/man?/*; do
	mandoc -T lint "$page" || fail "mandoc warns of $page"
done
for section in SYNOPSIS OPTIONS ENVIRONMENT FILES 'EXIT STATUS' EXAMPLES; do
	grep -q "^\.SH $section" "$share/man/man1/gpumemtop-report.1" || fail "the manual page has no $section"
done
grep -q '^\.SH DAMAGE' "$share/man/man5/gpumemtop-recording.5" || fail "the page on recordings lacks a section"
make -s uninstall DESTDIR="$folder" PREFIX=/opt/x
left=$(find "$folder" -type f)
[ -z "$left" ] || fail "uninstall left $left"
if make -s install DESTDIR="$folder" PREFIX= > /dev/null 2>&1; then fail "an empty PREFIX is taken"; fi

# A toolchain that is not the one of packaging/toolchain.sh is not used.
version=$(sed -n 's/^version=//p' packaging/toolchain.sh)
at=$folder/golang.org/toolchain/@v
mkdir -p "$at"
for machine in amd64 arm64; do
	other=golang.org/toolchain@v0.0.1-go$version.linux-$machine/bin
	mkdir -p "$folder/other/$other"
	echo 'echo another' > "$folder/other/$other/go"
	(cd "$folder/other" && python3 -m zipfile -c "$at/v0.0.1-go$version.linux-$machine.zip" golang.org)
done
said=$(GOPROXY=file://$folder bash packaging/toolchain.sh "$folder/go" 2>&1) && fail "another toolchain is taken"
[[ $said == *"it is not used"* && ! -e $folder/go ]] || fail "another toolchain: $said"
echo "installed, tried and removed"
