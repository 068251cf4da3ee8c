package replay

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// Demand is one thing that a program wants of a pool, whatever the policy.
type Demand struct {
	Kind    DemandKind
	Process uint32            // of Requested and Dropped: its place among the processes, from 0
	Class   uint32            // of the same: what blocks have in common that may serve each other's requests
	Buffer  uint32            // of the others and Requested: a small number that no other buffer has at the time
	Request allocator.Request // of Requested
	Time    int64             // ns, on the records' clock
}

// DemandKind says what a demand is.
type DemandKind uint8

// The kinds of demands.
const (
	Requested DemandKind = iota // the program asks for a buffer
	Freed                       // nothing uses a buffer any more, which may be one from before the first demand
	Spoiled                     // the same, but its memory cannot be reused
	Dropped                     // no more requests of a class: its cached memory goes
)

// Demands calls yield for each demand of the batch that was read since Clear, in order. Yield keeps nothing of it.
func (c *Batch) Demands(yield func(*Demand)) {
	classes := c.resolver.script.classes
	var d Demand
	for i := range c.ops {
		step := &c.ops[i]
		switch step.code {
		case opCreate, opPlan:
			of := &classes[step.class]
			d = Demand{
				Kind: Requested, Process: of.process, Class: step.class, Buffer: step.slot, Request: of.request, Time: step.time,
			}
			d.Request.Size, d.Request.Tag, d.Request.Time = step.size, step.tag, step.time
		case opFree, opFreeEarly, opCooled, opLose:
			d = Demand{Kind: Freed, Buffer: step.slot, Time: step.time}
		case opForget, opGone:
			d = Demand{Kind: Spoiled, Buffer: step.slot, Time: step.time}
		case opDrop:
			d = Demand{Kind: Dropped, Process: classes[step.class].process, Class: step.class, Time: step.time}
		default:
			continue
		}
		yield(&d)
	}
}
