package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

const (
	reads  = wire.FlagReads
	writes = wire.FlagWrites
)

// extent says which bytes of an object a command touches.
type extent struct {
	offset    uint64 // of the first, in the object
	bytes     uint64 // 0: unknown
	scattered bool   // others lie between them, or their place is unknown
}

// piece is bytes in one piece.
func piece(offset, bytes uint64) extent { return extent{offset: offset, bytes: bytes} }

// somewhere is bytes whose place is unknown.
func somewhere(bytes uint64) extent { return extent{bytes: bytes, scattered: true} }

// access is memory that a command uses.
type access struct {
	memory   *memory
	extent   extent
	argument uint32 // of a kernel: 1 + its index; 0: none
	flags    uint8  // reads, writes; neither: unknown
}

// command is an enqueue that has returned. The book uses one again and again.
type command struct {
	sample   *wire.Sample
	queue    *queue // nil: unknown
	kernel   uint64
	op       wire.Command
	failed   bool
	status   int32 // 0: of one that failed without saying why
	stranger bool  // memory was named that nobody knows
	more     bool  // it uses more memory than is known here
	count    int
	access   [accessesMax]access
}

// begin takes an enqueue that returned a status. Every begin is followed by done.
func (b *Book) begin(s *wire.Sample, op wire.Command) *command {
	return b.beginWith(s, op, int32(s.Result) != 0, int32(s.Result))
}

// beginMap takes one that returned a pointer. Its error comes as a later argument.
func (b *Book) beginMap(s *wire.Sample) *command {
	return b.beginWith(s, wire.CommandMap, s.Result == 0, 0)
}

func (b *Book) beginWith(s *wire.Sample, op wire.Command, failed bool, err int32) *command {
	c := &b.command
	c.sample, c.op, c.failed, c.status = s, op, failed, err
	c.kernel, c.stranger, c.more, c.count = 0, false, false, 0
	if failed {
		c.queue = b.queues[s.Argument[0]]
	} else {
		c.queue = b.queueOf(s, s.Argument[0])
	}
	return c
}

// likely returns the context that a command's memory may be taken to belong to; nil when it is unknown.
func (c *command) likely() *context {
	if c.queue == nil {
		return nil
	}
	return c.queue.likely
}

func (c *command) add(a access) {
	if c.count == accessesMax {
		c.more = true
		return
	}
	c.access[c.count] = a
	c.count++
}

// uses says that a command names memory. least is what the command shows of its size; kind what it can only be, if it was
// not seen made.
func (b *Book) uses(c *command, handle uint64, kind wire.Memory, flags uint8, x extent, least uint64) {
	m := b.memories[handle]
	switch {
	case m == nil:
		if handle == 0 || b.dead(c.sample, handle, wire.DiagUseAfterRelease) {
			return
		}
		if c.failed {
			c.stranger = c.stranger || b.ghost(handle) == nil
			return
		}
		if m = b.learn(c.sample, handle, sighting{kind, c.likely(), least}); m == nil {
			return
		}
	case m.carried:
		if !c.failed {
			b.grow(c.sample, m, least)
		}
	case m.birth.time > c.sample.Entered: // the handle was that of another when the command was called
		return
	}
	c.add(access{memory: m, extent: x, flags: flags})
}

func (b *Book) usesBuffer(c *command, handle uint64, flags uint8, x extent, least uint64) {
	b.uses(c, handle, wire.MemoryBuffer, flags, x, least)
}

// usesImage is for so many elements of an image as a region has. Where these lie is the driver's affair, but all of them
// are all of it.
func (b *Book) usesImage(c *command, handle uint64, flags uint8, region []byte, least uint64) {
	x := somewhere(b.imageBytes(handle, region))
	if m := b.memories[handle]; x.bytes > 0 && x.bytes == m.size {
		x = piece(0, x.bytes)
	}
	b.uses(c, handle, wire.MemoryImage, flags, x, least)
}

// imageBytes returns how many bytes a region of an image has; 0 when its format is not known.
func (b *Book) imageBytes(handle uint64, region []byte) uint64 {
	m := b.memories[handle]
	if m == nil {
		return 0
	}
	return times(volume(region), uint64(m.element))
}

// usesAll is for a list of memory: all of each when the command migrates it, else nothing more is known.
func (b *Book) usesAll(c *command, count uint64, kind wire.Memory) {
	list := c.sample.Copy(0)
	c.more = uint32(count) > uint32(handles(list, uint32(count))) // were not copied
	for i := range handles(list, uint32(count)) {
		x := somewhere(0)
		if c.op == wire.CommandMigrate {
			x = all(b.memories[word(list, i)])
		}
		b.uses(c, word(list, i), kind, 0, x, 0)
	}
}

// all returns all bytes of memory, as far as these are known.
func all(m *memory) extent {
	if m == nil || m.carried {
		return somewhere(0)
	}
	return piece(0, m.size)
}

// usesPointer is for shared memory that begins at an address. What is not known there may be any of the host's.
func (b *Book) usesPointer(c *command, address uint64, flags uint8, x extent) {
	if m := b.memories[address]; m != nil && pointer(m.kind) {
		c.add(access{memory: m, extent: x, flags: flags})
	}
}

// done writes what a command means.
func (b *Book) done(c *command, blocking bool) {
	if c.failed {
		b.refused(c)
		return
	}
	if c.queue == nil {
		return
	}
	s := c.sample
	if c.queue.likely == nil && c.count > 0 {
		c.queue.likely = c.access[0].memory.context
	}
	if blocking {
		b.writeSync(s, wire.SyncBlocking, c.queue)
	}
	for i := range c.count {
		in := c.queue.context
		if root := c.access[i].memory.root(); in != nil && root.context != nil && in != root.context {
			b.finding(s, wire.DiagWrongContext, root, c.kernel, 0)
		}
	}
	b.writeUses(c)
}

