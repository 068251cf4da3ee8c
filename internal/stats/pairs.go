package stats

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds of pairs: further memory, and further call sites of one object, are left out.
const (
	pairsMax     = 4096
	pairSitesMax = 16
)

// Pairing says how what a call site opened is closed.
type Pairing struct {
	Deepest   uint64 // the most that one memory object has open, or had when it or its process ended; of mappings, of the same bytes
	Forgotten uint64 // open when their memory was released
	Own       bool   // the call site is that of the calls, not of the create
	Guessed   bool   // other call sites open the same memory: which of them a call closes follows from the order of calls only
}

func (p *Pairing) addPairing(more *Pairing) {
	p.Deepest = max(p.Deepest, more.Deepest)
	p.Forgotten += more.Forgotten
	p.Own, p.Guessed = p.Own || more.Own, p.Guessed || more.Guessed
}

// pairs follows what is open: the mappings of memory, the references to it that retains took, and what is acquired from OpenGL. The holdings count these by the call
// site that opened them. Memory whose create was not seen is left out.
type pairs struct {
	holdings *holdings
	sides    *Sides
	open     map[pairKey]*pair
}

type pairKey struct {
	process uint32
	kind    ObjectType
	object  uint64
}

// pair is what one memory object has open, by call site, the latest last.
type pair struct{ sites []pairSite }

type pairSite struct {
	tag           uint32
	own           bool // see Pairing
	open          uint64
	same          uint64 // of these, with the range of the first
	offset, bytes uint64 // of the first
	pairing       *Pairing
}

// handlePairedUse handles the USE of a map, an unmap, an acquire or a release of memory of OpenGL.
func (x *pairs) handlePairedUse(p *process, r *wire.Record) {
	u := r.AsUse()
	switch u.Command() {
	case wire.CommandMap:
		tag := u.Tag()
		if more, known := x.sides.TransferOf(r); known {
			tag = more.Site()
		}
		x.noteOpened(p, Mappings, u.Object(), pairSite{tag: tag, offset: u.Offset(), bytes: u.Bytes()}, !u.Scattered())
	case wire.CommandUnmap:
		x.noteClosed(p, Mappings, u.Object())
	case wire.CommandAcquire:
		x.noteOpened(p, Acquisitions, u.Object(), pairSite{tag: u.Tag()}, true)
	case wire.CommandRelease:
		x.noteClosed(p, Acquisitions, u.Object())
	default:
	}
}

func (x *pairs) handleRetain(p *process, r wire.RetainView) {
	if r.Status() == 0 {
		tag := r.Site()
		if tag == 0 {
			tag = r.Tag()
		}
		x.noteOpened(p, References, r.Object(), pairSite{tag: tag, own: r.Site() != 0}, true)
	}
}

// noteOpened notes that a call site opened an object. placed: its range is known.
func (x *pairs) noteOpened(p *process, kind ObjectType, object uint64, s pairSite, placed bool) {
	h := x.holdings.holdingOfSite(p, s.tag, kind)
	if h == nil || p.heap.Object(object) == nil {
		return
	}
	key := pairKey{p.shown.Number, kind, object}
	e := x.open[key]
	if e == nil {
		if len(x.open) == pairsMax {
			return
		}
		if x.open == nil {
			x.open = map[pairKey]*pair{}
		}
		e = &pair{}
		x.open[key] = e
	}
	at := slices.IndexFunc(e.sites, func(o pairSite) bool { return o.tag == s.tag })
	if at < 0 {
		if len(e.sites) == pairSitesMax {
			return
		}
		s.pairing, h.pairing.Own = h.pairing, h.pairing.Own || s.own
		at, e.sites = len(e.sites), append(e.sites, s)
	}
	o := e.sites[at]
	if o.open++; placed && o.offset == s.offset && o.bytes == s.bytes {
		o.same++
	}
	e.sites = append(slices.Delete(e.sites, at, at+1), o)
	h.created++
	x.holdings.changeHeld(h, 1, 0)
}

// noteClosed notes that the program closed what it opened last of an object.
func (x *pairs) noteClosed(p *process, kind ObjectType, object uint64) {
	key := pairKey{p.shown.Number, kind, object}
	e := x.open[key]
	if e == nil {
		return // it was opened before the first record
	}
	last := len(e.sites) - 1
	o := &e.sites[last]
	for i := range e.sites[:last] {
		e.sites[i].pairing.Guessed, o.pairing.Guessed = true, true
	}
	if h := x.holdings.holdingOfSite(p, o.tag, kind); h != nil {
		h.released++
		x.holdings.changeHeld(h, -1, 0)
	}
	o.open--
	o.same -= min(o.same, 1)
	if o.open > 0 {
		return
	}
	if e.sites = e.sites[:last]; last == 0 {
		delete(x.open, key)
	}
}

// noteMemoryEnded notes that memory ended: what is open stays so.
func (x *pairs) noteMemoryEnded(p *process, o *heap.Object, how heap.How) {
	if len(x.open) == 0 {
		return
	}
	for _, kind := range [...]ObjectType{Mappings, References, Acquisitions} {
		key := pairKey{p.shown.Number, kind, o.ID}
		e := x.open[key]
		if e == nil {
			continue
		}
		for i := range e.sites {
			s := &e.sites[i]
			s.pairing.Deepest = max(s.pairing.Deepest, s.same)
			if how == heap.Released {
				s.pairing.Forgotten += s.open
			}
		}
		delete(x.open, key)
	}
}

// listPairs adds what is open now to the call sites that are shown.
func (x *pairs) listPairs() (objects, pairs []ObjectCount) {
	before := map[*Pairing]uint64{}
	for _, e := range x.open {
		for i := range e.sites {
			s := &e.sites[i]
			if _, known := before[s.pairing]; !known {
				before[s.pairing] = s.pairing.Deepest
			}
			s.pairing.Deepest = max(s.pairing.Deepest, s.same)
		}
	}
	objects, pairs = x.holdings.listObjects()
	for p, deepest := range before {
		p.Deepest = deepest
	}
	return objects, pairs
}
