#!/usr/bin/env bash
# toolchain.sh FOLDER: puts the Go toolchain of this script into FOLDER, from the module proxy of GOPROXY (golang.org/toolchain, as
# go itself does: https://go.dev/doc/toolchain). Its files are checked against the hash below before any of them runs.
set -euo pipefail
export LC_ALL=C
version=1.26.8
case $(uname -m) in # the hashes are those of go.sum: golang.org/x/mod/sumdb/dirhash
x86_64) machine=amd64 want=ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM= ;;
aarch64) machine=arm64 want=sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc= ;;
*) echo "no Go toolchain is known for $(uname -m): get Go from https://go.dev/dl" >&2; exit 1 ;;
esac
folder=$1 module=golang.org/toolchain@v0.0.1-go$version.linux-$machine
mkdir -p "$(dirname "$folder")"
part=$(mktemp -d "$folder.XXXXXX") # in the same file system, so that a rename puts it in place
trap 'rm -rf "$part"' EXIT
for proxy in ${GOPROXY:+${GOPROXY//[,|]/ }} https://proxy.golang.org; do
	[[ $proxy == *://* ]] || continue # off, direct
	url=$proxy/golang.org/toolchain/@v/v0.0.1-go$version.linux-$machine.zip
	echo "fetching Go $version"
	if curl -fsSL --retry 2 --connect-timeout 20 -o "$part/zip" "$url"; then break; fi
done
[ -s "$part/zip" ] || { echo "Go $version cannot be fetched from a module proxy (GOPROXY): get it from https://go.dev/dl" >&2; exit 1; }
unzip -q "$part/zip" -d "$part"
have=$(cd "$part" && find "$module" -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-64 | tr a-f A-F | basenc -d --base16 | base64)
[ "$have" = "$want" ] || { echo "what the module proxy sent for Go $version has the hash $have, not $want: it is not used" >&2; exit 1; }
chmod -R u+w "$part/$module" # zips of modules have no modes
chmod +x "$part/$module"/bin/* "$part/$module"/pkg/tool/linux_"$machine"/*
rm -rf "$folder"
mv "$part/$module" "$folder"
