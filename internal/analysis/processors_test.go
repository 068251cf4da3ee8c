package analysis_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestTwoProcessorsWriteTheSame compares the reports that one processor makes with those of two.
func TestTwoProcessorsWriteTheSame(t *testing.T) {
	names, err := filepath.Glob("../report/testdata/*.gmt")
	if err != nil || len(names) < 6 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		for i := range 40 {
			damaged[len(damaged)/2+i] ^= 0x55
		}
		for kind, content := range map[string][]byte{"whole": whole, "damaged": damaged, "cut": whole[:len(whole)*2/3]} {
			copied := filepath.Join(t.TempDir(), "copy.gmt")
			if err := os.WriteFile(copied, content, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := recording.Open(copied)
			if err != nil {
				t.Fatal(name, kind, err)
			}
			footer, ended := r.Footer()
			compareProcessors(t, name+" "+kind, r, analysis.Options{Header: r.Header(), Footer: footer, Whole: ended})
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTwoProcessorsWriteTheSameOfRandomRuns is the same for random runs, with and without their last records.
func TestTwoProcessorsWriteTheSameOfRandomRuns(t *testing.T) {
	for seed := range uint64(8) {
		list := randomrun.Make(seed, randomrun.Options{Processes: int(1 + seed%5), Steps: 6000, Gap: 1_000_000 >> (seed % 3 * 8), Exits: randomrun.Exits(seed % 3)})
		for _, part := range []bool{false, true} {
			tape := &records.Tape{Records: list, Part: part}
			o := analysis.Options{Header: recording.Header{ClockNS: randomrun.Start}, Whole: !part}
			o.Footer.EndedNS = list[len(list)-1].Time + 20_000_000_000
			if seed%4 == 3 {
				o.Since, o.Header.ClockNS = time.Millisecond, 0
			}
			compareProcessors(t, fmt.Sprintf("run %d, part %t", seed, part), tape, o)
		}
	}
}

// TestTwoProcessorsCountTheSameObjects is the same for iterations that leave objects of each type.
func TestTwoProcessorsCountTheSameObjects(t *testing.T) {
	tape := labtest.New().By(7)
	kept := tape.Buffer(1<<20, 1)
	for n := range uint64(400) {
		part := tape.Buffer(100, 2)
		tape.Last().Event = wire.CreateFields{Time: tape.Last().Time, Memory: wire.MemorySubBuffer, Tag: 2, Object: part, Parent: kept, Requested: 100, Granted: 100}.Event()
		brief := tape.Buffer(5000, 3)
		tape.Add(wire.TransferFields{Site: 4}.Event())
		tape.Add(wire.UseFields{Command: wire.CommandMap, Object: kept, Tag: 1, Bytes: 8}.Event())
		for range 2 {
			tape.Add(wire.UseFields{Command: wire.CommandAcquire, Object: kept, Tag: 1}.Event())
			tape.Add(wire.RetainFields{Site: 5, Object: kept, References: 2 + n}.Event())
		}
		tape.Add(wire.UseFields{Command: wire.CommandRelease, Object: kept, Tag: 1}.Event())
		tape.Add(wire.ReleaseFields{Object: kept, References: 1 + n}.Event())
		tape.Add(wire.ObjectFields{Held: wire.HeldEvent, Tag: 6, Created: 2 * n, Released: n, Most: n}.Event())
		tape.Release(brief, wire.OutcomeDriver)
	}
	grown := compareProcessors(t, "objects", tape, analysis.Options{Whole: true}).Phases[0].Objects
	if len(grown) != 5 {
		t.Errorf("iterations leave %+v", grown)
	}
}

func compareProcessors(t *testing.T, name string, src recording.Source, o analysis.Options) (a *analysis.Analysis) {
	t.Helper()
	var pages [2]bytes.Buffer
	for i := range pages {
		before := runtime.GOMAXPROCS(i + 1)
		var err error
		a, err = analysis.Analyse(src, o)
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(name, err)
		}
		all := report.Options{All: true}
		if err := errors.Join(report.WriteText(&pages[i], a, all), report.WriteJSON(&pages[i], a, all), report.WriteMarkdown(&pages[i], a, all),
			report.WriteHTML(&pages[i], a, all)); err != nil {
			t.Fatal(name, err)
		}
	}
	one, two := bytes.Split(pages[0].Bytes(), []byte("\n")), bytes.Split(pages[1].Bytes(), []byte("\n"))
	for i := range min(len(one), len(two)) {
		if !bytes.Equal(one[i], two[i]) {
			t.Fatalf("%s: two processors write\n%.2000s\nand one\n%.2000s", name, two[i], one[i])
		}
	}
	if len(one) != len(two) {
		t.Errorf("%s: two processors write %d lines, one %d", name, len(two), len(one))
	}
	return a
}
