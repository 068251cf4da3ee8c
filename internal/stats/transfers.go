package stats

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Direction is where a command moves bytes.
type Direction uint8

// The directions.
const (
	ToDevice Direction = iota
	ToHost
	Within   // from device memory to device memory, or a pattern into it
	Mapped   // made visible to the host: whether bytes move is the driver's choice
	Between  // from one device of a context to another that needs them: the driver's choice, without a command
	AtCreate // from the host into memory that a create with CL_MEM_COPY_HOST_PTR makes
)

var directions = [...]string{"to device", "to host", "within", "mapped", "between devices", "at create"}

// String returns the words that people read.
func (d Direction) String() string { return directions[d] }

// DirectionOf returns where a command moves bytes, false when it moves none.
func DirectionOf(c wire.Command) (Direction, bool) {
	switch c {
	case wire.CommandWrite:
		return ToDevice, true
	case wire.CommandRead:
		return ToHost, true
	case wire.CommandCopy, wire.CommandFill, wire.CommandMigrate:
		return Within, true
	case wire.CommandMap, wire.CommandUnmap:
		return Mapped, true
	default:
		return 0, false
	}
}

// Flow is the bytes that commands moved. Calls that block have a time. Other commands have a time on the device if a queue with
// profiling measured it.
type Flow struct {
	Calls         uint64 `json:"calls"`
	Bytes         uint64 `json:"bytes"`
	Blocking      uint64 `json:"blocking_calls"` // blocking calls, which were timed
	TimedBytes    uint64 `json:"blocking_bytes"` // bytes that blocking calls moved
	NS            uint64 `json:"blocking_ns"`    // that blocking calls took
	Profiled      uint64 `json:"profiled_calls"` // calls that a device measured
	ProfiledBytes uint64 `json:"profiled_bytes"`
	ProfiledNS    uint64 `json:"profiled_ns"`
	Pinned        uint64 `json:"pinned_bytes"`    // bytes whose host side was memory of the driver
	Pageable      uint64 `json:"pageable_bytes"`  // bytes whose host side was other memory, as far as is known
	Pages         uint64 `json:"pages_looked_at"` // of the host side, before reads
	Cold          uint64 `json:"cold_pages"`      // of these, not in memory
	Looks         uint64 `json:"-"`               // reads whose pages were looked at
	Again         uint64 `json:"-"`               // of Between: calls on a device that had the contents before
	Waits         uint64 `json:"-"`               // of Blocking: those with a command of the process before them that did not block
}

// BytesPerSecond returns bytes per second of what the device measured, or else of what was timed, 0 when nothing was.
func (f *Flow) BytesPerSecond() float64 {
	if f.ProfiledNS > 0 {
		return float64(f.ProfiledBytes) / float64(f.ProfiledNS) * 1e9
	}
	if f.NS == 0 {
		return 0
	}
	return float64(f.TimedBytes) / float64(f.NS) * 1e9
}

// IsColdKnown reports whether the share of Pages that are cold is one of reads in general: a look is at adjacent pages of one read.
func (f *Flow) IsColdKnown() bool { return f.Looks >= 4 }

// AddFlow joins another flow.
func (f *Flow) AddFlow(o *Flow) {
	f.Calls += o.Calls
	f.Bytes += o.Bytes
	f.Blocking += o.Blocking
	f.TimedBytes += o.TimedBytes
	f.NS += o.NS
	f.Profiled += o.Profiled
	f.ProfiledBytes += o.ProfiledBytes
	f.ProfiledNS += o.ProfiledNS
	f.Pinned += o.Pinned
	f.Pageable += o.Pageable
	f.Pages += o.Pages
	f.Cold += o.Cold
	f.Looks += o.Looks
	f.Again += o.Again
	f.Waits += o.Waits
}

// Transfers are the commands, and the creates, that moved memory.
type Transfers struct {
	Directions [AtCreate + 1]Flow
	Sites      []TransferSite // the most time first, then the most bytes, at most TransferSitesMax
	OtherSites uint64         // that Sites leaves out
	OwnSites   bool           // sites are the call sites of the commands; otherwise of the creates of the memory
	Unified    bool           // the memory of a device is the host's
	Window     [2]uint64      // bytes to device and to host in the last second
	Trend      [2][]uint64    // the same of each second of the last minute, oldest first
}

// TransferSitesMax bounds the list of call sites.
const TransferSitesMax = 200

// TransferSite is one call site, or several that show the same line, with one kind of command.
type TransferSite struct {
	Name    string
	Stack   []string
	Command wire.Command
	Between bool // moves that commands needed, between devices; Name is the create's
	Flow
}

