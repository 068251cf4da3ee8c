package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	part "codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/chromelint"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// run draws what a trace can show whole.
func run(t *rapid.T) []wire.Record {
	return randomrun.DrawRun(t, randomrun.Options{SlabsCool: true, Exits: randomrun.Never, NoReferences: true, NoOvertaking: true})
}

// withExits returns a run with the ends of its processes: what a process that goes on holds is no leak.
func withExits(records []wire.Record) []wire.Record {
	list, seen := slices.Clone(records), map[uint32]bool{}
	for i := range records {
		if r := &records[i]; r.Process != 0 && !seen[r.Process] {
			seen[r.Process] = true
			list = append(list, wire.Record{Event: wire.ExitFields{Time: records[len(records)-1].Time}.Event(), Process: r.Process})
		}
	}
	return list
}

// TestChromeRandom holds the trace of any run to the rules, and its figures to the model's.
func TestChromeRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := run(rt)
		var b bytes.Buffer
		if _, err := WriteChrome(&b, &tape{Records: withExits(records)}, Facts{ClockNS: origin}, TraceOptions{CountersEvery: 1000}); err != nil {
			rt.Fatal(err)
		}
		got, problems := chromelint.LintTrace(&b)
		if len(problems) > 0 {
			rt.Fatal(problems)
		}
		totals := fold(records).Totals
		have := fmt.Sprint(got.Creates, got.Hits, got.Misses, got.PeakInUse, got.LeakedBytes, got.Leaks,
			got.Last["mem in_use"], got.Last["mem cached"], got.Last["mem cooling"])
		want := fmt.Sprint(totals.Creates, totals.Hits, totals.Misses, totals.PeakInUse, totals.InUse, totals.LiveBuffers,
			float64(totals.InUse), float64(totals.Cached), float64(totals.Cooling))
		if have != want {
			rt.Errorf("the trace says %s, the model %s", have, want)
		}
	})
}

// TestChromeRandomOptions holds it to the rules whatever is left out.
func TestChromeRandomOptions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := run(rt)
		opts := TraceOptions{
			MaxEvents:   rapid.Uint64Range(0, 100).Draw(rt, "most"),
			NoLifetimes: rapid.Bool().Draw(rt, "none"),
			Lifetimes:   rapid.IntRange(0, 3).Draw(rt, "tags"),
			MinSize:     rapid.Uint64Range(0, 1<<20).Draw(rt, "smallest"),
			Flows:       rapid.Bool().Draw(rt, "flows"),
		}
		opts.Compact = !opts.Flows && rapid.Bool().Draw(rt, "compact")
		if rapid.Bool().Draw(rt, "only") {
			opts.Tag = regexp.MustCompile("[12]$")
		}
		some := part.Options{Since: origin + rapid.Uint64Range(0, 90_000).Draw(rt, "since")}
		if rapid.Bool().Draw(rt, "ends") {
			some.Until = some.Since + rapid.Uint64Range(0, 90_000).Draw(rt, "length")
		}
		var b bytes.Buffer
		if _, err := WriteChrome(&b, part.CutRange(&tape{Records: records}, some), Facts{ClockNS: origin}, opts); err != nil {
			rt.Fatal(err)
		}
		if _, problems := chromelint.LintTrace(&b); len(problems) > 0 {
			rt.Fatal(problems)
		}
	})
}

// FuzzChrome gives it nonsense: the result is JSON without anything that the importer dies of.
func FuzzChrome(f *testing.F) {
	f.Add([]byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x0a\x01\xff\x7f", 8)), uint64(0), uint64(0))
	f.Add(bytes.Repeat([]byte{1, 1, 10, 0, 2, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9}, 16), uint64(1), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, since, most uint64) {
		list := exportrun.NonsenseRecords(data)
		var b bytes.Buffer
		if _, err := WriteChrome(&b, &tape{Records: list}, Facts{Program: string(data), Since: time.Duration(since)}, TraceOptions{MaxEvents: most, Flows: most%2 > 0}); err != nil {
			t.Fatal(err)
		}
		checkNonsense(t, b.Bytes())
	})
}

// checkNonsense checks the trace of a run that could not be.
func checkNonsense(t *testing.T, text []byte) {
	t.Helper()
	if !json.Valid(text) {
		t.Fatalf("no JSON: %q", text)
	}
	_, problems := chromelint.LintTrace(bytes.NewReader(text))
	for _, p := range problems {
		for _, bad := range []string{"control", "negative", "overlaps", "no number", "is not open", "without an end", "ends before", "ends as"} {
			if strings.Contains(p.Text, bad) {
				t.Fatal(p)
			}
		}
	}
}

