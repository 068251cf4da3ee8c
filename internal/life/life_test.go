package life_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/life/lifetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// figures are what the fold and the model both know, at least 0 each as the model shows them.
type figures struct{ InUse, Requested, Free, Cooling, Room, Hits, Misses, Live uint64 }

func figuresOf(f *life.Fold) (all figures) {
	var g life.Gauges
	for _, p := range f.Processes() {
		g.InUse, g.Requested, g.Cached = g.InUse+p.InUse, g.Requested+p.Requested, g.Cached+p.Cached
		g.Cooling, g.Room = g.Cooling+p.Cooling, g.Room+p.Room
		all.Hits, all.Misses = all.Hits+p.Hits, all.Misses+p.Misses
		for _, o := range p.Objects() {
			if !o.Released {
				all.Live++
			}
		}
	}
	shown := func(v int64) uint64 { return uint64(max(v, 0)) }
	all.InUse, all.Requested, all.Cooling, all.Room = shown(g.InUse), shown(g.Requested), shown(g.Cooling), shown(g.Room)
	all.Free = g.Free()
	return all
}

func figuresOfModel(t *model.Totals) figures {
	return figures{t.InUse, t.Requested, t.Cached, t.Cooling, t.SlabFree, t.Hits, t.Misses, t.LiveBuffers}
}

// TestFoldIsTheModels compares with the model after every record.
func TestFoldIsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fold, counts := life.New(nil), model.New(model.Options{Started: lifetest.Start})
		for i, r := range lifetest.Run(t) {
			fold.Step(&r)
			counts.Apply(&r)
			if have, want := figuresOf(fold), figuresOfModel(&counts.Snapshot().Totals); have != want {
				t.Fatalf("record %d, %s: the fold has %+v, the model %+v", i, r.Kind, have, want)
			}
		}
	})
}

// ledger checks what a watcher is told: everything begins once and ends once.
type ledger struct {
	open map[string]bool
	sum  life.Gauges
	bad  []string
}

func (l *ledger) begin(key string) {
	if l.open[key] {
		l.bad = append(l.bad, key+" begins twice")
	}
	l.open[key] = true
}

func (l *ledger) end(key string) {
	if !l.open[key] {
		l.bad = append(l.bad, key+" ends without a beginning")
	}
	delete(l.open, key)
}

func (l *ledger) Begin(p *life.Process, o *life.Object) {
	l.begin(fmt.Sprint("object ", p.Number, o.Number))
	l.sum.InUse += owned(o)
}

func (l *ledger) End(p *life.Process, o *life.Object, _ life.How) {
	l.end(fmt.Sprint("object ", p.Number, o.Number))
	l.sum.InUse -= owned(o)
}

func (l *ledger) Pool(p *life.Process, b *life.Block) { l.begin(fmt.Sprint("stay ", b.Serial)) }
func (l *ledger) Unpool(p *life.Process, b *life.Block, _ life.How) {
	l.end(fmt.Sprint("stay ", b.Serial))
}

func owned(o *life.Object) int64 {
	if o.Owns {
		return int64(o.Granted)
	}
	return 0
}

func TestWatcherIsToldOfEveryEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{open: map[string]bool{}}
		fold := life.New(l)
		for _, r := range lifetest.Run(t) {
			fold.Step(&r)
			var inUse int64
			for _, p := range fold.Processes() {
				inUse += p.InUse
			}
			if inUse != l.sum.InUse {
				t.Fatalf("after %s at %d the watcher has %d in use, the fold %d", r.Kind, r.Time, l.sum.InUse, inUse)
			}
		}
		for _, p := range fold.Processes() {
			fold.End(p, life.Leaked)
			if p.Gauges != (life.Gauges{}) || len(p.Objects())+len(p.Blocks()) != 0 {
				t.Errorf("process %d ended with %+v", p.Number, p.Gauges)
			}
		}
		if len(l.bad) > 0 || len(l.open) > 0 {
			t.Errorf("%q, left open %v", l.bad, l.open)
		}
	})
}

// FuzzFold takes anything: nothing ends that did not begin.
func FuzzFold(f *testing.F) {
	f.Add([]byte{10, 2, 0, 1, 1, 9, 12, 4, 0, 1, 1, 0, 10, 1, 32, 2, 1, 9, 21, 0, 0, 0, 3, 9, 16, 0, 0, 0, 3, 0, 15, 0, 32, 0, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &ledger{open: map[string]bool{}}
		fold := life.New(l)
		for b := range slices.Chunk(data, 6) {
			if len(b) < 6 {
				break
			}
			r := wire.Record{Process: uint32(b[0] >> 7), Event: wire.Event{
				Time: uint64(b[5]), Kind: wire.Kind(b[0] & 31), Outcome: wire.Outcome(b[1] & 7), Op: b[1] >> 4, Flags: b[2],
				Object: uint64(b[3] & 7), Link: uint64(b[4] & 7), Size: uint64(b[5]), Granted: uint64(b[5]) * uint64(b[3]>>7),
			}}
			fold.Step(&r)
		}
		for _, p := range fold.Processes() {
			fold.End(p, life.Open)
		}
		if len(l.bad) > 0 || len(l.open) > 0 {
			t.Errorf("%q, left open %v", l.bad, l.open)
		}
	})
}