// CommandText returns the kind of command, or what commands needed.
func (s *TransferSite) CommandText() string {
	if s.Between {
		return Between.String()
	}
	if s.Command == wire.CommandOther {
		return AtCreate.String()
	}
	return s.Command.String()
}

// HasAny reports whether there was any transfer.
func (t *Transfers) HasAny() bool {
	return slices.ContainsFunc(t.Directions[:], func(f Flow) bool { return f.Calls > 0 })
}

// transfersMax bounds the pairs of call site and command, and the threads whose TRANSFER is remembered.
const transfersMax = 4096

// Sides joins TRANSFER records with the USE records that follow them.
type Sides struct {
	latest map[uint64]*wire.Event // by process and thread
	copied wire.Event             // the side of a copy that came last
	copier uint64
}

func keyOfThread(r *wire.Record) uint64 { return uint64(r.Process)<<32 | uint64(r.Thread) }

// NoteTransfer takes a TRANSFER. It ignores a TRANSFER that comes after its command has completed: that adds to no USE.
func (s *Sides) NoteTransfer(r *wire.Record) {
	if r.AsTransfer().Profiled() != wire.CommandOther {
		return
	}
	if s.latest == nil || len(s.latest) > transfersMax {
		s.latest = map[uint64]*wire.Event{}
	}
	if e := s.latest[keyOfThread(r)]; e != nil {
		*e = r.Event
		return
	}
	e := r.Event
	s.latest[keyOfThread(r)] = &e
}

// TransferOf returns the TRANSFER of a USE, false when there is none.
func (s *Sides) TransferOf(r *wire.Record) (wire.TransferView, bool) {
	e := s.latest[keyOfThread(r)]
	if e == nil || e.Time != r.Time {
		return wire.TransferView{}, false
	}
	return e.AsTransfer(), true
}

// IsSecondSide reports whether a USE is the second side of a copy. It must be given the first side before.
func (s *Sides) IsSecondSide(r *wire.Record) bool {
	if r.AsUse().Command() != wire.CommandCopy {
		return false
	}
	again := s.copied.Time == r.Time && s.copier == keyOfThread(r) && s.copied.AsUse().Reads() && r.AsUse().Writes()
	s.copied, s.copier = r.Event, keyOfThread(r)
	return again
}

// transfers counts commands that move memory, by direction and by call site with the kind of command. The flows of all call sites
// and those of all directions have the same sum, except for the calls in left.
type transfers struct {
	clock      *clock
	sites      *callSites
	sides      Sides
	flows      [AtCreate + 1]Flow
	flowsAt    map[transferKey[*processSite]]*Flow
	own        bool
	validities []validity // by the places of objects
	dense      bool       // compact made little room: it is not tried again
	left       uint64     // calls that found flowsAt full
	moved      ring[[2]uint64]
	each       [trendPoints][2]uint64
	second,
	first uint64 // places in each: of the present second, and 1 + that of the first transfer
}

type transferKey[S comparable] struct {
	site    S
	command wire.Command
	between bool
}

// countUse counts a USE, if its command moves memory.
func (t *transfers) countUse(p *process, r *wire.Record) {
	u := r.AsUse()
	waits := p.queued && u.Duration() > 0
	p.queued = u.Duration() == 0
	direction, moves := DirectionOf(u.Command())
	// of undefined contents, or unknown memory
	if !moves || t.sides.IsSecondSide(r) || u.Command() == wire.CommandMigrate && u.Bytes() == 0 {
		return
	}
	flow := Flow{Calls: 1, Bytes: u.Bytes()}
	if u.Duration() > 0 {
		flow.Blocking, flow.TimedBytes, flow.NS = 1, u.Bytes(), uint64(u.Duration())
	}
	if waits {
		flow.Waits = 1
	}
	tag := u.Tag()
	if more, known := t.sides.TransferOf(r); known {
		t.own = true
		tag = more.Site()
		if flow.Pages, flow.Cold = uint64(more.Pages()), uint64(more.Cold()); flow.Pages > 0 {
			flow.Looks = 1
		}
		switch {
		case more.Pinned():
			flow.Pinned = u.Bytes()
		case more.Pageable():
			flow.Pageable = u.Bytes()
		default: // no host side
		}
	}
	t.flows[direction].AddFlow(&flow)
	t.addFlowToSite(transferKey[*processSite]{t.sites.siteOfTag(p, tag), u.Command(), false}, &flow)
	if direction <= ToHost {
		t.advanceTime()
		t.moved.currentSlot()[direction] += u.Bytes()
		t.each[t.second%trendPoints][direction] += u.Bytes()
	}
}

