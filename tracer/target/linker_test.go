package target

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The hook is where the process itself reports it.
func TestHookIsWhereTheProcessReportsIt(t *testing.T) {
	s := start(t, holder(t), "libc.so.6", "-", LinkerHook)
	p, maps := opened(t, s.Process.Pid)
	c := NewCatalog(someCore, nil)
	for range 2 { // read, then cached
		l, ok := c.LinkerOfProcess(p, maps)
		if !ok || len(l.Functions) != 1 {
			t.Fatalf("%+v, %v", l, ok)
		}
		if want := offsetOf(t, maps, s.addresses[LinkerHook]); l.Functions[LinkerHook] != want {
			t.Errorf("the hook is at %#x of %s, want %#x", l.Functions[LinkerHook], l.Path, want)
		}
	}
	l, _ := c.LinkerOfProcess(p, maps)
	known := false
	for _, other := range c.KnownLinkers() {
		known = known || other.Identity == l.Identity && other.Functions[LinkerHook] == l.Functions[LinkerHook]
	}
	if !known {
		t.Errorf("%s is not among %+v", l.Path, c.KnownLinkers())
	}
}

// A linker elsewhere, as in a container, and one without a hook.
func TestOtherLinkers(t *testing.T) {
	p, maps := opened(t, start(t, holder(t)).Process.Pid)
	l, ok := NewCatalog(someCore, nil).LinkerOfProcess(p, maps)
	if !ok {
		t.Fatal("the linker is not found")
	}
	other := copyOf(t, l.Open, "ld-musl-x86_64.so.1")
	// The linker runs the program.
	s := start(t, other, holder(t))
	p, maps = opened(t, s.Process.Pid)
	if got, ok := NewCatalog(someCore, nil).LinkerOfProcess(p, maps); !ok || got.Path != other || got.Functions[LinkerHook] != l.Functions[LinkerHook] {
		t.Errorf("%+v, %v", got, ok)
	}
	named := build(t, "ld-named.so", "int f(void) { return 1; }", "-shared", "-fPIC")
	static := build(t, "static", holderSource, "-static", "-ldl", "-Wno-all")
	p, maps = opened(t, start(t, static).Process.Pid)
	if got, ok := NewCatalog(someCore, nil).LinkerOfProcess(p, maps); ok {
		t.Errorf("a program without a linker has %+v", got)
	}
	for _, path := range []string{named, filepath.Dir(named), "/dev/null", named + "x"} {
		var info unix.Stat_t
		_ = unix.Stat(path, &info) // the last does not exist
		if offset := NewCatalog(nil, nil).hookOffset(path, &info); offset != 0 {
			t.Errorf("%s has a hook at %#x", path, offset)
		}
	}
}

// A file that replaces another while it is examined is not mistaken for it.
func TestReplacedMeanwhile(t *testing.T) {
	linker := NewCatalog(someCore, nil).KnownLinkers()[0]
	later := copyOf(t, linker.Open, "ld-later.so")
	var info unix.Stat_t
	if err := unix.Stat(linker.Open, &info); err != nil {
		t.Fatal(err)
	}
	c := NewCatalog(someCore, nil)
	if offset := c.hookOffset(later, &info); offset != 0 || len(c.linkers) != 0 {
		t.Errorf("a hook at %#x, remembered: %v", offset, c.linkers)
	}
	if found, err := c.contentOfFile(later, &info); found != nil || err != nil || len(c.files) != 0 {
		t.Errorf("%+v, %v, remembered: %v", found, err, c.files)
	}
}

// In any file, a hook is found only if the file has its name.
func FuzzHook(f *testing.F) {
	data, err := os.ReadFile(build(f, "hook.so", "void "+LinkerHook+"(void) { }", "-shared", "-fPIC", "-nostdlib"))
	if err != nil {
		f.Fatal(err)
	}
	if findHook(bytes.NewReader(data)) == 0 {
		f.Fatal("the hook is not found")
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if offset := findHook(bytes.NewReader(data)); offset != 0 && !bytes.Contains(data, []byte(LinkerHook)) {
			t.Errorf("a hook at %#x of a file that does not name it", offset)
		}
	})
}
