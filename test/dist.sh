#!/bin/bash
# dist.sh: what make dist made is the same when it is made again, whole, and works from the tarball.
#
#   dist.sh OUT    the folder that packaging/dist.sh filled
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "dist: $*" >&2; exit 1; }

bash packaging/dist.sh "$folder/again" > /dev/null
diff -r "$out" "$folder/again" || fail "made again, it differs"
(cd "$out" && sha256sum --quiet -c SHA256SUMS) || fail "the checksums are wrong"
tar -C "$folder" -xzf "$out"/*.tar.gz
program=$(echo "$folder"/gpumemtop-*/bin/gpumemtop)
[ "$("$program" version)" = "$(bin/gpumemtop version)" ] || fail "the tarball has another version"
"$program" record -o "$folder/tiny.gmt" -- bin/examples/tiny > /dev/null 2>&1 || fail "the tarball's program runs no program"
dpkg-deb -c "$out"/*.deb > "$folder/files"
for file in bin/gpumemtop share/man/man1/gpumemtop.1.gz share/man/man5/gpumemtop-recording.5.gz share/man/man7/gpumemtop-metrics.7.gz \
	share/doc/gpumemtop/copyright share/doc/gpumemtop/licences.txt.gz share/bash-completion/completions/gpumemtop share/zsh/vendor-completions/_gpumemtop; do
	grep -q " ./usr/$file\$" "$folder/files" || fail "the package has no $file"
done
least=$(dpkg-deb -f "$out"/*.deb Depends | sed -n 's/^libc6 (>= \([0-9.]*\))$/\1/p')
printf '%s\n' "${least:-9}" 2.28 | sort -V -C || fail "the package depends on more than glibc 2.28"
if command -v lintian > /dev/null; then
	lintian --allow-root "$out"/*.deb > "$folder/lintian" || fail "lintian: $(cat "$folder/lintian")"
	[ ! -s "$folder/lintian" ] || fail "lintian: $(cat "$folder/lintian")"
fi
echo "made twice the same, unpacked and tried"
