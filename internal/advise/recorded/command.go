package recorded

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var commands = [...]merging.Kind{
	wire.CommandOther: merging.KindOther, wire.CommandKernel: merging.KindKernel, wire.CommandRead: merging.KindRead,
	wire.CommandWrite: merging.KindWrite, wire.CommandCopy: merging.KindCopy, wire.CommandFill: merging.KindFill,
	wire.CommandMap: merging.KindMap, wire.CommandUnmap: merging.KindUnmap, wire.CommandMigrate: merging.KindOther,
	wire.CommandNative: merging.KindNative,
}

// use takes one use of a command: uses of one thread at one time are those of one command.
func (p *process) use(r *wire.Record) {
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
	t := p.thread(r.Thread)
	now := command{step: t.last.step, time: r.Time, queue: e.Queue(), op: e.Command(), argument: e.ArgumentNumber(), kernel: e.Kernel()}
	if !t.last.continues(&now) || p.program.Buffers[o.buffer].Created > now.step {
		now.step = p.command(r)
	}
	t.last = now
	if now.step == merging.None {
		return
	}
	if t.wait != nil && t.wait.record.Time == r.Time && t.wait.record.AsSync().Queue() == e.Queue() {
		t.wait.mine = now.step
	}
	s := &p.program.Steps[now.step]
	s.Uses = append(s.Uses, p.translate(e, o))
	if t.wait == nil && (s.Kind == merging.KindRead || s.Kind == merging.KindMap && e.Reads()) {
		p.expect(e.Queue())
	}
}

// continues reports whether a use is one more of the same command. A kernel's come by their arguments, where those are
// recorded: in format 4.
func (c *command) continues(next *command) bool {
	if c.step == merging.None || c.time != next.time || c.queue != next.queue || c.op != next.op {
		return false
	}
	if c.op != wire.CommandKernel {
		return true
	}
	return next.kernel == c.kernel && (next.argument == 0 || next.argument > c.argument)
}

// command begins a step.
func (p *process) command(r *wire.Record) int {
	t, e := p.thread(r.Thread), r.AsUse()
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
	} else { // its place among others is not known
		p.numbers++
		s.Queue = p.numbers
	}
	if q == nil {
		p.queueless++
	}
	s.After = p.behind(r, q)
	step := p.add(&s)
	if q != nil && step != merging.None {
		q.running = append(q.running, step)
	}
	return step
}

// translate makes a use of a record.
func (p *process) translate(e wire.UseView, o *object) merging.Use {
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
		o.unmap(&u)
	case wire.CommandMigrate:
		u.Reads = true // what is in it stays
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
			o.open++
			o.reads, o.writes = o.reads || u.Reads || !u.Writes, o.writes || u.Writes || !u.Reads
		}
	}
	return u
}

// unmap says what an unmap does: what the maps that are open were for.
func (o *object) unmap(u *merging.Use) {
	if o.open == 0 {
		return // of a map that was not seen: it may do anything
	}
	u.Reads, u.Writes = o.reads, o.writes
	if o.open--; o.open == 0 {
		o.reads, o.writes = false, false
	}
}
