package stack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// fixed is a Space with given mappings. reads counts the calls of Maps.
type fixed struct {
	mappings []target.Mapping
	err      error
	reads    int
}

func (f *fixed) MappingPath(m target.Mapping) (string, error) { return m.Path, nil }

func (f *fixed) ReadMappings() ([]target.Mapping, error) {
	f.reads++
	return f.mappings, f.err
}

// newWalker returns a walker whose files are closed after the test.
func newWalker(t testing.TB, space Space) *Walker {
	t.Helper()
	files := NewFiles()
	t.Cleanup(func() { _ = files.Close() })
	return New(space, files)
}

// words makes a stack of numbers, for a call from generated code.
func words(values ...uint64) *wire.Sample {
	s := &wire.Sample{Call: wire.Call{Ip: codeAt + 0x10, Sp: stackAt}}
	for _, v := range values {
		s.Memory = binary.LittleEndian.AppendUint64(s.Memory, v)
	}
	return s
}

const (
	codeAt  = 0x10000 // generated code
	stackAt = 0x7000_0000
)

func jit() *fixed {
	return &fixed{mappings: []target.Mapping{
		{Start: codeAt, End: codeAt + 0x1000, Exec: true},
		{Start: codeAt + 0x1000, End: codeAt + 0x2000},
		{Start: stackAt, End: stackAt + 0x1000, Path: "[stack]"},
	}}
}

// Like the shim's unwinder, a walk ignores frame pointers.
func TestFramePointerIsNotFollowed(t *testing.T) {
	s := words(0, 0, stackAt+16, codeAt+0x20, 0)
	s.Bp = stackAt + 16
	if got := newWalker(t, jit()).WalkStack(s, make([]uint64, 0, 8)); !slices.Equal(got, []uint64{codeAt + 0x10}) {
		t.Errorf("frames %#x, want the first alone", got)
	}
}

func TestWalkEndsAtTheTrampolineOfProbes(t *testing.T) {
	space := jit()
	space.mappings[0].Path = "[uprobes]"
	s := words(stackAt+8, codeAt+0x20)
	s.Bp = stackAt
	w := newWalker(t, space)
	if got := w.WalkStack(s, make([]uint64, 0, 8)); len(got) != 1 {
		t.Errorf("frames %#x, want the first alone", got)
	}
	if path, _, ok := w.ModuleOfAddress(codeAt); ok {
		t.Errorf("the trampoline is located in %q", path)
	}
}

// The page is mapped with the first return probe, perhaps after many failed lookups.
func TestTheTrampolineMayComeLate(t *testing.T) {
	const page = 0x7fff_ffff_e000
	space := jit()
	w := newWalker(t, space)
	for range 100 {
		w.ModuleOfAddress(page + 1)
	}
	if w.isUprobeReturn(page) {
		t.Error("there is no such page yet")
	}
	space.mappings = append(space.mappings, target.Mapping{Start: page, End: page + 0x1000, Exec: true, Path: "[uprobes]"})
	if !w.isUprobeReturn(page) || w.isUprobeReturn(page+8) || w.isUprobeReturn(codeAt) {
		t.Error("the beginning of the page alone is where the kernel has functions return to")
	}
}

func TestWalkWithoutStack(t *testing.T) {
	w := newWalker(t, jit())
	s := words()
	if got := w.WalkStack(s, make([]uint64, 0, 8)); !slices.Equal(got, []uint64{s.Ip}) || w.TruncatedCount() != 0 {
		t.Errorf("frames %#x, truncated %d", got, w.TruncatedCount())
	}
	if got := w.WalkStack(s, nil); got != nil {
		t.Errorf("frames %#x where there was no room", got)
	}
	s.Ip = 0
	if got := w.WalkStack(s, make([]uint64, 0, 8)); len(got) != 0 {
		t.Errorf("frames %#x of no address", got)
	}
}

// A file for another machine gives no frames beyond the first, but a name.
func TestForeignFiles(t *testing.T) {
	head := func(class, machine byte) []byte {
		b := make([]byte, elfHeaderSize)
		copy(b, "\x7fELF")
		b[4], b[5], b[18] = class, 1, machine
		return b
	}
	for _, test := range []struct {
		name  string
		data  []byte
		known bool
	}{
		{"32 bits", head(1, 3), true},
		{"another processor", head(2, 183), true},
		{"no program headers", head(2, 62), false},
		{"cut", head(2, 62)[:18], false},
		{"text", []byte("#!/bin/sh"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			space := jit()
			space.mappings[0].Path, space.mappings[0].Inode = path, 7
			s := words(stackAt, codeAt+0x20)
			s.Bp = stackAt
			w := newWalker(t, space)
			if got := w.WalkStack(s, make([]uint64, 0, 8)); len(got) != 1 {
				t.Errorf("frames %#x, want the first alone", got)
			}
			if got, base, ok := w.ModuleOfAddress(codeAt + 5); ok != test.known || ok && (got != path || base != codeAt) {
				t.Errorf("located in %q at %#x: %v", got, base, ok)
			}
		})
	}
}

