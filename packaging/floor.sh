#!/bin/bash
# floor.sh DIR: stubs of glibc's libraries that offer only what glibc 2.28 has, in its versions. What is linked with -LDIR
# starts with that glibc and with all later ones, wherever it was built.
set -euo pipefail
cc=${CC:-gcc}
read -ra command <<< "$cc"
elf=${READELF:-readelf}

# symbols SONAME FILE...: the newest version of each symbol that is not newer than the floor: TYPE SIZE VERSION NAME. Private ones are
# left out. Linkers before glibc 2.30 look for a symbol in the library that had it, so those that moved into libc since stay at home.
symbols() {
	local soname=$1
	shift
	"$elf" -W --dyn-syms "$@" | awk -v soname="$soname" '
		function home(name) {
			if (newest[name] >= 3200 && name ~ /^dl/)
				return "libdl.so.2"
			if (name == "pthread_atfork" || (newest[name] >= 3200 && name ~ /^(__)?(pthread|sem)_/))
				return "libpthread.so.0"
			return own[name] ? soname : "libc.so.6"
		}
		$1 == "File:" { first = !files++ }
		$7 ~ /^[0-9]+$/ && match($NF, /@+GLIBC_2\.[0-9.]+$/) {
			split(substr($NF, RSTART), version, ".")
			rank = version[2] * 100 + version[3]
			name = substr($NF, 1, RSTART - 1)
			if (first)
				own[name] = 1
			if (rank > newest[name])
				newest[name] = rank
			if (rank <= 2800 && rank >= best[name]) {
				best[name] = rank
				full = substr($NF, RSTART)
				gsub("@", "", full)
				line[name] = ($4 == "OBJECT" ? "object " : "function ") $3 " " full " " name
			}
		}
		END { for (name in line) if (home(name) == soname) print line[name] }' | sort
}

# stub SONAME: a library that defines these symbols and does nothing.
stub() {
	local library=$dir/$1
	symbols "$1" "$("${command[@]}" -print-file-name="$1")" "$("${command[@]}" -print-file-name=libc.so.6)" > "$library.symbols"
	awk '{ print ($1 == "object") ? ".bss" : ".text"; print ".globl " $4 "; .type " $4 ",%" $1 "; .size " $4 "," $2 "; " $4 ": .zero " (($1 == "object") ? $2 : 1) }' \
		"$library.symbols" > "$library.s"
	awk '{ names[$3] = names[$3] " " $4 ";" } END { for (version in names) print version " {" names[version] " };" }' \
		"$library.symbols" | sort -V > "$library.map"
	"${command[@]}" -shared -nostdlib -Wl,-soname,"$1" -Wl,--version-script="$library.map" -o "$library" "$library.s"
}

dir=$1
mkdir -p "$dir"
for name in libc.so.6 libpthread.so.0 libdl.so.2; do
	stub "$name"
done
echo "GROUP ($dir/libc.so.6 $("${command[@]}" -print-file-name=libc_nonshared.a))" > "$dir/libc.so"
