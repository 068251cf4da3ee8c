#!/bin/bash
# dist.sh: what make install installs as a Debian package and a tarball, with a bill of materials and checksums. The same
# programs give the same bytes.
#
#   dist.sh OUT    a folder, which is replaced
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC GOFLAGS="-trimpath -tags=netgo"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
umask 022
program=bin/gpumemtop

# A tag v1.2.3 is version 1.2.3; four commits later it is 1.2.3+4.gHASH; without a tag it is 0+ALL.gHASH.
version() {
	local tag
	if tag=$(git describe --tags --match 'v[0-9]*' --abbrev=10 2> /dev/null); then
		sed 's/^v//; s/-\([0-9]*\)-g/+\1.g/; s/-/~/g' <<< "$tag"
	else
		echo "0+$(git rev-list --count HEAD).g$(git rev-parse --short=10 HEAD)"
	fi
}

# The modules in the program: NAME VERSION.
modules() { "${GO:-go}" version -m "$program" | awk '$1 == "dep" { print $2, $3 }'; }

licences() {
	local name version folder
	modules | while read -r name version; do
		folder=$("${GO:-go}" list -m -f '{{.Dir}}' "$name")
		printf '\n\n---- %s %s ----\n\n' "$name" "$version"
		find "$folder" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) -print0 | sort -z | xargs -0 cat
	done
	printf '\n\n---- Go %s ----\n\n' "$("${GO:-go}" env GOVERSION)"
	cat "$("${GO:-go}" env GOROOT)/LICENSE"
}

# A CycloneDX bill of materials.
materials() {
	printf '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,"metadata":{"component":{"type":"application","name":"gpumemtop","version":"%s"}},"components":[' "$version"
	modules | awk '{ printf("%s\n{\"type\":\"library\",\"name\":\"%s\",\"version\":\"%s\",\"purl\":\"pkg:golang/%s@%s\"}", (NR > 1) ? "," : "", $1, $2, $1, $2) }'
	printf '\n]}\n'
}

# The least glibc whose symbols a file needs.
glibc() { objdump -T "$1" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1 | cut -d _ -f 2; }

# Puts what both have into $root.
fill() {
	make -s install DESTDIR="$root" PREFIX=/usr > /dev/null
	strip "$root/usr/bin/gpumemtop"
	licences > "$root/usr/share/doc/gpumemtop/licences.txt"
	find "$root" -name '*.[157]' -exec gzip -9n {} +
}

settle() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

# What Debian has its own forms for: copyright, changelog, and what lintian may find.
debianise() {
	local doc=$root/usr/share/doc/gpumemtop
	mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" # the folder that Debian's zsh reads
	mv "$doc/LICENSE" "$doc/copyright"
	printf '\nThe licences of the Go modules in the program are in licences.txt.gz beside this file.\n' >> "$doc/copyright"
	gzip -9n "$doc/licences.txt"
	gzip -9nc CHANGELOG.md > "$doc/NEWS.md.gz"
	printf 'gpumemtop (%s) unstable; urgency=medium\n\n  * See NEWS.md.gz.\n\n -- %s  %s\n' "$version" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" |
		gzip -9n > "$doc/changelog.gz"
	install -d "$root/usr/share/lintian/overrides"
	printf '# Go links programs at fixed addresses.\ngpumemtop: hardening-no-pie\n' > "$root/usr/share/lintian/overrides/gpumemtop"
}

package() {
	debianise
	mkdir "$root/DEBIAN"
	cat > "$root/DEBIAN/control" <<-END
		Package: gpumemtop
		Version: $version
		Architecture: $architecture
		Maintainer: $maintainer
		Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f 1)
		Depends: libc6 (>= $(printf '%s\n' build/libgpumemtop*.so "$program" | while read -r file; do glibc "$file"; done | sort -V | tail -1))
		Recommends: ocl-icd-libopencl1 | libopencl1
		Section: utils
		Priority: optional
		Homepage: https://codeberg.org/gpumemtop/gpumemtop
		Description: profiler and caching allocator for OpenCL programs' memory
		 gpumemtop runs OpenCL programs without recompiling them, shows where their
		 device memory goes, and serves their buffers from a pool whose policy and
		 limits change while they run. It records, replays, compares and reports.
	END
	(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
	settle "$root"
	dpkg-deb -Zgzip --root-owner-group -b "$root" "$out/gpumemtop_${version}_$architecture.deb" > /dev/null
}

tarball() {
	local name=gpumemtop-$version-linux-$architecture
	cp -a "$root/usr" "$work/$name"
	cp README.md CHANGELOG.md "$work/$name"
	settle "$work/$name"
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$name" | gzip -9n > "$out/$name.tar.gz"
}

work=$(mktemp -d)
root=$work/root
maintainer='The gpumemtop authors <gpumemtop@users.noreply.codeberg.org>'
trap 'rm -rf "$work"' EXIT
version=$(version)
architecture=$(dpkg --print-architecture)
rm -rf "$out"
mkdir -p "$out"
fill
tarball
package
materials > "$out/gpumemtop-$version.cdx.json"
(cd "$out" && sha256sum -- * > SHA256SUMS)
ls -l "$out"