// writeUses writes what a command uses, one directly behind the other. Those of a copy have the tag of its call.
func (b *Book) writeUses(c *command) {
	var site uint32
	if c.op == wire.CommandCopy && c.count > 0 {
		site = b.tags.Tag(c.sample, c.access[0].extent.bytes)
	}
	if c.more {
		defer b.writeUntold(c.sample, c.op, c.queue.number)
	}
	for i := range c.count {
		a := &c.access[i]
		m := a.memory
		e := wire.Event{
			Kind: wire.KindUse, Op: uint8(c.op), Flags: a.flags, Scope: m.scope, Tag: m.tag, Object: m.number,
			Size: a.extent.bytes, Link: c.queue.number, Duration: a.argument,
		}
		switch c.op {
		case wire.CommandKernel:
			e.Granted = c.kernel
		case wire.CommandNative: // gets pointers
		default:
			e.Granted = a.extent.offset
			if a.extent.scattered {
				e.Flags |= wire.FlagScattered
			}
		}
		if c.op == wire.CommandCopy {
			e.Tag = site
		}
		b.write(c.sample, e)
	}
}

// writeUntold says that a command uses memory that cannot be told.
func (b *Book) writeUntold(s *wire.Sample, op wire.Command, queue uint64) {
	b.write(s, wire.Event{Kind: wire.KindUse, Op: uint8(op), Flags: wire.FlagScattered, Link: queue})
}

// replay is that of a command buffer, whose commands are not told apart. On which queue is not known, either.
func (b *Book) replay(s *wire.Sample) {
	if int32(s.Result) == 0 {
		b.writeUntold(s, wire.CommandOther, 0)
	}
}

// refused looks why a command failed.
func (b *Book) refused(c *command) {
	if c.stranger && c.status == invalidMemory {
		b.tell(c.sample, wire.Event{
			Kind: wire.KindDiag, Op: uint8(wire.DiagUnknownMemory), Status: status(c.status),
		}, []byte(b.function))
	}
	if c.status != invalidContext && c.status != 0 || c.queue == nil || c.queue.context == nil {
		return
	}
	for i := range c.count {
		if m := c.access[i].memory; m.context != nil && m.context != c.queue.context {
			b.finding(c.sample, wire.DiagWrongContext, m, 0, c.status)
		}
	}
}

func (b *Book) writeSync(s *wire.Sample, op wire.Sync, q *queue) {
	e := wire.Event{Kind: wire.KindSync, Op: uint8(op), Duration: duration(s)}
	if q != nil {
		e.Scope, e.Link = q.likely.scope(), q.number
	}
	b.write(s, e)
}

func (b *Book) finish(s *wire.Sample) {
	q := b.queues[s.Argument[0]]
	if int32(s.Result) == 0 {
		q = b.queueOf(s, s.Argument[0])
	}
	b.writeSync(s, wire.SyncFinish, q)
}

func (b *Book) flush(s *wire.Sample) { b.writeSync(s, wire.SyncFlush, b.queueOf(s, s.Argument[0])) }

func (b *Book) wait(s *wire.Sample) { b.writeSync(s, wire.SyncWait, nil) }

// runKernel is clEnqueueNDRangeKernel and clEnqueueTask.
func (b *Book) runKernel(s *wire.Sample) {
	c := b.begin(s, wire.CommandKernel)
	if c.failed {
		b.usesArguments(c, b.kernels[s.Argument[1]])
	} else {
		b.usesArguments(c, b.kernelOf(s, s.Argument[1]))
	}
	b.done(c, false)
}

// usesArguments: not every object that is an argument is memory, and a kernel need not use one that was released.
func (b *Book) usesArguments(c *command, k *kernel) {
	if k == nil {
		return
	}
	c.kernel = k.number
	for i, value := range k.arguments {
		if value == 0 {
			continue
		}
		m := b.memories[unmarked(value)]
		if m == nil && !c.failed && value&isMarked == 0 {
			m = b.learnArgument(c, value)
		}
		if m != nil {
			c.add(access{memory: m, argument: uint32(i) + 1, flags: m.rights()})
		}
	}
}

// rights says whether memory was made for a device to read or write alone. What a kernel declares is not seen from outside.
func (m *memory) rights() uint8 {
	rights := m.access & (memoryReadOnly | memoryWriteOnly)
	if rights == 0 && m.parent != nil { // a sub-buffer has the rights of its buffer where it asks for none
		rights = m.parent.access
	}
	switch {
	case rights&memoryReadOnly != 0:
		return reads
	case rights&memoryWriteOnly != 0:
		return writes
	default:
		return 0
	}
}

func (b *Book) learnArgument(c *command, handle uint64) *memory {
	if g := b.ghost(handle); g != nil && (!g.unsure || !g.held) || b.known(handle) {
		return nil
	}
	return b.learn(c.sample, handle, sighting{kind: wire.MemoryBuffer, context: c.likely()})
}

// runNative is host code in a queue.
func (b *Book) runNative(s *wire.Sample) {
	c := b.begin(s, wire.CommandNative)
	b.usesAll(c, s.Argument[4], wire.MemoryBuffer)
	b.done(c, false)
}

func (b *Book) migrate(s *wire.Sample) {
	c := b.begin(s, wire.CommandMigrate)
	b.usesAll(c, s.Argument[1], wire.MemoryBuffer)
	b.done(c, false)
}

// shareGL takes memory from OpenGL, or gives it back.
func (b *Book) shareGL(s *wire.Sample) {
	c := b.begin(s, wire.CommandOther)
	b.usesAll(c, s.Argument[1], wire.MemoryExternal)
	b.done(c, false)
}