func TestLocateWithoutTheFile(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone.so")
	part := func(start, offset uint64, exec bool) target.Mapping {
		return target.Mapping{Start: start, End: start + 0x1000, Offset: offset, Exec: exec, Inode: 5, Path: gone}
	}
	w := newWalker(t, &fixed{mappings: []target.Mapping{
		part(0x1000, 0, false), part(0x2000, 0x1000, true), {Start: 0x3000, End: 0x4000},
		part(0x4000, 0, false), part(0x5000, 0x1000, true),
	}})
	for address, want := range map[uint64]uint64{0x2fff: 0x1000, 0x5000: 0x4000} {
		if path, base, ok := w.ModuleOfAddress(address); !ok || path != gone || base != want {
			t.Errorf("%#x is located in %q at %#x (%v), want %#x", address, path, base, ok, want)
		}
	}
	for _, address := range []uint64{0, 0xfff, 0x3000, 0x6000, 1 << 63} {
		if path, base, ok := w.ModuleOfAddress(address); ok {
			t.Errorf("%#x is located in %q at %#x", address, path, base)
		}
	}
}

// Two versions of a library have the same name: each is unwound by its own file.
func TestReplacedFileBesideTheNewOne(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the kernel lets only root open what was replaced")
	}
	folder := t.TempDir()
	path, program := filepath.Join(folder, "library.so"), filepath.Join(folder, "map")
	gcc(t, "-o", program, "testdata/map.c")
	command := exec.Command(program)
	in, out := pipes(t, command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = command.Wait()
	}()
	var at, functions [2]uint64
	for i, option := range []string{"-O2", "-nostartfiles"} {
		gcc(t, "-shared", "-fPIC", "-o", path+".new", "testdata/nest.c", option)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		functions[i] = functionsOf(t, path)
		if _, err := fmt.Fprintln(in, path); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanf(out, "%v\n", &at[i]); err != nil {
			t.Fatal(err)
		}
	}
	p, err := target.OpenProcess(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	w := newWalker(t, p)
	for i, want := range functions {
		module := w.moduleAt(at[i])
		if module == nil || module.image == nil || module.path != path || want == functions[1-i] {
			t.Fatalf("module %d is %+v, want %s with %d functions", i, module, path, want)
		}
		if got := module.image.table.count; got != want {
			t.Errorf("module %d has %d functions, want %d", i, got, want)
		}
	}
}

// functionsOf returns the number of functions with unwind information in a file.
func functionsOf(t *testing.T, path string) uint64 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	image := openImage(bytes.NewReader(data))
	if image == nil {
		t.Fatalf("%s is no ELF file", path)
	}
	return image.table.count
}

// A page of a file may be mapped twice: for the end of one segment and the beginning of the next.
func TestMappingsOfTwoSegmentsInOnePage(t *testing.T) {
	i := &image{segments: []segment{
		{exec: true, offset: 0x1000, address: 0x1000, size: 0x1800},
		{offset: 0x2800, address: 0x3800, size: 0x10},
		{exec: true, offset: 0x2810, address: 0x5810, size: 0x1000},
	}}
	for _, test := range []struct {
		from, to, address uint64 // of the pages of the file
	}{
		{0x1000, 0x3000, 0x1000},
		{0x2000, 0x4000, 0x5000},
		{0x3000, 0x4000, 0x6000}, // its first page has other permissions
	} {
		const at = 0x7f00_0000_0000
		bias, ok := i.loadBias(&target.Mapping{Start: at, End: at + test.to - test.from, Offset: test.from, Exec: true})
		if !ok || bias+test.address != at {
			t.Errorf("page %#x is that of address %#x (%v), want %#x", test.from, at-bias, ok, test.address)
		}
	}
	if bias, ok := i.loadBias(&target.Mapping{End: 0x1000, Offset: 0x4000, Exec: true}); ok {
		t.Errorf("what lies beyond all segments has bias %#x", bias)
	}
}

func TestMappingsAreReadAgainNowAndThen(t *testing.T) {
	space := &fixed{}
	w := newWalker(t, space)
	for range 1000 {
		w.ModuleOfAddress(0x999999)
	}
	if space.reads < 8 || space.reads > 12 {
		t.Errorf("the mappings were read %d times for 1000 unknown addresses", space.reads)
	}
	space.mappings = jit().mappings
	for range 1024 {
		w.ModuleOfAddress(codeAt)
	}
	reads := space.reads
	w.ModuleOfAddress(codeAt)
	if m, _ := w.modules.moduleAt(codeAt); m == nil || space.reads != reads {
		t.Errorf("mapping %v after new ones, read %d times more", m, space.reads-reads)
	}
	w.ModuleOfAddress(0x999999)
	if space.reads != reads+1 {
		t.Errorf("read %d times more: reading had been worth it", space.reads-reads)
	}
	space.err = errors.New("gone")
	w.ModuleOfAddress(0x999999)
	w.ModuleOfAddress(0x999999)
	if m, _ := w.modules.moduleAt(codeAt); m == nil {
		t.Error("what was known is forgotten with the process")
	}
}

