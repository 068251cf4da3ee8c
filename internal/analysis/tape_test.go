package analysis

import (
	"fmt"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	origin = 1_000_000_000
	mib    = 1 << 20
	ms     = 1_000_000
)

// tape is a recording in memory. Its methods append records, a millisecond apart.
type tape struct {
	records.Tape
	now     uint64
	process uint32
	thread  uint32
	objects uint64
}

func newTape() *tape { return &tape{now: origin, process: 1, thread: 11} }

func (t *tape) put(e wire.Event, payload string) *wire.Record {
	t.now += ms
	if e.Time == 0 {
		e.Time = t.now
	}
	r := wire.Record{Event: e, Process: t.process, Thread: t.thread}
	if e.Kind.HasPayload() {
		r.Payload, r.Size = []byte(payload), uint64(len(payload))
	}
	t.Records = append(t.Records, r)
	return &t.Records[len(t.Records)-1]
}

// site names a tag: "a" is function a in a.c.
func (t *tape) site(tag uint32, names ...string) {
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("%s\t/src/%s.c\t%d\tapp+0x10\n", name, name, tag)
	}
	t.put(wire.Event{Kind: wire.KindSite, Tag: tag}, text)
}

// create makes a buffer; block 0 is none.
func (t *tape) create(outcome wire.Outcome, tag uint32, size, granted, block uint64) (object uint64) {
	t.objects++
	r := t.put(wire.Event{
		Kind: wire.KindCreate, Outcome: outcome, Object: t.objects, Tag: tag, Size: size, Granted: granted, Link: block, Access: 1,
	}, "")
	if outcome == wire.OutcomeMiss {
		r.Reason = uint8(wire.MissCold)
	}
	return t.objects
}

func (t *tape) last() *wire.Record { return &t.Records[len(t.Records)-1] }

// driver makes a buffer that the pool has nothing to do with.
func (t *tape) driver(tag uint32, size uint64) uint64 {
	return t.create(wire.OutcomeDriver, tag, size, size, 0)
}

func (t *tape) release(object uint64, outcome wire.Outcome) *wire.Record {
	return t.put(wire.Event{Kind: wire.KindRelease, Object: object, Outcome: outcome}, "")
}

// use adds a command that blocks for a nanosecond.
func (t *tape) use(object uint64) { t.put(wire.Event{Kind: wire.KindUse, Object: object, Cost: 1}, "") }

func (t *tape) exit() { t.put(wire.Event{Kind: wire.KindExit}, "") }

func (t *tape) device(bytes uint64) {
	t.put(wire.Event{Kind: wire.KindDevice, Object: 1, Granted: bytes}, "card\x00driver")
}

// analyse is New, of a run under the policy futhark that must work.
func (t *tape) analyse(tb rapid.TB, change ...func(*Options)) *Analysis {
	tb.Helper()
	o := Options{Whole: true, Header: recording.Header{Policy: "futhark", ClockNS: origin}}
	for _, f := range change {
		f(&o)
	}
	a, err := Analyse(t, o)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func policy(name string, limits recording.Limits) func(*Options) {
	return func(o *Options) { o.Header.Policy, o.Header.Limits = name, limits }
}
