package replay

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Comparison counts how often a replay decides as the recorded policy did. For a request it compares whether it was a
// hit, the reason of a miss, the size of the block and whether that is a sub-allocation; for evictions their order,
// size and reason. Where the recording numbers decisions it compares the block itself as well, and the order of
// evictions by thread, because a thread records an eviction after it has released the block.
type Comparison struct {
	Requests, Same           uint64
	Evictions, SameEvictions uint64 // the larger number of recorded and replayed ones
	Unreleased               uint64 // evictions of a process that ended before it could release the blocks; counted in neither
	First                    string // the first difference, in words; empty: none
}

// IsExact reports whether all decisions are equal.
func (c *Comparison) IsExact() bool { return c.Requests == c.Same && c.Evictions == c.SameEvictions }

// CompareDecisions plays a recording under the recorded policy, limits and capacity, which the options name, and compares each
// decision with the recorded one. Errors are those of Replay.
func CompareDecisions(src recording.Source, o Options) (*Comparison, error) {
	o.AsRecorded = true
	s, err := newBatchOfOne(o)
	if err != nil {
		return nil, err
	}
	w := &comparer{
		single: s, decided: map[uint32]decision{}, recorded: map[uint32]recordedDecision{}, evictions: map[uint32]*evictions{}, unpooled: map[unpooledBuffer]uint64{},
	}
	s.onlyMember().comparer = w
	if err := eachRecord(src, w.compareRecord); err != nil {
		return nil, err
	}
	if err := s.playWaitingRecords(); err != nil {
		return nil, err
	}
	w.finishComparison()
	return &w.Comparison, nil
}

// comparer compares simulated decisions with recorded ones.
type comparer struct {
	Comparison
	single    single
	decided   map[uint32]decision         // by slot, until the recorded decision is read
	recorded  map[uint32]recordedDecision // by slot, until the simulation decides
	evictions map[uint32]*evictions
	unpooled  map[unpooledBuffer]uint64 // bytes of buffers that are in no pool
}

// decision is how a request was served.
type decision struct {
	hit           bool
	reason        wire.Miss
	size          uint64
	subAllocation bool
	block         uint64 // its id; 0: unknown
}

// recordedDecision is the recorded decision on a request.
type recordedDecision struct {
	decision
	process      uint32
	object, time uint64
}

// unpooledBuffer identifies a buffer.
type unpooledBuffer struct {
	process uint32
	object  uint64
}

// compareServedDecision compares a simulated decision with the recorded one, once that is read.
func (c *comparer) compareServedDecision(slot uint32, decided *allocator.Decision) {
	d := decision{decided.Hit, decided.Reason, decided.Size, decided.Slab != 0, uint64(decided.Block)}
	if want, known := c.recorded[slot]; known {
		delete(c.recorded, slot)
		c.compareDecision(&want, d)
		return
	}
	c.decided[slot] = d
}

func (c *comparer) compareEviction(p *simulatedProcess, block allocator.Block, size uint64, reason wire.Evict) {
	e := c.processEvictions(p.number)
	if !e.numbered {
		block = 0
	}
	e.replayed = append(e.replayed, eviction{uint64(block), size, reason})
}

func (c *comparer) processEvictions(process uint32) *evictions {
	e := c.evictions[process]
	if e == nil {
		e = &evictions{process: process}
		c.evictions[process] = e
	}
	return e
}

// compareRecord plays a record and compares it with the simulated decisions.
func (c *comparer) compareRecord(record *wire.Record) error {
	p := c.single.resolver.processOf(record.Process) // a record may end the process
	if err := c.single.readAndPlayRecord(record); err != nil {
		return err
	}
	e := c.processEvictions(p.number)
	e.numbered = p.order.next != 0 && !p.order.unnumbered
	switch record.Kind {
	case wire.KindCreate:
		c.compareCreate(p, record)
	case wire.KindRelease: // an eviction, if the policy does not pool
		release := record.AsRelease()
		key := unpooledBuffer{p.number, release.Object()}
		if size, there := c.unpooled[key]; there && release.References() == 0 && release.Outcome() == wire.OutcomeDriver {
			delete(c.unpooled, key)
			e.recorded = append(e.recorded, recordedEviction{eviction{0, size, wire.EvictPolicy}, record.Thread, record.Time})
		}
	case wire.KindExit:
		e.exited = true
	case wire.KindEvict:
		evict := record.AsEvict()
		block := evict.Block()
		if !e.numbered {
			block = 0
		}
		e.recorded = append(e.recorded, recordedEviction{eviction{block, evict.Bytes(), evict.Reason()}, record.Thread, record.Time})
	}
	return nil
}

// compareCreate compares the recorded decision of a CREATE with the simulated one, once that is made.
func (c *comparer) compareCreate(p *recordedProcess, record *wire.Record) {
	e := record.AsCreate()
	if !e.WasPooled() {
		return
	}
	if e.Outcome() == wire.OutcomeMiss && e.Block() == 0 {
		c.unpooled[unpooledBuffer{p.number, e.Object()}] = e.Granted()
	}
	c.Requests++
	want := recordedDecision{process: p.number, object: e.Object(), time: e.Time(), decision: decision{
		e.Outcome() == wire.OutcomeHit, e.Reason(), e.Granted(), e.SubAllocation(), e.Block(),
	}}
	if p.order.next == 0 || p.order.unnumbered {
		want.block = 0
	}
	slot := p.objects[e.Object()]
	if earlier, there := c.recorded[slot]; there {
		c.countUnservedRequest(&earlier)
	}
	c.recorded[slot] = want
	if d, known := c.decided[slot]; known {
		delete(c.decided, slot)
		delete(c.recorded, slot)
		c.compareDecision(&want, d)
	}
}

func (c *comparer) compareDecision(want *recordedDecision, d decision) {
	if want.block == 0 {
		d.block = 0
	}
	if d == want.decision {
		c.Same++
		return
	}
	c.noteDifference(want.process, want.time, fmt.Sprintf("the request %d was %s; here it is %s", want.object, want.decision, d))
}

// countUnservedRequest counts a request that the simulation did not serve.
func (c *comparer) countUnservedRequest(want *recordedDecision) {
	c.noteDifference(want.process, want.time, fmt.Sprintf("the request %d was %s; here it found no memory but its own", want.object, want.decision))
}

// finishComparison counts the requests that the simulation did not serve, and compares evictions.
func (c *comparer) finishComparison() {
	for slot := range c.single.resolver.script.slots {
		if want, there := c.recorded[slot]; there {
			c.countUnservedRequest(&want)
		}
	}
	for number := range c.single.resolver.script.facts.processes {
		if e := c.evictions[number]; e != nil {
			e.compareLists(c)
		}
	}
}

func (c *comparer) noteDifference(process uint32, time uint64, text string) {
	if c.First == "" {
		c.First = fmt.Sprintf("process %d, at %d ns: %s", process+1, time, text)
	}
}

// String describes how a request was served.
func (d decision) String() string {
	what := "a block"
	if d.subAllocation {
		what = "a part"
	}
	if d.block != 0 {
		what += fmt.Sprintf(" (%d)", d.block)
	}
	if d.hit {
		return fmt.Sprintf("a hit, %s of %d bytes", what, d.size)
	}
	return fmt.Sprintf("a miss (%s), %s of %d bytes", d.reason, what, d.size)
}
