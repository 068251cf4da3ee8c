package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ObjectsLeast is how many live objects of a type are worth a word: many programs leave what they made once to the exit.
const ObjectsLeast = 100

// Objects grow if the later half of the run added a quarter of those that are live, and the third and the last quarter a
// part of these each: what a program makes at one time is no growth.
const (
	objectsGrown  = 0.25
	objectsSpread = 0.02
)

// ObjectGrowth is how many more objects of a type a process has after an iteration than before it, on average.
type ObjectGrowth struct {
	Type         string  `json:"type"`
	PerIteration float64 `json:"per_iteration"`
}

// IsOfMemory reports whether the objects are parts of memory, which count as buffers elsewhere, or mappings of or references to memory.
func (g *ObjectGrowth) IsOfMemory() bool {
	return slices.ContainsFunc([]stats.ObjectType{stats.SubBuffers, stats.ImagesOfBuffers, stats.Mappings, stats.References, stats.Acquisitions},
		func(t stats.ObjectType) bool { return g.Type == t.JSONKey() })
}

// noteLiveObjects notes what is live when half of the run is over, and when three quarters are. What comes late shows no time.
func (x *run) noteLiveObjects(r *wire.Record) {
	for x.marks < 2 && r.IsTimed() && r.Time >= x.survey.begun+x.callSpan()*(2+x.marks)/4 {
		x.marks++
		x.model.MarkObjectCounts()
	}
}

// objectsKeepGrowing reports whether many objects of a type are live, and more and more are.
func objectsKeepGrowing(c *stats.ObjectCount, phases []Phase) bool {
	if c.Live < ObjectsLeast {
		return false
	}
	if c.Untracked > 0 {
		return true
	}
	if _, all := MostObjectGrowth(phases, c.Type.JSONKey()); all >= float64(c.Live)/2 {
		return true
	}
	return objectsGrowInLaterHalf(c)
}

// objectsGrowInLaterHalf reports whether the later half of the run added much of what is live, and not all of it at one time.
func objectsGrowInLaterHalf(c *stats.ObjectCount) bool {
	live := float64(c.Live)
	return float64(c.Grown) >= objectsGrown*live && float64(c.Lately) >= objectsSpread*live &&
		float64(c.Grown-c.Lately) >= objectsSpread*live
}

// objectGrowth returns the types that grow from iteration to iteration.
func (l *laps) objectGrowth(iterations uint64) []ObjectGrowth {
	list := []ObjectGrowth{}
	if iterations < 2 {
		return list
	}
	for kind := range l.holds {
		if grown := l.holds[kind] - l.held[kind]; grown > 0 {
			list = append(list, ObjectGrowth{stats.ObjectType(kind).JSONKey(), float64(grown) / float64(iterations-1)})
		}
	}
	return list
}

// findObjectGrowth finds objects that programs keep creating and do not release.
func findObjectGrowth(e *Evidence) (Diagnosis, bool) {
	counts := slices.DeleteFunc(slices.Clone(e.Run.Objects), func(c stats.ObjectCount) bool { return !objectsKeepGrowing(&c, e.Whole.Phases) })
	if len(counts) == 0 {
		return Diagnosis{}, false
	}
	c := slices.MaxFunc(counts, func(a, b stats.ObjectCount) int { return cmp.Compare(a.Live, b.Live) })
	top, many := &c.Sites[0], c.Type.PluralWords()
	how := "are never released"
	severity := Problem
	if c.Leaked == 0 {
		severity, how = Advice, "grow in number"
	}
	d := Diagnosis{
		Severity: severity, Title: many + " " + how, Tag: top.Tag, Share: shareOfWhole(c.Live, c.Created),
		Text: fmt.Sprintf("%d of %d are live at the end, %d more than at half of the time from its first call to its last; %d from %s", c.Live, c.Created, c.Grown, top.Live, top.Tag),
	}
	if each, all := MostObjectGrowth(e.Whole.Phases, c.Type.JSONKey()); all >= float64(c.Live)/2 {
		d.Title = many + " grow in number over the iterations"
		d.Text += fmt.Sprintf("; an iteration leaves %.1f more on average", each)
	}
	if in := e.inProcessText(top.Most.Process); in != "" {
		d.Text, d.placed = d.Text+fmt.Sprintf("; %d of these are%s", top.Most.Live, in), true
	}
	if c.Untracked > 0 {
		d.Text += fmt.Sprintf("; %d more were created than are tracked, and may be live, too", c.Untracked)
	}
	for i := range counts {
		if other := &counts[i]; other.Type != c.Type {
			d.Text += fmt.Sprintf("; so do %s: %s live", other.Type.PluralWords(), units.Plural(other.Live, "is", "are"))
		}
	}
	e.downgradeIfEventsLost(&d, "releases", many+" may grow in number")
	return d, true
}

// findObjectsLeft finds objects that processes which ended well never released, where findObjectGrowth has none to name.
func findObjectsLeft(e *Evidence) (Diagnosis, bool) {
	left := slices.DeleteFunc(slices.Clone(e.Run.Objects), func(c stats.ObjectCount) bool { return c.Leaked == 0 || c.Type >= stats.SubBuffers })
	_, grow := findObjectGrowth(e)
	early := slices.ContainsFunc(e.Run.Processes, func(p stats.Process) bool { // left by exit or a signal, in the midst of its work
		return p.BadEndText() != "" || !e.Attached && !p.Orderly && p.Folded == 0
	})
	if grow || early || len(left) == 0 {
		return Diagnosis{}, false
	}
	words, all, created := []string{}, uint64(0), uint64(0)
	for i := range left {
		c := &left[i]
		words, all, created = append(words, units.Plural(c.Leaked, c.Type.String(), c.Type.PluralWords())), all+c.Leaked, created+c.Created
	}
	c := slices.MaxFunc(left, func(a, b stats.ObjectCount) int { return cmp.Compare(a.Leaked, b.Leaked) })
	top := slices.MaxFunc(c.Sites, func(a, b stats.ObjectSite) int { return cmp.Compare(a.Leaked, b.Leaked) })
	d := Diagnosis{
		Severity: Note, Title: "OpenCL objects are never released", Tag: top.Tag, Share: shareOfWhole(all, created),
		Text: fmt.Sprintf("%s; %d of the %s from %s", strings.Join(words, ", "), top.Leaked, c.Type.PluralWords(), top.Tag),
	}
	if objectsGrowInLaterHalf(&c) {
		d.Text += fmt.Sprintf("; %s, %d more than at half of the time from its first call to its last", units.Plural(c.Live, "is live", "are live"), c.Grown)
	}
	e.downgradeIfEventsLost(&d, "releases", "OpenCL objects may be left")
	return d, true
}

// MostObjectGrowth returns how many objects of a type an iteration leaves behind, and all together, in the phase where that is the most in all; 0 if
// no phase is long enough.
func MostObjectGrowth(phases []Phase, kind string) (each, most float64) {
	for i := range phases {
		for _, g := range phases[i].Objects {
			if all := g.PerIteration * float64(phases[i].Iterations); g.Type == kind && all > most && phases[i].Iterations >= growthIterations {
				most, each = all, g.PerIteration
			}
		}
	}
	return each, most
}
