package target

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// KnownLoaders returns the ICD loaders that later programs will probably map, so that they can be probed before the first
// call. It reads the cache that the dynamic linker uses, which includes the folders of /etc/ld.so.conf, where vendors put
// their loaders. Without that cache (musl, NixOS) it searches the standard folders. It does not find private copies.
func KnownLoaders() []string {
	data, err := os.ReadFile("/etc/ld.so.cache")
	if err == nil {
		if list, err := parseLinkerCache(data); err == nil {
			return distinctFiles(list)
		}
	}
	var list []string
	for _, dir := range []string{
		"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/run/opengl-driver/lib",
	} {
		found, err := filepath.Glob(dir + "/" + loaderName + "*")
		if err == nil {
			list = append(list, found...)
		}
	}
	return distinctFiles(list)
}

const loaderName = "libOpenCL.so"

// distinctFiles resolves links and returns each regular file once.
func distinctFiles(paths []string) []string {
	var list []string
	seen := map[Identity]bool{}
	for _, path := range paths {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		var info unix.Stat_t
		if unix.Stat(resolved, &info) != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if id := (Identity{Device: info.Dev, Inode: info.Ino}); !seen[id] {
			seen[id] = true
			list = append(list, resolved)
		}
	}
	return list
}

var errCache = errors.New("not a cache of the dynamic linker")

// parseLinkerCache returns the loaders that the dynamic linker's cache lists for our processor (struct cache_file_new in glibc's
// sysdeps/generic/dl-cache.h). Old caches begin with a table in an older format.
func parseLinkerCache(data []byte) ([]string, error) {
	const (
		magic      = "glibc-ld.so.cache1.1"
		headerSize = 48
		entrySize  = 24
		kindMask   = 0xffff // the rest are properties
		ours       = 0x0303 // FLAG_X8664_LIB64 | FLAG_ELF_LIBC6
	)
	at := bytes.Index(data, []byte(magic))
	if at < 0 || len(data)-at < headerSize {
		return nil, errCache
	}
	data = data[at:]
	count := binary.LittleEndian.Uint32(data[len(magic):])
	if uint64(count)*entrySize > uint64(len(data)-headerSize) {
		return nil, errCache
	}
	var list []string
	for i := range int(count) {
		entry := data[headerSize+i*entrySize:]
		if binary.LittleEndian.Uint32(entry)&kindMask != ours {
			continue
		}
		name := string(textAt(data, binary.LittleEndian.Uint32(entry[4:]), unix.PathMax))
		if name == loaderName || strings.HasPrefix(name, loaderName+".") {
			if path := string(textAt(data, binary.LittleEndian.Uint32(entry[8:]), unix.PathMax)); filepath.IsAbs(path) {
				list = append(list, path)
			}
		}
	}
	return list, nil
}

// textAt returns the text at an offset that ends with NUL. It returns nil if there is none, or one of longest bytes or
// more.
func textAt(data []byte, offset uint32, longest int) []byte {
	if uint64(offset) >= uint64(len(data)) {
		return nil
	}
	data = data[offset:]
	end := bytes.IndexByte(data[:min(longest, len(data))], 0)
	return data[:max(end, 0)]
}
