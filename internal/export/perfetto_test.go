package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	part "codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func perfetto(t testing.TB, records []wire.Record) (*perfettoTrace, TraceReport, int) {
	t.Helper()
	var b bytes.Buffer
	report, err := WritePerfetto(&b, &tape{Records: records}, storyFacts(), TraceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := readPerfetto(t, b.Bytes())
	if p.slices(); uint64(len(p.events)) < report.Events {
		t.Errorf("%d events reported, %d written", report.Events, len(p.events))
	}
	return p, report, b.Len()
}

// lifetimes returns how many lifetimes begin, how many of these by a hit, and what the last end says.
func (p *perfettoTrace) lifetimes() (begun, ended int, leaked uint64) {
	for _, e := range p.events {
		if m := p.tracks[e.track]; m.has(3) || m.has(4) || m.has(8) || m.text(2) == "pool" {
			continue
		}
		switch e.kind {
		case 1:
			begun++
		case 2:
			ended++
			if e.args["leaked"] != "" {
				leaked++
			}
		}
	}
	return begun, ended, leaked
}

func TestPerfettoStory(t *testing.T) {
	p, report, _ := perfetto(t, story())
	totals := fold(story()).Totals
	begun, ended, leaked := p.lifetimes()
	if want := int(report.Lifetimes); begun != want || ended != want || leaked != report.Leaks || report.Leaks != 2 {
		t.Errorf("%d lifetimes begin, %d end, %d leak; reported %+v", begun, ended, leaked, report)
	}
	if got := p.peak(); got != totals.PeakInUse {
		t.Errorf("the counter is %d at most, the peak %d", got, totals.PeakInUse)
	}
	var text strings.Builder
	for _, e := range p.events {
		fmt.Fprintf(&text, "%d %d %s: %s", e.ns, e.kind, p.named(e.track), e.name)
		for _, key := range slices.Sorted(maps.Keys(e.args)) {
			fmt.Fprintf(&text, " %s=%s", key, e.args[key])
		}
		if e.kind == 4 {
			fmt.Fprint(&text, e.number, " ", e.value)
		}
		if len(e.flows) > 0 {
			fmt.Fprintf(&text, " flow %x", e.flows)
		}
		if e.stack != nil {
			fmt.Fprintf(&text, " %q", e.stack)
		}
		text.WriteString("\n")
	}
	golden(t, "story.perfetto.txt", text.String())
}

// TestPerfettoRandom holds the figures of any run to the model's.
func TestPerfettoRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		options := randomrun.Options{SlabsCool: true, Exits: randomrun.AtEnd, NoReferences: true, NoOvertaking: true, Processes: 1}
		records := randomrun.DrawRun(rt, options)
		p, report, _ := perfetto(t, records)
		totals := fold(records).Totals
		begun, ended, leaked := p.lifetimes()
		have := fmt.Sprint(begun, ended, p.peak(), leaked)
		want := fmt.Sprint(totals.Creates, totals.Creates, totals.PeakInUse, totals.LiveBuffers)
		if have != want || report.DroppedLifetimes > 0 {
			rt.Errorf("the trace says %s, the model %s", have, want)
		}
	})
}

// TestPerfettoRandomOptions holds it to the rules whatever is left out.
func TestPerfettoRandomOptions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		opts := TraceOptions{
			MaxEvents: rapid.Uint64Range(0, 100).Draw(rt, "most"), NoLifetimes: rapid.Bool().Draw(rt, "none"),
			Lifetimes: rapid.IntRange(0, 3).Draw(rt, "tags"), MinSize: rapid.Uint64Range(0, 1<<20).Draw(rt, "smallest"),
		}
		if rapid.Bool().Draw(rt, "only") {
			opts.Tag = regexp.MustCompile("[12]$")
		}
		some := part.Options{Since: origin + rapid.Uint64Range(0, 90_000).Draw(rt, "since")}
		var b bytes.Buffer
		if _, err := WritePerfetto(&b, part.CutRange(&tape{Records: exportrun.DrawRun(rt)}, some), Facts{ClockNS: origin}, opts); err != nil {
			rt.Fatal(err)
		}
		readPerfetto(t, b.Bytes()).slices()
	})
}

