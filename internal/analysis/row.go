package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// row sums up the call sites that share a name, in all processes.
type row struct {
	name    string
	wanted  bool
	stack   []string
	creates uint64 // of buffers
	series  int    // index in Timeline.Tags, -1: none
	pooled  int    // index in Timeline.Free, -1: none

	temporary struct{ buffers, bytes, driverNS uint64 }
	lives     stats.Histogram // of temporary buffers
	lag       stats.Histogram
	unused    uint64  // released buffers that no command used
	lagBytes  float64 // byte seconds
	lagTaken  float64 // of these, before the last create of the run: others could have had the memory
}

// rowOf returns the row of a call site. It makes one on first use.
func (x *run) rowOf(s *site) *row {
	if s.row != nil {
		return s.row
	}
	named := x.survey.names.Process(s.process).Site(s.tag)
	w := x.rows[named.Name]
	if w == nil {
		w = &row{name: named.Name, wanted: x.options.wantsSite(named.Name), stack: named.Stack}
		w.series, w.pooled = x.line.seriesIndices(w.name, w.wanted)
		x.rows[w.name] = w
	}
	s.row = w
	return w
}

// isBeforeAttach reports whether the row is of buffers from before attach.
func (w *row) isBeforeAttach() bool { return w.name == wire.BeforeAttach }

// sortedRows returns the selected rows by name.
func (x *run) sortedRows() []*row {
	all := slices.SortedFunc(maps.Values(x.rows), func(a, b *row) int { return cmp.Compare(a.name, b.name) })
	return slices.DeleteFunc(all, func(w *row) bool { return !w.wanted })
}

// countReleased counts a released buffer: its lifetime, its lag, and whether it was temporary.
func (x *run) countReleased(p *process, s *site, o *heap.Object) {
	w, now := s.row, x.endTimeOf(o)
	lived := now - min(o.Started, now)
	if !w.isBeforeAttach() { // their creation was not seen
		x.lifetimes.addValue(lived, o.Size)
	}
	if o.Owns {
		x.lag.addRelease(w, p.life, o, now, x.survey.lastCreate)
	}
	if !o.CarriedOver {
		x.threadStream(p, o.Thread).noteReleased(o.Note)
	}
	if o.CarriedOver || !x.isTemporary(p, o, lived) {
		return
	}
	t := &w.temporary
	t.buffers++
	t.bytes += o.Size
	t.driverNS += uint64(o.Cost) + x.releaseCost(o)
	w.lives.Add(lived)
}

// endTimeOf returns when an object ended. Records of threads arrive in batches, so its release may be older than the latest record.
func (x *run) endTimeOf(o *heap.Object) uint64 {
	if r := x.record; r != nil && r.Kind == wire.KindRelease && r.AsRelease().Object() == o.ID {
		return r.Time
	}
	return x.heap.Now()
}

// lags counts how long memory is held after its last use.
type lags struct {
	seen          bool // a use was recorded
	known, unused uint64
	unusedMost    *row   // that has the most unused ones; nil: none has
	unsure        uint64 // used, but when the last command ended is unknown
	all           stats.Histogram
	bytes, taken  float64
}

func (l *lags) addRelease(w *row, p *heap.Process, o *heap.Object, now, lastCreate uint64) {
	ended, known := p.ObjectIdleSince(o)
	switch {
	case p.IsUntouched(o): // an object that was carried over may have been used before the part
		l.unused++
		if w.unused++; l.unusedMost == nil || w.unused > l.unusedMost.unused {
			l.unusedMost = w
		}
		return
	case !known:
		if o.Used != 0 {
			l.unsure++
		}
		return
	}
	lag := now - min(ended, now)
	seconds := float64(o.Granted) * float64(lag) / 1e9
	l.known++
	l.all.Add(lag)
	l.bytes += seconds
	w.lag.Add(lag)
	w.lagBytes += seconds
	if wanted := min(now, lastCreate); wanted > ended {
		taken := float64(o.Granted) * float64(wanted-ended) / 1e9
		l.taken += taken
		w.lagTaken += taken
	}
}

// sumLag sums up. Without any recorded use nothing is known.
func (x *run) sumLag() Lag {
	l := &x.lag
	if !l.seen {
		return Lag{}
	}
	lag := Lag{
		Known: l.known, Unused: l.unused, Unsure: l.unsure, P50: l.all.Percentile(0.5), P99: l.all.Percentile(0.99), ByteSeconds: l.bytes,
	}
	for _, w := range x.sortedRows() {
		if w.lag.Total > 0 {
			lag.Tags = append(lag.Tags, LagTag{
				Name: w.name, Known: w.lag.Total, P50: w.lag.Percentile(0.5), P99: w.lag.Percentile(0.99), ByteSeconds: w.lagBytes,
			})
		}
	}
	slices.SortStableFunc(lag.Tags, func(a, b LagTag) int { return cmp.Compare(b.ByteSeconds, a.ByteSeconds) })
	return lag
}

