package advise

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// textWidth is how many columns the texts have at most.
const textWidth = 100

// of returns the advice for recordings.
func of(t *testing.T, o Options, paths ...string) *Result {
	t.Helper()
	r := New(o)
	for i, path := range paths {
		add(t, r, path, recording.Header{Created: time.Unix(int64(i), 1)}) // some are of one file
	}
	return advised(t, r)
}

func add(t *testing.T, r *Reader, path string, header recording.Header) {
	t.Helper()
	reader, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(r.AddRecording(Recording{Name: filepath.Base(path), Source: reader, Header: header}), reader.Close())
	if err != nil {
		t.Fatal(err)
	}
}

func advised(t *testing.T, r *Reader) *Result {
	t.Helper()
	result, err := r.AdviseOnRuns()
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func usual() Options { return Options{Options: merging.Options{Form: merging.Completion, Max: true}} }

func text(t *testing.T, r *Result, most int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, most, textWidth); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGolden compares advice with golden files; go test -update rewrites them. mosaic copies what could be created in
// place; the other recordings are of earlier versions of the format.
func TestGolden(t *testing.T) {
	for _, path := range []string{
		"testdata/mosaic.gmt", "../report/testdata/pipeline.gmt", "../report/testdata/train.gmt",
	} {
		r := of(t, usual(), path)
		name := strings.TrimSuffix(filepath.Base(path), ".gmt")
		t.Run(name+".txt", func(t *testing.T) { golden.RequireEqual(t, text(t, r, 20)) })
		t.Run(name+".json", func(t *testing.T) {
			var b bytes.Buffer
			if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
				t.Fatal(err)
			}
			golden.RequireEqual(t, b.Bytes())
		})
	}
}

// Every recording that is committed, of every version, gives advice that fits 100 columns.
func TestAllRecordings(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"../report/testdata/*.gmt", "../recording/testdata/*.gmt", "testdata/*.gmt"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		paths = append(paths, found...)
	}
	for _, form := range []merging.Form{merging.API, merging.Completion, merging.Uses} {
		for _, path := range paths {
			r := of(t, Options{Options: merging.Options{Form: form}}, path)
			for line := range strings.Lines(string(text(t, r, -1))) {
				if units.Width(strings.TrimSuffix(line, "\n")) > textWidth {
					t.Errorf("%s: %q", path, line)
				}
			}
		}
	}
}

// Two recordings of one program make what holds in both safe; a part of a file that is damaged makes nothing safe.
func TestSafeInTwoRecordings(t *testing.T) {
	const path = "testdata/mosaic.gmt"
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn.gmt")
	if err := os.WriteFile(torn, whole[:len(whole)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		second  string
		verdict merging.Verdict
	}{{path, merging.Safe}, {torn, merging.Unsure}} {
		p := of(t, usual(), path, test.second).Programs[0]
		if len(p.Runs) != 2 || len(p.Advice) == 0 || p.Advice[0].Verdict != test.verdict {
			t.Errorf("with %s: %d runs, %+v; want the first %s", test.second, len(p.Runs), p.Advice, test.verdict)
		}
		if test.verdict == merging.Unsure && (p.Advice[len(p.Advice)-1].Verdict != merging.Unsure || len(p.Runs[1].Lacks) == 0) {
			t.Errorf("%+v", p)
		}
	}
}

// TestCopiesOfARecordingAreOne: copies and parts of a recording, and recordings merged from it, show no more runs than
// it does.
func TestCopiesOfARecordingAreOne(t *testing.T) {
	at := func(host string, s int64) recording.Header {
		return recording.Header{Host: host, Created: time.Unix(s, 0)}
	}
	merged := func(s int64) recording.Header {
		return recording.Header{Host: "a", Created: time.Unix(9, 0), Merged: []recording.Origin{{Host: "a", Created: time.Unix(s, 0), First: 1, Last: 9}}}
	}
	part := recording.Header{Host: "a", Created: time.Unix(4, 0), ClockNS: 3e9}
	for name, test := range map[string]struct {
		first, second recording.Header
		want          merging.Verdict
	}{
		"a copy":           {at("a", 1), recording.Header{Host: "a", Created: time.Unix(1, 0).UTC()}, merging.HoldsHere},
		"another time":     {at("a", 1), at("a", 2), merging.Safe},
		"another host":     {at("a", 1), at("b", 1), merging.Safe},
		"a part":           {at("a", 1), part, merging.HoldsHere},
		"a part of others": {at("a", 3), part, merging.Safe},
		"merged":           {at("a", 1), merged(1), merging.HoldsHere},
		"merged before":    {merged(2), at("a", 2), merging.HoldsHere},
		"merged of others": {merged(2), at("a", 3), merging.Safe},
		"not known":        {recording.Header{}, recording.Header{}, merging.Safe},
	} {
		r := New(usual())
		add(t, r, "testdata/mosaic.gmt", test.first)
		add(t, r, "testdata/mosaic.gmt", test.second)
		p := advised(t, r).Programs[0]
		lacks := p.Runs[1].Lacks
		said := len(lacks) > 0 && strings.HasPrefix(lacks[len(lacks)-1], "it was recorded together with what is in mosaic.gmt")
		if p.Advice[0].Verdict != test.want || said != (test.want == merging.HoldsHere) {
			t.Errorf("%s: %s, %q", name, p.Advice[0].Verdict, lacks)
		}
	}
}

func TestNothingAndLittle(t *testing.T) {
	nothing := New(usual())
	if err := nothing.AddRecording(Recording{Name: "x.gmt", Source: &records.Tape{}}); err != nil {
		t.Fatal(err)
	}
	none, err := nothing.AdviseOnRuns()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text(t, none, 5)); got != "x.gmt has no records of memory, so there is nothing to advise.\n" {
		t.Errorf("%q", got)
	}
	r := of(t, usual(), "testdata/mosaic.gmt")
	if got := string(text(t, r, 1)); !strings.Contains(got, "3 more: --max 0 shows all\n") {
		t.Errorf("%s", got)
	}
	path := "testdata/mosaic.gmt"
	many := of(t, usual(), slices.Repeat([]string{path}, runsMax+2)...)
	if got := string(text(t, many, 1)); strings.Count(got, "RUN ") != runsMax || !strings.Contains(got, "2 runs more: --max 0 shows all") {
		t.Errorf("%s", got)
	}
	if got := string(text(t, many, -1)); strings.Count(got, "RUN ") != runsMax+2 {
		t.Errorf("%s", got)
	}
	few := usual()
	few.Steps = 10
	if got := string(text(t, of(t, few, "testdata/mosaic.gmt"), 1)); !strings.Contains(got, "only the first 10 steps") {
		t.Errorf("%s", got)
	}
	failing := errors.New("full")
	if err := r.WriteText(refuse{failing}, 1, textWidth); !errors.Is(err, failing) {
		t.Error(err)
	}
	if err := r.WriteJSON(refuse{failing}); !errors.Is(err, failing) {
		t.Error(err)
	}
}

type refuse struct{ err error }

func (r refuse) Write([]byte) (int, error) { return 0, r.err }
