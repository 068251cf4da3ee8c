package stats

import "codeberg.org/gpumemtop/gpumemtop/internal/heap"

// journalMax bounds a journal, in changes of 16 bytes. It is not known what a row held more changes before its name came:
// the peak of a sum is then at least that of each row.
const journalMax = 1 << 18

// journal is what rows came to hold since the oldest that waits for its name was defined. Names fold rows into one, and the
// peak of that is the peak of their sum, which nothing but its course shows.
type journal struct {
	changes []change
	dropped uint64    // changes before these
	waiting []waiting // in the order in which they were defined
	quiet   bool      // the first change was carried over
	folded  bool      // some peaks are not yet those of sums
}

// waiting is a whole that waits for its name.
type waiting struct {
	site *site
	born uint64 // changes before it was defined
}

// change is what a part came to hold, or no longer does. Without a row it begins records that were carried over, or, with 0,
// ends them: see carried.
type change struct {
	site  *processSite
	bytes int64
}

// await begins to wait for the name of a whole.
func (j *journal) await(s *site, quiet bool) {
	if s.awaited || s.name != "" {
		return
	}
	if len(j.waiting) == 0 {
		j.quiet = quiet
	}
	s.awaited = true
	j.waiting = append(j.waiting, waiting{s, j.dropped + uint64(len(j.changes))})
}

// note adds a change, while a name is awaited.
func (j *journal) note(s *processSite, bytes int64) {
	if len(j.waiting) > 0 {
		j.add(change{s, bytes})
	}
}

func (j *journal) add(c change) {
	if len(j.changes) == journalMax {
		j.shorten()
	}
	if len(j.waiting) > 0 {
		j.changes = append(j.changes, c)
	}
}

// named says that a row got its name, or was folded into another one.
func (j *journal) named() {
	for len(j.waiting) > 0 && (j.waiting[0].site.name != "" || j.waiting[0].site.folded) {
		j.waiting = j.waiting[1:]
	}
	if len(j.waiting) == 0 {
		j.settle()
		j.end()
	}
}

// end forgets everything, as no name is awaited. A long journal gives its memory back.
func (j *journal) end() {
	j.dropped += uint64(len(j.changes))
	if j.changes = j.changes[:0]; cap(j.changes) > journalMax/16 {
		j.changes = nil
	}
}

// shorten makes room for half a journal: names that would need more are not awaited any longer.
func (j *journal) shorten() {
	j.settle()
	for len(j.waiting) > 0 && j.waiting[0].born < j.dropped+journalMax/2 {
		j.waiting = j.waiting[1:]
	}
	if len(j.waiting) == 0 {
		j.end()
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

// settle raises peaks to those of sums: it lets the rows that count hold once more what the folded ones did.
func (j *journal) settle() {
	if !j.folded {
		return
	}
	j.folded = false
	var touched []*siteFigures
	for _, c := range j.changes {
		if c.site == nil {
			continue
		}
		for f := range c.site.final().each {
			if !f.touched {
				f.touched, f.replayed = true, f.inUse
				touched = append(touched, f)
			}
			f.replayed -= c.bytes
		}
	}
	raise := func() {
		for _, f := range touched {
			f.peak = max(f.peak, heap.Amount(f.replayed))
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
		for f := range c.site.final().each {
			if f.replayed += c.bytes; !quiet {
				f.peak = max(f.peak, heap.Amount(f.replayed))
			}
		}
	}
	for _, f := range touched {
		f.touched = false
	}
}
