package analysis

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/period"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// survey is the first pass. It collects what the second one needs from the start: names, times, which call sites hold the
// most, and where iterations begin and end.
type survey struct {
	heap.Base
	names       *callsite.Names
	heap        *heap.Heap
	books       books
	first, last uint64 // times of what happened in the part
	begun, over uint64 // times of the program's first call and of its last
	since       uint64 // when the part begins
	earliest    uint64 // time of the first record
	events      uint64
	slabs       bool // there were slabs
	parts       origins
	hosted      hosts
	uses        map[uint32]uint64 // by process: when a command used memory last; none: never, or uses were not recorded
	ends        map[uint32]uint64 // likewise: when such a command was known to have ended last
	using       uint32            // the process of the latest use
	lastUse     uint64            // of that process
	sizes       sizes
	highest     highest
	lastCreate  uint64
	finders     map[uint64]*period.Finder // by stream
	finder      *period.Finder            // of the last create's thread's thread
	latest      uint64                    // its stream
	stretches   map[uint64][]period.Stretch
}

// streamsMax is how many threads are followed; further ones have no iterations.
const streamsMax = 1024

func newSurvey(o *Options) *survey {
	s := &survey{names: callsite.NewNames(), uses: map[uint32]uint64{}, ends: map[uint32]uint64{}, finders: map[uint64]*period.Finder{}}
	if o.Since > 0 {
		s.since = o.Header.ClockNS + uint64(o.Since)
	}
	s.heap = heap.New(heap.Options{}, s)
	return s
}

// streamNumber numbers the threads of all processes.
func streamNumber(process, thread uint32) uint64 { return uint64(process)<<32 | uint64(thread) }

func (s *survey) handleRecord(r *wire.Record) {
	if s.earliest == 0 {
		s.earliest = r.Time
	}
	if s.happenedInPart(r) {
		if s.events == 0 {
			s.first = r.Time
		}
		s.events++
		s.first, s.last = min(s.first, r.Time), max(s.last, r.Time)
		s.noteCall(r)
	}
	s.names.AddRecord(r)
	s.highest.applyAndRaisePeak(s, r)
	if r.Kind == wire.KindUse {
		s.noteUse(r)
	}
	if r.Kind == wire.KindCreate {
		s.sizes.addCreate(r.AsCreate())
		s.lastCreate = max(s.lastCreate, r.Time)
		s.parts.addSubBuffer(r.Process, r.AsCreate())
		s.hosted.addHostPointer(r.Process, r.AsCreate())
	}
}

// noteCall notes the times of the program's calls: an exit is none, and what the session writes has no thread.
func (s *survey) noteCall(r *wire.Record) {
	if r.Thread == 0 || r.Kind == wire.KindExit {
		return
	}
	if s.begun == 0 {
		s.begun = r.Time
	}
	s.begun, s.over = min(s.begun, r.Time), max(s.over, r.Time)
}

// noteUse notes when a process used memory.
func (s *survey) noteUse(r *wire.Record) {
	if r.Process != s.using {
		s.uses[s.using], s.using, s.lastUse = s.lastUse, r.Process, s.uses[r.Process]
	}
	s.lastUse = max(s.lastUse, r.Time)
}

// origins are those of the program's sub-buffers.
type origins struct {
	count    uint64 // not at a multiple of alignMost
	coarsest uint64 // bytes: the greatest power of two that divides all of them
	process  uint32 // of the first that is the least aligned
	tag      uint32
}

// addSubBuffer notes a sub-buffer that was made and whose origin is known.
func (o *origins) addSubBuffer(process uint32, c wire.CreateView) {
	if c.Memory() != wire.MemorySubBuffer || c.Outcome() == wire.OutcomeFailed || c.CarriedOver() || c.OriginNumber() <= 1 {
		return
	}
	origin := c.OriginNumber() - 1
	low := origin & -origin
	if low >= alignMost {
		return
	}
	o.count++
	if o.coarsest == 0 || low < o.coarsest {
		o.coarsest, o.process, o.tag = low, process, c.Tag()
	}
}

