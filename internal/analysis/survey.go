package analysis

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// survey is the first pass. It learns what the second one must know before it begins: names, times, which call sites
// hold the most, and where iterations begin and end.
type survey struct {
	names       *life.Names
	fold        *life.Fold
	books       books
	first, last uint64 // times of what happened in the part
	since       uint64 // when the part begins
	earliest    uint64 // time of the first record
	events      uint64
	slabs       bool               // there were some
	finders     map[uint64]*finder // by stream
	finder      *finder            // of the last create
	latest      uint64             // its stream
	stretches   map[uint64][]stretch
}

func newSurvey(o *Options) *survey {
	s := &survey{names: life.NewNames(), finders: map[uint64]*finder{}}
	if o.Since > 0 {
		s.since = o.Header.ClockNS + uint64(o.Since)
	}
	s.fold = life.New(s)
	return s
}

// streamOf numbers the threads of all processes.
func streamOf(process, thread uint32) uint64 { return uint64(process)<<32 | uint64(thread) }

func (s *survey) step(r *wire.Record) {
	if s.earliest == 0 {
		s.earliest = r.Time
	}
	if s.happened(r) {
		if s.events == 0 {
			s.first = r.Time
		}
		s.events++
		s.first, s.last = min(s.first, r.Time), max(s.last, r.Time)
	}
	s.names.Add(r)
	s.fold.Step(r)
}

// finish returns the survey with its conclusions.
func (s *survey) finish() *survey {
	s.stretches = map[uint64][]stretch{}
	for stream, f := range s.finders {
		s.stretches[stream] = f.finish()
	}
	s.finders, s.finder, s.fold = nil, nil, nil
	return s
}

// Begin implements life.Watcher.
func (s *survey) Begin(p *life.Process, o *life.Object) {
	at := s.books.site(p.Number, o.Tag)
	if o.Owns {
		at.inUse += int64(o.Granted)
		at.peak = max(at.peak, at.inUse)
	}
	if o.Carried() {
		return
	}
	if f := s.follow(streamOf(p.Number, o.Thread)); f != nil {
		f.add(createKey(o.Tag, o.Size))
	}
}

// follow returns the finder of a thread, nil when there are too many threads.
func (s *survey) follow(stream uint64) *finder {
	if s.finder != nil && s.latest == stream {
		return s.finder
	}
	f := s.finders[stream]
	if f == nil {
		if len(s.finders) == streamsMax {
			return nil
		}
		f = new(finder)
		s.finders[stream] = f
	}
	s.finder, s.latest = f, stream
	return f
}

// End implements life.Watcher.
func (s *survey) End(p *life.Process, o *life.Object, _ life.How) {
	if o.Owns {
		s.books.site(p.Number, o.Tag).inUse -= int64(o.Granted)
	}
}

// Pool implements life.Watcher.
func (s *survey) Pool(p *life.Process, b *life.Block) {
	if b.State == life.Slab {
		s.slabs = true
		return
	}
	at := s.books.site(p.Number, b.Tag)
	at.free += int64(b.Size)
	at.peakFree = max(at.peakFree, at.free)
}

// Unpool implements life.Watcher.
func (s *survey) Unpool(p *life.Process, b *life.Block, _ life.How) {
	if b.State != life.Slab {
		s.books.site(p.Number, b.Tag).free -= int64(b.Size)
	}
}

// top returns the names that hold the most, by a measure of each call site, the most first; those that hold nothing are
// left out.
func (s *survey) top(o *Options, measure func(*site) int64) []string {
	held := map[string]int64{}
	for _, at := range s.books.sites {
		if name := s.name(at); measure(at) > 0 && o.wanted(name) {
			held[name] += measure(at)
		}
	}
	return slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b))
	})
}

func (s *survey) name(at *site) string { return s.names.Process(at.process).Site(at.tag).Name }
