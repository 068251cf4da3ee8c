package report

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// diagnosesMax is how many conclusions people get to see first; JSON has all.
const diagnosesMax = 5

// commandWidth bounds a command line, characters.
const commandWidth = 240

func (v *view) command() string {
	text := strings.Join(append([]string{v.s.Program}, v.s.Arguments...), " ")
	switch {
	case v.attached() && v.s.Program == "":
		text = "attached to nothing: no process came that was asked for"
	case v.attached():
		text = "attached to " + text
	case v.s.Program == "":
		text = "the program"
	}
	return plain.Cut(text, commandWidth)
}

func (v *view) head() section {
	s := section{facts: [][2]string{{"program", v.command()}, {"policy", plain.Policy(v.s)}}}
	add := func(name, format string, args ...any) {
		s.facts = append(s.facts, [2]string{name, plain.Clean(fmt.Sprintf(format, args...))})
	}
	for i := range v.s.Limits {
		add("limit", "%s = %s", v.s.Limits[i].Name, limitValue(&v.s.Limits[i]))
	}
	if d := v.s.Device; d.Name != "" {
		add("device", "%s (%s), %s", d.Name, d.Driver, size.FormatLong(d.Global))
	}
	add("time", "%s, %d events", v.clockOf(v.s.Time), v.s.Events)
	if n := v.a.Run.Before; n > 0 {
		add("before", "%s from before attach, sizes known as far as used", plain.Count(n, "buffer"))
	}
	v.partFacts(add)
	if v.s.Lost > 0 {
		add("lost", "%d events (%d of them uses): figures are too low", v.s.Lost, v.s.LostUses)
	}
	if v.s.Unknown > 0 {
		add("unknown", "%d events about objects that were never seen created", v.s.Unknown)
	}
	if v.a.Damage != "" {
		add("damage", "%s", v.a.Damage)
	}
	return s
}

// partFacts say which part of the recording this is.
func (v *view) partFacts(add func(name, format string, args ...any)) {
	r := &v.a.Run
	switch {
	case r.Until > 0:
		add("part", "from %v to %v after the start", r.Since, r.Until)
	case r.Since > 0:
		add("part", "from %v after the start", r.Since)
	}
	if r.Process != "" {
		add("process", "%s alone", r.Process)
	}
	if r.Tag != "" {
		add("tags", "that match %s; totals are those of all", r.Tag)
	}
	if r.Events > 0 || r.Since == 0 && r.Until == 0 {
		return
	}
	text := "nothing happened in this part"
	if r.Whole && r.Footer.EndedNS > r.Started && uint64(r.Since) > r.Footer.EndedNS-r.Started {
		text += fmt.Sprintf(": the recording ends after %.3f s", plain.Seconds(r.Started, r.Footer.EndedNS))
	}
	add("note", "%s", text)
}

// limitValue writes a limit's value for people.
func limitValue(l *model.Limit) string {
	switch {
	case l.Kind == model.LimitBytes:
		return size.FormatLong(uint64(max(l.Value, 0)))
	case l.Kind == model.LimitSeconds && l.Value == 0 && l.Min == 0:
		return "off"
	case l.Kind == model.LimitSeconds:
		return l.Text + " s"
	}
	return l.Text
}

// knobValue writes what to change for people.
func knobValue(k *analysis.Knob) string {
	if k.Limit == "" {
		return ""
	}
	return "--set " + k.Limit + "=" + k.Value
}

func (v *view) standsOut() section {
	s := section{heading: "what stands out"}
	shown, left := plain.Top(v.a.Diagnoses, diagnosesMax)
	for i := range shown {
		d := &shown[i]
		text := fmt.Sprintf("%s: %s: %s", d.Severity, d.Title, d.Text)
		if d.Knob.Limit != "" {
			text += "; try " + knobValue(&d.Knob)
		}
		s.items = append(s.items, plain.Clean(text))
	}
	if left > 0 {
		s.notes = []string{fmt.Sprintf("and %d more", left)}
	}
	if len(shown) == 0 {
		s.notes = []string{"nothing"}
	}
	return s
}

