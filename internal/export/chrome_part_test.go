package export

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	part "codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromePart begins lifetimes of what was there before where the part begins, and ends as cut what lives on.
func TestChromePart(t *testing.T) {
	for name, test := range map[string]struct {
		since, until uint64 // µs
		with         []string
		without      []string
	}{
		"since": {1250, 0,
			[]string{
				`"ts":1250.000,"id2":{"local":"0x3"}`, `"cooling":true`, `"since_ns":1250000`, `"leaked":true`,
				`"name":"mem","pid":4242,"tid":4242,"ts":1250.000,"args":{"in_use":3145728,"cached":0,"cooling":4194304}`,
				`"args":{"total":50.00}`,
			},
			[]string{`"name":"finish"`, `"ph":"b","cat":"buf","name":"canny.c:88 blur<\"x\">","pid":4242,"tid":101,"ts":1250`, `"ts":100.000`, `"object":1,"driver`},
		},
		"until": {0, 1250,
			[]string{`"args":{"cut":true}`, `"name":"finish"`, `"until_ns":1250000`},
			[]string{`"ts":1300.000`, `leaked`, `"ph":"i","cat":"mark"`},
		},
		"until after its exit": {0, 20_000, []string{`"leaked":true`}, []string{`"cut"`}},
		"since the end":        {1 << 32, 0, []string{`"name":"gpumemtop"`}, []string{`"ph":"X"`, `"leaked"`}},
		"nothing happens": {1500, 1600,
			[]string{`"in_use":1048576,"cached":2097152,"cooling":4194304`, `"ph":"b","cat":"buf"`, `"cut":true`}, []string{`"ph":"X"`}},
	} {
		t.Run(name, func(t *testing.T) {
			options := part.Options{Since: origin + 1000*test.since}
			if test.until > 0 {
				options.Until = origin + 1000*test.until
			}
			facts := storyFacts()
			facts.Since, facts.Until = time.Duration(test.since)*time.Microsecond, time.Duration(test.until)*time.Microsecond
			got, _, _ := exportPart(t, part.CutRange(&tape{Records: story()}, options), facts, TraceOptions{})
			contains(t, got, test.with, test.without)
		})
	}
}

// TestChromeAttached: what was there before attach counts from when it was first seen, and there is no pool.
func TestChromeAttached(t *testing.T) {
	before := func(us, object, size uint64) wire.Record {
		r := create(us, object, 0, size, wire.OutcomeDriver, 1)
		r.Flags, r.Duration = wire.FlagCarried, 0
		return r
	}
	records := []wire.Record{
		before(1000, 1, 1000), create(5000, 2, 0, 20, wire.OutcomeMiss, 1), before(7000, 3, 300),
		create(8000, 4, 0, 4, wire.OutcomeMiss, 1), release(9000, 3, 0, wire.OutcomeDriver),
	}
	facts := storyFacts()
	facts.Attached = true
	trimmed := facts
	trimmed.ClockNS += 3_000_000
	got, _, _ := exportPart(t, &tape{Records: append([]wire.Record{text(500, wire.KindKernel, "k")}, records...)}, trimmed, TraceOptions{})
	contains(t, got, []string{
		`"ph":"b","cat":"buf","name":"tag 1","pid":4194305,"tid":101,"ts":2500.000`,
		`"name":"mem","pid":4194305,"tid":4194305,"ts":2500.000,"args":{"in_use":1000,`,
	}, nil)
	got, _, _ = exportPart(t, &tape{Records: records}, facts, TraceOptions{})
	contains(t, got, []string{
		`"ph":"b","cat":"buf","name":"tag 1","pid":4194305,"tid":101,"ts":1000.000`,
		`"name":"mem","pid":4194305,"tid":4194305,"ts":1000.000,"args":{"in_use":1000,`,
		`"name":"mem","pid":4194305,"tid":4194305,"ts":5000.000,"args":{"in_use":1020,`,
		`"name":"mem","pid":4194305,"tid":4194305,"ts":7000.000,"args":{"in_use":1320,`,
	}, []string{"hit rate", "fragmentation"})
	last := -1.0
	for line := range strings.Lines(got) {
		if _, at, ok := strings.Cut(line, `"ts":`); ok && strings.Contains(line, `"name":"mem"`) {
			ts, err := strconv.ParseFloat(at[:strings.IndexByte(at, ',')], 64)
			if err != nil || ts < last {
				t.Errorf("a counter goes back in time, from %v: %s (%v)", last, line, err)
			}
			last = ts
		}
	}
}

