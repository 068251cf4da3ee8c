package export

import (
	"bytes"
	"path/filepath"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	part "codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
)

// TestPerfettoOfRecordings exports real runs: their lifetimes and peaks are the model's, and their sizes within bounds.
func TestPerfettoOfRecordings(t *testing.T) {
	files, err := filepath.Glob("../replay/testdata/*.gmt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := recording.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			want := totals(t, r, ^uint64(0))
			var b bytes.Buffer
			report, err := WritePerfetto(&b, part.CutRange(r, part.Options{}), FactsOfHeader(r.Header()), TraceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			p := readPerfetto(t, b.Bytes())
			p.slices()
			begun, ended, leaked := p.lifetimes()
			if begun != int(report.Lifetimes) || begun != ended || uint64(begun) < want.Creates || leaked != report.Leaks {
				t.Errorf("%d lifetimes begin, %d end, %d leak; %d creates, reported %+v", begun, ended, leaked, want.Creates, report)
			}
			if got := p.peak(); got != want.PeakInUse {
				t.Errorf("the counter is %d at most, the peak %d", got, want.PeakInUse)
			}
			const fixed = 6 << 10 // names, call stacks and tracks
			if ends := 2 * int(want.Creates); b.Len() > fixed+40*ends {
				t.Errorf("%d bytes for %d creates and releases", b.Len(), ends)
			}
		})
	}
}