// hosts are buffers in memory of the program (CL_MEM_USE_HOST_PTR) for which drivers may have to copy.
type hosts struct {
	offPage, offSize uint64 // that begin at no multiple of wire.Page, and others whose size is none of hostSize
	bytes            uint64
	largest          uint64
	process          uint32 // of the largest
	tag              uint32
}

func (h *hosts) addHostPointer(process uint32, c wire.CreateView) {
	if c.Memory() != wire.MemoryBuffer || c.Access()&wire.UseHostPtr == 0 || c.Outcome() == wire.OutcomeFailed || c.CarriedOver() {
		return
	}
	switch {
	case c.OffPage():
		h.offPage++
	case c.Requested()%hostSize != 0:
		h.offSize++
	default:
		return
	}
	h.bytes += c.Requested()
	if c.Requested() > h.largest {
		h.largest, h.process, h.tag = c.Requested(), process, c.Tag()
	}
}

// finishSurvey completes the survey.
func (s *survey) finishSurvey() *survey {
	s.stretches = map[uint64][]period.Stretch{}
	for stream, f := range s.finders {
		s.stretches[stream] = f.FinishStretches()
	}
	s.uses[s.using] = s.lastUse
	for number := range s.uses {
		if p := s.heap.FindProcess(number); p != nil {
			s.ends[number] = p.LastCommandEnd()
		}
	}
	s.finders, s.finder, s.heap = nil, nil, nil
	return s
}

// ObjectAllocated implements heap.Observer.
func (s *survey) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	at := s.books.siteOf(p.Number, o.Tag)
	if o.Owns {
		at.inUse += int64(o.Granted)
		at.peak = max(at.peak, at.inUse)
	}
	if o.CarriedOver {
		return
	}
	if f := s.finderOf(streamNumber(p.Number, o.Thread)); f != nil {
		f.AddCreate(period.KeyOfCreate(o.Tag, o.Size, uint32(o.Access)))
	}
}

// finderOf returns the finder of a thread, nil if there are too many threads.
func (s *survey) finderOf(stream uint64) *period.Finder {
	if s.finder != nil && s.latest == stream {
		return s.finder
	}
	f := s.finders[stream]
	if f == nil {
		if len(s.finders) == streamsMax {
			return nil
		}
		f = new(period.Finder)
		s.finders[stream] = f
	}
	s.finder, s.latest = f, stream
	return f
}

// MemoryFreed implements heap.Observer.
func (s *survey) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	if o.Owns {
		s.books.siteOf(p.Number, o.Tag).inUse -= int64(o.Granted)
	}
}

// BlockPooled implements heap.Observer.
func (s *survey) BlockPooled(p *heap.Process, b *heap.Block) {
	if b.State == heap.Slab {
		s.slabs = true
		return
	}
	at := s.books.siteOf(p.Number, b.Tag)
	at.free += int64(b.Size)
	at.peakFree = max(at.peakFree, at.free)
}

// BlockUnpooled implements heap.Observer.
func (s *survey) BlockUnpooled(p *heap.Process, b *heap.Block, _ heap.How) {
	if b.State != heap.Slab {
		s.books.siteOf(p.Number, b.Tag).free -= int64(b.Size)
	}
}

// topSites returns the names of call sites, by falling measure, without those whose measure is 0.
func (s *survey) topSites(o *Options, measure func(*site) int64) []string {
	held := map[string]int64{}
	for _, at := range s.books.sites {
		if name := s.siteName(at); measure(at) > 0 && o.wantsSite(name) {
			held[name] += measure(at)
		}
	}
	return slices.SortedFunc(maps.Keys(held), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b))
	})
}

func (s *survey) siteName(at *site) string { return s.names.Process(at.process).Site(at.tag).Name }
