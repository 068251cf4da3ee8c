package replay

import (
	"reflect"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Batch plays one stream of records through several policies while it comes. What records mean is looked up once,
// whatever the number of voices, and each voice plays a batch at a time, so that its books stay in the processor's
// cache. One goroutine uses it.
type Batch struct {
	resolver *resolver
	players  []*player // nil: was removed
	ops      []op      // read, and not played yet by all
}

// NewBatch returns one without voices.
func NewBatch() *Batch { return &Batch{resolver: newResolver()} }

// Restart returns one without voices for what follows records that are missing: it knows the devices and contexts of
// this one, and what the driver took, but none of the buffers.
func (c *Batch) Restart() *Batch {
	fresh := newResolver()
	old := c.resolver
	fresh.prices = old.prices
	for number, o := range old.processes {
		to := fresh.from(number)
		to.devices, to.first, to.contexts = o.devices, o.first, o.contexts
		to.order.unnumbered = true
	}
	return &Batch{resolver: fresh}
}

// Add lets another policy take part, from the next record that is read on. Its voice is the number of those that were
// added before. One that comes late has none of the buffers that are there by then; what was read since Clear is not
// for it. An error says what is wrong with the policy or a setting.
func (c *Batch) Add(o Options) (voice int, err error) {
	p, err := newPlayer(o, &c.resolver.script)
	if err != nil {
		return 0, err
	}
	c.players = append(c.players, p)
	return len(c.players) - 1, nil
}

// Remove ends a voice and gives back what it took. Nothing may be asked of it any more.
func (c *Batch) Remove(voice int) { c.players[voice] = nil }

// Matters reports whether records of a kind say anything to a policy, or of what a driver takes. Others need not be
// read.
func Matters(e *wire.Event) bool {
	switch e.Kind {
	case wire.KindLost, wire.KindDevice, wire.KindContext, wire.KindCreate, wire.KindRelease, wire.KindCooled, wire.KindEvict,
		wire.KindLimit, wire.KindSlab, wire.KindOrder, wire.KindExit:
		return true
	case wire.KindSync:
		return e.AsSync().Sync() != wire.SyncFlush
	}
	return false
}

// Read looks a record up, of which it keeps nothing. Records come in the order of a recording.
func (c *Batch) Read(record *wire.Record) { c.ops = c.resolver.take(record, c.ops) }

// Finish reads that nothing more will come, on which some of what was read may still wait.
func (c *Batch) Finish() { c.ops = c.resolver.finish(c.ops) }

// Play plays what was read since Clear through a voice; each voice that was there must do so once before the next
// Clear. An error says that its policy cannot be made any more.
func (c *Batch) Play(voice int) error { return c.players[voice].play(c.ops) }

// Events returns how many events that concern a policy were read since Clear.
func (c *Batch) Events() int { return len(c.ops) }

// Clear ends a batch, which all voices have played.
func (c *Batch) Clear() { c.ops = c.ops[:0] }

// Result returns what a voice has done so far, on a device that takes so much. Its lines have the breaks of the device
// that the voice was added with, or none. It costs a step for each process.
func (c *Batch) Result(voice int, device cost.Device) Result {
	p := c.players[voice]
	p.options.Device = device
	return p.sum()
}

// Work returns what a voice has asked of its driver so far.
func (c *Batch) Work(voice int) cost.Work { return c.players[voice].work }

// Reserved returns the bytes that a voice has from its device now, in all processes.
func (c *Batch) Reserved(voice int) uint64 { return c.players[voice].reserved }

// Device returns what the driver took in what was read so far, and how many creates and releases that was learned from.
func (c *Batch) Device() (d cost.Device, creates, releases uint64) {
	p := &c.resolver.prices
	return p.device(), p.blocks().Calls, p.releases.Calls
}

// Buffers returns how many there are now, as far as was read.
func (c *Batch) Buffers() int { return int(c.resolver.script.slots) - len(c.resolver.free) }

// Bytes returns what is kept of buffers and of records that are not played yet, nearly; what policies keep themselves
// is not in it.
func (c *Batch) Bytes() int {
	n := cap(c.ops)*int(reflect.TypeFor[op]().Size()) + cap(c.resolver.free)*4
	for _, o := range c.resolver.processes {
		n += len(o.objects) * objectBytes
	}
	for _, p := range c.players {
		if p != nil {
			n += cap(p.slots) * int(reflect.TypeFor[held]().Size())
		}
	}
	return n
}

// objectBytes is what a buffer takes in the map of a process: number and slot, and about as much room again.
const objectBytes = 24