// A module is not mistaken for another that was mapped at the same place.
func TestModuleIsNotMistakenForItsPredecessor(t *testing.T) {
	p := start(t, compile(t, "gcc", "testdata/chain.c", "-O2"))
	mappings, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	space := &fixed{mappings: mappings}
	w := newWalker(t, space)
	p.captures[0].check(t, w)
	rows := len(w.rows)
	space.mappings = mappings[:1] // the part where the walker has not been
	w.RenewMappings()
	if got := w.WalkStack(&p.captures[0].sample, make([]uint64, 0, 8)); rows == 0 || len(got) != 1 {
		t.Errorf("%d rows, then frames %#x", rows, got)
	}
	space.mappings = mappings
	w.RenewMappings()
	p.captures[0].check(t, w)
	space.mappings, space.err = nil, errors.New("gone")
	w.RenewMappings()
	p.captures[0].check(t, w)
	space.err = nil // it is ending: its memory goes first
	w.RenewMappings()
	p.captures[0].check(t, w)
}

// What was read while the process existed serves for its calls that are read later.
func TestRenewInTime(t *testing.T) {
	p := start(t, compile(t, "gcc", "testdata/chain.c", "-O2"))
	mappings, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	space := &fixed{mappings: mappings}
	w := newWalker(t, space)
	w.RenewMappings()
	space.mappings, space.err = nil, errors.New("gone")
	p.captures[0].check(t, w)
}

func TestWalkersShareFiles(t *testing.T) {
	path := compile(t, "gcc", "testdata/chain.c", "-O2")
	a, b := start(t, path), start(t, path)
	files := NewFiles()
	one, other := New(a, files), New(b, files)
	a.captures[0].check(t, one)
	images := len(files.images)
	b.captures[0].check(t, other)
	if len(files.images) != images || images == 0 {
		t.Errorf("%d files, then %d", images, len(files.images))
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	one.RenewMappings()
	a.captures[0].check(t, one)
	_ = files.Close()
}

// A rewritten file is another one, even with the same inode.
func TestFilesKnowWhatWasWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	files := NewFiles()
	for i, data := range []string{"no ELF", "\x7fELF but of no machine at all"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if image, ok := files.imageOfFile(path); !ok || (image != nil) != (i == 1) {
			t.Errorf("%q: image %v, %v", data, image, ok)
		}
	}
	for i := range filesMax {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, make([]byte, i), 0o600); err != nil {
			t.Fatal(err)
		}
		files.imageOfFile(name)
	}
	if n := len(files.images); n > filesMax {
		t.Errorf("%d files are kept", n)
	}
	if _, ok := files.imageOfFile("/dev/null"); ok {
		t.Error("a device was opened")
	}
}

func BenchmarkWalk(b *testing.B) {
	p := start(b, compile(b, "gcc", "testdata/chain.c", "-O2", "-fomit-frame-pointer"))
	i := slices.IndexFunc(p.captures, func(c capture) bool { return len(c.frames) >= 8 })
	s := &p.captures[i].sample
	frames := make([]uint64, 0, 8)
	b.Run("warm", func(b *testing.B) {
		w := newWalker(b, p)
		for b.Loop() {
			if len(w.WalkStack(s, frames)) != 8 {
				b.Fatal("too few frames")
			}
		}
	})
	b.Run("cold", func(b *testing.B) {
		w := newWalker(b, p)
		w.WalkStack(s, frames)
		for b.Loop() {
			clear(w.rows)
			w.WalkStack(s, frames)
		}
	})
	b.Run("tag", func(b *testing.B) {
		tags := NewTags(wire.TagsStack, 8, newWalker(b, p), func(*wire.Record) {})
		for b.Loop() {
			if tags.Tag(s, 1) != 1 {
				b.Fatal("another tag")
			}
		}
	})
}

// The walker of a forked process has its parent's mappings and shares new modules, until the mappings of one of them
// change.
func TestForkHasItsParentsMappings(t *testing.T) {
	p := start(t, compile(t, "gcc", "testdata/chain.c", "-O2"))
	mappings, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	parents := &fixed{mappings: mappings}
	parent := newWalker(t, parents)
	parent.RenewMappings()
	gone := &fixed{err: errors.New("gone")}
	child := parent.Clone(gone)
	p.captures[0].check(t, child)
	if len(parent.rows) == 0 || len(parent.rows) != len(child.rows) {
		t.Errorf("%d rows, the parent has %d", len(child.rows), len(parent.rows))
	}
	child.RenewMappings()
	p.captures[0].check(t, child)
	parents.mappings = mappings[:1]
	parent.RenewMappings()
	if got := parent.WalkStack(&p.captures[0].sample, make([]uint64, 0, 8)); len(got) != 1 || len(child.rows) == 0 {
		t.Errorf("the parent has frames %#x, and the child %d rows", got, len(child.rows))
	}
	p.captures[0].check(t, child)
}