// TestNamesAreTheModels compares the names of tags with those that every other screen shows.
func TestNamesAreTheModels(t *testing.T) {
	for _, payload := range []string{
		"f\t/a/b.c\t7\tm+0x1\n", "f\t/a/b.c\t0\tm+0x1", "f\t\t\t/lib/m+0x1", "\t\t\t/lib/m.so+0x1", "\n\n\t\t\t\ng\tx.c\t1\t",
		"cl::Buffer::Buffer\tcl.hpp\t1\tm+0x1\ng\tg.c\t2\tm+0x2", "clCreateBuffer\ta.c\t1\tm+0x1", "std::f\ta.c\t1\n\t\t\tm+0x9\nh\th.c\t3\t",
		"f\x1b[1m\xff\ta\u202eb.c\t1\tm", "only a function", "\x00\x00", "",
	} {
		compareName(t, text(1, wire.KindSite, payload))
	}
	for _, bytes := range []uint64{0, 1, 1023, 1024, 1536, 1 << 20, 1<<30 - 1, 3 << 40, 1<<64 - 1} {
		for _, mode := range []wire.TagMode{wire.TagsSize, wire.TagsThread, wire.TagsStack} {
			compareName(t, rec(1, wire.KindTag, func(r *wire.Record) { r.Op, r.Link = uint8(mode), bytes }))
		}
	}
}

func compareName(t *testing.T, naming wire.Record) {
	t.Helper()
	naming.Tag = 5
	list := []wire.Record{naming, create(2, 1, 1, mib, wire.OutcomeMiss, 5), create(3, 2, 2, mib, wire.OutcomeMiss, 0)}
	seen, err := surveyRecording(&tape{Records: list}, &Facts{ClockNS: origin})
	if err != nil {
		t.Fatal(err)
	}
	p := seen.processNumbered(1)
	names := map[string]bool{}
	for _, tag := range fold(list).Tags {
		names[tag.Name] = true
	}
	for _, id := range []uint32{0, 5} {
		if name := p.tag(id).name; !names[name] {
			t.Errorf("%q: the name %q is none of the model's: %v", naming.Payload, name, names)
		}
	}
}

func TestLane(t *testing.T) {
	var l lane
	for i, test := range []struct{ in, want span }{
		{span{10, 20}, span{10, 20}}, // alone
		{span{15, 30}, span{20, 30}}, // starts in the one before
		{span{40, 90}, span{40, 90}},
		{span{50, 60}, span{50, 60}}, // a call within
		{span{45, 70}, span{60, 70}}, // starts before the one within it
		{span{80, 95}, span{90, 95}}, // ends behind the outer one
		{span{1, 2}, span{90, 90}},   // late
		{span{95, 95}, span{95, 95}},
	} {
		if got := l.nestingPart(test.in); got != test.want {
			t.Errorf("%d: %v becomes %v, want %v", i, test.in, got, test.want)
		}
	}
	for range 10 * laneDepth {
		l.nestingPart(span{100, 200})
	}
	if len(l.open) > laneDepth {
		t.Errorf("%d open slices", len(l.open))
	}
}

func TestChromeSourceErrors(t *testing.T) {
	broken := errors.New("bad block")
	_, err := WriteChrome(io.Discard, &tape{Records: story(), Err: broken}, storyFacts(), TraceOptions{})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestDropped(t *testing.T) {
	for want, r := range map[string]TraceReport{
		"":                     {Events: 5},
		"1 call":               {DroppedSlices: 1},
		"3 calls, 2 lifetimes": {DroppedSlices: 3, DroppedLifetimes: 2},
	} {
		if got := r.DroppedText(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

// TestChromeSamePID gives two processes one pid, as after an exec: their objects must not mix.
func TestChromeSamePID(t *testing.T) {
	list := story()
	for _, r := range story() {
		if r.Process == 1 {
			r.Process, r.Time = 2, r.Time+20_000_000
			list = append(list, r)
		}
	}
	got, report, _ := export(t, list, TraceOptions{})
	if !strings.Contains(got, `"pid":4194306`) || report.Leaks != 4 {
		t.Errorf("%d leaks in\n%s", report.Leaks, got)
	}
}

// TestChromeRecording goes through a real recording.
func TestChromeRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	header := recording.Header{Program: "/opt/app", ClockNS: origin, Policy: "futhark"}
	labtest.Write(t, path, header, story(), recording.Footer{})
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var got, want bytes.Buffer
	facts := FactsOfHeader(r.Header())
	if _, err := WriteChrome(&got, r, facts, TraceOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteChrome(&want, &tape{Records: story()}, facts, TraceOptions{}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("have\n%s\nwant\n%s", got.String(), want.String())
	}
}

// BenchmarkChrome writes a million records that come and go.
func BenchmarkChrome(b *testing.B) {
	const pairs = 500_000
	list := make([]wire.Record, 0, 2*pairs)
	for i := range uint64(pairs) {
		outcome := wire.OutcomeHit
		if i == 0 {
			outcome = wire.OutcomeMiss
		}
		list = append(list, create(10*i+5, i+1, 1, mib, outcome, uint32(i%8)), release(10*i+10, i+1, 1, wire.OutcomeCached))
	}
	var written counted
	b.ReportAllocs()
	for b.Loop() {
		written = 0
		if _, err := WriteChrome(&written, &tape{Records: list}, Facts{}, TraceOptions{CountersEvery: time.Millisecond}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(written))
	b.ReportMetric(float64(written)/pairs, "B/life")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*pairs), "ns/record")
}

// counted is a writer that only counts bytes.
type counted int64

func (c *counted) Write(b []byte) (int, error) { *c += counted(len(b)); return len(b), nil }
