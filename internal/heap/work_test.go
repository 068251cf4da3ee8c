package heap_test

import (
	"math"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// commands are the records of a program whose buffers commands use.
type commands struct{ *heap.Heap }

func (c commands) at(time uint64, e wire.Event) {
	e.Time = time
	c.Apply(&wire.Record{Event: e, Process: 1, Thread: 1})
}

func (c commands) queue(number uint64, flags uint8) {
	c.at(1, wire.Event{Kind: wire.KindQueue, Op: uint8(wire.LifeCreate), Object: number, Flags: flags})
}

func (c commands) create(object, parent uint64) {
	memory := wire.MemoryBuffer
	if parent != 0 {
		memory = wire.MemorySubBuffer
	}
	c.at(2, wire.Event{Kind: wire.KindCreate, Op: uint8(memory), Object: object, Size: 100, Granted: 100, Link: parent})
}

func (c commands) use(time, object, queue uint64) {
	c.at(time, wire.Event{Kind: wire.KindUse, Object: object, Link: queue, Op: uint8(wire.CommandKernel)})
}

func (c commands) sync(time uint64, op wire.Sync, queue uint64, took uint32) {
	c.at(time, wire.Event{Kind: wire.KindSync, Op: uint8(op), Link: queue, Duration: took})
}

func (c commands) await(time, queue, other, since uint64, what wire.Await) {
	c.at(time, wire.Event{Kind: wire.KindAwait, Op: uint8(what), Object: other, Size: since, Link: queue})
}

const (
	inOrder    = 0
	outOfOrder = wire.FlagOutOfOrder
)

// TestIdleSince: what a command uses is idle from the end of a wait that covers the command.
func TestIdleSince(t *testing.T) {
	for name, test := range map[string]struct {
		run  func(c commands)
		want uint64 // 0: unknown
	}{
		"nothing waits": {func(c commands) { c.use(10, 1, 1) }, 0},
		"finish":        {func(c commands) { c.use(10, 1, 1); c.sync(20, wire.SyncFinish, 1, 500) }, 520},
		"flush":         {func(c commands) { c.use(10, 1, 1); c.sync(20, wire.SyncFlush, 1, 500) }, 0},
		"of another queue": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 2, 500)
		}, 0},
		"the wait was not measured": {func(c commands) { c.use(10, 1, 1); c.sync(20, wire.SyncFinish, 1, 0) }, 0},
		"used again":                {func(c commands) { c.use(10, 1, 1); c.sync(20, wire.SyncFinish, 1, 5); c.use(30, 1, 1) }, 0},
		"used again and finished": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, 5)
			c.use(30, 1, 1)
			c.sync(40, wire.SyncFinish, 1, 5)
		}, 45},
		"the record of the use comes late":  {func(c commands) { c.sync(20, wire.SyncFinish, 1, 5); c.use(10, 1, 1) }, 25},
		"a blocking command of the queue":   {func(c commands) { c.use(10, 1, 1); c.sync(20, wire.SyncBlocking, 1, 5); c.use(20, 2, 1) }, 25},
		"enqueued at the begin of the wait": {func(c commands) { c.use(20, 1, 1); c.sync(20, wire.SyncFinish, 1, 5) }, 25},
		"and its record comes late":         {func(c commands) { c.sync(20, wire.SyncFinish, 1, 5); c.use(20, 1, 1) }, 25},
		"enqueued in the wait":              {func(c commands) { c.sync(20, wire.SyncFinish, 1, 5); c.use(21, 1, 1) }, 0},
		"an earlier wait ends later": {func(c commands) {
			c.sync(20, wire.SyncFinish, 1, 5)
			c.sync(19, wire.SyncFinish, 1, 50)
			c.use(20, 1, 1)
		}, 25},
		"a blocking use": {func(c commands) {
			c.at(20, wire.Event{Kind: wire.KindUse, Object: 1, Link: 1, Op: uint8(wire.CommandRead), Cost: 5})
		}, 25},
		"a blocking use, longer than can be said": {func(c commands) {
			c.at(20, wire.Event{Kind: wire.KindUse, Object: 1, Link: 1, Op: uint8(wire.CommandRead), Cost: math.MaxUint32})
		}, 0},
		"of no queue": {func(c commands) { c.use(10, 1, 0); c.sync(20, wire.SyncFinish, 1, 5) }, 0},
		"the queue ends": {func(c commands) {
			c.use(10, 1, 1)
			c.at(11, wire.Event{Kind: wire.KindQueue, Op: uint8(wire.LifeEnd), Object: 1})
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 0},
		"a queue ends, and another has its number": {func(c commands) {
			c.at(9, wire.Event{Kind: wire.KindQueue, Op: uint8(wire.LifeEnd), Object: 3})
			c.queue(3, inOrder)
			c.use(10, 1, 3)
			c.sync(20, wire.SyncBlocking, 3, 5)
		}, 25},
		"a wait of another thread": {func(c commands) {
			c.use(10, 1, 1)
			c.await(20, 0, 1, 10, wire.AwaitOne)
			c.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncWait), Time: 20, Duration: 5}, Process: 1, Thread: 2})
		}, 0},
		"two events": {func(c commands) {
			c.use(10, 1, 3)
			c.use(11, 1, 3)
			c.await(20, 0, 3, 10, wire.AwaitOne)
			c.await(20, 0, 3, 11, wire.AwaitOne)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 25},
		"an event, and all before it": {func(c commands) {
			c.use(10, 1, 3)
			c.use(11, 2, 3)
			c.await(20, 0, 3, 11, wire.AwaitAll)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 25},
		"a queue waits for another after that": {func(c commands) {
			c.use(10, 1, 1)
			c.await(21, 2, 1, 10, wire.AwaitAll)
			c.sync(20, wire.SyncFinish, 2, 5)
		}, 0},
		"a queue waits for another from then on": {func(c commands) {
			c.use(10, 1, 1)
			c.await(20, 2, 1, 10, wire.AwaitAll)
			c.sync(20, wire.SyncFinish, 2, 5)
		}, 25},
		"uses were lost before it was made": {func(c commands) {
			c.at(3, wire.Event{Kind: wire.KindLost, Size: 1, Granted: 1})
			c.at(4, wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemoryBuffer), Object: 1, Size: 100, Granted: 100})
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 25},
		"uses were lost as it was made": {func(c commands) {
			c.at(2, wire.Event{Kind: wire.KindLost, Size: 1, Granted: 1})
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 0},
		"other events were lost": {func(c commands) {
			c.use(10, 1, 1)
			c.at(11, wire.Event{Kind: wire.KindLost, Size: 1})
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 25},
		"mapped twice, unmapped once": {func(c commands) { c.mapped(true); c.mapped(true); c.mapped(false); c.sync(20, wire.SyncFinish, 1, 5) }, 0},
		"unmapped, then mapped":       {func(c commands) { c.mapped(false); c.mapped(true); c.sync(20, wire.SyncFinish, 1, 5) }, 0},
		"more queues than are followed": {func(c commands) {
			for number := uint64(4); number <= 1025; number++ {
				c.queue(number, inOrder)
			}
			c.use(10, 1, 1025)
			c.sync(20, wire.SyncFinish, 1025, 5)
		}, 0},
		"as many queues as are followed": {func(c commands) {
			for number := uint64(4); number <= 1024; number++ {
				c.queue(number, inOrder)
			}
			c.use(10, 1, 1024)
			c.sync(20, wire.SyncFinish, 1024, 5)
		}, 25},
		"as many commands as are followed": {func(c commands) {
			for range 1 << 16 {
				c.use(10, 1, 1)
			}
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 25},
		"more commands than are followed": {func(c commands) {
			for range 1<<16 + 1 {
				c.use(10, 1, 1)
			}
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 0},
		"longer than can be said, then another thread": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, math.MaxUint32)
			c.Apply(&wire.Record{Event: wire.Event{Kind: wire.KindRelease, Object: 2, Time: 9_000_000_000}, Process: 1, Thread: 2})
		}, 0},
		"a blocking command, out of order": {func(c commands) { c.use(10, 1, 3); c.sync(20, wire.SyncBlocking, 3, 5) }, 0},
		"finish, out of order":             {func(c commands) { c.use(10, 1, 3); c.sync(20, wire.SyncFinish, 3, 5) }, 25},
		"an event": {func(c commands) {
			c.use(10, 1, 1)
			c.await(20, 0, 1, 10, wire.AwaitOne)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 25},
		"an event that was asked": {func(c commands) {
			c.use(10, 1, 1)
			c.await(20, 0, 1, 10, wire.AwaitOne)
			c.sync(20, wire.SyncWait, 0, 0)
		}, 20},
		"an earlier event": {func(c commands) {
			c.use(10, 1, 1)
			c.await(20, 0, 1, 9, wire.AwaitAll)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 0},
		"another event, out of order": {func(c commands) {
			c.use(10, 1, 3)
			c.use(11, 2, 3)
			c.await(20, 0, 3, 11, wire.AwaitOne)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 0},
		"its event, out of order": {func(c commands) {
			c.use(10, 1, 3)
			c.use(11, 2, 3)
			c.await(20, 0, 3, 10, wire.AwaitOne)
			c.sync(20, wire.SyncWait, 0, 5)
		}, 25},
		"two queues, one finished": {func(c commands) {
			c.use(10, 1, 1)
			c.use(11, 1, 2)
			c.sync(20, wire.SyncFinish, 2, 5)
		}, 0},
		"two queues, one waits for the other": {func(c commands) {
			c.use(10, 1, 1)
			c.await(11, 2, 1, 10, wire.AwaitAll)
			c.use(11, 1, 2)
			c.sync(20, wire.SyncFinish, 2, 5)
		}, 25},
		"a sub-buffer": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, 5)
			c.use(30, 9, 1)
		}, 0},
		"mapped":   {func(c commands) { c.mapped(true); c.sync(20, wire.SyncFinish, 1, 5) }, 0},
		"unmapped": {func(c commands) { c.mapped(true); c.mapped(false); c.sync(20, wire.SyncFinish, 1, 5) }, 25},
		"a command uses what we cannot know": {func(c commands) {
			c.use(10, 1, 1)
			c.use(11, 0, 1)
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 0},
		"uses were lost": {func(c commands) {
			c.use(10, 1, 1)
			c.at(11, wire.Event{Kind: wire.KindLost, Size: 1, Granted: 1})
			c.sync(20, wire.SyncFinish, 1, 5)
		}, 0},
		"longer than can be said": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, math.MaxUint32)
		}, 0},
		"longer than can be said, then more": {func(c commands) {
			c.use(10, 1, 1)
			c.sync(20, wire.SyncFinish, 1, math.MaxUint32)
			c.at(9_000_000_000, wire.Event{Kind: wire.KindRelease, Object: 2})
		}, 9_000_000_000},
	} {
		c := commands{heap.New(heap.Options{})}
		c.queue(1, inOrder)
		c.queue(2, inOrder)
		c.queue(3, outOfOrder)
		c.create(1, 0)
		c.create(2, 0)
		c.create(9, 1)
		test.run(c)
		p := c.Process(1)
		if got, known := p.ObjectIdleSince(p.Object(1)); known != (test.want != 0) || known && (got != test.want || p.LastCommandEnd() != got) {
			t.Errorf("%s: idle since %d, %v, want %d; the last command ended at %d", name, got, known, test.want, p.LastCommandEnd())
		}
	}
}

func (c commands) mapped(begins bool) {
	op := wire.CommandUnmap
	if begins {
		op = wire.CommandMap
	}
	c.at(10, wire.Event{Kind: wire.KindUse, Object: 1, Link: 1, Op: uint8(op)})
}
