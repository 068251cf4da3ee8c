package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds of post-mortems.
const (
	PostMortemsMax = 4  // post-mortems are kept: the first, and later ones with another picture
	HoldersMax     = 8  // call sites in a post-mortem
	holdersKept    = 64 // call sites before their names are known: several may turn out to be one
	idleShare      = 4  // memory is idle if surely no command has used it for 1/idleShare of the life of its process, and for 10 ms
)

// PostMortem is a picture of memory when a call failed for lack of it. Sizes are bytes, times CLOCK_MONOTONIC ns.
type PostMortem struct {
	Time    uint64      `json:"-"`
	Age     uint64      `json:"-"`              // of the process at Time
	Process uint32      `json:"-"`              // number in the session
	PID     int         `json:"process"`        // 0: unknown
	Rank    *uint64     `json:"rank,omitempty"` // of the process in its job
	Who     string      `json:"-"`              // names the process where there are several, or it has a rank: "rank 2 (pid 4711)"; empty: there is one
	Call    string      `json:"call"`           // the OpenCL function, or the kind of memory that it was to create
	Command bool        `json:"-"`              // a command failed; else a create
	Kernel  string      `json:"kernel"`         // of the command, empty: none, or unknown
	Status  wire.Status `json:"status"`
	Tag     string      `json:"tag"`     // call site of the create, or of the memory that the command was given; empty: unknown
	Wrapper string      `json:"-"`       // the function that creates memory there, if it has several callers
	At      string      `json:"-"`       // call site of the command; empty: unknown
	Given   uint64      `json:"-"`       // bytes of the memory that the command was given; 0: unknown
	First   bool        `json:"-"`       // no command had used that memory, which was new: a driver may take memory only then
	Size    uint64      `json:"size"`    // of a create
	Repeats uint64      `json:"repeats"` // later failures with the same picture
	Named   bool        `json:"-"`       // all call sites in it have their names

	InUse             uint64   `json:"in_use"` // of the process, and so are the next
	Requested         uint64   `json:"-"`
	Cached            uint64   `json:"bytes_cached"`
	Cooling           uint64   `json:"bytes_cooling"`
	SlabFree          uint64   `json:"slab_free"`
	Buffers           uint64   `json:"buffers"`
	Resident, Spilled uint64   `json:"-"`                  // with Spilling: the part of it on the device, and the part that only the host has
	Others            uint64   `json:"reserved_by_others"` // by the other processes
	Holders           []Holder `json:"held_by"`
	MoreHolders       int      `json:"-"`    // that Holders leaves out
	Grew              string   `json:"grew"` // the call site whose memory grew the most of late, empty: none did
	GrewBytes         uint64   `json:"-"`

	UsesKnown bool    `json:"-"` // false: Idle and Untouched are unknown
	Idle      Part    `json:"-"` // not used for IdleFor or longer
	Untouched Part    `json:"-"` // that no command ever used
	Recency   Recency `json:"-"`
	Lately    Lately  `json:"lately"`
	GivenBack Part    `json:"given_back_in_vain"` // blocks that the pool gave back in vain

	LargestCreated uint64  `json:"largest_created"` // the largest buffer that ever worked
	Device         Device  `json:"-"`
	Devices        int     `json:"devices"` // that the process uses; which of several has a buffer is unknown
	Verdict        Verdict `json:"-"`
	OOMKillsNumber uint64  `json:"-"`             // of VerdictKilled: see End
	PoolToBlame    bool    `json:"pool_to_blame"` // without the free memory and the waste of the pool there would have been room
	Spilling       bool    `json:"-"`             // idle buffers could go to the host already
	Movable        uint64  `json:"-"`             // bytes in use that --spill could have moved, while no command uses them
}

// Failed says which call failed, in which process if there is a Who, or that the process was killed, but not how. apart writes
// two sizes, so that different sizes read differently.
func (p *PostMortem) Failed(apart func(a, b uint64) (string, string)) string {
	switch {
	case p.Verdict == VerdictKilled && p.Who != "":
		return "SIGKILL ended " + p.Who
	case p.Verdict == VerdictKilled:
		return fmt.Sprintf("SIGKILL ended process %d", p.PID)
	case p.Who != "":
		return p.Who + ": " + p.call(apart)
	}
	return p.call(apart)
}