// contains checks what is in a text, and what is not.
func contains(t *testing.T, got string, with, without []string) {
	t.Helper()
	for _, part := range with {
		if !strings.Contains(got, part) {
			t.Errorf("%s is missing in\n%s", part, got)
		}
	}
	for _, part := range without {
		if strings.Contains(got, part) {
			t.Errorf("%s is in\n%s", part, got)
		}
	}
}

// TestChromeManyAlive opens more lifetimes of one name than Perfetto can show in reasonable time.
func TestChromeManyAlive(t *testing.T) {
	var list []wire.Record
	for i := range uint64(aliveMax + 10) {
		list = append(list, create(i, i+1, i+1, mib, wire.OutcomeMiss, 1))
	}
	for i := range uint64(aliveMax + 10) {
		list = append(list, release(10_000+i, i+1, i+1, wire.OutcomeCached))
	}
	got, report, facts := export(t, list, TraceOptions{})
	if report.DroppedLifetimes != 20 || report.DroppedSlices != 0 || facts.Lifetimes != aliveMax {
		t.Errorf("%+v, %d lifetimes", report, facts.Lifetimes)
	}
	contains(t, got, []string{`"dropped_lifetimes":20`}, nil)
}

// recorded writes records into a file and returns its bytes.
func recorded(t *testing.T, records []wire.Record) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.gmt")
	w, err := recording.Create(path, recording.Header{Program: "/opt/app", ClockNS: origin, Policy: "futhark"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(recording.Footer{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestChromeOfCutRecordings exports what is left of a recording that was cut off, at every byte.
func TestChromeOfCutRecordings(t *testing.T) {
	whole := story()
	data := recorded(t, append(slices.Clone(whole[:8]), whole[len(whole)-1]))
	path := filepath.Join(t.TempDir(), "cut.gmt")
	exported, ended := 0, map[string]int{}
	for n := len(data); n >= 0; n-- {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := recording.Open(path)
		if err != nil {
			continue // not even a header
		}
		exported++
		text, _, _ := exportPart(t, r, FactsOfHeader(r.Header()), TraceOptions{})
		for _, how := range []string{`"leaked":true`, `"cut":true`, `"damage":`} {
			if strings.Contains(text, how) {
				ended[how]++
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if exported < len(data)/2 || ended[`"leaked":true`] == 0 || ended[`"cut":true`] == 0 || ended[`"damage":`] < exported/2 {
		t.Errorf("%d of %d exported, %v", exported, len(data), ended)
	}
}

// TestChromeNames puts what Perfetto gives up on into everything that has a name.
func TestChromeNames(t *testing.T) {
	const bad = "a\x00b\x01\x1b[31m\x7f\xff\xfe\u2028\u202e\"\\<\x80\u0085"
	for i := range len(bad) {
		name := bad[i:]
		list := []wire.Record{
			rec(0, wire.KindProcess, func(r *wire.Record) { r.Object, r.Payload = 4242, []byte("/opt/"+name) }),
			text(1, wire.KindModule, name),
			rec(2, wire.KindTag, func(r *wire.Record) { r.Tag, r.Op, r.Payload = 2, uint8(wire.TagsStack), frames(0, 7) }),
			rec(3, wire.KindSite, func(r *wire.Record) { r.Tag, r.Payload = 1, []byte(name+"\t/"+name+"\t"+name+"\t"+name+"\n") }),
			text(4, wire.KindLimit, name), text(5, wire.KindKernel, name),
			rec(6, wire.KindDiag, func(r *wire.Record) { r.Op, r.Payload = uint8(wire.DiagTagsFull), []byte(name) }),
			create(10, 1, 1, mib, wire.OutcomeMiss, 1), create(11, 2, 2, mib, wire.OutcomeMiss, 2),
			mistake(12, wire.DiagStaleRead, name, 1, 0, 0),
		}
		facts := storyFacts()
		facts.Program, facts.Arguments, facts.Policy, facts.Host, facts.Tags = name, []string{name}, name, name, name
		facts.Limits = recording.Limits{name: name}
		exportPart(t, &tape{Records: list}, facts, TraceOptions{Tag: regexp.MustCompile(".*")})
		live(t, list)
	}
}