// attached reports whether the programs were only watched: no pool served them, and times have the probes' own in them.
func (v *view) attached() bool { return v.a.Run.Header.Attached }

// watched are the totals of programs that were only watched.
func (v *view) watched() section {
	t := v.t
	memory, end := plain.Watched(v.s)
	s := section{heading: "totals", facts: [][2]string{
		{"creates", fmt.Sprintf("%d (%d failed), %s requested in all", t.Creates, t.Failures, size.FormatLong(t.BytesRequested))},
		{"releases", fmt.Sprintf("%d, not timed", t.Releases)},
		{"in creates", fmt.Sprintf("%s, the probes' own time in it, some µs each; p50 %s, p99 %s", plain.Duration(t.DriverNS),
			plain.Duration(t.CreateP50NS), plain.Duration(t.CreateP99NS))},
		{"memory", fmt.Sprintf("%s, at %s", memory, v.clockOf(t.PeakInUseTime))},
		{"at the end", end},
	}}
	if before := plain.BeforeAttach(v.s); before != nil {
		s.facts = append(s.facts, [2]string{"unknown", fmt.Sprintf("%s from before attach live at the end, known to have %s",
			plain.Count(before.Live, "buffer"), size.FormatLong(before.InUse))})
	}
	return s
}

func (v *view) totals() section {
	if v.attached() {
		return v.watched()
	}
	t := v.t
	s := section{heading: "totals", facts: [][2]string{
		{"hit rate", plain.Hits(t)},
		{"driver", plain.Driver(t)},
		{"in driver", fmt.Sprintf("%s in %d creates and %d releases; create p50 %s, p99 %s", plain.Duration(t.DriverNS),
			t.DriverCreates, t.DriverReleases, plain.Duration(t.DriverCreateP50), plain.Duration(t.DriverCreateP99))},
		{"calls", fmt.Sprintf("%d creates (%d failed, %d never eligible), %d releases; create p50 %s, p99 %s",
			t.Creates, t.Failures, t.Unpooled, t.Releases, plain.Duration(t.CreateP50NS), plain.Duration(t.CreateP99NS))},
		{"bytes", fmt.Sprintf("%s requested in all, %s created by the driver", size.FormatLong(t.BytesRequested),
			size.FormatLong(t.BytesAllocated))},
		{"memory", fmt.Sprintf("%s, at %s", plain.Memory(t), v.clockOf(t.PeakInUseTime))},
		{"at the end", plain.End(t)},
	}}
	if t.Slabs > 0 {
		s.facts = append(s.facts, [2]string{"slabs", fmt.Sprintf("%d of %s, %s of them free", t.Slabs, size.FormatLong(t.SlabBytes),
			size.FormatLong(t.SlabFree))})
	}
	s.facts = append(s.facts, [2]string{"hazards", fmt.Sprintf("%d releases of buffers that commands still used", t.HazardsAvoided)})
	return s
}

func (v *view) peak() section {
	p := &v.a.Peak
	if len(p.Tags) == 0 {
		return section{}
	}
	rows, left := top(v, p.Tags)
	t := table{columns: []string{"in use", "share", "buffers", "waste", "tag"}, left: left, thing: "tag"}
	for i := range rows {
		r := &rows[i]
		t.add(size.Format(r.InUse), plain.Percent(float64(r.InUse)/float64(max(p.InUse, 1)), p.InUse), fmt.Sprint(r.Buffers),
			plain.Percent(wasted(r.InUse, r.Requested), r.InUse), plain.Clean(r.Name))
	}
	at := fmt.Sprintf("%s: %s in use by %s", v.clock(p.Time), size.FormatLong(p.InUse), plain.Count(p.Buffers, "buffer"))
	if v.attached() {
		t.drop("waste")
	} else {
		at += fmt.Sprintf(", %s reserved", size.FormatLong(p.Reserved))
	}
	return section{heading: "who held it at the peak", tables: []table{t}, facts: [][2]string{{"at", at}}}
}

