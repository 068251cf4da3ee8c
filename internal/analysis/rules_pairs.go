package analysis

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// pairing is what is due for one type of pairs: the words, and how many of one memory object open at once are too many. Programs
// that map a buffer from several threads, or keep several references to it, stay below.
type pairing struct {
	kind           stats.ObjectType
	title          string
	open, close    string // a call
	opens, closes  string // several
	where, creator string // before the call site: of the call, or of the create of the memory
	deepest        uint64
}

var pairings = map[stats.ObjectType]pairing{
	stats.Mappings:   {stats.Mappings, "map without unmap", "map", "unmap", "maps", "unmaps", " at ", " of memory created at ", 8},
	stats.References: {stats.References, "retain without release", "retain", "release of that memory", "retains", "releases of that memory", " at ", " of memory created at ", 64},
	stats.Acquisitions: {
		stats.Acquisitions, "acquire without release", "acquire", "release to OpenGL", "acquires", "releases to OpenGL", "", " of memory created at ", 8,
	},
}

// mostPart is the part of what is open that iterations must have left, to grow by them.
const mostPart = 0.9

// pairLeft is the part of what a call site opened that must be open: one in this many.
const pairLeft = 4

// unpairedCallRule returns the rule for one type of pairs: the call site that leaves the most open.
func unpairedCallRule(kind stats.ObjectType) func(*Evidence) (Diagnosis, bool) {
	return func(e *Evidence) (Diagnosis, bool) {
		words := pairings[kind]
		for i := range e.Run.Pairs {
			c := &e.Run.Pairs[i]
			for k := range c.Sites { // the most open first
				if s := &c.Sites[k]; c.Type == kind && (words.leavesTooManyOpen(s, e.State) || words.growsEachIteration(e, c, s)) {
					return words.diagnoseOpenPairs(e, c, s), true
				}
			}
		}
		return Diagnosis{}, false
	}
}

// leavesTooManyOpen reports whether a call site leaves too many open. References of a program that goes on may all be released later: they must have
// grown for half a minute.
func (w *pairing) leavesTooManyOpen(s *stats.ObjectSite, state State) bool {
	if w.kind == stats.References && state == GoesOn && (s.Recent <= 0 || int64(s.Live)-s.Recent < int64(w.deepest/2)) {
		return false
	}
	return s.Deepest >= w.deepest && s.Live*pairLeft >= s.Created
}

// pairGrowth is the part of the deepest that is too much where each iteration leaves one more open.
const pairGrowth = 4

// growsEachIteration reports whether each iteration opened one memory object once more than it closed it.
func (w *pairing) growsEachIteration(e *Evidence, c *stats.ObjectCount, s *stats.ObjectSite) bool {
	if e.Whole == nil || s.Deepest < w.deepest/pairGrowth || s.Live*pairLeft < s.Created {
		return false
	}
	each, all := MostObjectGrowth(e.Whole.Phases, c.Type.JSONKey())
	return each >= 1 && all >= mostPart*float64(c.Live)
}

// diagnoseOpenPairs is about a call site that leaves pairs open.
func (w *pairing) diagnoseOpenPairs(e *Evidence, c *stats.ObjectCount, s *stats.ObjectSite) Diagnosis {
	d := Diagnosis{Severity: Problem, Title: w.title, Tag: s.Tag, Share: shareOfWhole(s.Live, s.Created), Text: w.openedAndClosedText(s, e.Run.Transfers.OwnSites)}
	if e.Whole != nil {
		if s.Grown > 0 {
			d.Text += fmt.Sprintf("; %d fewer were open at half of the time from its first call to its last", s.Grown)
		}
		if each, all := MostObjectGrowth(e.Whole.Phases, c.Type.JSONKey()); all >= float64(c.Live)/2 {
			d.Text += fmt.Sprintf("; an iteration leaves %.1f more on average", each)
		}
	}
	if in := e.inProcessText(s.Most.Process); in != "" {
		d.Text, d.placed = d.Text+fmt.Sprintf("; %d of the %d that stay open are%s", s.Most.Live, s.Live, in), true
	}
	e.downgradeIfEventsLost(&d, w.closes, w.title+", perhaps")
	return d
}

// openedAndClosedText says how often a call site opened and closed memory. own: mappings have call sites of their own.
func (w *pairing) openedAndClosedText(s *stats.ObjectSite, own bool) string {
	where := w.creator
	if w.kind == stats.References {
		own = s.Own
	}
	if own && w.where != "" {
		where = w.where
	}
	text := units.Plural(s.Created, w.open, w.opens) + where + s.Tag + ", " + units.Plural(s.Created-s.Live, w.close, w.closes)
	if s.Guessed {
		text += " as the order of calls suggests"
	}
	if s.Forgotten > 0 {
		return text + " before the release of the memory"
	}
	return text
}

// FindUnpairedCalls are the findings about maps without unmaps, retains without releases and acquires without releases in a
// snapshot. attached: see Evidence.
func FindUnpairedCalls(s *stats.Snapshot, attached bool) (list []Diagnosis) {
	e := EvidenceOfSnapshot(s)
	e.Attached = attached
	for _, kind := range []stats.ObjectType{stats.Mappings, stats.References, stats.Acquisitions} {
		if d, found := unpairedCallRule(kind)(e); found {
			list = append(list, d)
		}
	}
	return list
}
