package target

import (
	"os"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	library := fakeLibrary(t)
	s := start(t, holder(t), library, "-", "clCreateBuffer")
	p, _, l := sole(t, s.Process.Pid)
	e, err := p.LocateFunction("clX", s.addresses["clCreateBuffer"])
	want := Extension{"clX", library, library, l.Identity, l.Functions["clCreateBuffer"]}
	if err != nil || e != want {
		t.Errorf("%+v, %v, want %+v", e, err, want)
	}
	if e, err := p.LocateFunction("clX", 8); err == nil || !strings.Contains(err.Error(), "0x8") {
		t.Errorf("%+v, %v", e, err)
	}
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	e, err = p.LocateFunction("clX", s.addresses["clCreateBuffer"])
	if os.Geteuid() == 0 && (err != nil || e.Offset != want.Offset || !strings.Contains(e.Open, "/map_files/")) {
		t.Errorf("of a deleted file: %+v, %v", e, err)
	}
}

// A process may claim any address as that of a function, also one of data.
func TestLocateNoCode(t *testing.T) {
	p, maps := opened(t, start(t, holder(t), fakeLibrary(t)).Process.Pid)
	for i := range maps {
		m := &maps[i]
		if e, err := p.LocateFunction("clX", m.Start); err == nil && !m.Exec {
			t.Errorf("%+v in %+v", e, m)
		}
	}
}

func TestTheBeginningOfAFile(t *testing.T) {
	library := fakeLibrary(t)
	p, maps := opened(t, start(t, holder(t), library).Process.Pid)
	n := 0
	for i := range maps {
		if m := &maps[i]; m.Path == library {
			n++
			if b := p.firstMapping(m); b == nil || b.Offset != 0 || b.Path != library {
				t.Errorf("%+v begins with %+v", m, b)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d mappings", n)
	}
	if b := p.firstMapping(&Mapping{Offset: 4096, Inode: 1, Path: library}); b != nil {
		t.Errorf("%+v", b)
	}
}
