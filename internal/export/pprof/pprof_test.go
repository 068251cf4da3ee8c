package pprof_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/pprof"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/exportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func header() recording.Header {
	return recording.Header{
		ClockNS: exportrun.Origin, Created: time.Unix(1_700_000_000, 0), Program: "/bin/a\xffpp", Arguments: []string{"\n", "x"},
		Policy: "futhark",
	}
}

// at reads a moment.
func at(t testing.TB, text string) pprof.Moment {
	t.Helper()
	m, err := pprof.ParseMoment(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t rapid.TB, src recording.Source, o pprof.Options) *profile.Profile {
	t.Helper()
	o.Header = header()
	var b bytes.Buffer
	if err := pprof.WriteProfile(&b, src, o); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sums returns the sums of all sample types.
func sums(p *profile.Profile) [5]uint64 {
	var sums [5]uint64
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[i] += uint64(v)
		}
	}
	return sums
}

// created counts what records say was created; carried ones were not.
func created(src recording.Source) (objects, bytes uint64) {
	var r wire.Record
	for src.Next(&r) == nil {
		if r.Kind == wire.KindCreate && r.Outcome != wire.OutcomeFailed && r.Flags&wire.FlagCarried == 0 {
			objects++
			if heap.HasMemory(r.AsCreate()) {
				bytes += r.Granted
			}
		}
	}
	return objects, bytes
}

// TestProfileOfAnyRunHasItsTotals recomputes the totals of any run from its profile alone.
func TestProfileOfAnyRunHasItsTotals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		objects, space := created(exportrun.NewTape(records))
		s := exportrun.SnapshotOf(records)
		peak := sums(write(rt, exportrun.NewTape(records), pprof.Options{}))
		if peak[0] != objects || peak[1] != space || peak[3] != s.Totals.PeakInUse {
			rt.Errorf("at the peak %v, want %d created, of %d bytes, %d in use", peak, objects, space, s.Totals.PeakInUse)
		}
		var want [5]uint64
		want[0], want[1] = objects, space
		for i := range s.Processes {
			totals := &s.Processes[i].Totals
			want[2] += totals.LiveBuffers
			want[3] += totals.InUse
			want[4] += totals.Cached
		}
		end := sums(write(rt, exportrun.NewTape(records), pprof.Options{At: at(t, "end")}))
		if end != want {
			rt.Errorf("at the end %v, want %v", end, want)
		}
	})
}

// TestRandomMoment looks at any time, of all and of a part.
func TestRandomMoment(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		records := exportrun.DrawRun(rt)
		after := rapid.Uint64Range(0, 150_000).Draw(rt, "after")
		until := sort.Search(len(records), func(i int) bool { return records[i].Time > exportrun.Origin+after })
		want := exportrun.SnapshotOf(records[:until]).Totals
		moment := at(t, strconv.FormatUint(after, 10)+"ns")
		got := sums(write(rt, exportrun.NewTape(records), pprof.Options{At: moment}))
		if got[3] != want.InUse || got[4] != want.Cached {
			rt.Errorf("after %d ns %v, want %d in use, %d cached", after, got, want.InUse, want.Cached)
		}
		since := exportrun.Origin + rapid.Uint64Range(0, after).Draw(rt, "since")
		part := extract.CutRange(exportrun.NewTape(records), extract.Options{Since: since})
		objects, space := created(part)
		got = sums(write(rt, part, pprof.Options{At: at(t, "end")}))
		if got[0] != objects || got[1] != space {
			rt.Errorf("from %d on %v, want %d created, of %d bytes", since, got, objects, space)
		}
	})
}

// story is a run of two processes on two devices.
func story() []wire.Record {
	var list []wire.Record
	add := func(process uint32, us uint64, kind wire.Kind, e wire.Event, payload string) {
		e.Time, e.Kind = exportrun.Origin+us*1000, kind
		list = append(list, wire.Record{Process: process, Thread: process, Event: e, Payload: []byte(payload)})
	}
	for p := uint32(1); p <= 2; p++ {
		add(p, 0, wire.KindProcess, wire.Event{Object: uint64(p) + 40}, "/bin/app\x00")
		for d := uint64(1); d <= 2; d++ {
			add(p, 0, wire.KindDevice, wire.Event{Object: d}, "card "+strconv.Itoa(int(d))+"\x00driver")
			add(p, 0, wire.KindContext, wire.Event{Object: d, Link: d}, "")
		}
		add(p, 0, wire.KindModule, wire.Event{Object: 1}, "/bin/app\x00c0ffee")
		add(p, 1, wire.KindSite, wire.Event{Tag: 1}, exportrun.Names[0])
		add(p, 1, wire.KindSite, wire.Event{Tag: 2}, exportrun.Names[1])
	}
	create := func(process uint32, us, number, size uint64, tag uint32, scope uint16) {
		add(process, us, wire.KindCreate, wire.Event{
			Object: number, Link: number, Size: size, Granted: size, Tag: tag, Scope: scope, Outcome: wire.OutcomeMiss,
		}, "")
	}
	create(1, 10, 1, 1000, 1, 1)
	create(1, 20, 2, 3000, 2, 2)
	create(2, 30, 1, 500, 1, 1)
	create(1, 40, 3, 7, 3, 1)
	add(1, 50, wire.KindRelease, wire.Event{Object: 2, Link: 2, Outcome: wire.OutcomeCached}, "")
	add(2, 60, wire.KindSlab, wire.Event{Link: 9, Granted: 4096, Scope: 1}, "")
	return list
}

