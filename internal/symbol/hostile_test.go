package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/hostileelf"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// A file of some KB takes little memory, whatever it refers to many times: what is kept, and what was made on the way.
func TestHostileFiles(t *testing.T) {
	racetest.Slow(t)
	const keptMost, madeMost = 64 << 20, 4 << 30
	for name, file := range hostileelf.HostileFiles() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if folder := os.Getenv("GMT_HOSTILE"); folder != "" {
				path = filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
			}
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			whole := budget.New(budget.Session / 2)
			said := 0
			r := NewResolver(Options{Budget: whole, Say: func(string) { said++ }})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for offset := uint64(0x1000); offset < 0x1040; offset++ {
				r.FramesAt(path, offset)
			}
			runtime.ReadMemStats(&after)
			made := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes: %d MiB kept, %d MiB made, %d GCs", len(file), whole.UsedBytes()>>20, made>>20, after.NumGC-before.NumGC)
			if used := whole.UsedBytes(); used < 0 || used > keptMost || made > madeMost {
				t.Errorf("%d MiB kept, %d MiB made", used>>20, made>>20)
			}
		})
	}
}

// debug/dwarf returns the end of a list for ever where a unit ends within a number: that took all the work that a file may cost.
func TestUnitThatEndsWithinANumber(t *testing.T) {
	program := build(t, programC, "-g", "-gz=none", "-O2")
	work := func() (used int64, functions int) {
		f, err := openObject(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		d := readDebugSections(f.File, nil)
		d.readUnit(d.units[0])
		return d.work.UsedBytes(), len(d.units[0].functions)
	}
	whole, functions := work()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	info := f.Section(".debug_info")
	bytes, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	bytes[info.Offset+info.Size-1] |= 0x80 // the last end of a list
	if err := errors.Join(f.Close(), os.WriteFile(program, bytes, 0o600)); err != nil {
		t.Fatal(err)
	}
	if cut, same := work(); functions == 0 || same != functions || cut > whole {
		t.Errorf("%d bytes of work for %d functions, %d for %d of the whole unit", cut, same, whole, functions)
	}
}

// The line tables that debug/dwarf reads are the same.
func TestLineTables(t *testing.T) {
	for _, flags := range [][]string{{"-gdwarf-5"}, {"-gdwarf-4"}, {"-gdwarf-3"}, {"-gdwarf-5", "-gz"}} {
		program := build(t, programC, append(flags, "-O2")...)
		f, err := openObject(program)
		if err != nil {
			t.Fatal(err)
		}
		defer f.close()
		data, err := f.DWARF()
		if err != nil {
			t.Fatal(err)
		}
		reader := data.Reader()
		for e, err := reader.Next(); e != nil && err == nil; e, err = reader.Next() {
			lines, err := data.LineReader(e)
			if err != nil || lines == nil {
				continue
			}
			offset, _ := e.Val(dwarf.AttrStmtList).(int64)
			folder, _ := e.Val(dwarf.AttrCompDir).(string)
			ours := readDebugSections(f.File, nil).readLines(uint64(offset), folder)
			rows := 0
			for last, entry := (dwarf.LineEntry{}), (dwarf.LineEntry{}); lines.Next(&entry) == nil; last = entry {
				if rows++; rows == 1 || last.EndSequence || entry.Address == last.Address {
					continue // the latest row of an address counts
				}
				if got, want := ours.lineAt(last.Address), (Frame{File: last.File.Name, Line: last.Line}); got != want {
					t.Errorf("%v: %x is in %v, want %v", flags, last.Address, got, want)
				}
			}
			if rows == 0 || rows != len(ours.rows) {
				t.Errorf("%v: %d rows, want %d", flags, len(ours.rows), rows)
			}
		}
	}
}
