package ui

import (
	"fmt"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// RenderFilm returns a moving picture of the dashboard around a run, and of what changes of limits brought: SVG that loads nothing,
// dark or light as its reader prefers. It shows each snapshot for a time, w by h cells large, and repeats. A reader that shows
// no motion shows the last snapshot.
func RenderFilm(snapshots []*stats.Snapshot, judge Judge, each time.Duration, w, h int) string {
	d := newDashboard(Options{ReadOnly: true, Judge: judge}, newTrueColorTheme(Dark, Braille))
	d.resizeTo(w, h)
	f := film{frames: len(snapshots), seen: map[string][]bool{}}
	for i, s := range snapshots {
		d.showFrame(frameMsg{now: time.Unix(0, 0).Add(time.Duration(i) * each), snap: s})
		if i > 0 {
			d.ledger.addOthersChanges(snapshots[i-1], s)
		}
		d.drawFrame()
		for y := range d.canvas.h {
			for _, stretch := range d.canvas.styledStretches(y) {
				f.addStretchOfFrame(i, stretch)
			}
		}
	}
	var b strings.Builder
	openPicture(&b, w, h, styleSheetOf(d.theme)+"@media (prefers-color-scheme:light){\n"+styleSheetOf(newTrueColorTheme(Light, Braille))+"}\n", "gpumemtop")
	f.writeFilm(&b, each)
	b.WriteString("</svg>\n")
	return b.String()
}

// film knows which pieces of text are in which frames. Most pieces are in several frames, and are written once.
type film struct {
	frames int
	seen   map[string][]bool
	order  []string // in which they came
}

func (f *film) addStretchOfFrame(frame int, stretch string) {
	if f.seen[stretch] == nil {
		f.seen[stretch] = make([]bool, f.frames)
		f.order = append(f.order, stretch)
	}
	f.seen[stretch][frame] = true
}

// writeFilm draws backgrounds first, then text, what comes and goes together as one group.
func (f *film) writeFilm(b *strings.Builder, each time.Duration) {
	groups := map[string][]string{}
	var keys []string
	for _, kind := range []string{"<rect", "<text"} {
		for _, stretch := range f.order {
			if !strings.HasPrefix(stretch, kind) {
				continue
			}
			key := kind + f.visibilityAttributes(f.seen[stretch], each)
			if groups[key] == nil {
				keys = append(keys, key)
			}
			groups[key] = append(groups[key], stretch)
		}
	}
	for _, key := range keys {
		fmt.Fprintf(b, "<g%s\n%s</g>\n", key[len("<rect"):], strings.Join(groups[key], ""))
	}
}

// visibilityAttributes returns the attribute and the animation of a group that is visible in these frames.
func (f *film) visibilityAttributes(in []bool, each time.Duration) string {
	word := map[bool]string{false: "hidden", true: "visible"}
	values, times := []string{word[in[0]]}, []string{"0"}
	for i := 1; i < len(in); i++ {
		if in[i] != in[i-1] {
			values, times = append(values, word[in[i]]), append(times, fmt.Sprintf("%.4g", float64(i)/float64(f.frames)))
		}
	}
	if len(values) == 1 {
		return ">"
	}
	return fmt.Sprintf(` visibility="%s"><animate attributeName="visibility" values="%s" keyTimes="%s" dur="%gs" calcMode="discrete" repeatCount="indefinite"/>`,
		word[in[len(in)-1]], strings.Join(values, ";"), strings.Join(times, ";"), (time.Duration(f.frames) * each).Seconds())
}
