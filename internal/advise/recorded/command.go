package recorded

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var commands = [...]merging.Kind{
	wire.CommandOther: merging.KindOther, wire.CommandKernel: merging.KindKernel, wire.CommandRead: merging.KindRead,
	wire.CommandWrite: merging.KindWrite, wire.CommandCopy: merging.KindCopy, wire.CommandFill: merging.KindFill,
	wire.CommandMap: merging.KindMap, wire.CommandUnmap: merging.KindUnmap, wire.CommandMigrate: merging.KindOther,
	wire.CommandNative: merging.KindNative, wire.CommandAcquire: merging.KindOther, wire.CommandRelease: merging.KindOther,
}

// addUse adds one use of a command. Uses of one thread at the same time belong to the same command.
func (p *process) addUse(r *wire.Record) {
	e := r.AsUse()
	if e.Object() == 0 { // a command uses unknown memory
		p.unknownCommands++
		return
	}
	o := p.objects[e.Object()]
	if o == nil || int(e.Command()) >= len(commands) {
		p.unknownUses++
		return
	}
	t := p.threadOf(r.Thread)
	current := command{step: t.last.step, time: r.Time, queue: e.Queue(), op: e.Command(), argument: e.ArgumentNumber(), kernel: e.Kernel()}
	if !t.last.isContinuedBy(&current) || p.program.Buffers[o.buffer].Created > current.step {
		current.step = p.addCommand(r)
	}
	t.last = current
	if current.step == merging.None {
		return
	}
	if t.wait != nil && t.wait.record.Time == r.Time && t.wait.record.AsSync().Queue() == e.Queue() {
		t.wait.command = current.step
	}
	s := &p.program.Steps[current.step]
	s.Uses = append(s.Uses, p.translateUse(e, o))
	if t.wait == nil && (s.Kind == merging.KindRead || s.Kind == merging.KindMap && e.Reads()) {
		p.noteHostMayRead(e.Queue())
	}
}

// isContinuedBy reports whether a use belongs to the same command. The uses of a kernel come in the order of its
// arguments, where these are recorded (format 4).
func (c *command) isContinuedBy(next *command) bool {
	if c.step == merging.None || c.time != next.time || c.queue != next.queue || c.op != next.op {
		return false
	}
	if c.op != wire.CommandKernel {
		return true
	}
	return next.kernel == c.kernel && (next.argument == 0 || next.argument > c.argument)
}

// addCommand adds a step for a command.
func (p *process) addCommand(r *wire.Record) int {
	t, e := p.threadOf(r.Thread), r.AsUse()
	if !t.commands {
		t.commands = true
		p.callers++
	}
	s := merging.Step{Kind: commands[e.Command()], Time: r.Time, Done: merging.None, Thread: t.number}
	if s.Kind == merging.KindCopy {
		s.Site = e.Tag()
	}
	q := p.queues[e.Queue()]
	if q != nil && q.inOrder {
		s.Queue = q.number
	} else { // its order among other commands is unknown
		p.numbers++
		s.Queue = p.numbers
	}
	if q == nil {
		p.queueless++
	}
	s.After = p.precedingSteps(r, q)
	step := p.addStep(&s)
	if q != nil && step != merging.None {
		q.running = append(q.running, step)
	}
	return step
}

// translateUse translates a USE record.
func (p *process) translateUse(e wire.UseView, o *object) merging.Use {
	u := merging.Use{
		Buffer: o.buffer, Extent: merging.Whole, Reads: e.Reads(), Writes: e.Writes(),
	}
	switch e.Command() {
	case wire.CommandKernel:
		p.arguments++
		if u.Reads || u.Writes {
			p.qualified++
		}
	case wire.CommandNative:
	case wire.CommandUnmap:
		o.setUnmapUse(&u)
	case wire.CommandMigrate:
		u.Reads = true // the contents stay
	default:
		u.Offset, u.Bytes, u.Extent = e.Offset(), e.Bytes(), merging.Range
		p.places++
		if e.Scattered() {
			u.Extent = merging.Scattered
			if e.Offset() == 0 {
				p.placeless++
			}
		}
		if size := p.program.Buffers[o.buffer].Size; !o.exact || u.Bytes == 0 || u.Offset > size || u.Bytes > size-u.Offset {
			u.Offset, u.Extent = 0, merging.Unknown
		}
		if e.Command() == wire.CommandMap {
			o.openMaps++
			o.mapsRead, o.mapsWrite = o.mapsRead || u.Reads || !u.Writes, o.mapsWrite || u.Writes || !u.Reads
		}
	}
	return u
}

// setUnmapUse sets what an unmap does: what the open maps were for.
func (o *object) setUnmapUse(u *merging.Use) {
	if o.openMaps == 0 {
		return // the map was not recorded: the unmap may do anything
	}
	u.Reads, u.Writes = o.mapsRead, o.mapsWrite
	if o.openMaps--; o.openMaps == 0 {
		o.mapsRead, o.mapsWrite = false, false
	}
}
