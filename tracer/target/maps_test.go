package target

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const someMaps = `564811155000-564811157000 r--p 00000000 fe:00 247026                     /usr/bin/cat
564811157000-56481115c000 r-xp 00002000 fe:00 247026                     /usr/bin/cat
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
7f0000001000-7f0000002000 r-xp 0001f000 103:02 18446744073709551615      /opt/my libs/lib\012x.so.1 (deleted)
7f0000002000-7f0000003000 rw-s 00000000 00:01 5                          /memfd:a b (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00022000-7ffd00024000 r-xp 00000000 00:00 0                          [vdso]
7ffd00024000-7ffd00025000 r--p 00000000 00:00 0                          [anon:glibc: x (deleted)]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`

func TestParseMaps(t *testing.T) {
	list, err := parseMaps(strings.NewReader(someMaps))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mapping{
		{0x564811155000, 0x564811157000, 0, false, unix.Mkdev(0xfe, 0), 247026, "/usr/bin/cat"},
		{0x564811157000, 0x56481115c000, 0x2000, true, unix.Mkdev(0xfe, 0), 247026, "/usr/bin/cat"},
		{0x7f0000000000, 0x7f0000001000, 0, false, 0, 0, ""},
		{0x7f0000001000, 0x7f0000002000, 0x1f000, true, unix.Mkdev(0x103, 2), 1<<64 - 1, "/opt/my libs/lib\nx.so.1"},
		{0x7f0000002000, 0x7f0000003000, 0, false, unix.Mkdev(0, 1), 5, "/memfd:a b"},
		{0x7ffd00000000, 0x7ffd00021000, 0, false, 0, 0, "[stack]"},
		{0x7ffd00022000, 0x7ffd00024000, 0, true, 0, 0, "[vdso]"},
		{0x7ffd00024000, 0x7ffd00025000, 0, false, 0, 0, "[anon:glibc: x (deleted)]"},
		{0xffffffffff600000, 0xffffffffff601000, 0, true, 0, 0, "[vsyscall]"},
	}
	if !slices.Equal(list, want) {
		t.Errorf("%+v", list)
	}
	for _, bad := range []string{
		"nonsense", "1-2 r-xp 0 0:0", "1-2 r 0 0:0 0", "2-1 r-xp 0 0:0 0", "1-2 r-xp 0 0:0 x /a", "1-2 r-xp 0 00 1 /a",
		strings.Repeat("x", 2*lineMax),
	} {
		if list, err := parseMaps(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q: %+v", bad, list)
		}
	}
}

func TestManyMappings(t *testing.T) {
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "%x-%x rw-p 00000000 00:00 0 \n", i*4096, (i+1)*4096)
	}
	text := b.String()
	list, err := parseMaps(strings.NewReader(text))
	if err != nil || len(list) != 60_000 {
		t.Fatalf("%d mappings: %v", len(list), err)
	}
	allocations := testing.AllocsPerRun(1, func() {
		if _, err := parseMaps(strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	})
	if allocations > 1000 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestInSession(t *testing.T) {
	p := &Process{PID: 7, fs: procfs(t.TempDir())}
	start := func(environment string) {
		if err := os.MkdirAll(filepath.Dir(p.fs.pathOfFile(p.PID, "environ")), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.fs.pathOfFile(p.PID, "environ"), []byte(environment), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := []Mapping{{Path: "/usr/lib/libOpenCL.so.1", Inode: 1, Exec: true}}
	start("A=1\x00GPUMEMTOP_SESSION=/run/user/0/gpumemtop-x\x00")
	if p.RunsUnderGpumemtop(list) {
		t.Error("in a session without the library")
	}
	list = append(list, Mapping{Path: "/run/user/0/gpumemtop-x/libgpumemtop.so", Inode: 2, Exec: true})
	if !p.RunsUnderGpumemtop(list) {
		t.Error("not in a session with the library")
	}
	if start("GPUMEMTOP_LOG=/log\x00NO_GPUMEMTOP_SESSION=1\x00"); p.RunsUnderGpumemtop(list) {
		t.Error("in a session with a flight log")
	}
	if files := filesWithCode(list); len(files) != 1 || files[0].Inode != 1 {
		t.Errorf("%v are looked at", files)
	}
}

func FuzzMaps(f *testing.F) {
	for line := range strings.Lines(someMaps) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseMaps(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		for i := range list {
			if list[i].End < list[i].Start {
				t.Errorf("%+v", list[i])
			}
		}
		filesWithCode(list)
	})
}
