package analysis

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// limitKinds are the model's words for the allocator's kinds.
var limitKinds = map[allocator.Kind]model.LimitKind{
	allocator.Number: model.LimitNumber, allocator.Count: model.LimitCount, allocator.Bytes: model.LimitBytes,
	allocator.Seconds: model.LimitSeconds, allocator.Switch: model.LimitSwitch, allocator.Choice: model.LimitChoice,
	allocator.Sizes: model.LimitSizes,
}

// LimitOf returns a limit of the allocator's as the model follows it. Any goroutine may call it.
func LimitOf(l *allocator.Limit) model.Limit {
	return model.Limit{
		Name: l.Name, Kind: limitKinds[l.Kind], Text: l.Text, Value: l.Value, Min: l.Min, Max: l.Max, Choices: l.Choices,
	}
}

// PolicyLimits returns the limits of a policy with values that were recorded; none of a policy that this version does
// not know. Any goroutine may call it.
func PolicyLimits(policy string, values trace.Limits) []model.Limit {
	description, _ := allocator.Describe(policy)
	var list []model.Limit
	for _, l := range description.Limits {
		limit := LimitOf(&l)
		if value, ok := values[l.Name]; ok {
			limit.Set(value)
		}
		list = append(list, limit)
	}
	return list
}

// DefaultLimits returns the limits of a policy with their defaults, none of one that is unknown.
func DefaultLimits(policy string) []model.Limit { return PolicyLimits(policy, nil) }

const reasons = int(wire.MissPolicy) + 1

// wastefulMax is for how many misses the free blocks are looked through: each look costs as much as there are blocks.
const wastefulMax = 64

// misses are counted by reason, with what would have avoided them.
type misses struct {
	count, bytes, lost [reasons]uint64
	ratios             []float64 // of the smallest block that was too wasteful to its request
	cachedMost         uint64    // that would have been cached without max_cached_bytes, in any process
	capMost            uint64    // blocks of one call site, or size, evicted by a cap and wanted again, at a time
}

// poolCaps follow what a process's pool was not allowed to keep.
type poolCaps struct {
	away   int64             // bytes that were evicted by max_cached_bytes and not missed since
	most   int64             // cached and away together
	capped map[uint64]uint64 // blocks that a cap evicted and that were not missed since, by call site and by size
}

// raise notes how much the pool would hold.
func (c *poolCaps) raise(p *life.Process) {
	c.most = max(c.most, p.Cached+p.Cooling+p.Room+c.away)
}

// capKeys tell call sites and sizes apart: a cap is of one or of the other.
func capKeys(tag uint32, size uint64) [2]uint64 { return [2]uint64{uint64(tag) << 1, size<<1 | 1} }

// evicted must come while the block is still known: it has the call site.
func (m *misses) evicted(p *process, e *wire.Event) {
	switch wire.Evict(e.Reason) {
	case wire.EvictLimit:
		p.pool.away += int64(e.Granted)
	case wire.EvictTagCap:
		tag := e.Tag
		if b := p.life.Block(e.Link); b != nil {
			tag = b.Tag
		}
		if p.pool.capped == nil {
			p.pool.capped = map[uint64]uint64{}
		}
		for _, key := range capKeys(tag, e.Granted) {
			p.pool.capped[key]++
		}
	default: // no limit says so
	}
}

func (m *misses) add(p *process, o *life.Object) {
	reason := min(int(o.Reason), reasons)
	if reason == reasons {
		reason = 0 // of a later version
	}
	m.count[reason]++
	m.bytes[reason] += o.Size
	m.lost[reason] += uint64(o.Cost)
	if o.Flags&wire.FlagPart != 0 { // it needed the slab before it
		m.lost[reason] += uint64(p.slab)
		p.slab = 0
	}
	switch wire.Miss(reason) {
	case wire.MissLimit:
		m.cachedMost = max(m.cachedMost, count(p.pool.most))
		p.pool.away = max(0, p.pool.away-int64(o.Granted))
	case wire.MissTagCap:
		m.missCapped(p, o)
	case wire.MissTooWasteful:
		m.look(p, o)
	default:
	}
}

// missCapped notes how many blocks more a cap would have had to allow.
func (m *misses) missCapped(p *process, o *life.Object) {
	for _, key := range capKeys(o.Tag, o.Granted) {
		if n := p.pool.capped[key]; n > 0 {
			m.capMost = max(m.capMost, n)
			p.pool.capped[key]--
		}
	}
	m.capMost = max(m.capMost, 1)
}

// look finds the smallest free block of the class that is large enough.
func (m *misses) look(p *process, o *life.Object) {
	if len(m.ratios) == wastefulMax || o.Size == 0 {
		return
	}
	least := uint64(math.MaxUint64)
	for _, b := range p.life.Blocks() {
		if b.State == life.Cached && !b.Part && b.Scope == o.Scope && b.Access == o.Access && b.Size >= o.Size {
			least = min(least, b.Size)
		}
	}
	if least != math.MaxUint64 {
		m.ratios = append(m.ratios, float64(least)/float64(o.Size))
	}
}

