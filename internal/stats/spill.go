package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Spill is what --spill has done, in bytes and ns, in all processes together.
type Spill struct {
	Resident     uint64 `json:"resident"` // buffers with memory of the device, now
	PeakResident uint64 `json:"peak_resident"`
	Spilled      uint64 `json:"spilled"` // buffers whose contents only the host has, now
	PeakSpilled  uint64 `json:"peak_spilled"`
	Out          Moves  `json:"out"`    // contents that went to the host
	In           Moves  `json:"in"`     // contents that came back
	Clean        Moves  `json:"clean"`  // memory that was taken without a move: the host had the contents, or the memory had none
	Stalls       Moves  `json:"stalls"` // calls that waited for moves; no bytes
	// WorkingSet is the least memory that would have kept nine tenths of the buffers that came back; 0: none did.
	WorkingSet uint64 `json:"working_set"`
	Needed     uint64 `json:"needed_at_once"` // the most that one command needed, of those that waited
	NeededSite string `json:"needed_at"`      // call site of the largest buffer of that command
	// Thrashing says that calls have waited for moves for a tenth of the time since the first move, or more.
	Thrashing bool        `json:"thrashing"`
	Sites     []SpillSite `json:"sites"` // by bytes that moved, the most first
}

// Moves are the bytes that moved, with the time that this took.
type Moves struct {
	Times uint64 `json:"times"`
	Bytes uint64 `json:"bytes"`
	NS    uint64 `json:"ns"`
}

// SpillSite says how many bytes moved of the buffers of a call site.
type SpillSite struct {
	Tag string `json:"tag"`
	Out Moves  `json:"out"`
	In  Moves  `json:"in"`
}

// thrashingShare: see Spill.Thrashing.
const thrashingShare = 10

// spillSitesMax bounds the call sites of a process, and spillOutMax the buffers on the host whose return is watched.
const (
	spillSitesMax = 1 << 13
	spillOutMax   = 1 << 20
)

// spill keeps the figures of all processes. Resident and spilled memory are sums over the processes that have not left.
type spill struct {
	Spill
	sites    *callSites
	began    uint64 // when memory was first taken from the device
	taken    uint64 // bytes that have left the device so far
	most     uint64 // resident and spilled at once
	distance Histogram
	needed   *processSite        // of Needed
	folded   map[string][2]Moves // of processes that were folded, by call site
}

// processSpill keeps the figures of one process.
type processSpill struct {
	resident, spilled uint64
	sites             map[uint32]*[2]Moves // out and in, by tag
	out               map[uint64]uint64    // spill.taken when a buffer left
}

func (m *Moves) addSpill(v wire.SpillView) {
	m.Times++
	m.Bytes += v.Bytes()
	m.NS += uint64(v.Duration())
}

// handleSpill handles SPILL.
func (s *spill) handleSpill(p *process, v wire.SpillView) {
	own := &p.spill
	s.Resident += v.Resident() - own.resident
	s.Spilled += v.Spilled() - own.spilled
	own.resident, own.spilled = v.Resident(), v.Spilled()
	s.PeakResident, s.PeakSpilled = max(s.PeakResident, s.Resident), max(s.PeakSpilled, s.Spilled)
	s.most = max(s.most, s.Resident+s.Spilled)
	switch v.Spill() {
	case wire.SpillIn:
		s.In.addSpill(v)
		own.movesAt(v.Tag())[1].addSpill(v)
		s.noteBufferReturn(own, v)
	case wire.SpillOut:
		s.Out.addSpill(v)
		own.movesAt(v.Tag())[0].addSpill(v)
		s.noteBufferLeaving(own, v)
	case wire.SpillClean:
		s.Clean.addSpill(v)
		s.noteBufferLeaving(own, v)
	case wire.SpillEnd:
		delete(own.out, v.Object())
	case wire.SpillStall:
		s.Stalls.Times++
		s.Stalls.NS += uint64(v.Duration())
		if v.Bytes() > s.Needed {
			s.Needed, s.needed = v.Bytes(), s.sites.siteOfTag(p, v.Tag())
		}
	default:
	}
}

