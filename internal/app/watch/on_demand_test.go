package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// demand makes an OnDemand with what a run has until now.
func demand(t *testing.T, run []wire.Record) (*OnDemand, func(from, to int)) {
	t.Helper()
	t.Chdir(t.TempDir())
	setup, err := NewSetup(&SetupOptions{PolicyChoice: PolicyChoice{Policy: "futhark"}, Tags: "stack", Depth: 8, Scrub: "none"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewOutputs(OutputOptions{}, &Subject{Name: "app", Setup: setup}, &console.Notes{})
	if err != nil {
		t.Fatal(err)
	}
	model := stats.New(stats.Options{})
	o.Notes.HoldMessages()
	o.RecordOnDemand(model)
	return o.Recorder.(*OnDemand), func(from, to int) {
		for i := range run[from:to] {
			model.Apply(&run[from+i])
			if err := o.Recorder.Append(&run[from+i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRecordingOnDemandIsAPart: a recording that starts and stops during a run has what trim makes of the whole.
func TestRecordingOnDemandIsAPart(t *testing.T) {
	for seed := range uint64(20) {
		run := randomrun.MakeRun(seed, randomrun.Options{Steps: 400, Apart: true, Exits: randomrun.Never})
		from, to := len(run)/3, 2*len(run)/3
		for run[from].Kind.IsMadeLater() || run[from-1].Kind.IsMadeLater() {
			from++
		}
		for run[to].Kind.IsMadeLater() || run[to-1].Kind.IsMadeLater() {
			to++
		}
		d, take := demand(t, run)
		take(0, from)
		text, err := d.Toggle(0)
		if err != nil || !strings.HasPrefix(text, "recording into ./gpumemtop.app.") || d.Path() == "" {
			t.Fatalf("%q, %v", text, err)
		}
		take(from, to)
		if text, err = d.Toggle(0); err != nil || !strings.HasPrefix(text, "recorded ") || d.Path() != "" {
			t.Fatalf("%q, %v", text, err)
		}
		take(to, len(run))
		if err := d.Close(recording.Footer{Status: 7}); err != nil {
			t.Error(err)
		}
		names, err := filepath.Glob("*.gmt")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		reader, err := recording.Open(names[0])
		if err != nil {
			t.Fatal(err)
		}
		until := run[to-1].Time
		want := records.ReadAll(t, extract.CutRange(&randomrun.Tape{Records: run}, extract.Options{Since: run[from-1].Time + 1, Until: until}))
		got := records.ReadAll(t, reader)
		for _, list := range [][]wire.Record{want, got} {
			for i := range list {
				if list[i].Kind == wire.KindCooled && list[i].Time <= run[from-1].Time+1 || list[i].Kind.IsMadeLater() {
					list[i].Time = 0 // of the moment that the part begins, and of names that come late
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-part +recorded):\n%s", seed, diff)
		}
		footer, whole := reader.Footer()
		if !whole || !footer.Cut || footer.Status != -1 || footer.EndedNS != until || reader.Damage() != "" {
			t.Errorf("footer %+v, %s", footer, reader.Damage())
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordingOnDemandUntilTheEnd: the program's end completes a recording, with its status; where no file can be made, none is written.
func TestRecordingOnDemandUntilTheEnd(t *testing.T) {
	run := randomrun.MakeRun(3, randomrun.Options{Steps: 100})
	d, take := demand(t, run)
	take(0, 50)
	text, err := d.Toggle(0)
	if err != nil {
		t.Fatal(text, err)
	}
	path := d.Path()
	take(50, len(run))
	if err := d.Close(recording.Footer{Status: 7, EndedNS: run[len(run)-1].Time}); err != nil {
		t.Error(err)
	}
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	records.ReadAll(t, reader)
	if footer, whole := reader.Footer(); !whole || footer.Cut || footer.Status != 7 {
		t.Errorf("footer %+v", footer)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if text, err := d.Toggle(0); err == nil || d.Path() != "" || d.Flush() != nil || d.Bytes() != 0 {
		t.Errorf("recorded into a folder that is gone: %q", text)
	}
}
