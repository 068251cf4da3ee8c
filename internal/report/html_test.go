package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/reportrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
)

func writeHTML(a *analysis.Analysis, o Options) string {
	var b bytes.Buffer
	if err := WriteHTML(&b, a, o); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return b.String()
}

// The pages that several tests look at.
var (
	samplePage  = sync.OnceValue(func() string { return writeHTML(reportrun.SampleAnalysis(), Options{}) })
	hostilePage = sync.OnceValue(func() string { return writeHTML(reportrun.HostileAnalysis(), Options{}) })
)

var (
	references = regexp.MustCompile(`^(?i:src|href|xlink:href|srcset|action|formaction|poster|background|data|style|on[a-z]+)$`)
	allowed    = regexp.MustCompile(`^(#[a-z-]+|data:,)$`)
	fetches    = regexp.MustCompile(`(?i)url\(|@import|fetch\(|XMLHttpRequest|import\(|WebSocket|\.innerHTML|eval\(`)
)

// dissect splits a page into its style and script, its tags without brackets, and its text. By hand: regular
// expressions take seconds for two megabytes.
func dissect(page string) (own, tags []string, text string) {
	var b strings.Builder
	for {
		before, rest, more := strings.Cut(page, "<")
		b.WriteString(before + " ")
		if !more {
			return own, tags, b.String()
		}
		tag, after, _ := strings.Cut(rest, ">")
		tags = append(tags, tag)
		if tag == "style" || tag == "script" {
			var inside string
			inside, after, _ = strings.Cut(after, "</"+tag+">")
			own = append(own, inside)
		}
		page = after
	}
}

// loads returns what the page refers to beyond itself, and values without quotation marks: ours all have them.
func loads(page string) (found []string) {
	own, tags, _ := dissect(page)
	for _, text := range own {
		found = append(found, fetches.FindAllString(text, -1)...)
	}
	for _, tag := range tags {
		for {
			before, rest, more := strings.Cut(tag, `="`)
			if strings.Contains(before, "=") {
				found = append(found, before)
			}
			if !more {
				break
			}
			value, after, _ := strings.Cut(rest, `"`)
			name := before[strings.LastIndexByte(before, ' ')+1:]
			if references.MatchString(name) && !allowed.MatchString(value) {
				found = append(found, name+"="+value)
			}
			tag = after
		}
	}
	return found
}

func TestHTMLRefersToNothingElse(t *testing.T) {
	for name, page := range map[string]string{"sample": samplePage(), "hostile": hostilePage(), "empty": writeHTML(&analysis.Analysis{}, Options{})} {
		if found := loads(page); len(found) > 0 {
			t.Errorf("%s refers to %q", name, found)
		}
		if _, tags, text := dissect(page); strings.Contains(text, ">") || slices.ContainsFunc(tags, strange) {
			t.Errorf("%s: text that may be a tag", name)
		}
		if strings.ContainsAny(page, "\x00\x1b\u202e") {
			t.Errorf("%s has control characters", name)
		}
	}
	for _, bad := range []string{`<img src="http://x/">`, `<img alt="" src='//x'>`, `<a href=//x>`, `<b onclick="x">`, `<style>a{b:url(x)}</style>`, `<p style="x">`} {
		if len(loads(bad)) == 0 {
			t.Errorf("%s is not noticed", bad)
		}
	}
}

// strange reports a tag that has a bracket in it, or none of the names that tags have.
func strange(tag string) bool {
	return strings.Contains(tag, "<") || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz/!", rune((tag + " ")[0]))
}

