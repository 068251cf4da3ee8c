package replay

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// Demand is one thing that a program asks of a pool. It is the same for every policy.
type Demand struct {
	Kind    DemandKind
	Process uint32            // for Requested and Dropped: the index of the process, from 0
	Class   uint32            // for Requested and Dropped: blocks of one class can serve each other's requests
	Buffer  uint32            // for the other kinds and Requested: a small number that no other live buffer has
	Request allocator.Request // for Requested
	Time    int64             // ns, on the records' clock
}

// DemandKind is the kind of a demand.
type DemandKind uint8

// The kinds of demands.
const (
	Requested DemandKind = iota // the program requests a buffer
	Freed                       // the buffer's memory is free again; the buffer may be older than the first demand
	Spoiled                     // the buffer is gone, and its memory cannot be reused
	Dropped                     // no more requests of a class come: its cached memory is released
)

// EachReadDemand calls yield for each demand that was read since Clear, in order. Yield must not keep the pointer.
func (b *Batch) EachReadDemand(yield func(*Demand)) {
	classes := b.resolver.script.classes
	var d Demand
	for i := range b.ops {
		step := &b.ops[i]
		switch step.code {
		case opCreate, opDecide:
			class := &classes[step.class]
			d = Demand{
				Kind: Requested, Process: class.process, Class: step.class, Buffer: step.slot, Request: class.request, Time: step.time,
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
