package stats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ClassesMax is the most classes that are counted separately, and the most threads and devices.
const ClassesMax = 64

// others is the name of what is beyond that, together.
const others = "others"

// Share is what one size range, kind, class, thread, device or kernel has of the counters and gauges. Free memory in slabs has neither.
type Share struct {
	Hits, Misses uint64
	Creates      uint64 // of objects with memory of their own
	Window       uint64 // of these, in the last second
	Live         uint64 // objects
	InUse        uint64
	Requested    uint64
	Held         uint64 // the most in use in the last full second and since
	PeakInUse    uint64
	Cached       uint64
	Cooling      uint64
	Blocks       uint64 // cached
}

// HitRate returns hits / (hits + misses).
func (s *Share) HitRate() float64 { return rate(s.Hits, s.Hits+s.Misses) }

// Bucket is a range of granted sizes: a power of two and those up to the next.
type Bucket struct {
	Smallest, Largest uint64 // bytes
	Share
}

// Kind is one kind of memory.
type Kind struct {
	Memory wire.Memory
	Share
}

// Class is a context with a kind of memory and its flags, in all processes that number the context the same.
type Class struct {
	Name    string // "context 1, READ_WRITE", "context 1, image, READ_WRITE", or "others"
	Context uint16
	Flags   uint16 // the lowest 16 bits of cl_mem_flags
	Share
}

// Named is a thread that creates memory, a device that has it, or a kernel that has used it. Of free memory, a thread has what was its own before.
type Named struct {
	Name string // "thread 4711", the device's name, or "others"
	Share
}

// share is a Share with signed gauges, for the reason given at ledger.
type share struct {
	hits, misses, creates          uint64
	pace                           pace // of creates
	inUse, cached, cooling, blocks int64
	live, requested                int64
	peak                           int64
	most                           [2]int64 // in use in a second, and in the one before
	second                         uint64   // which one
}

// hold adds the memory of an object, or takes it off.
func (s *share) hold(granted, requested, sign int64, second uint64) {
	s.turn(second)
	s.inUse += sign * granted
	s.requested += sign * requested
	s.live += sign
	s.most[0] = max(s.most[0], s.inUse)
	s.peak = max(s.peak, s.inUse)
}

// turn begins a second.
func (s *share) turn(second uint64) {
	switch second {
	case s.second:
		return
	case s.second + 1:
		s.most[1] = s.most[0]
	default:
		s.most[1] = s.inUse
	}
	s.most[0], s.second = s.inUse, second
}

func (s *share) count(cools bool, bytes, blocks int64) {
	if cools {
		s.cooling += bytes
		return
	}
	s.cached += bytes
	s.blocks += blocks
}

func (s *share) show(now moment) Share {
	s.turn(now.second)
	return Share{
		Hits: s.hits, Misses: s.misses, Creates: s.creates, Window: s.pace.last(now.slot), Live: heap.Amount(s.live),
		InUse: heap.Amount(s.inUse), Requested: heap.Amount(s.requested), Held: heap.Amount(max(s.most[0], s.most[1])),
		PeakInUse: heap.Amount(s.peak), Cached: heap.Amount(s.cached), Cooling: heap.Amount(s.cooling), Blocks: heap.Amount(s.blocks),
	}
}

// moment is when shares are shown.
type moment struct{ second, slot uint64 }

// kinds is how many kinds of memory there are.
const kinds = wire.MemoryExternal + 1

// kindOf returns an index for a kind: one that this version does not know counts as external.
func kindOf(m wire.Memory) uint8 { return uint8(min(m, kinds-1)) }

// shares divide what happens by size, kind, class, thread and device, each in O(1).
type shares struct {
	divisions [divisions][]share // the whole by one property, by places
	divided   []uint8            // which of them are, and undivided
	begun     bool
	// As long as all that there was is at one place of a division, its share is the whole and counted there: such divisions are
	// nil above, and have their bits here.
	open    places
	only    places // where that is
	classes keys
	threads keys
	devices keys // places in names
	names   []string
}