func TestStory(t *testing.T) {
	p := write(t, exportrun.NewTape(story()), pprof.Options{At: at(t, "end")})
	if p.DefaultSampleType != "inuse_space" || p.TimeNanos != 1_700_000_000_000_060_000 || p.DurationNanos != 60_000 {
		t.Errorf("default %s, time %d, duration %d", p.DefaultSampleType, p.TimeNanos, p.DurationNanos)
	}
	if len(p.Comments) == 0 || !strings.Contains(p.Comments[0], "at the end") || !strings.Contains(p.Comments[0], "60µs after") {
		t.Errorf("comments %q", p.Comments)
	}
	var got []string
	for _, s := range p.Sample {
		var line strings.Builder
		for _, l := range s.Location {
			line.WriteString(l.Line[0].Function.Name + ":" + strconv.FormatInt(l.Line[0].Line, 10) + " ")
		}
		for _, v := range s.Value {
			line.WriteString(strconv.FormatInt(v, 10) + " ")
		}
		for _, key := range []string{"tag", "process", "device", "host"} {
			line.WriteString(strings.Join(s.Label[key], "+") + "|")
		}
		if bytes := s.NumLabel["bytes"]; len(bytes) == 1 {
			line.WriteString(strconv.FormatInt(bytes[0], 10) + s.NumUnit["bytes"][0])
		}
		got = append(got, line.String())
	}
	want := []string{
		"create:7 main:30 1 1000 1 1000 0 a.c:7 create|app pid 41|card 1||512bytes",
		`blur<"x", 'y'>(int):8 1 3000 0 0 3000 b,c.cc:8 blur<"x", 'y'>(int)|app pid 41|card 2||2048bytes`,
		"tag 3:0 1 7 1 7 0 tag 3|app pid 41|card 1||4bytes",
		"create:7 main:30 1 500 1 500 0 a.c:7 create|app pid 42|card 1||256bytes",
		"(slabs):0 0 0 0 0 4096 (slabs)|app pid 42|||",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m := p.Mapping[0]; m.File != "/bin/app" || m.BuildID != "c0ffee" || p.Location[0].Address != m.Start+0x10 {
		t.Errorf("mapping %+v, first location at %#x", m, p.Location[0].Address)
	}
}

func TestTag(t *testing.T) {
	o := pprof.Options{At: at(t, "end"), Tag: regexp.MustCompile("blur")}
	if got, want := sums(write(t, exportrun.NewTape(story()), o)), [5]uint64{1, 3000, 0, 0, 3000}; got != want {
		t.Errorf("of blur: %v, want %v", got, want)
	}
	// The peak is that of all: blur has most of it before it comes.
	o.At = pprof.Moment{}
	if got, want := sums(write(t, exportrun.NewTape(story()), o)), [5]uint64{1, 3000, 1, 3000, 0}; got != want {
		t.Errorf("of blur at the peak: %v, want %v", got, want)
	}
}

// TestFirstPeak comes to its peak twice: the first time counts.
func TestFirstPeak(t *testing.T) {
	var list []wire.Record
	for i := range uint64(2) {
		r := wire.Record{Process: 1}
		r.Kind, r.Object, r.Size, r.Granted, r.Time = wire.KindCreate, i+1, 10, 10, exportrun.Origin+100*i
		list = append(list, r)
		r.Kind, r.Granted, r.Time = wire.KindRelease, 0, r.Time+50
		list = append(list, r)
	}
	p := write(t, exportrun.NewTape(list), pprof.Options{})
	if p.TimeNanos != header().Created.UnixNano() || sums(p)[3] != 10 {
		t.Errorf("the peak is at %d with %d in use", p.TimeNanos, sums(p)[3])
	}
}

func TestHosts(t *testing.T) {
	h := header()
	h.Merged = []recording.Origin{{Host: "a", First: 1, Last: 1}, {Host: "b", First: 2, Last: 2}}
	var b bytes.Buffer
	if err := pprof.WriteProfile(&b, exportrun.NewTape(story()), pprof.Options{Header: h}); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string]bool{}
	for _, s := range p.Sample {
		hosts[strings.Join(s.Label["host"], "")] = true
	}
	if !hosts["a"] || !hosts["b"] || len(hosts) != 2 {
		t.Errorf("hosts %v, want a and b", hosts)
	}
}

