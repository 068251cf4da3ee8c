package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ObjectType is a type of objects that programs create and release: a wire.Held, or memory without bytes of its own.
type ObjectType uint8

// Events are the most frequent type. The others here are no wire.Held.
const (
	Events          ObjectType = ObjectType(wire.HeldEvent)
	SubBuffers      ObjectType = ObjectType(wire.HeldCommandBuffer) + 1
	ImagesOfBuffers ObjectType = SubBuffers + 1
	Mappings        ObjectType = ImagesOfBuffers + 1   // of the host: from a map to its unmap
	References      ObjectType = Mappings + 1          // to memory: from a retain to its release
	Acquisitions    ObjectType = References + 1        // of memory from OpenGL: until its release to it
	ObjectTypes                = int(Acquisitions) + 1 // how many there are
)

// IsPaired reports whether the type is what one call opens and another closes, which Snapshot.Pairs counts.
func (t ObjectType) IsPaired() bool { return t == Mappings || t == References || t == Acquisitions }

// String returns the word for one.
func (t ObjectType) String() string {
	switch t {
	case SubBuffers:
		return "sub-buffer"
	case ImagesOfBuffers:
		return "image of a buffer"
	case Mappings:
		return "mapping"
	case References:
		return "reference"
	case Acquisitions:
		return "acquisition"
	}
	return wire.Held(t).String()
}

// PluralWords returns the words for several.
func (t ObjectType) PluralWords() string {
	if t == ImagesOfBuffers {
		return "images of buffers"
	}
	return t.String() + "s"
}

// JSONKey returns the word that JSON uses.
func (t ObjectType) JSONKey() string { return units.JSONKey(t.String()) }

// ObjectCount says how many objects of a type programs hold. What a process held when it ended counts as live.
type ObjectCount struct {
	Type    ObjectType
	Live    uint64
	Peak    uint64 // the most live; of events, which are reported a hundred times a second only, an estimate
	Created uint64
	// Untracked is how many more were created that could not be tracked, because too many were live. Live is then a lower bound.
	Untracked uint64
	Leaked    uint64       // live objects of processes that ended without a signal
	Grown     int64        // live objects more than at the last call but one of Model.MarkObjectCounts
	Lately    int64        // live objects more than at the last call
	Recent    int64        // live objects more than half a minute to a minute ago
	Sites     []ObjectSite // with the most live objects first
}

// ObjectSite is the part of one call site in an ObjectCount.
type ObjectSite struct {
	Tag     string   `json:"tag"`
	Stack   []string `json:"stack,omitempty"` // innermost first
	Live    uint64   `json:"live"`
	Created uint64   `json:"created"`
	Leaked  uint64   `json:"leaked"`
	Grown   int64    `json:"-"`
	Recent  int64    `json:"-"`
	Most    Opener   `json:"-"`
	Pairing `json:"-"`
}

// Opener is the process that holds the most objects of a call site.
type Opener struct {
	Process uint32 // number in the session
	Live    uint64
}

// holding counts the objects of one type at one call site of one process.
type holding struct {
	site              *processSite
	owner             *process // nil: processes that were folded
	kind              ObjectType
	created, released uint64 // since the process started
	before            uint64 // created before the first record
	untracked         uint64
	left              uint64   // leaked by processes that were folded
	marked            [2]int64 // live at the last two calls of MarkObjectCounts
	ago               [2]int64 // live when the last but one and the last half minute began
	pairing           *Pairing // nil: the type is not Paired
}

func (h *holding) liveObjectCount() int64 { return int64(h.created - h.released) }

type holdingKey struct {
	process, tag uint32
	kind         ObjectType
}

// holdings counts objects by type, call site and process. The live objects of a type are the sum of its holdings.
type holdings struct {
	sites *callSites

	exceeded bool               // there were more than sitesMax entries
	places   map[holdingKey]int // in list
	list     []holding
	live     [ObjectTypes]int64
	peaks    [ObjectTypes]uint64
	half     uint64 // minutes times two, until now
}

// holdingOfSite returns the entry of a call site, nil when there are too many.
func (all *holdings) holdingOfSite(p *process, tag uint32, kind ObjectType) *holding {
	key := holdingKey{p.shown.Number, tag, kind}
	if at, known := all.places[key]; known {
		return &all.list[at]
	}
	if len(all.list) == sitesMax {
		all.exceeded = true
		return nil
	}
	if all.places == nil {
		all.places = map[holdingKey]int{}
	}
	all.places[key] = len(all.list)
	h := holding{site: all.sites.siteOfTag(p, tag), owner: p, kind: kind}
	if kind.IsPaired() {
		h.pairing = &Pairing{}
	}
	all.list = append(all.list, h)
	return &all.list[len(all.list)-1]
}

// handleObjectRecord takes an OBJECT. The counts in it only grow; records of several threads may come out of order. It returns
// false for a type that this version does not know.
func (all *holdings) handleObjectRecord(p *process, v wire.ObjectView) bool {
	if int(v.Held()) >= int(SubBuffers) {
		return false
	}
	h := all.holdingOfSite(p, v.Tag(), ObjectType(v.Held()))
	if h == nil {
		return true
	}
	before := h.liveObjectCount()
	h.created = max(h.created, v.Created())
	h.untracked = max(h.untracked, v.Untracked())
	h.released = min(max(h.released, v.Released()), h.created)
	if v.CarriedOver() {
		h.before = h.created
		h.ago = [2]int64{h.liveObjectCount(), h.liveObjectCount()}
	}
	all.changeHeld(h, h.liveObjectCount()-before, max(h.liveObjectCount(), int64(min(v.Most(), h.created)))-h.liveObjectCount())
	return true
}