// listTemporaries returns the call sites most of whose buffers were temporary: of others only the last one may seem so.
func (x *run) listTemporaries() []Temporary {
	var list []Temporary
	for _, w := range x.sortedRows() {
		if t := &w.temporary; 2*t.buffers > w.creates {
			list = append(list, Temporary{
				Name: w.name, Buffers: t.buffers, Creates: w.creates, Bytes: t.bytes, LifeP50: w.lives.Percentile(0.5),
				DriverNS: t.driverNS,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b Temporary) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// dropKilledLeaks takes back what processes that were killed or go on left behind, where others leaked.
func (x *run) dropKilledLeaks() {
	if x.snapshot.WasAllHeldByKilled() {
		return
	}
	killed := map[uint32]bool{}
	for i := range x.snapshot.Processes {
		killed[x.snapshot.Processes[i].Number] = x.snapshot.IsNotKnownToLeak(&x.snapshot.Processes[i])
	}
	for _, s := range x.books.sortedSites() {
		if killed[s.process] {
			s.leaked = leftover{}
		}
	}
}

// listLeaks returns what processes left behind. Buffers of processes that run on after the part are no leaks. Memory of released buffers
// counts where their own process left others.
func (x *run) listLeaks() []Leak {
	type part struct {
		of      *row
		process uint32
	}
	parts, largest := map[part]leftover{}, map[*row]*site{} // largest: the call stack of a row that left the most
	for _, s := range x.books.sortedSites() {
		if w := x.rowOf(s); s.leaked != (leftover{}) && w.wanted {
			at := part{w, s.process}
			parts[at] = s.leaked.sumWith(parts[at])
			if s.leaked.buffers > 0 && (largest[w] == nil || s.leaked.bytes > largest[w].leaked.bytes) {
				largest[w] = s
			}
		}
	}
	rows := map[*row]*Leak{}
	for at, l := range parts {
		if l.buffers == 0 {
			continue
		}
		of := rows[at.of]
		if of == nil {
			s := largest[at.of]
			of = &Leak{Name: at.of.name, Stack: x.survey.names.Process(s.process).Site(s.tag).Stack, Oldest: math.MaxUint64}
			rows[at.of] = of
		}
		of.Buffers, of.Bytes, of.Retained = of.Buffers+l.buffers, of.Bytes+l.bytes, of.Retained+l.retained
		of.Oldest = min(of.Oldest, x.relativeTime(l.oldest))
	}
	var list []Leak
	for _, l := range rows {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(a, b Leak) int { return cmp.Compare(a.Name, b.Name) })
	sortLeaks(list)
	return list
}

// sumWith returns the sum of two.
func (l leftover) sumWith(m leftover) leftover {
	if l.buffers == 0 || m.buffers > 0 && m.oldest < l.oldest {
		l.oldest = m.oldest
	}
	l.buffers, l.bytes, l.retained = l.buffers+m.buffers, l.bytes+m.bytes, l.retained+m.retained
	return l
}

func sortLeaks(list []Leak) {
	slices.SortStableFunc(list, func(a, b Leak) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Buffers, a.Buffers))
	})
}

// countLeftBehind counts a buffer that its process left behind. If the program gave up its last reference, only its memory counts:
// a sub-buffer keeps it.
func (s *site) countLeftBehind(o *heap.Object) {
	l := &s.leaked
	if o.Owns {
		l.bytes += o.Granted
	}
	if o.Released {
		return
	}
	if l.buffers == 0 || o.Started < l.oldest {
		l.oldest = o.Started
	}
	l.buffers++
	if o.Retained {
		l.retained++
	}
}

// peakBySite returns what each call site held at the peak.
func (x *run) peakBySite() Peak {
	k := &x.peak
	top := Peak{Time: x.relativeTime(k.time), InUse: nonNegative(k.inUse), Reserved: nonNegative(k.reserved), Fragmentation: k.fragmentation}
	if k.epoch == 0 {
		top.Time = 0
	}
	tags := map[string]*PeakTag{}
	largest := map[string]int64{}
	for _, s := range x.books.sortedSites() {
		h := k.heldAtPeak(s)
		top.Requested += nonNegative(h.requested)
		top.Buffers += nonNegative(h.buffers)
		w := x.rowOf(s)
		if h == (held{}) || !w.wanted {
			continue
		}
		t := tags[w.name]
		if t == nil {
			t = &PeakTag{Name: w.name}
			tags[w.name] = t
		}
		t.InUse += nonNegative(h.inUse)
		t.Requested += nonNegative(h.requested)
		t.Buffers += nonNegative(h.buffers)
		if stack := x.survey.names.Process(s.process).Site(s.tag).Stack; t.Stack == nil || h.inUse > largest[w.name] {
			t.Stack, largest[w.name] = stack, h.inUse
		}
	}
	for _, t := range tags {
		top.Tags = append(top.Tags, *t)
	}
	slices.SortFunc(top.Tags, func(a, b PeakTag) int {
		return cmp.Or(cmp.Compare(b.InUse, a.InUse), cmp.Compare(b.Buffers, a.Buffers), cmp.Compare(a.Name, b.Name))
	})
	return top
}

// nonNegative returns a signed gauge, at least 0.
func nonNegative(v int64) uint64 { return uint64(max(v, 0)) }
