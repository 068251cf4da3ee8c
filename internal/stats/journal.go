package stats

import "codeberg.org/gpumemtop/gpumemtop/internal/heap"

// journalMax bounds a journal, in changes of 16 bytes. If the name of a site comes more changes later, only the peak of each
// site is known: the peak of their sum is then at least the largest of these.
const journalMax = 1 << 18

// journal keeps the changes of memory at all call sites since the oldest site that waits for its name was defined. Names fold
// sites into one, whose peak is the peak of the sum. That follows from the course of the sum only, not from the peaks of each.
type journal struct {
	changes []change
	dropped uint64    // number of changes before these
	waiting []waiting // in the order in which the sites were defined
	quiet   bool      // the first change was carried over
	folded  bool      // some peaks are not yet the peaks of sums
}

// waiting is a site that waits for its name.
type waiting struct {
	site *site
	born uint64 // number of changes before it was defined
}

// change adds memory to a site, or takes it off. Without a site it begins records that were carried over or, with 0 bytes, ends
// them: see totals.quiet.
type change struct {
	site  *processSite
	bytes int64
}

// beginAwaitingName begins to wait for the name of a site.
func (j *journal) beginAwaitingName(s *site, quiet bool) {
	if s.awaited || s.name != "" {
		return
	}
	if len(j.waiting) == 0 {
		j.quiet = quiet
	}
	s.awaited = true
	j.waiting = append(j.waiting, waiting{s, j.dropped + uint64(len(j.changes))})
}

// noteChange adds a change, if a name is awaited.
func (j *journal) noteChange(s *processSite, bytes int64) {
	if len(j.waiting) > 0 {
		j.addChange(change{s, bytes})
	}
}

func (j *journal) addChange(c change) {
	if len(j.changes) == journalMax {
		j.dropOlderHalf()
	}
	if len(j.waiting) > 0 {
		j.changes = append(j.changes, c)
	}
}

// noteNamed notes that a site got its name, or was folded into another one.
func (j *journal) noteNamed() {
	for len(j.waiting) > 0 && j.waiting[0].site.hasFinalName() {
		j.waiting = j.waiting[1:]
	}
	if len(j.waiting) == 0 {
		j.raiseSummedPeaks()
		j.clearChanges()
	}
}

// clearChanges forgets all changes, as no name is awaited. A long journal gives its memory back.
func (j *journal) clearChanges() {
	j.dropped += uint64(len(j.changes))
	if j.changes = j.changes[:0]; cap(j.changes) > journalMax/16 {
		j.changes = nil
	}
}

// dropOlderHalf makes room for half a journal. It no longer waits for names that would need the older half.
func (j *journal) dropOlderHalf() {
	j.raiseSummedPeaks()
	for len(j.waiting) > 0 && j.waiting[0].born < j.dropped+journalMax/2 {
		j.waiting = j.waiting[1:]
	}
	if len(j.waiting) == 0 {
		j.clearChanges()
		return
	}
	for _, c := range j.changes[:journalMax/2] {
		if c.site == nil {
			j.quiet = c.bytes != 0
		}
	}
	j.changes = append(j.changes[:0], j.changes[journalMax/2:]...)
	j.dropped += journalMax / 2
}

// raiseSummedPeaks raises peaks to the peaks of sums: it replays the changes on the sites that the folded sites are part of now.
func (j *journal) raiseSummedPeaks() {
	if !j.folded {
		return
	}
	j.folded = false
	var touched []*siteFigures
	for _, c := range j.changes {
		if c.site == nil {
			continue
		}
		for f := range c.site.finalSite().eachFigures {
			if !f.touched {
				f.touched, f.replayed = true, f.inUse
				touched = append(touched, f)
			}
			f.replayed -= c.bytes
		}
	}
	raise := func() {
		for _, f := range touched {
			f.peak = max(f.peak, heap.NonNegative(f.replayed))
		}
	}
	quiet := j.quiet
	for _, c := range j.changes {
		if c.site == nil {
			if quiet = c.bytes != 0; !quiet {
				raise()
			}
			continue
		}
		for f := range c.site.finalSite().eachFigures {
			if f.replayed += c.bytes; !quiet {
				f.peak = max(f.peak, heap.NonNegative(f.replayed))
			}
		}
	}
	for _, f := range touched {
		f.touched = false
	}
}
