package target

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// cacheOf builds a cache of the dynamic linker.
func cacheOf(entries ...[2]string) []byte {
	const header, size = 48, 24
	data := make([]byte, header+size*len(entries))
	copy(data, "glibc-ld.so.cache1.1")
	binary.LittleEndian.PutUint32(data[20:], uint32(len(entries)))
	for i, e := range entries {
		at := data[header+i*size:]
		flags := uint32(0x0303)
		if strings.HasPrefix(e[1], "/lib32") {
			flags = 0x0803
		}
		binary.LittleEndian.PutUint32(at, flags)
		for j, text := range e {
			binary.LittleEndian.PutUint32(data[header+i*size+4+4*j:], uint32(len(data)))
			data = append(data, text+"\x00"...)
		}
	}
	return data
}

func TestParseCache(t *testing.T) {
	data := cacheOf([2]string{"libOpenCL.so.1", "/opt/rocm/lib/libOpenCL.so.1"}, [2]string{"libOpenCLUtils.so.1", "/lib/libOpenCLUtils.so.1"},
		[2]string{"libOpenCL.so.1", "/lib32/libOpenCL.so.1"}, [2]string{"libOpenCL.so", "/lib/libOpenCL.so"}, [2]string{"libc.so.6", "/lib/libc.so.6"})
	want := []string{"/opt/rocm/lib/libOpenCL.so.1", "/lib/libOpenCL.so"}
	if list, err := parseLinkerCache(data); err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := parseLinkerCache(append([]byte("ld.so-1.7.0\x00\x00\x00\x00\x00"), data...)); err != nil || !slices.Equal(list, want) {
		t.Errorf("after an old table: %v, %v", list, err)
	}
	for _, bad := range [][]byte{nil, []byte("nonsense"), data[:40], data[:100]} {
		if list, err := parseLinkerCache(bad); err == nil {
			t.Errorf("%d bytes: %v", len(bad), list)
		}
	}
}

// ldconfig lists the cache.
func TestKnownLoaders(t *testing.T) {
	out, err := exec.Command("/sbin/ldconfig", "-p").Output()
	if err != nil {
		t.Skipf("this system has no ldconfig: %v", err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		name, path, found := strings.Cut(strings.TrimSpace(line), " => ")
		if found && strings.HasPrefix(name, "libOpenCL.so") && strings.Contains(name, "x86-64") {
			if path, err = filepath.EvalSymlinks(path); err == nil && !slices.Contains(want, path) {
				want = append(want, path)
			}
		}
	}
	if got := KnownLoaders(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDistinct(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/libOpenCL.so.1.0.0", "")
	if err := os.Symlink("libOpenCL.so.1.0.0", dir+"/libOpenCL.so"); err != nil {
		t.Fatal(err)
	}
	got := distinctFiles([]string{dir + "/libOpenCL.so", dir + "/libOpenCL.so.1.0.0", dir + "/none", dir})
	if !slices.Equal(got, []string{dir + "/libOpenCL.so.1.0.0"}) {
		t.Error(got)
	}
}

func FuzzCache(f *testing.F) {
	f.Add(cacheOf([2]string{"libOpenCL.so.1", "/lib/libOpenCL.so.1"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseLinkerCache(data)
		if err == nil && slices.ContainsFunc(list, func(path string) bool { return !filepath.IsAbs(path) }) {
			t.Error(list)
		}
	})
}
