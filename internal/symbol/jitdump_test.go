package symbol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// jitFile is a jitdump in the making.
type jitFile struct{ bytes.Buffer }

func newJitFile() *jitFile {
	f := &jitFile{}
	f.numbers(uint32(jitMagic), uint32(1), uint32(jitHeader), uint32(62), uint32(0), uint32(7), uint64(0), uint64(0))
	return f
}

func (f *jitFile) numbers(values ...any) {
	for _, v := range values {
		_ = binary.Write(&f.Buffer, binary.LittleEndian, v) // a buffer takes all
	}
}

func (f *jitFile) record(id uint32, tail string, values ...any) {
	body := &jitFile{}
	body.numbers(values...)
	body.WriteString(tail)
	f.numbers(id, uint32(jitPrefix+body.Len()), uint64(0))
	f.Write(body.Bytes())
}

func (f *jitFile) load(start, size uint64, name string) {
	f.record(jitLoad, name+"\x00"+string(make([]byte, size)), uint32(7), uint32(7), start, start, size, uint64(1))
}

func sampleJit() *jitFile {
	f := newJitFile()
	f.load(0x1000, 0x40, "JS:~step /a/solve.js:42:9")
	f.record(jitLines, "Solver.java\x00"+"\x08\x20\x00\x00\x00\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\xff\x00", uint64(0x2000), uint64(2), uint64(0x2000), int32(7), uint32(0))
	f.record(99, "unknown")
	f.load(0x2000, 100_000, "void Solver.step(int)")
	f.record(jitMove, "", uint32(7), uint32(7), uint64(0), uint64(0x1000), uint64(0x90000), uint64(0x40), uint64(1))
	return f
}

func TestJitDump(t *testing.T) {
	b := sampleJit().Bytes()
	for _, split := range []int{len(b), 10, jitHeader, jitHeader + 20, len(b) - 3} {
		m, d := &PerfMap{}, &jitDump{}
		d.readRecords(bytes.NewReader(b[:split]), m)
		d.readRecords(bytes.NewReader(b[d.read:]), m)
		for address, want := range map[uint64]Frame{
			0x1001: {Function: "step", File: "/a/solve.js", Line: 42}, 0x1041: {},
			0x2005:  {Function: "void Solver.step(int)", File: "Solver.java", Line: 7},
			0x2009:  {Function: "void Solver.step(int)", File: "Solver.java", Line: 11},
			0x90001: {Function: "step", File: "/a/solve.js", Line: 42},
		} {
			if got := m.FrameAt(address); got != want {
				t.Errorf("read up to %d first, 0x%x: %+v, want %+v", split, address, got, want)
			}
		}
	}
}

// TestJitDumpIsFound: a process maps its own, as it is written for perf.
func TestJitDumpIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), fmt.Sprintf("jit-%d.dump", os.Getpid()))
	if err := os.WriteFile(path, sampleJit().Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	page, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page) //nolint:errcheck // the process ends
	if got := NewMapOfProcess(os.Getpid(), Options{}).FrameAt(0x1001); got.Function != "step" {
		t.Errorf("%+v", got)
	}
}

// TestJitDumpOfTheDead: node leaves it where it began.
func TestJitDumpOfTheDead(t *testing.T) {
	d := &jitDump{pid: 1 << 30, folder: t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.folder, fmt.Sprintf("jit-%d.dump", d.pid)), sampleJit().Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (&PerfMap{dump: d}).FrameAt(0x1001); got.Function != "step" {
		t.Errorf("%+v", got)
	}
}

func FuzzJitDump(f *testing.F) {
	f.Add(sampleJit().Bytes(), uint64(0x2009), 100)
	f.Add([]byte("DTiJ"), uint64(0), 0)
	f.Fuzz(func(t *testing.T, b []byte, address uint64, split int) {
		whole, parts := &PerfMap{}, &PerfMap{}
		(&jitDump{}).readRecords(bytes.NewReader(b), whole)
		d := &jitDump{}
		d.readRecords(bytes.NewReader(b[:max(0, min(split, len(b)))]), parts)
		if !d.broken {
			d.readRecords(bytes.NewReader(b[d.read:]), parts)
		}
		if got, want := parts.FrameAt(address), whole.FrameAt(address); got != want {
			t.Errorf("%+v, read in two parts %+v", want, got)
		}
	})
}