func (p *PostMortem) call(apart func(a, b uint64) (string, string)) string {
	switch {
	case p.Kernel != "":
		return p.Call + " of " + p.Kernel
	case p.Command:
		return p.Call
	}
	other := p.Size
	if p.Verdict == VerdictTooLarge {
		other = p.Device.Largest
	}
	size, _ := apart(p.Size, other)
	return p.Call + " of " + size
}

// Part is a part of the memory in use.
type Part struct {
	Buffers uint64 `json:"buffers"`
	Bytes   uint64 `json:"bytes"`
}

func (p *Part) add(bytes uint64) {
	p.Buffers++
	p.Bytes += bytes
}

// Holder is what a call site had in use.
type Holder struct {
	Tag string `json:"tag"`
	Part
	Oldest uint64 `json:"oldest_ns"` // age
	Newest uint64 `json:"newest_ns"`
}

// Reserved returns what the process had from the driver; with --spill on the device or on the host.
func (p *PostMortem) Reserved() uint64 { return p.InUse + p.Free() }

// OnDevice returns the memory that the process had on the device.
func (p *PostMortem) OnDevice() uint64 {
	if p.Spilling {
		return p.Resident
	}
	return p.Reserved()
}

// Free returns what the pool held.
func (p *PostMortem) Free() uint64 { return p.Cached + p.Cooling + p.SlabFree }

// Verdict says why a call failed, as far as figures can.
type Verdict uint8

// The verdicts.
const (
	VerdictUnknown    Verdict = iota // the size of the device is not known, or which of several has the memory
	VerdictTooLarge                  // larger than one buffer may be
	VerdictFull                      // no room, whatever the pool holds
	VerdictFragmented                // there would be room if what the pool holds were in one piece
	VerdictNotMemory                 // there is plenty of room
	VerdictKilled                    // no call failed: SIGKILL ended the process
)

var verdicts = [...]string{"unknown", "larger than one buffer may be", "full", "fragmented", "probably not memory", "killed while it held memory"}

// String returns the words of a verdict.
func (v Verdict) String() string { return verdicts[v] }

// roomy is the part of a device up to which memory is certainly not short: drivers and displays need memory, too.
const roomy = 0.75

// postMortems takes a picture of memory when a call fails for lack of it, or when SIGKILL ends a process that holds memory. A
// failure that the last picture shows already is only counted there.
type postMortems struct {
	heap      *heap.Heap
	processes *processes
	apart     func(a, b uint32) bool // never nil; see Options.Apart
	sites     *callSites
	spill     *spill
	marks     *marks
	list      []*postMortem
}

type postMortem struct {
	PostMortem
	name    string       // of its process among several
	site    *processSite // of Tag, nil: none
	at      *processSite // of At, likewise
	holders []holder
}

type holder struct {
	Holder
	site   *processSite
	recent uint64 // bytes created in the later half of the process's life
}

// shortage keeps what a post-mortem of a process says about the creates and the evictions before it.
type shortage struct {
	largest uint64    // the largest create that ever worked
	drained Part      // that the pool gave back since the driver last created anything
	failed  *failedAt // the latest call that failed and makes no memory; nil: none did
}

// failedAt is where and when a call failed.
type failedAt struct {
	function string
	status   int32
	thread   uint32
	time     uint64
	site     *processSite
}

// placeWithin is in how many ns a command that lacked memory is recorded after its failure, whose record has the call site.
const placeWithin = 1_000_000

// place returns the call site of a command that lacked memory; nil: unknown.
func (s *shortage) place(r *wire.Record, f *Finding) *processSite {
	last := s.failed
	if last != nil && last.thread == r.Thread && last.function == f.Function && last.status == f.Status && r.Time-min(last.time, r.Time) < placeWithin {
		return last.site
	}
	return nil
}