func TestParseMoment(t *testing.T) {
	for _, bad := range []string{"", "5parsecs", "-1s", "5", "Peak", "1h2"} {
		if m, err := pprof.ParseMoment(bad); err == nil || !strings.Contains(err.Error(), "want peak, end, or a time") {
			t.Errorf("%q: %v, %v", bad, m, err)
		}
	}
	if after, timed := at(t, "2.5s").AfterStart(); after != 2500*time.Millisecond || !timed {
		t.Errorf("2.5s is %v, %v", after, timed)
	}
}

// toolPath is where the go command has the real pprof, which it builds when it has not. To ask it each time takes longer
// than all else here.
var toolPath = sync.OnceValues(func() (string, error) {
	path, err := exec.CommandContext(context.Background(), "go", "tool", "-n", "pprof").Output()
	return strings.TrimSpace(string(path)), err
})

// tool runs the real pprof.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	path, err := toolPath()
	if err != nil {
		t.Fatalf("go tool -n pprof: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go tool pprof %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

// flat reads the column flat of -top.
func flat(t *testing.T, top string) map[string]int64 {
	t.Helper()
	values := map[string]int64{}
	lines := bufio.NewScanner(strings.NewReader(top))
	table := false
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) > 0 && fields[0] == "flat":
			table = true
		case table && len(fields) > 5:
			value, err := strconv.ParseInt(strings.TrimSuffix(fields[0], "B"), 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			if value != 0 {
				values[strings.Join(fields[5:], " ")] = value
			}
		}
	}
	return values
}

// TestPprofReadsProfiles lets the real pprof read profiles and compares what it says of each function.
func TestPprofReadsProfiles(t *testing.T) {
	dir := t.TempDir()
	file := map[string]string{}
	for _, moment := range []string{"peak", "end"} {
		var b bytes.Buffer
		if err := pprof.WriteProfile(&b, exportrun.NewTape(story()), pprof.Options{Header: header(), At: at(t, moment)}); err != nil {
			t.Fatal(err)
		}
		file[moment] = filepath.Join(dir, moment)
		if err := os.WriteFile(file[moment], b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const blur = `blur<"x", 'y'>(int)`
	for _, test := range []struct {
		args []string
		want map[string]int64
	}{
		{[]string{file["peak"]}, map[string]int64{"create": 1500, blur: 3000, "tag 3": 7}},
		{[]string{file["end"]}, map[string]int64{"create": 1500, "tag 3": 7}},
		{[]string{"-sample_index=cached_space", file["end"]}, map[string]int64{blur: 3000, "(slabs)": 4096}},
		{[]string{"-sample_index=alloc_space", file["end"]}, map[string]int64{"create": 1500, blur: 3000, "tag 3": 7}},
		{[]string{"-diff_base", file["peak"], file["end"]}, map[string]int64{blur: -3000}},
		{[]string{"-tagfocus=process=pid 42", file["end"]}, map[string]int64{"create": 500}},
	} {
		got := flat(t, tool(t, append([]string{"-top", "-unit=B", "-nodefraction=0"}, test.args...)...))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
	raw := tool(t, "-raw", file["end"])
	for _, want := range []string{"inuse_space/bytes[dflt]", "/bin/app", "c0ffee", "bytes:[512 bytes]", "device:[card 2]"} {
		if !strings.Contains(raw, want) {
			t.Errorf("-raw does not show %q:\n%s", want, raw)
		}
	}
}

// FuzzWrite gives it nonsense: the result is a valid profile.
func FuzzWrite(f *testing.F) {
	exportrun.FuzzExport(f, func(t *testing.T, src recording.Source, after uint64) {
		p := write(t, src, pprof.Options{At: at(t, []string{"end", "peak", strconv.FormatUint(after/2, 10) + "ns"}[after%3])})
		for _, s := range p.Sample {
			for i, v := range s.Value {
				if v < 0 {
					t.Fatalf("value %d of %v is negative", i, s)
				}
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	exportrun.BenchExport(b, func(w io.Writer, src recording.Source) error { return pprof.WriteProfile(w, src, pprof.Options{}) })
}

func FuzzMoment(f *testing.F) {
	for _, text := range []string{"peak", "end", "2.5s", "1m30s", "-1s", "5", "9999999h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := pprof.ParseMoment(text)
		if after, timed := m.AfterStart(); err == nil && (after < 0 || timed == (text == "peak" || text == "end")) {
			t.Errorf("%q: %v, %v", text, after, timed)
		}
	})
}