func TestHTMLIsBounded(t *testing.T) {
	const most = 2 << 20
	for name, page := range map[string]string{"sample": samplePage(), "hostile": hostilePage()} {
		if n := len(page); n > most {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	if page := hostilePage(); !strings.Contains(page, "and 200 more rows") || !strings.Contains(page, "too small or too deep to be drawn") {
		t.Error("what was left out is not reported")
	}
}

// The policy names the style and the script that are there: a browser runs them, and nothing else.
func TestHTMLPolicyNamesWhatIsThere(t *testing.T) {
	page := html.UnescapeString(samplePage())
	for kind, text := range map[string]string{"style": htmlStyle, "script": htmlScript} {
		if !strings.Contains(page, "<"+kind+">"+text+"</"+kind+">") || !strings.Contains(page, kind+"-src "+contentPolicyHash(text)) {
			t.Errorf("the %s is not there as it is, or not allowed", kind)
		}
	}
	if !strings.Contains(page, `content="default-src 'none'; img-src data:;`) {
		t.Error("something else is allowed")
	}
}

// visible is the text of a page.
func visible(page string) string {
	_, _, text := dissect(page)
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

func TestHTMLSays(t *testing.T) {
	text := strings.ReplaceAll(visible(samplePage()), "\u202f", " ")
	for _, part := range []string{
		"/home/ada/net/train --epochs 3 --data 'cifar 10/train.bin'", "policy futhark", "Radeon Instinct MI100, 1.00 GiB, driver 3452.0", "host node17",
		"date 2026-03-14 15:09:26", "duration 42.0 s, exit status 0", "max_waste_ratio = 0.5", "3 events lost",
		"problem loader.c:114 leaks", "gpumemtop --policy futhark --set max_cached_bytes=536870912 -- /home/ada/net/train",
		"peak in use ≈ 612.0 MiB", "hit rate 98.2 %", "driver time 2.14 s", "time saved ≈ 14.3 s an estimate, without first touches; 27 004 driver creates avoided",
		"leaked ≈ 48.1 MiB 13 buffers at 2 call sites", "device memory 1.00 GiB", "phase 2: 3 100 iterations of 7.05 ms",
		"libc.so.6+0x2724a", "--set max_cached_bytes=536870912", "31.0 µs + 12.4 µs per MiB · size, R² 0.982", "p50 420 µs, p99 31.0 ms of 26 000 buffers",
		"clReleaseMemObject of a 8.00 MiB buffer created at optimizer.c:203 moments", "25.0 s limit max_cached_bytes=268435456",
		"in use at the peak, 612.0 MiB", "4712 ", "+4.00 MiB", "−4.00 KiB", "9.00 s: double release: clReleaseMemObject",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q", part)
		}
	}
	if part := "max_waste_ratio=0.6"; strings.Contains(text, part) {
		t.Errorf("%q would save 9.4 ms of 42 s", part)
	}
}

// Real recordings: what the analysis found is on the page, every figure is a number, and twice the same is written.
func TestHTMLOfRecordings(t *testing.T) {
	for _, rec := range recordings(t) {
		a := analysed(t, rec)
		page := writeHTML(a, Options{})
		text := visible(page)
		want := []string{bytesText(a.Peak.InUse), rateText(a.Snapshot.Totals.HitRate(), a.Snapshot.Totals.Hits+a.Snapshot.Totals.Misses)}
		for i := range a.Peak.Tags {
			want = append(want, a.Peak.Tags[i].Name)
		}
		for i := range a.Diagnoses {
			want = append(want, a.Diagnoses[i].Title)
		}
		for _, part := range want {
			if part = strings.Join(strings.Fields(part), " "); !strings.Contains(text, part) { // as visible writes it
				t.Errorf("%s: no word of %q", rec, part)
			}
		}
		if found := loads(page); len(found) > 0 || strings.Contains(text, "NaN") || strings.Contains(text, "+Inf") {
			t.Errorf("%s: what is no number, or refers to %q", rec, found)
		}
		if writeHTML(analysed(t, rec), Options{}) != page {
			t.Errorf("%s: not the same twice", rec)
		}
	}
}

// What was free only between the moments that the page shows was free.
func TestHTMLOfShortlyFree(t *testing.T) {
	text := visible(writeHTML(&analysis.Analysis{Snapshot: &stats.Snapshot{Totals: stats.Totals{PeakCached: 1}}}, Options{}))
	if strings.Contains(text, "Nothing was ever free") || !strings.Contains(text, "In no step was anything free in the pool") {
		t.Errorf("%s", text)
	}
}

// A recording in which nothing happened makes a page that says so.
func TestHTMLOfNothing(t *testing.T) {
	text := visible(writeHTML(&analysis.Analysis{Snapshot: &stats.Snapshot{}}, Options{}))
	for _, part := range []string{
		"unknown program", "is incomplete", "Nothing was found, and no buffer was created: there was little to judge.", "Nothing was recorded over time.",
		"No request could have been served", "Nothing was ever free", "Nothing was ever in use", "There was no miss", "No buffer was created", "No buffer was released",
		"No driver call was measured", "No use of a released buffer was recorded", "No phases were found", "No call stack is known", "None was seen",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q", part)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Processes") {
		t.Errorf("it says more than there is: %s", text)
	}
}

func TestHTMLSaysWhatIsLeftOut(t *testing.T) {
	const want = "Too much: 3 creates are left out."
	if text := visible(writeHTML(&analysis.Analysis{Snapshot: &stats.Snapshot{Exceeded: []string{"3 creates are left out"}}}, Options{})); !strings.Contains(text, want) {
		t.Errorf("no %q in %.300s", want, text)
	}
}

func TestHTMLRowsAsAsked(t *testing.T) {
	page := writeHTML(reportrun.SampleAnalysis(), Options{Top: 2})
	if text := visible(page); !strings.Contains(text, "and 8 more rows") || strings.Contains(text, "and 2 more row ") {
		t.Error("want the first two rows of each table, and a word on the others")
	}
	peak := page[strings.Index(page, `<section id="peak">`):strings.Index(page, `<section id="misses">`)]
	if n := strings.Count(peak, "<tr>"); n != 3 {
		t.Errorf("%d rows with the head, want 3", n)
	}
}

// What the script reads is what was analysed: each series of the timeline, and what of the total is unassigned.
func TestHTMLTellsTheTimeline(t *testing.T) {
	a := reportrun.SampleAnalysis()
	a.Timeline = analysis.Timeline{
		Start: 5, Step: 10, InUse: []uint64{30, 20}, Cached: []uint64{1, 2}, Cooling: []uint64{0, 0},
		Tags: []analysis.Series{{Name: `a"</b>`, Values: []uint64{10, 20}}, {Name: "b", Values: []uint64{15, 0}}},
	}
	page := writeHTML(a, Options{})
	match := regexp.MustCompile(`data-plot="([^"]*)"`).FindStringSubmatch(page)
	var data plotData
	if err := json.Unmarshal([]byte(html.UnescapeString(match[1])), &data); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range data.Series {
		values := []string{}
		for _, v := range s.Values {
			values = append(values, countText(uint64(*v)))
		}
		got = append(got, s.Name+" "+strings.Join(values, " "))
	}
	if want := []string{`a"</b> 10 20`, "b 15 0", "others 5 0", "cached 1 2"}; data.Start != 5 || data.Step != 10 || !slices.Equal(got, want) {
		t.Errorf("from %d by %d: %q, want %q", data.Start, data.Step, got, want)
	}
}

func TestHTMLPassesErrorsOn(t *testing.T) {
	if err := WriteHTML(&records.Full{}, reportrun.SampleAnalysis(), Options{}); !errors.Is(err, records.ErrFull) {
		t.Errorf("error %v", err)
	}
}

// A command line that could be misread is not offered.
func TestHTMLCommandsAreQuoted(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"a b", "$(id)", "it's"}, `gpumemtop --policy pow2 --set max_age=1 -- ./x 'a b' '$(id)' 'it'\''s'`},
		{[]string{"a\nb"}, "gpumemtop --policy pow2 --set max_age=1 -- …"},
		{[]string{strings.Repeat("x", 500)}, "gpumemtop --policy pow2 --set max_age=1 -- …"},
	} {
		a := &analysis.Analysis{}
		a.Run.Header.Program, a.Run.Header.Arguments, a.Run.Header.Policy = "./x", c.arguments, "pow2"
		v := newView(a, Options{}, true)
		if got := strings.Join(v.commandWithLimit("max_age", "1"), " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// What is in use where the recording, or the part, ends is not called a leak while the program's end is not recorded.
func TestHTMLOfPartsTellsNoLeaks(t *testing.T) {
	const length = uint64(42e9) // of the sample
	for name, c := range map[string]struct {
		change func(*analysis.Analysis)
		leaks  bool
	}{
		"whole":           {func(*analysis.Analysis) {}, true},
		"behind its end":  {func(a *analysis.Analysis) { a.Run.Until = time.Duration(2 * length) }, true},
		"torn":            {func(a *analysis.Analysis) { a.Run.Whole = false }, false},
		"trimmed":         {func(a *analysis.Analysis) { a.Run.Footer.Cut = true }, false},
		"a part":          {func(a *analysis.Analysis) { a.Run.Until = time.Second }, false},
		"a part, no list": {func(a *analysis.Analysis) { a.Run.Until, a.Leaks = time.Second, nil }, false},
	} {
		a := reportrun.SampleAnalysis()
		if a.Snapshot.Totals.InUse = 1 << 20; !c.leaks {
			for i := range a.Snapshot.Processes {
				a.Snapshot.Processes[i].State = stats.Running
			}
		}
		c.change(a)
		text := strings.ReplaceAll(visible(writeHTML(a, Options{})), "\u202f", " ")
		if strings.Contains(text, "leaked ≈ 48.1") != c.leaks || strings.Contains(text, "in use at the end ≈ 1.00") == c.leaks ||
			strings.Contains(text, "Never released, by call site") != c.leaks || strings.Contains(text, "Every buffer was released") {
			t.Errorf("%s: %s", name, text[strings.Index(text, "Key figures"):][:600])
		}
	}
}

// What lists leave out is counted.
func TestHTMLTellsWhatIsLeftOut(t *testing.T) {
	a := &analysis.Analysis{Snapshot: &stats.Snapshot{}}
	a.Run.Header.Limits = recording.Limits{}
	for i := range 35 {
		a.Diagnoses = append(a.Diagnoses, analysis.Diagnosis{Title: "x"})
		a.Run.Header.Limits[strings.Repeat("x", i+1)] = "1"
	}
	a.Leaks = []analysis.Leak{{Name: "x", Stack: make([]string, 70), Bytes: 1, Buffers: 1}}
	text := strings.ReplaceAll(visible(writeHTML(a, Options{})), "\u202f", " ")
	if strings.Count(text, "and 5 more") != 2 || !strings.Contains(text, "and 6 more frames") {
		t.Errorf("it says: %s", text)
	}
}

// A recording of several programs has no command line, and what it was merged of is no warning.
func TestHTMLOfSeveralPrograms(t *testing.T) {
	a := reportrun.SampleAnalysis()
	a.Run.Header.Program, a.Run.Header.Arguments = "2 programs", nil
	a.Run.Header.Merged = []recording.Origin{{Program: "a"}, {Program: "b"}}
	a.Run.Footer.Message = "merged of 2 recordings"
	page := writeHTML(a, Options{})
	if text := visible(page); strings.Contains(text, "'2 programs'") || !strings.Contains(text, "-- …") || !strings.Contains(text, "message merged of 2") {
		t.Errorf("it says: %s", text[:800])
	}
}

// TestHTMLLimits: what was replayed, the knee and the present limit are on the page.
func TestHTMLLimits(t *testing.T) {
	name := "testdata/train.gmt"
	a := analysed(t, name)
	page := textOf(t, WriteHTML, a, Options{Top: 20, Limits: limitsOf(t, name)})
	for _, want := range []string{
		`id="limits"`, "Hit rate by limit of cached bytes", `class="line s0"`, "knee: 384.6", "present limit: 4.00", "reserved",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	bare, limits := *a, *limitsOf(t, name)
	bare.Run.Header.Policy, bare.Run.Header.Attached, limits.Present = "none", true, 0
	page = textOf(t, WriteHTML, &bare, Options{Top: 20, Limits: &limits})
	if !strings.Contains(page, "of the whole recording (it had no pool).") || strings.Contains(page, "present limit") {
		t.Error("not said that there was no pool, or a limit of none")
	}
	if text := textOf(t, WriteText, &bare, Options{Top: 20, Limits: &limits}); !strings.Contains(text, "(it had no") || strings.Contains(text, "present") {
		t.Errorf("not said that there was no pool, or a limit of none:\n%s", text)
	}
	if page = textOf(t, WriteHTML, a, Options{Top: 20}); strings.Contains(page, `id="limits"`) {
		t.Error("a section of limits that were not measured")
	}
	for policy, want := range map[string]string{"none": "policy none has none of cached bytes", "pow2": "nothing was asked of the pool"} {
		if page = textOf(t, WriteHTML, a, Options{Limits: &curve.Measurement{Policy: policy}}); !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}