// created notes a create that worked.
func (s *shortage) created(o *heap.Object) {
	if !o.Owns || o.CarriedOver {
		return
	}
	s.largest = max(s.largest, o.Size)
	if o.Outcome != wire.OutcomeHit {
		s.drained = Part{}
	}
}

// drain notes a block that went back to the driver because a call failed.
func (s *shortage) drain(e wire.EvictView) {
	if e.Reason() == wire.EvictDrain {
		s.drained.add(e.Bytes())
	}
}

// OutOfMemory reports whether a create failed for lack of memory. clSVMAlloc returns no status: the shim makes one up.
func OutOfMemory(c wire.CreateView, d Device) bool {
	switch int32(c.Status()) {
	case wire.MemObjectAllocationFailure, wire.OutOfResources, wire.OutOfHostMemory:
		return true
	case wire.InvalidBufferSize, wire.InvalidImageSize:
		return c.Requested() > 0
	case wire.InvalidValue:
		return c.Memory() >= wire.MemorySVM && d.Largest > 0 && c.Requested() > d.Largest
	}
	return false
}

// createFailed notes a failed create, if memory was short.
func (pms *postMortems) createFailed(p *process, c wire.CreateView) {
	d := p.devices.describedOf(c.Scope())
	if !OutOfMemory(c, d) {
		return
	}
	pms.failed(p, PostMortem{Call: "create of " + article(c.Memory()), Status: wire.Status(wire.CreateStatus(c)), Size: c.Requested(), Device: d}, c.Tag(), nil)
}

func article(kind wire.Memory) string {
	switch kind {
	case wire.MemoryBuffer, wire.MemorySubBuffer, wire.MemoryPipe:
		return "a " + kind.Words()
	case wire.MemoryImage:
		return "an " + kind.Words()
	}
	return kind.Words() + " memory"
}

// commandFailed notes a failed command.
func (pms *postMortems) commandFailed(p *process, r *wire.Record) {
	f := FindingOf(r, &p.kernels)
	device := p.devices.describedOf(r.AsDiag().Scope())
	d := PostMortem{Call: f.Function, Command: true, Kernel: f.Kernel, Status: wire.Status(f.Status), Device: device, Given: f.Size}
	if o := p.heap.Object(r.AsDiag().Object()); o != nil {
		d.First = p.own().counters.Uses > 0 && o.Outcome != wire.OutcomeHit && p.heap.Untouched(o)
	}
	pms.failed(p, d, r.AsDiag().Tag(), p.shortage.place(r, &f))
}

// failed takes a picture, unless the last one shows the same failure.
func (pms *postMortems) failed(p *process, d PostMortem, tag uint32, at *processSite) {
	p.shown.RanOut = true
	if n := len(pms.list); n > 0 {
		if last := pms.list[n-1]; n == PostMortemsMax || last.showsSame(p, &d) {
			last.Repeats++
			return
		}
	}
	pm := &postMortem{PostMortem: d, at: at}
	if tag != 0 {
		pm.site = pms.sites.siteOf(p, tag)
	}
	pms.picture(p, pm)
	pm.judge()
	pms.marks.add(pm.Time, wire.KindDiag, wire.DiagOutOfMemory.String()+": "+d.Call)
	pms.list = append(pms.list, pm)
}

// killedStatus is the exit status that a recording has for SIGKILL, as in shells.
const killedStatus = 128 + int(syscall.SIGKILL)

// killed takes a picture of a process that held memory when SIGKILL ended it: the kernel does so when memory is short.
func (pms *postMortems) killed(p *process, kills uint64) {
	seen := p.shown.State == Signaled && p.shown.Status == int(syscall.SIGKILL)
	if p.shown.Orderly || !seen && p.shown.Status != killedStatus || p.heap.Live <= 0 {
		return
	}
	pm := &postMortem{PostMortem: PostMortem{
		Call: "SIGKILL", Command: true, Verdict: VerdictKilled, OOMKillsNumber: kills, Device: p.devices.describedOf(0),
	}}
	pms.picture(p, pm)
	if len(pms.list) == PostMortemsMax {
		pms.list = pms.list[:PostMortemsMax-1]
	}
	pms.list = append(pms.list, pm)
}

