package replay

import (
	"reflect"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Batch plays one stream of records through several simulations, its members, while the stream comes. It looks each
// record up once, however many members there are, and each member plays many records at a time, so that its tables stay
// in the processor's cache. One goroutine uses a Batch.
type Batch struct {
	resolver *resolver
	members  []*simulation // nil: the member was removed
	ops      []op          // read since Clear
}

// NewBatch returns a batch without members.
func NewBatch() *Batch { return &Batch{resolver: newResolver()} }

// Restart returns a batch without members for the records after missing ones. It knows the devices, contexts and driver
// costs of the old batch, but no buffer.
func (b *Batch) Restart() *Batch {
	fresh := newResolver()
	old := b.resolver
	fresh.costs = old.costs
	for number, before := range old.processes {
		p := fresh.processOf(number)
		p.devices, p.first, p.contexts = before.devices, before.first, before.contexts
		p.order.unnumbered = true
	}
	return &Batch{resolver: fresh}
}

// AddSimulation adds a simulation, which plays the records read from then on, and returns its index. A member added later does
// not know the buffers created before. The error reports an invalid policy or setting.
func (b *Batch) AddSimulation(o Options) (member int, err error) {
	s, err := newSimulation(o, &b.resolver.script)
	if err != nil {
		return 0, err
	}
	b.members = append(b.members, s)
	return len(b.members) - 1, nil
}

// RemoveMember removes a member and frees its memory. Its index is not used again.
func (b *Batch) RemoveMember(member int) { b.members[member] = nil }

// ConcernsPolicy reports whether records of this kind concern a policy or show a driver cost. Other records need not be read.
func ConcernsPolicy(e *wire.Event) bool {
	switch e.Kind {
	case wire.KindLost, wire.KindDevice, wire.KindContext, wire.KindCreate, wire.KindRelease, wire.KindCooled, wire.KindEvict,
		wire.KindLimit, wire.KindSlab, wire.KindOrder, wire.KindExit:
		return true
	case wire.KindSync:
		return e.AsSync().Sync() != wire.SyncFlush
	}
	return false
}

// ReadRecord looks a record up. It keeps no reference to the record. Records come in the order of a recording.
func (b *Batch) ReadRecord(record *wire.Record) { b.ops = b.resolver.appendStepsOf(record, b.ops) }

// EndStream ends the stream: records that waited for later ones are looked up now.
func (b *Batch) EndStream() { b.ops = b.resolver.emitAllPendingSteps(b.ops) }

// PlayMember lets a member play what was read since Clear. Each member plays exactly once between two calls of Clear. The
// error reports that the policy could not be made.
func (b *Batch) PlayMember(member int) error { return b.members[member].playSteps(b.ops) }

// EventCount returns how many events that concern a policy were read since Clear.
func (b *Batch) EventCount() int { return len(b.ops) }

// AppendReadSteps adds what was read since Clear to a recording that no one plays yet: what CopyOfAppended returned stays as it is.
func (b *Batch) AppendReadSteps(l *Loaded) { l.appendSteps(b.ops) }

// CopyOfAppended returns what AppendReadSteps gave a recording so far. It may be played while the batch goes on.
func (b *Batch) CopyOfAppended(l *Loaded) *Loaded {
	s := b.resolver.script
	s.classes, s.changes, s.processNumbers = slices.Clone(s.classes), slices.Clone(s.changes), slices.Clone(s.processNumbers)
	return &Loaded{script: s, chunks: slices.Clone(l.chunks), events: l.events, device: b.resolver.costs.deviceCosts()}
}

// ForgetReadSteps forgets what was read, after all members have played it.
func (b *Batch) ForgetReadSteps() { b.ops = b.ops[:0] }

// ResultOfMember returns a member's result so far, with driver times for the given device. The breaks of the device's cost
// lines must be those that the member was added with, or the lines have none. Result costs a step for each process.
func (b *Batch) ResultOfMember(member int, device cost.Device) Result {
	s := b.members[member]
	s.options.Device = device
	return s.resultSoFar()
}

// DriverCallsOfMember returns the driver calls that a member has made so far.
func (b *Batch) DriverCallsOfMember(member int) cost.Work { return b.members[member].work }

// ReservedBytesOfMember returns the bytes that a member has reserved now, in all processes.
func (b *Batch) ReservedBytesOfMember(member int) uint64 { return b.members[member].reserved }

// LearnedCosts returns the driver costs learned from the records so far, and how many creates and releases they were learned
// from.
func (b *Batch) LearnedCosts() (d cost.Device, creates, releases uint64) {
	p := &b.resolver.costs
	return p.deviceCosts(), p.fitOfCreates().Calls, p.releases.Calls
}

// LiveBufferCount returns how many buffers live now.
func (b *Batch) LiveBufferCount() int { return int(b.resolver.script.slots) - len(b.resolver.free) }

// TableBytes returns the approximate memory of the tables of buffers and of the steps that were read. The memory of the
// policies is not included.
func (b *Batch) TableBytes() int {
	n := cap(b.ops)*int(reflect.TypeFor[op]().Size()) + cap(b.resolver.free)*4
	for _, p := range b.resolver.processes {
		n += len(p.objects) * objectBytes
	}
	for _, member := range b.members {
		if member != nil {
			n += cap(member.buffers) * int(reflect.TypeFor[simulatedBuffer]().Size())
		}
	}
	return n
}

// objectBytes is what a buffer takes in a process's map: number and slot, and about as much unused space.
const objectBytes = 24
