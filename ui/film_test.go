package ui

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// shownAt reads a film as a browser does: the rows of text that are visible at a share of its length, 0 to 1.
type shownAt struct {
	t      *testing.T
	share  float64
	hidden bool
	col, y float64
	rows   map[int][]rune
}

func frameOf(t *testing.T, film string, share float64) string {
	t.Helper()
	s := &shownAt{t: t, share: share, rows: map[int][]rune{}}
	for d := xml.NewDecoder(strings.NewReader(film)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			s.begin(token)
		case xml.CharData:
			s.put([]rune(string(token)))
		case xml.EndElement:
			s.y = 0
		}
	}
	var b strings.Builder
	for y := range len(s.rows) {
		b.WriteString(strings.TrimRight(string(s.rows[y]), " \x00") + "\n")
	}
	return strings.ReplaceAll(b.String(), "\x00", " ")
}

func (s *shownAt) begin(e xml.StartElement) {
	a := map[string]string{}
	for _, attribute := range e.Attr {
		a[attribute.Name.Local] = attribute.Value
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		return v
	}
	switch e.Name.Local {
	case "g":
		s.hidden = false
	case "animate":
		values := strings.Split(a["values"], ";")
		for i, from := range strings.Split(a["keyTimes"], ";") {
			if number(from) <= s.share+1e-9 {
				s.hidden = values[i] == "hidden"
			}
		}
	case "text":
		s.col, s.y = (number(a["x"])-pictureMargin)/cellW, number(a["y"])
	}
}

func (s *shownAt) put(text []rune) {
	if s.hidden || s.y == 0 {
		return
	}
	y, at := int(s.y-pictureMargin-letterBase)/cellH, int(math.Round(s.col))
	for need := at + len(text); len(s.rows[y]) < need; {
		s.rows[y] = append(s.rows[y], 0)
	}
	copy(s.rows[y][at:], text)
}

// TestFilmShowsWhatTheDashboardShows: every frame of a film is the screen at that time.
func TestFilmShowsWhatTheDashboardShows(t *testing.T) {
	var snapshots []*stats.Snapshot
	for i := range 8 {
		s := *sampleSnapshot()
		s.Time += uint64(i) * 1e9
		s.Totals.Hits += uint64(i%3) * 1000
		s.Tags = s.Tags[:len(s.Tags)-i%2]
		snapshots = append(snapshots, &s)
	}
	picture := RenderFilm(snapshots, &analysis.Live{}, 500*time.Millisecond, 120, 36)
	d := newDashboard(Options{ReadOnly: true, Judge: &analysis.Live{}}, newTrueColorTheme(Dark, Braille))
	d.resizeTo(120, 36)
	for i, s := range snapshots {
		d.showFrame(frameMsg{now: time.Unix(0, 0).Add(time.Duration(i) * 500 * time.Millisecond), snap: s})
		d.drawFrame()
		if got, want := strings.TrimSpace(frameOf(t, picture, float64(i)/8)), strings.TrimSpace(d.canvas.plainText()); got != want {
			t.Fatalf("frame %d:\n%s\nnot\n%s", i, got, want)
		}
	}
	if !strings.Contains(picture, `dur="4s"`) {
		t.Error("it is not eight frames of half a second long")
	}
}

// TestFilmSaysWhatAChangeBrought: a limit that changes in the recording has its effect in the message line, as it had in the run.
func TestFilmSaysWhatAChangeBrought(t *testing.T) {
	var snapshots []*stats.Snapshot
	for i := range 8 {
		s := *sampleSnapshot()
		s.Time += uint64(i) * 1e9
		s.Totals.Misses += uint64(min(i, 3)) * 100
		s.Totals.Hits += uint64(max(i-3, 0)) * 100
		s.Limits = slices.Clone(s.Limits)
		s.Limits[0].Value *= float64(1 + min(i/3, 1))
		snapshots = append(snapshots, &s)
	}
	picture, name := RenderFilm(snapshots, &analysis.Live{}, time.Second, 120, 36), snapshots[0].Limits[0].Name
	for frame, want := range map[int]string{3: "✓ " + name + " ", 7: ": hit 0.0 % before, 100.0 % 3 s after"} {
		if got := frameOf(t, picture, float64(frame)/8); !strings.Contains(got, want) {
			t.Errorf("frame %d has no %q:\n%s", frame, want, got)
		}
	}
}

// TestFilmOfTheReadme: docs/dashboard.svg has the colours and the shape that Film gives today, and its story: a program
// leaks, a limit is raised, and the hit rate rises ("make screenshot" renews it).
func TestFilmOfTheReadme(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "dashboard.svg"))
	if err != nil {
		t.Fatal(err)
	}
	picture, today := string(b), RenderFilm([]*stats.Snapshot{sampleSnapshot()}, &analysis.Live{}, time.Second, 120, 36)
	if end := strings.Index(today, "</style>"); !strings.HasPrefix(picture, today[:end]) {
		t.Error("docs/dashboard.svg has other colours: run make screenshot")
	}
	if !strings.Contains(picture, `dur="15s"`) {
		t.Error("docs/dashboard.svg is not fifteen seconds long: run make screenshot")
	}
	first, last := frameOf(t, picture, 0), frameOf(t, picture, 0.975)
	hit := regexp.MustCompile(`\bhit +([0-9.]+)%`)
	rate := func(frame string) float64 {
		v, _ := strconv.ParseFloat(append(hit.FindStringSubmatch(frame), "", "-1")[1], 64)
		return v
	}
	for _, frame := range []string{first, last} {
		if !strings.Contains(frame, "create_preview") {
			t.Errorf("docs/dashboard.svg does not show where memory leaks: run make screenshot\n%s", frame)
		}
	}
	if was, is := rate(first), rate(last); was < 0 || is < was+15 {
		t.Errorf("docs/dashboard.svg: the hit rate goes from %v to %v %%: run make screenshot\n%s", was, is, last)
	}
	limit := regexp.MustCompile(`max_cached_bytes +([0-9.]+[KMG])`)
	if was, is := limit.FindString(first), limit.FindString(last); was == is || was == "" {
		t.Errorf("docs/dashboard.svg: the limit goes from %q to %q: run make screenshot", was, is)
	}
	if !regexp.MustCompile(`max_cached_bytes \S+ → \S+: hit \S+ % before, \S+ % 3 s after`).MatchString(last) {
		t.Errorf("docs/dashboard.svg does not say what the change brought: run make screenshot\n%s", last)
	}
}