// countCopiedByCreate counts what a create copied. How long that took is not known: the create does more.
func (t *transfers) countCopiedByCreate(p *process, o *heap.Object) {
	if o.Access&wire.CopyHostPtr == 0 || o.CarriedOver || !o.Owns {
		return
	}
	flow := Flow{Calls: 1, Bytes: o.Size}
	t.flows[AtCreate].AddFlow(&flow)
	t.addFlowToSite(transferKey[*processSite]{t.sites.siteOfTag(p, o.Tag), wire.CommandOther, false}, &flow)
}

// countProfiled counts the time on the device from a TRANSFER of a command that has completed.
func (t *transfers) countProfiled(p *process, v wire.TransferView) {
	direction, moves := DirectionOf(v.Profiled())
	if !moves {
		return
	}
	flow := Flow{Profiled: 1, ProfiledBytes: v.Moved(), ProfiledNS: v.Took()}
	t.flows[direction].AddFlow(&flow)
	t.addFlowToSite(transferKey[*processSite]{t.sites.siteOfTag(p, v.Site()), v.Profiled(), false}, &flow)
}

func (t *transfers) addFlowToSite(key transferKey[*processSite], flow *Flow) {
	f := t.flowsAt[key]
	if f == nil {
		if len(t.flowsAt) == transfersMax && !t.dense {
			t.joinFlows()
		}
		if len(t.flowsAt) == transfersMax {
			t.left++
			return
		}
		if t.flowsAt == nil {
			t.flowsAt = map[transferKey[*processSite]]*Flow{}
		}
		f = new(Flow)
		t.flowsAt[key] = f
	}
	f.AddFlow(flow)
}

// joinFlows joins the flows of processes that have the same call site and command: their names may have come since.
func (t *transfers) joinFlows() {
	first := map[transferKey[*site]]*Flow{}
	for key, flow := range t.flowsAt {
		s := transferKey[*site]{key.site.finalSite().site, key.command, key.between}
		if all := first[s]; all != nil {
			all.AddFlow(flow)
			delete(t.flowsAt, key)
		} else {
			first[s] = flow
		}
	}
	t.dense = len(t.flowsAt) > transfersMax/2
}

// advanceTime moves time on.
func (t *transfers) advanceTime() {
	second := t.clock.second
	t.moved.advanceToSlot(t.clock.slot)
	if t.first == 0 {
		t.first, t.second = second+1, second
	}
	if second > t.second+trendPoints {
		t.second = second - trendPoints
	}
	for t.second < second {
		t.second++
		t.each[t.second%trendPoints] = [2]uint64{}
	}
}

// makeTransfers returns the transfers so far. unified: the memory of a device is the host's.
func (t *transfers) makeTransfers(unified bool) Transfers {
	out := Transfers{Directions: t.flows, OwnSites: t.own, OtherSites: t.left, Unified: unified}
	if !out.HasAny() {
		return out
	}
	t.advanceTime()
	for slot, moved := range t.moved.slots {
		if uint64(slot) != t.moved.slot%ringSlots {
			out.Window[0] += moved[0]
			out.Window[1] += moved[1]
		}
	}
	for s := max(t.first-1, t.second-min(t.second, trendPoints-1)); s < t.second; s++ {
		for way := range out.Trend {
			out.Trend[way] = append(out.Trend[way], t.each[s%trendPoints][way])
		}
	}
	out.Sites = t.listSites()
	if n := len(out.Sites); n > TransferSitesMax {
		out.OtherSites += uint64(n - TransferSitesMax)
		out.Sites = out.Sites[:TransferSitesMax]
	}
	return out
}

// listSites returns the call sites. Tags that were folded into one call site since then are one row.
func (t *transfers) listSites() []TransferSite {
	var list []TransferSite
	places := map[transferKey[*site]]int{}
	for key, flow := range t.flowsAt {
		s := key.site.finalSite().site
		same := transferKey[*site]{s, key.command, key.between}
		at, known := places[same]
		if !known {
			at = len(list)
			places[same] = at
			list = append(list, TransferSite{Name: s.siteTitle(), Stack: s.stack, Command: key.command, Between: key.between})
		}
		list[at].AddFlow(flow)
	}
	slices.SortFunc(list, func(a, b TransferSite) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Command, b.Command))
	})
	return list
}