// The divisions.
const (
	undivided = iota // the whole, at place 0
	bySize           // by bits.Len64 of the size
	byKind           // by wire.Memory
	byClass          // by place of the key
	byThread         // likewise
	byDevice         // likewise
	divisions
)

// places are those of an object or a block in the divisions, a byte for each from the lowest on: bytes by themselves would
// be written one by one and read together soon after, which stalls.
type places uint64

// everywhere are the bits of all divisions but the whole, whose byte is 0 of everything.
const everywhere places = 1<<(8*divisions) - 1<<(8*bySize)

// of returns the place in a division.
func (p places) of(division uint8) uint8 { return uint8(p >> (8 * division)) }

// placesMax is the most places that a division has: there are 65 sizes.
const placesMax = ClassesMax + 1

func newShares(seed uint64) shares {
	s := shares{divided: []uint8{undivided}}
	s.divisions[undivided] = make([]share, 1)
	for _, k := range [...]*keys{&s.classes, &s.threads, &s.devices} {
		k.index.Seed = seed
	}
	return s
}

// divide notes that something comes to places.
func (s *shares) divide(at places) {
	if !s.begun {
		s.begun, s.only, s.open = true, at, everywhere
	}
	if (at^s.only)&s.open != 0 {
		s.split(at)
	}
}

// split makes shares of the divisions in which something comes to a second place.
func (s *shares) split(at places) {
	for i := uint8(bySize); i < divisions; i++ {
		if s.divisions[i] != nil || at.of(i) == s.only.of(i) {
			continue
		}
		s.divisions[i] = make([]share, placesMax)
		s.divisions[i][s.only.of(i)] = *s.whole()
		s.divided = append(s.divided, i)
		s.open &^= 0xff << (8 * i)
	}
}

// whole returns the share of everything.
func (s *shares) whole() *share { return &s.divisions[undivided][0] }

// in returns the share that something at places has of a division.
func (s *shares) in(division uint8, at places) *share { return &s.divisions[division][at.of(division)] }

// show returns the share at a place of a division, false when nothing has been counted there.
func (s *shares) show(by, place int, now moment) (Share, bool) {
	x := s.whole()
	switch {
	case s.divisions[by] != nil:
		x = &s.divisions[by][place]
	case !s.begun || place != int(s.only.of(uint8(by))):
		return Share{}, false
	}
	if *x == (share{}) {
		return Share{}, false
	}
	return x.show(now), true
}

// keys are the places of keys. Place 0 is that of all keys without one of their own.
type keys struct {
	keys  [placesMax]uint64 // by place
	index table.Table       // key to place
	known int32
}

// place returns where a key's share is, 0 when there are too many.
func (k *keys) place(key uint64) uint8 {
	if k.known > 0 && k.keys[k.known] == key {
		return uint8(k.known)
	}
	if place := k.index.Get(key); place >= 0 {
		return uint8(place)
	}
	if k.known == ClassesMax {
		return 0
	}
	k.known++
	k.keys[k.known] = key
	k.index.Put(key, k.known)
	return uint8(k.known)
}

// list returns the shares of a division by keys, with names made of these.
func (s *shares) list(division int, k *keys, now moment, name func(key uint64) string) []Named {
	list := make([]Named, 0, k.known+1)
	for i := 1; i <= int(k.known); i++ {
		share, _ := s.show(division, i, now)
		list = append(list, Named{name(k.keys[i]), share})
	}
	if share, some := s.show(division, 0, now); some {
		list = append(list, Named{others, share})
	}
	return list
}

func classKey(o *heap.Object) uint64 {
	return uint64(o.Memory)<<32 | uint64(o.Scope)<<16 | uint64(o.Access)
}

// create counts the create of an object.
func (s *share) create(outcome wire.Outcome, slot uint64) {
	s.creates++
	s.pace.add(slot)
	switch outcome {
	case wire.OutcomeHit:
		s.hits++
	case wire.OutcomeMiss:
		s.misses++
	default: // never eligible for the pool
	}
}