// showsSame reports whether a picture is still right: the same failure, with about the same in use.
func (m *postMortem) showsSame(p *process, d *PostMortem) bool {
	now := heap.Amount(p.heap.InUse)
	most, least := max(now, m.InUse), min(now, m.InUse)
	return m.Process == p.shown.Number && m.Status == d.Status && m.Command == d.Command && most-least <= most/4
}

// picture fills in the present state of memory.
func (pms *postMortems) picture(p *process, pm *postMortem) {
	pm.Time, pm.Process, pm.PID, pm.Rank = pms.heap.Now(), p.shown.Number, p.shown.PID, p.shown.Rank
	pm.name, pm.Devices = p.shown.Title(), pms.processes.devicesOf(p)
	pm.Age = pm.Time - min(p.shown.Started, pm.Time)
	g := p.heap.Gauges
	pm.InUse, pm.Requested = heap.Amount(g.InUse), heap.Amount(g.Requested)
	pm.Cached, pm.Cooling, pm.SlabFree = heap.Amount(g.Cached), heap.Amount(g.Cooling), heap.Amount(g.Room)
	pm.Buffers = heap.Amount(p.heap.Live)
	pm.Others = pms.usedByOthers(p)
	if pm.Spilling = pms.spill.PeakResident > 0; pm.Spilling {
		pm.Resident, pm.Spilled = p.spill.resident, p.spill.spilled
	}
	pm.LargestCreated, pm.GivenBack, p.shortage.drained = p.shortage.largest, p.shortage.drained, Part{}
	pm.UsesKnown = p.own().counters.Uses > 0
	pms.findHolders(p, pm)
}

// usedByOthers returns what other processes have on the device of a process.
func (pms *postMortems) usedByOthers(p *process) (sum uint64) {
	for _, q := range pms.processes.list {
		if q != p && !q.heap.Left && !pms.apart(p.shown.Number, q.shown.Number) && !p.devices.surelyOther(&q.devices) {
			reserved := heap.Amount(q.heap.Reserved())
			sum += reserved - min(q.spill.spilled, reserved)
		}
	}
	return sum
}