// list returns the reasons that occurred.
func (m *misses) list(x *run) []Miss {
	var list []Miss
	for reason := range reasons {
		if m.count[reason] > 0 {
			list = append(list, Miss{
				Reason: wire.Miss(reason).String(), Count: m.count[reason], Bytes: m.bytes[reason], LostNS: m.lost[reason],
				Knob: m.knob(wire.Miss(reason), x.snapshot),
			})
		}
	}
	slices.SortStableFunc(list, func(a, b Miss) int {
		return cmp.Or(cmp.Compare(b.LostNS, a.LostNS), cmp.Compare(b.Count, a.Count))
	})
	return list
}

// limit returns a limit that the policy has, nil when it has none of that name.
func limit(s *model.Snapshot, name string) *model.Limit {
	for i := range s.Limits {
		if s.Limits[i].Name == name {
			return &s.Limits[i]
		}
	}
	return nil
}

// advice says what helps where no limit does.
var advice = map[wire.Miss]string{
	wire.MissNone:     "the recording does not say why",
	wire.MissCold:     "no block of that kind had been released before: each buffer is created for the first time once",
	wire.MissTooSmall: "all free blocks were smaller: a program that creates its largest buffers first needs fewer blocks",
	wire.MissOtherClass: "a fitting block was free with other flags or in another context: the same flags everywhere let buffers " +
		"share blocks",
	wire.MissCooling: "a fitting block was still used by queued commands: released after its last command has completed, it " +
		"would have been free",
	wire.MissDrained: "fitting blocks went back because the device had no memory left: the program needs less at a time, or a " +
		"larger device",
	wire.MissPolicy:      "the policy does not cache such buffers: try another one, for example --policy futhark",
	wire.MissTooWasteful: "the policy rounds sizes in a fixed way: a free block of another size does not serve",
	wire.MissLimit:       "a limit sent fitting blocks to the driver",
	wire.MissTagCap:      "a cap sent fitting blocks to the driver",
}

// knob returns the limit that would have helped, of those that the policy has.
func (m *misses) knob(reason wire.Miss, s *model.Snapshot) Knob {
	knob, found := Knob{}, false
	switch reason {
	case wire.MissLimit:
		knob, found = m.cachedKnob(s)
	case wire.MissTagCap:
		knob, found = m.capKnob(s)
	case wire.MissTooWasteful:
		knob, found = m.wasteKnob(s)
	default: // the program's affair, or another policy's
	}
	if !found {
		return Knob{Why: advice[reason]}
	}
	return knob
}

// cachedKnob raises the limit on all that is cached, to the power of two above what would have been cached.
func (m *misses) cachedKnob(s *model.Snapshot) (Knob, bool) {
	l := limit(s, "max_cached_bytes")
	if l == nil {
		return Knob{}, false
	}
	why := fmt.Sprintf("%s would have been cached at most", size.FormatLong(m.cachedMost))
	if f := limit(s, "max_cached_fraction"); f != nil && s.Device.Global > 0 && f.Value*float64(s.Device.Global) < l.Value {
		share := math.Ceil(100*float64(m.cachedMost)/float64(s.Device.Global)) / 100
		if share > f.Value && share <= f.Max {
			return Knob{Limit: f.Name, Value: strconv.FormatFloat(share, 'f', -1, 64), Why: why}, true
		}
	}
	value := powerAbove(max(m.cachedMost, uint64(l.Value)+1))
	return Knob{Limit: l.Name, Value: strconv.FormatUint(value, 10), Why: why}, float64(value) <= l.Max
}

// powerAbove returns the smallest power of two that is at least n.
func powerAbove(n uint64) uint64 {
	if n <= 1 {
		return 1
	}
	return 1 << min(bits.Len64(n-1), 63)
}

// capKnob raises the cap that is set.
func (m *misses) capKnob(s *model.Snapshot) (Knob, bool) {
	for _, c := range []struct{ name, of string }{{"max_per_tag", "one call site"}, {"max_per_bucket", "one size"}} {
		if l := limit(s, c.name); l != nil && l.Value > 0 {
			value := uint64(l.Value) + m.capMost
			return Knob{
				Limit: l.Name, Value: strconv.FormatUint(value, 10),
				Why: fmt.Sprintf("up to %d more blocks of %s were released and wanted again", m.capMost, c.of),
			}, float64(value) <= l.Max
		}
	}
	return Knob{}, false
}

// wasteKnob lets larger blocks serve: with the ratio that half of the misses looked at needed.
func (m *misses) wasteKnob(s *model.Snapshot) (Knob, bool) {
	if l := limit(s, "steal_other_tag"); l != nil && l.Text == "off" {
		return Knob{Limit: l.Name, Value: "on", Why: "blocks of other call sites were large enough"}, true
	}
	if l := limit(s, "max_waste_ratio"); l != nil && len(m.ratios) > 0 {
		slices.Sort(m.ratios)
		ratio := m.ratios[(len(m.ratios)-1)/2]
		value := max(math.Floor(10*ratio)/10+0.1, l.Value+0.1)
		return Knob{
			Limit: l.Name, Value: strconv.FormatFloat(value, 'f', 1, 64),
			Why: fmt.Sprintf("half of these requests found a free block of at most %.2f times their size", ratio),
		}, value <= l.Max
	}
	if l := limit(s, "mantissa_bits"); l != nil && l.Value > l.Min {
		return Knob{
			Limit: l.Name, Value: strconv.FormatFloat(l.Value-1, 'f', -1, 64), Why: "fewer bits let more sizes share a block",
		}, true
	}
	return Knob{}, false
}