// noteBufferLeaving notes a buffer that leaves the device.
func (s *spill) noteBufferLeaving(own *processSpill, v wire.SpillView) {
	if s.began == 0 {
		s.began = v.Time()
	}
	s.taken += v.Bytes()
	if own.out == nil {
		own.out = map[uint64]uint64{}
	}
	if len(own.out) < spillOutMax {
		own.out[v.Object()] = s.taken
	}
}

// noteBufferReturn notes a buffer that comes back. To keep it, the device would have had to hold as well what is resident and
// what left later.
func (s *spill) noteBufferReturn(own *processSpill, v wire.SpillView) {
	if left, known := own.out[v.Object()]; known {
		s.distance.Add(min(s.Resident+s.taken-left, s.Resident+s.Spilled))
	}
	delete(own.out, v.Object())
}

func (own *processSpill) movesAt(tag uint32) *[2]Moves {
	if own.sites[tag] == nil {
		if own.sites == nil {
			own.sites = map[uint32]*[2]Moves{}
		}
		if len(own.sites) >= spillSitesMax {
			return &[2]Moves{}
		}
		own.sites[tag] = &[2]Moves{}
	}
	return own.sites[tag]
}

// subtractProcess takes the memory of a process that left off the figures of all.
func (s *spill) subtractProcess(own *processSpill) {
	s.Resident -= own.resident
	s.Spilled -= own.spilled
	own.resident, own.spilled, own.out = 0, 0, nil
}

// foldMoves keeps the moves at the call sites of a process that makes room.
func (s *spill) foldMoves(p *process) {
	for tag, moves := range p.spill.sites {
		if s.folded == nil {
			s.folded = map[string][2]Moves{}
		}
		name := s.sites.siteOfTag(p, tag).shownName()
		all := s.folded[name]
		all[0].addMoves(&moves[0])
		all[1].addMoves(&moves[1])
		s.folded[name] = all
	}
}

// makeSpill returns the figures for a snapshot, of a run until now or its end; nil before anything was taken from the device.
func (s *spill) makeSpill(now uint64, processes []*process) *Spill {
	if s.began == 0 {
		return nil
	}
	shown := s.Spill
	shown.WorkingSet = min(s.distance.Percentile(0.9), s.most) // a percentile is right to a few percent
	shown.Thrashing = s.In.Times > 0 && s.Stalls.NS >= (now-min(now, s.began))/thrashingShare
	if s.needed != nil {
		shown.NeededSite = s.needed.finalSite().shownName()
	}
	shown.Sites = s.listSites(processes)
	return &shown
}

func (s *spill) listSites(processes []*process) (list []SpillSite) {
	places := map[string]int{}
	add := func(name string, moves *[2]Moves) {
		at, known := places[name]
		if !known {
			at = len(list)
			places[name] = at
			list = append(list, SpillSite{Tag: name})
		}
		list[at].Out.addMoves(&moves[0])
		list[at].In.addMoves(&moves[1])
	}
	for _, p := range processes {
		for tag, moves := range p.spill.sites {
			add(s.sites.siteOfTag(p, tag).shownName(), moves)
		}
	}
	for name, moves := range s.folded {
		add(name, &moves)
	}
	slices.SortFunc(list, func(a, b SpillSite) int {
		return cmp.Or(cmp.Compare(b.Out.Bytes+b.In.Bytes, a.Out.Bytes+a.In.Bytes), cmp.Compare(a.Tag, b.Tag))
	})
	return list
}

func (m *Moves) addMoves(o *Moves) {
	m.Times, m.Bytes, m.NS = m.Times+o.Times, m.Bytes+o.Bytes, m.NS+o.NS
}

// shownName is the name of the call site.
func (s *processSite) shownName() string { return cmp.Or(s.site.name, callsite.Untagged) }
