package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/report/reporttest"
)

func written(t *testing.T, a *analysis.Analysis, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, a, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	raw        = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`)
	tags       = regexp.MustCompile(`<[!/a-zA-Z][^<>]*>`)
	attributes = regexp.MustCompile(`([^\s"'=<>/]+)\s*=\s*("[^"]*"|'[^']*'|[^\s>]*)`)
	references = regexp.MustCompile(`(?i)^(src|href|xlink:href|srcset|action|formaction|poster|background|data|style|on[a-z]+)$`)
	allowed    = regexp.MustCompile(`^"(#[a-z-]+|data:,)"$`)
	fetches    = regexp.MustCompile(`(?i)url\(|@import|fetch\(|XMLHttpRequest|import\(|WebSocket|\.innerHTML|eval\(`)
)

// loads returns what the page refers to beyond itself.
func loads(page string) []string {
	var found []string
	for _, own := range raw.FindAllString(page, -1) {
		found = append(found, fetches.FindAllString(own, -1)...)
	}
	for _, tag := range tags.FindAllString(raw.ReplaceAllString(page, ""), -1) {
		for _, match := range attributes.FindAllStringSubmatch(tag, -1) {
			if references.MatchString(match[1]) && !allowed.MatchString(match[2]) {
				found = append(found, match[0])
			}
		}
	}
	return found
}

func TestHTMLRefersToNothingElse(t *testing.T) {
	for name, a := range map[string]*analysis.Analysis{"sample": reporttest.Sample(), "hostile": reporttest.Hostile(), "empty": {}} {
		page := written(t, a, Options{})
		if found := loads(page); len(found) > 0 {
			t.Errorf("%s refers to %q", name, found)
		}
		if rest := tags.ReplaceAllString(raw.ReplaceAllString(page, ""), ""); strings.ContainsAny(rest, "<>") {
			at := strings.IndexAny(rest, "<>")
			t.Errorf("%s: text that may be a tag: %q", name, rest[max(0, at-60):min(len(rest), at+60)])
		}
		if strings.ContainsAny(page, "\x00\x1b\u202e") {
			t.Errorf("%s has control characters", name)
		}
	}
	for _, bad := range []string{`<img src="http://x/">`, `<a href=//x>`, `<b onclick="x">`, `<style>a{b:url(x)}</style>`, `<p style="x">`} {
		if len(loads(bad)) == 0 {
			t.Errorf("%s is not noticed", bad)
		}
	}
}

func TestHTMLIsBounded(t *testing.T) {
	const most = 2 << 20
	for name, a := range map[string]*analysis.Analysis{"sample": reporttest.Sample(), "hostile": reporttest.Hostile()} {
		if n := len(written(t, a, Options{})); n > most {
			t.Errorf("%s has %d bytes", name, n)
		}
	}
	if page := written(t, reporttest.Hostile(), Options{}); !strings.Contains(page, "and 2900 more rows") || !strings.Contains(page, "too small or too deep to be drawn") {
		t.Error("nobody says what was left out")
	}
}

// The policy names the style and the script that are there: a browser runs them, and nothing else.
func TestHTMLPolicyNamesWhatIsThere(t *testing.T) {
	page := html.UnescapeString(written(t, reporttest.Sample(), Options{}))
	for kind, text := range map[string]string{"style": htmlStyle, "script": htmlScript} {
		if !strings.Contains(page, "<"+kind+">"+text+"</"+kind+">") || !strings.Contains(page, kind+"-src "+hashOf(text)) {
			t.Errorf("the %s is not there as it is, or not allowed", kind)
		}
	}
	if !strings.Contains(page, `content="default-src 'none'; img-src data:;`) {
		t.Error("something else is allowed")
	}
}

// plain is the text of a page.
func bare(page string) string {
	text := html.UnescapeString(tags.ReplaceAllString(raw.ReplaceAllString(page, ""), " "))
	return strings.Join(strings.Fields(text), " ")
}

func TestHTMLSays(t *testing.T) {
	text := strings.ReplaceAll(bare(written(t, reporttest.Sample(), Options{})), "\u202f", " ")
	for _, part := range []string{
		"/home/ada/net/train --epochs 3 --data 'cifar 10/train.bin'", "policy futhark", "Radeon Instinct MI100, 1.00 GiB, driver 3452.0", "host node17",
		"date 2026-03-14 15:09:26", "duration 42.0 s, exit status 0", "max_waste_ratio=0.5", "3 events lost",
		"problem loader.c:114 leaks", "gpumemtop --policy futhark --set max_cached_bytes=536870912 -- /home/ada/net/train",
		"peak in use 612.0 MiB", "hit rate 98.2 %", "driver time 2.14 s", "time saved ≈ 14.3 s an estimate: 27 004 driver creates avoided",
		"leaked 48.1 MiB 13 buffers at 2 call sites", "device memory 1.00 GiB", "phase 2: 3100 iterations of 7.05 ms",
		"libc.so.6+0x2724a", "--set max_waste_ratio=0.6", "31.0 µs + 12.4 µs per MiB · size, R² 0.982", "p50 420 µs, p99 31.0 ms of 26 000 buffers",
		"clReleaseMemObject of a 8.00 MiB buffer created at optimizer.c:203 moments", "25.0 s limit max_cached_bytes=268435456",
		"in use at the peak, 612.0 MiB", "4712 ", "+4.00 MiB", "−4.00 KiB", "9.00 s: double release: clReleaseMemObject",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q", part)
		}
	}
}

// A recording in which nothing happened makes a page that says so.
func TestHTMLOfNothing(t *testing.T) {
	text := bare(written(t, &analysis.Analysis{Snapshot: &model.Snapshot{}}, Options{}))
	for _, part := range []string{
		"unknown program", "did not end in order", "Nothing to say against this run", "Nothing was recorded over time.",
		"No request could have been served", "Nothing was ever free", "Nothing was ever in use", "There was no miss", "No buffer was created", "No buffer was released",
		"No driver call was measured", "No use of a released buffer was recorded", "No phases were found", "Every buffer was released", "No call stack is known", "None was seen",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no word of %q", part)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Processes") {
		t.Errorf("it says more than there is: %s", text)
	}
}

func TestHTMLRowsAsAsked(t *testing.T) {
	page := written(t, reporttest.Sample(), Options{Top: 2})
	if text := bare(page); !strings.Contains(text, "and 8 more rows") || strings.Contains(text, "and 2 more row ") {
		t.Error("want the first two rows of each table, and a word on the others")
	}
	peak := page[strings.Index(page, `<section id="peak">`):strings.Index(page, `<section id="misses">`)]
	if n := strings.Count(peak, "<tr>"); n != 3 {
		t.Errorf("%d rows with the head, want 3", n)
	}
}

// What the script reads is what was analysed: each series of the timeline, and what of the total nobody had.
func TestHTMLTellsTheTimeline(t *testing.T) {
	a := reporttest.Sample()
	a.Timeline = analysis.Timeline{
		Start: 5, Step: 10, InUse: []uint64{30, 20}, Cached: []uint64{1, 2}, Cooling: []uint64{0, 0},
		Tags: []analysis.Series{{Name: `a"</b>`, Values: []uint64{10, 20}}, {Name: "b", Values: []uint64{15, 0}}},
	}
	page := written(t, a, Options{})
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

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

func TestHTMLPassesErrorsOn(t *testing.T) {
	if err := HTML(full{}, reporttest.Sample(), Options{}); !errors.Is(err, errFull) {
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
		v := htmlView{a: a, s: &model.Snapshot{}}
		if got := strings.Join(v.tryCommand("max_age", "1"), " "); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
