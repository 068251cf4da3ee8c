package stats

import (
	"fmt"
	"math"
	"time"

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
	Noun              string   `json:"-"`                  // what these are; empty: buffers, as far as known
	Resident, Spilled uint64   `json:"-"`                  // with Spilling: the part of it on the device, and the part that only the host has
	Others            uint64   `json:"reserved_by_others"` // by the other processes
	Holders           []Holder `json:"held_by"`
	MoreHolders       int      `json:"-"`    // that Holders leaves out
	Grew              string   `json:"grew"` // the call site whose memory grew the most of late, empty: none did
	GrewBytes         uint64   `json:"-"`

	UsesKnown bool    `json:"-"` // false: Idle and Untouched are unknown
	Idle      Part    `json:"-"` // not used for IdleNS or longer
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

// FailedText says which call failed, in which process if there is a Who, or that the process was killed, but not how. apart writes
// two sizes, so that different sizes read differently.
func (p *PostMortem) FailedText(apart func(a, b uint64) (string, string)) string {
	switch {
	case p.Verdict == VerdictKilled && p.Who != "":
		return "SIGKILL ended " + p.Who
	case p.Verdict == VerdictKilled:
		return fmt.Sprintf("SIGKILL ended process %d", p.PID)
	case p.Who != "":
		return p.Who + ": " + p.failedCallText(apart)
	}
	return p.failedCallText(apart)
}

func (p *PostMortem) failedCallText(apart func(a, b uint64) (string, string)) string {
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

func (p *Part) addBuffer(bytes uint64) {
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

// ReservedBytes returns what the process had from the driver; with --spill on the device or on the host.
func (p *PostMortem) ReservedBytes() uint64 { return p.InUse + p.FreeBytes() }

// BytesOnDevice returns the memory that the process had on the device.
func (p *PostMortem) BytesOnDevice() uint64 {
	if p.Spilling {
		return p.Resident
	}
	return p.ReservedBytes()
}

// FreeBytes returns what the pool held.
func (p *PostMortem) FreeBytes() uint64 { return p.Cached + p.Cooling + p.SlabFree }

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

// NeededBytes returns the sum of the bytes held, the request and the memory of other processes. It is at most 2^64 - 1: sizes come
// from the program.
func (p *PostMortem) NeededBytes(held uint64) uint64 {
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
	need := p.NeededBytes(p.ReservedBytes())
	return !p.Spilling && p.Movable > 0 && p.Movable >= max(p.Size, need-min(need, p.Device.Global))
}

// judgeVerdict finds the verdict.
func (p *PostMortem) judgeVerdict() {
	global := p.Device.Global
	fits := func(held uint64) bool { return p.NeededBytes(held) <= global }
	switch {
	case !p.Command && p.isTooLarge():
		p.Verdict = VerdictTooLarge
	case global == 0:
		p.Verdict = VerdictUnknown
	case !fits(p.ReservedBytes()) && fits(p.InUse):
		p.Verdict, p.PoolToBlame = VerdictFragmented, true
	case !fits(p.ReservedBytes()):
		p.Verdict, p.PoolToBlame = VerdictFull, fits(p.Requested)
	case float64(p.NeededBytes(p.ReservedBytes())) >= roomy*float64(global):
		p.Verdict = VerdictFull
	default:
		p.Verdict = VerdictNotMemory
	}
	if p.Devices > 1 && (p.Verdict == VerdictFull || p.Verdict == VerdictFragmented) { // which has the memory is unknown
		p.Verdict, p.PoolToBlame = VerdictUnknown, false
	}
}

func (p *PostMortem) isTooLarge() bool {
	most := p.Device.Largest
	return p.Status == wire.InvalidBufferSize || p.Status == wire.InvalidImageSize || most > 0 && p.Size > most
}

// MayLackMemory reports whether memory may have been short. A create that is larger than any buffer may be does not show that, nor does
// SIGKILL, which a person may have sent.
func (p *PostMortem) MayLackMemory() bool {
	switch p.Verdict {
	case VerdictTooLarge, VerdictNotMemory:
		return false
	case VerdictKilled:
		return p.OOMKillsNumber > 1
	default:
		return true
	}
}

// IdleNS returns for how many ns memory must be unused to count as idle.
func (p *PostMortem) IdleNS() uint64 { return max(p.Age/idleShare, uint64(10*time.Millisecond)) }