func wasted(granted, requested uint64) float64 {
	return float64(granted-min(requested, granted)) / float64(max(granted, 1))
}

// shortRun is a run whose times are in milliseconds, ns.
const shortRun = 100_000_000

// clock writes a time after the start.
func (v *view) clock(ns uint64) string {
	if v.s.Time-min(v.s.Started, v.s.Time) < shortRun {
		return fmt.Sprintf("%.3f ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3f s", float64(ns)/1e9)
}

// clockOf writes a CLOCK_MONOTONIC time as one after the start.
func (v *view) clockOf(ns uint64) string { return v.clock(ns - min(v.s.Started, ns)) }

func (v *view) tags() section {
	rows, left := top(v, plain.TagsByPeak(v.s.Tags))
	if v.attached() {
		t := table{columns: []string{"peak", "in use", "live", "creates", "tag"}, left: left, thing: "tag"}
		for _, r := range rows {
			t.add(size.Format(r.PeakInUse), size.Format(r.InUse), fmt.Sprint(r.Live), fmt.Sprint(r.Creates), plain.Clean(r.Name))
		}
		return section{heading: "tags, by peak", tables: []table{t}}
	}
	t := table{
		columns: []string{"peak", "in use", "live", "cached", "creates", "hits", "hit rate", "waste", "tag"}, left: left, thing: "tag",
	}
	for _, r := range rows {
		t.add(size.Format(r.PeakInUse), size.Format(r.InUse), fmt.Sprint(r.Live), size.Format(r.Cached+r.Cooling),
			fmt.Sprint(r.Creates), fmt.Sprint(r.Hits), plain.Percent(r.HitRate(), r.Hits+r.Misses),
			plain.Percent(r.Waste(), r.InUse), plain.Clean(r.Name))
	}
	return section{heading: "tags, by peak", tables: []table{t}}
}

func (v *view) misses() section {
	if len(v.a.Misses) == 0 || v.attached() { // without a pool there is nothing to miss
		return section{}
	}
	s := section{heading: "misses, by reason"}
	t := table{columns: []string{"misses", "share", "bytes", "driver", "reason"}}
	for i := range v.a.Misses {
		m := &v.a.Misses[i]
		t.add(fmt.Sprint(m.Count), plain.Percent(float64(m.Count)/float64(max(v.t.Misses, 1)), v.t.Misses), size.Format(m.Bytes),
			plain.Duration(m.LostNS), m.Reason)
		text := m.Reason + ": " + m.Knob.Why
		if m.Knob.Limit != "" {
			text += "; try " + knobValue(&m.Knob)
		}
		s.items = append(s.items, text)
	}
	s.tables = []table{t}
	return s
}

func (v *view) leaks() section {
	s := section{heading: "leaked at exit, by tag"}
	if len(v.a.Leaks) == 0 {
		s.notes = []string{"nothing"}
		if v.attached() && v.a.Run.Footer.Cut {
			s.notes = []string{"nothing: what is in use where the recording ends may still be released"}
		}
		return s
	}
	rows, left := top(v, v.a.Leaks)
	t := table{columns: []string{"buffers", "bytes", "oldest", "tag"}, left: left, thing: "tag"}
	for i := range rows {
		l := &rows[i]
		r := row{cells: []string{fmt.Sprint(l.Buffers), size.Format(l.Bytes), v.clock(l.Oldest), plain.Clean(l.Name)}}
		for _, frame := range l.Stack {
			if frame == l.Name { // of what was there before attach there is no more than that
				break
			}
			r.below = append(r.below, plain.Clean(frame))
		}
		t.rows = append(t.rows, r)
	}
	s.tables = []table{t}
	return s
}