// changeHeld changes how many objects the owner of a holding has. above is how many more the owner had for a moment.
func (all *holdings) changeHeld(h *holding, more, above int64) {
	all.live[h.kind] += more
	h.owner.holds[h.kind] += more
	all.peaks[h.kind] = max(all.peaks[h.kind], heap.NonNegative(all.live[h.kind]+above))
}

// typeWithoutOwnMemory returns the type of an object that has no memory of its own.
func typeWithoutOwnMemory(o *heap.Object) (kind ObjectType, is bool) {
	switch {
	case o.Memory == wire.MemorySubBuffer:
		return SubBuffers, true
	case o.Memory == wire.MemoryImage && o.Parent != 0:
		return ImagesOfBuffers, true
	}
	return 0, false
}

// countSharingObject counts a sub-buffer or an image of a buffer, or its release.
func (all *holdings) countSharingObject(p *process, o *heap.Object, released bool) {
	kind, is := typeWithoutOwnMemory(o)
	if !is {
		return
	}
	h := all.holdingOfSite(p, o.Tag, kind)
	switch {
	case h == nil:
	case released:
		h.released++
		all.changeHeld(h, -1, 0)
	default:
		h.created++
		if o.CarriedOver {
			h.before++
		}
		all.changeHeld(h, 1, 0)
	}
}

// keepCountsForGrowth notes how many objects there are: see Model.MarkObjectCounts.
func (all *holdings) keepCountsForGrowth() {
	for i := range all.list {
		h := &all.list[i]
		h.marked = [2]int64{h.marked[1], h.liveObjectCount()}
	}
}

// advanceToSecond begins another half minute. The cost is proportional to call sites.
func (all *holdings) advanceToSecond(second uint64) {
	half := second / 30
	if half == all.half {
		return
	}
	for i := range all.list {
		h := &all.list[i]
		h.ago = [2]int64{h.ago[1], h.liveObjectCount()}
		if half > all.half+1 { // nothing happened meanwhile
			h.ago[0] = h.liveObjectCount()
		}
	}
	all.half = half
}

// listObjects returns the types that had objects, those that are Paired apart. The cost is proportional to call sites.
func (all *holdings) listObjects() (objects, pairs []ObjectCount) {
	list := []ObjectCount{}
	var places [ObjectTypes]map[*site]int // in Sites
	for kind := range ObjectTypes {
		places[kind] = map[*site]int{}
		list = append(list, ObjectCount{Type: ObjectType(kind), Live: heap.NonNegative(all.live[kind]), Peak: all.peaks[kind]})
	}
	for i := range all.list {
		h := &all.list[i]
		c, s := &list[h.kind], h.site.finalSite().site
		at, known := places[h.kind][s]
		if !known {
			at = len(c.Sites)
			places[h.kind][s] = at
			c.Sites = append(c.Sites, ObjectSite{Tag: s.siteTitle(), Stack: s.stack})
		}
		c.Sites[at].addHolding(h)
		c.Created += h.created - h.before
		c.Untracked += h.untracked
		c.Grown += h.liveObjectCount() - h.marked[0]
		c.Lately += h.liveObjectCount() - h.marked[1]
		c.Recent += h.liveObjectCount() - h.ago[0]
		c.Leaked += h.leakedCount()
	}
	list = slices.DeleteFunc(list, func(c ObjectCount) bool { return len(c.Sites) == 0 })
	for i := range list {
		slices.SortStableFunc(list[i].Sites, func(a, b ObjectSite) int {
			return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(b.Created, a.Created))
		})
	}
	first := slices.IndexFunc(list, func(c ObjectCount) bool { return c.Type.IsPaired() })
	if first < 0 {
		return list, nil
	}
	return list[:first:first], list[first:]
}

func (s *ObjectSite) addHolding(h *holding) {
	if h.pairing != nil {
		s.Pairing.addPairing(h.pairing)
	}
	live := heap.NonNegative(h.liveObjectCount())
	if h.owner != nil && live > s.Most.Live {
		s.Most = Opener{h.owner.shown.Number, live}
	}
	s.Live += live
	s.Created += h.created - h.before
	s.Leaked += h.leakedCount()
	s.Grown += h.liveObjectCount() - h.marked[0]
	s.Recent += h.liveObjectCount() - h.ago[0]
}

// leakedCount returns how many objects the process left behind when it ended.
func (h *holding) leakedCount() uint64 {
	switch {
	case h.owner == nil:
		return h.left
	case !h.owner.ended || h.owner.shown.WasAborted():
		return 0
	}
	return heap.NonNegative(h.liveObjectCount())
}

// TypedSite is a call site with the type of its objects.
type TypedSite struct {
	Type ObjectType
	*ObjectSite
}

// SitesWithLiveObjects returns the call sites with at least that many live objects, those with the most first.
func SitesWithLiveObjects(counts []ObjectCount, least uint64) []TypedSite {
	var list []TypedSite
	for i := range counts {
		for j := range counts[i].Sites {
			if s := &counts[i].Sites[j]; s.Live >= least {
				list = append(list, TypedSite{counts[i].Type, s})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b TypedSite) int { return cmp.Compare(b.Live, a.Live) })
	return list
}