// TestPerfettoFlows: what reuses a block is tied to what had it before, and so is its eviction.
func TestPerfettoFlows(t *testing.T) {
	records := []wire.Record{
		create(100, 1, 7, 4*mib, wire.OutcomeMiss, 1), release(200, 1, 0, wire.OutcomeCached),
		create(300, 2, 7, 4*mib, wire.OutcomeHit, 2), release(400, 2, 0, wire.OutcomeCached),
		rec(500, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted = 7, 4*mib }),
		create(600, 3, 0, 4*mib, wire.OutcomeDriver, 1), release(700, 3, 0, wire.OutcomeDriver),
	}
	p, _, _ := perfetto(t, records)
	var tied []string
	for _, e := range p.events {
		if len(e.flows) > 0 {
			tied = append(tied, fmt.Sprintf("%s %x", e.name, e.flows))
		}
	}
	if got, want := fmt.Sprint(tied), "[tag 1 [100000000007] tag 2 [100000000007] evict: none [100000000007]]"; got != want {
		t.Errorf("tied: %s, want %s", got, want)
	}
}

// TestPerfettoFindings: a mistake is a moment with what is known of it.
func TestPerfettoFindings(t *testing.T) {
	p, _, _ := perfetto(t, misdeeds())
	found := 0
	for _, e := range p.events {
		if e.kind == 3 && e.args["kind"] != "" && e.args["function"] != "" && e.args["certain"] != "" {
			found++
		}
	}
	if found == 0 {
		t.Error("no finding")
	}
}

// TestPerfettoSmall: creates and releases take 40 bytes each at most, by a pool and without one.
func TestPerfettoSmall(t *testing.T) {
	const pairs = 20_000
	pooled := exportrun.ChurnRecords(pairs)
	bare := slices.Clone(pooled)
	for i := range bare {
		bare[i].Link, bare[i].Outcome = 0, wire.OutcomeDriver
	}
	for name, list := range map[string][]wire.Record{"pooled": pooled, "bare": bare} {
		_, _, size := perfetto(t, list)
		if each := float64(size) / float64(len(list)); each > 40 {
			t.Errorf("%s: %.1f bytes for an event", name, each)
		}
	}
}

func TestCompactSmall(t *testing.T) {
	list := exportrun.ChurnRecords(20_000)
	text, report, _ := export(t, list, TraceOptions{Compact: true})
	if each := float64(len(text)) / float64(len(list)); each > 150 {
		t.Errorf("%.1f bytes for an event", each)
	}
	if report.Lifetimes != 20_000 || report.Slices != 0 {
		t.Errorf("%+v", report)
	}
}

func FuzzPerfetto(f *testing.F) {
	f.Add([]byte(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz\x0a\x01\xff\x7f", 8)), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, most uint64) {
		var b bytes.Buffer
		if _, err := WritePerfetto(&b, &tape{Records: exportrun.NonsenseRecords(data)}, Facts{Program: string(data)},
			TraceOptions{MaxEvents: most}); err != nil {
			t.Fatal(err)
		}
		readPerfetto(t, b.Bytes())
	})
}

// TestPerfettoErrors: a trace that cannot be written, or read, ends with that error.
func TestPerfettoErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, err := WritePerfetto(io.Discard, &tape{Records: story(), Err: broken}, storyFacts(), TraceOptions{}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := WritePerfetto(noRoom{broken}, &tape{Records: story()}, storyFacts(), TraceOptions{}); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// noRoom is a disk without room.
type noRoom struct{ err error }

// Write implements io.Writer.
func (w noRoom) Write([]byte) (int, error) { return 0, w.err }

// TestPerfettoLive: a trace that was written live says what one of the recording says, and opens at any moment before.
func TestPerfettoLive(t *testing.T) {
	want, _, _ := perfetto(t, misdeeds())
	facts := storyFacts()
	var d fullDisk
	l := newLive(disk.NewWriter(&d), &facts, packed)
	if err := l.writeFirstFacts(&facts); err != nil {
		t.Fatal(err)
	}
	list := misdeeds()
	for i := range list {
		if err := errors.Join(l.Append(&list[i]), l.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	readPerfetto(t, d.data)
	if err := l.Close(); err != nil || !d.closed {
		t.Fatal(err)
	}
	got := readPerfetto(t, d.data)
	got.slices()
	wantBegun, wantEnded, _ := want.lifetimes()
	if begun, ended, _ := got.lifetimes(); begun != wantBegun || ended != wantEnded || got.peak() != want.peak() {
		t.Errorf("%d lifetimes begin, %d end, want %d and %d", begun, ended, wantBegun, wantEnded)
	}
}