// findHolders finds which call sites hold the memory.
func (pms *postMortems) findHolders(p *process, pm *postMortem) {
	places := map[*processSite]int{}
	for _, o := range p.heap.Objects() {
		if !o.Owns {
			continue
		}
		s := pms.sites.creator(o)
		at, known := places[s]
		if !known {
			at = len(pm.holders)
			places[s] = at
			pm.holders = append(pm.holders, holder{site: s, Holder: Holder{Newest: pm.Age}})
		}
		h := &pm.holders[at]
		age := pm.Time - min(o.Started, pm.Time)
		h.add(o.Granted)
		switch {
		case spills(o):
			pm.Movable += o.Granted
		case pm.Spilling:
			pm.Resident += o.Granted
		}
		h.Oldest, h.Newest = max(h.Oldest, age), min(h.Newest, age)
		if age <= pm.Age/2 {
			h.recent += o.Granted
		}
		if p.heap.Untouched(o) {
			pm.Untouched.add(o.Granted)
		} else if since, known := p.heap.IdleSince(o); known && pm.Time-min(since, pm.Time) >= pm.IdleFor() {
			pm.Idle.add(o.Granted)
		}
	}
	if pm.UsesKnown {
		pm.Recency.Add(p.heap, pm.Time)
		pm.Lately = pm.Recency.Lately(LatelyNS(pm.Age), pm.InUse, false)
	} else {
		pm.Untouched, pm.Idle = Part{}, Part{}
	}
	slices.SortStableFunc(pm.holders, func(a, b holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	pm.MoreHolders = max(0, len(pm.holders)-holdersKept)
	pm.holders = slices.Clone(pm.holders[:len(pm.holders)-pm.MoreHolders])
}

// spills reports whether --spill moves such an object: others stay on the device, and no SPILL counts them.
func spills(o *heap.Object) bool {
	return o.Memory == wire.MemoryBuffer && o.Access&wire.UseHostPtr == 0
}

// Need returns the sum of the bytes held, the request and the memory of other processes. It is at most 2^64 - 1: sizes come
// from the program.
func (p *PostMortem) Need(held uint64) uint64 {
	need := held
	for _, more := range []uint64{p.Others, p.Size} {
		if need += more; need < more {
			return math.MaxUint64
		}
	}
	return need
}

// SpillHelps reports whether --spill could have made the room that was missing.
func (p *PostMortem) SpillHelps() bool {
	need := p.Need(p.Reserved())
	return !p.Spilling && p.Movable > 0 && p.Movable >= max(p.Size, need-min(need, p.Device.Global))
}

// judge finds the verdict.
func (p *PostMortem) judge() {
	global := p.Device.Global
	fits := func(held uint64) bool { return p.Need(held) <= global }
	switch {
	case !p.Command && p.tooLarge():
		p.Verdict = VerdictTooLarge
	case global == 0:
		p.Verdict = VerdictUnknown
	case !fits(p.Reserved()) && fits(p.InUse):
		p.Verdict, p.PoolToBlame = VerdictFragmented, true
	case !fits(p.Reserved()):
		p.Verdict, p.PoolToBlame = VerdictFull, fits(p.Requested)
	case float64(p.Need(p.Reserved())) >= roomy*float64(global):
		p.Verdict = VerdictFull
	default:
		p.Verdict = VerdictNotMemory
	}
	if p.Devices > 1 && (p.Verdict == VerdictFull || p.Verdict == VerdictFragmented) { // which has the memory is unknown
		p.Verdict, p.PoolToBlame = VerdictUnknown, false
	}
}

func (p *PostMortem) tooLarge() bool {
	most := p.Device.Largest
	return p.Status == wire.InvalidBufferSize || p.Status == wire.InvalidImageSize || most > 0 && p.Size > most
}

// show returns the post-mortems with the names that are known now.
func (pms *postMortems) show(several bool) []PostMortem {
	var list []PostMortem
	for _, pm := range pms.list {
		shown := pm.show(pms.sites.untagged)
		if several || pm.Rank != nil { // each rank of a job may have a session of its own
			shown.Who = pm.name
		}
		list = append(list, shown)
	}
	return list
}

func (m *postMortem) show(untagged *site) PostMortem {
	shown := m.PostMortem
	if m.site != nil && m.site.final().site != untagged {
		shown.Tag, shown.Wrapper = m.site.final().site.title(), m.site.final().site.wrapper
	}
	if m.at != nil && m.at.final().site != untagged {
		shown.At = m.at.final().site.title()
	}
	shown.Named = m.site == nil || m.site.final().site.name != ""
	var merged []holder
	places := map[*site]int{}
	for _, h := range m.holders {
		s := h.site.final().site
		shown.Named = shown.Named && s.name != ""
		at, known := places[s]
		if !known {
			places[s] = len(merged)
			h.Tag = s.title()
			merged = append(merged, h)
			continue
		}
		to := &merged[at]
		to.Buffers += h.Buffers
		to.Bytes += h.Bytes
		to.recent += h.recent
		to.Oldest, to.Newest = max(to.Oldest, h.Oldest), min(to.Newest, h.Newest)
	}
	slices.SortStableFunc(merged, func(a, b holder) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Tag, b.Tag)) })
	shown.Holders = []Holder{}
	for i := range merged {
		if h := &merged[i]; h.recent > shown.GrewBytes && h.Buffers > 1 {
			shown.Grew, shown.GrewBytes = h.Tag, h.recent
		}
		if i < HoldersMax {
			shown.Holders = append(shown.Holders, merged[i].Holder)
		}
	}
	shown.MoreHolders += max(0, len(merged)-HoldersMax)
	return shown
}

// IdleFor returns for how many ns memory must be unused to count as idle.
func (p *PostMortem) IdleFor() uint64 { return max(p.Age/idleShare, uint64(10*time.Millisecond)) }