// bySize returns the ranges that something happened in.
func (s *shares) bySize(now moment) []Bucket {
	buckets := []Bucket{}
	for i := range placesMax {
		share, some := s.show(bySize, i, now)
		if !some {
			continue
		}
		b := Bucket{Share: share}
		if i > 0 {
			b.Smallest, b.Largest = 1<<(i-1), 1<<(i-1)|(1<<(i-1)-1)
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// byKind returns the kinds of memory that there were.
func (s *shares) byKind(now moment) []Kind {
	list := []Kind{}
	for i := range int(kinds) {
		if share, some := s.show(byKind, i, now); some {
			list = append(list, Kind{wire.Memory(i), share})
		}
	}
	return list
}

// byClass returns the classes.
func (s *shares) byClass(now moment) []Class {
	list := s.list(byClass, &s.classes, now, className)
	classes := make([]Class, len(list))
	for i, n := range list {
		classes[i] = Class{Name: n.Name, Share: n.Share}
		if i < int(s.classes.known) {
			key := s.classes.keys[i+1]
			classes[i].Context, classes[i].Flags = uint16(key>>16), uint16(key)
		}
	}
	return classes
}

// className returns the name of the class that has a key.
func className(key uint64) string {
	kind, context, flags := wire.Memory(key>>32), uint16(key>>16), uint16(key)
	name := ""
	if kind != wire.MemoryBuffer {
		name = kind.String() + ", "
	}
	return fmt.Sprintf("context %d, %s%s", context, name, flagsText(flags))
}

// byThread returns the threads. A number may be that of several, one after the other or each in its own namespace.
func (s *shares) byThread(now moment) []Named {
	return s.list(byThread, &s.threads, now, func(key uint64) string {
		if uint32(key) == 0 {
			return "thread unknown"
		}
		return fmt.Sprintf("thread %d", uint32(key))
	})
}

// byDevice returns the devices.
func (s *shares) byDevice(now moment) []Named {
	return s.list(byDevice, &s.devices, now, func(key uint64) string { return s.names[key] })
}

// deviceShare returns the place of the device of a context.
func (m *Model) deviceShare(p *process, scope uint16) uint8 {
	if r := &p.latest; r.known && r.scope == scope {
		return r.place
	}
	s, name := &m.shares, cmp.Or(p.deviceTitle(scope), "device unknown")
	at := slices.Index(s.names, name)
	if at < 0 && len(s.names) < ClassesMax {
		at, s.names = len(s.names), append(s.names, name)
	}
	var place uint8
	if at >= 0 {
		place = s.devices.place(uint64(at))
	}
	p.latest = placedScope{known: true, scope: scope, place: place}
	return place
}

// deviceTitle returns the name of a context's device, numbered where a process has several of that name.
func (p *process) deviceTitle(scope uint16) string {
	d := p.deviceAt(scope)
	if d == nil {
		return ""
	}
	same, own := 0, 0
	for i := range p.devices {
		if p.devices[i].Name == d.Name {
			if same++; &p.devices[i] == d {
				own = same
			}
		}
	}
	if same < 2 {
		return d.Name
	}
	return fmt.Sprintf("%s #%d", d.Name, own)
}

// flagNames are the bits of cl_mem_flags (OpenCL 3.0 §5.2.1, §5.6.1) from the lowest on.
var flagNames = [...]string{
	"READ_WRITE", "WRITE_ONLY", "READ_ONLY", "USE_HOST_PTR", "ALLOC_HOST_PTR", "COPY_HOST_PTR", "",
	"HOST_WRITE_ONLY", "HOST_READ_ONLY", "HOST_NO_ACCESS", "SVM_FINE_GRAIN_BUFFER", "SVM_ATOMICS", "KERNEL_READ_AND_WRITE",
}

// flagsText names the bits, without their CL_MEM_.
func flagsText(flags uint16) string {
	if flags == 0 {
		return "no flags"
	}
	var names []string
	for bit, name := range flagNames {
		if flags&(1<<bit) != 0 && name != "" {
			names = append(names, name)
			flags &^= 1 << bit
		}
	}
	if flags != 0 {
		names = append(names, fmt.Sprintf("%#x", flags))
	}
	return strings.Join(names, " | ")
}
