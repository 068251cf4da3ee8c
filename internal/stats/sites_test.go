package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestFiguresAreKeptOnce: a process has figures of its own for a call site only if another process has that site, too.
func TestFiguresAreKeptOnce(t *testing.T) {
	s := newStream(Options{})
	check := func(when string, want int) {
		t.Helper()
		s.Snapshot()
		own, all := 0, 0
		for _, site := range s.sites.list {
			for _, p := range site.processes {
				if all++; !p.sharesFigures() {
					own++
				}
			}
		}
		if own != want || all == 0 {
			t.Errorf("%s: %d of %d have figures of their own, want %d", when, own, all, want)
		}
	}
	for tag := range uint32(6) {
		s.miss(uint64(tag+1), uint64(tag+1), 64, 64, tag)
	}
	check("without names", 0)
	for tag := range uint32(6) {
		s.site(tag, fmt.Sprintf("f%d\ta.c\t1\tx", tag%3))
	}
	check("of one process", 0)
	s.process = 2
	s.miss(1, 1, 64, 64, 1)
	check("another process, without names", 0)
	s.site(1, "f1\ta.c\t1\tx")
	check("of two processes", 2)
	s.miss(2, 2, 64, 64, 0)
	check("untagged", 4)
	s.process = 1
	s.miss(7, 7, 64, 64, 7)
	s.site(7, "g\ta.c\t1\tx")
	check("a name of one process", 4)
}

// TestUntaggedTrendOfAProcess: the row without a tag is as old as the session, what a process has of it is not.
func TestUntaggedTrendOfAProcess(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	s.time = streamStart + 2_500_000_000
	s.miss(2, 2, 64, 64, 0)
	s.process = 2
	s.miss(1, 1, 64, 64, 1)
	s.AdvanceTime(streamStart + 3_500_000_000)
	got := s.Snapshot()
	all, own := tagNamed(t, got, "(untagged)"), tagNamed(t, &Snapshot{Tags: got.Processes[0].Tags}, "(untagged)")
	if !slices.Equal(all.Trend.Points(), []uint64{0, 0, 64}) || !slices.Equal(own.Trend.Points(), []uint64{64}) {
		t.Errorf("the trend is %v, that of the process %v", all.Trend.Points(), own.Trend.Points())
	}
}

// TestLateNamesOfAnEndedProcess: what it had when it ended goes along when its tags get the same name.
func TestLateNamesOfAnEndedProcess(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time)
	s.process = 2
	s.feed(wire.Event{Kind: wire.KindSync}) // takes what the other one had off
	s.process = 1
	s.site(2, "f\ta.c\t1\tx")
	s.site(1, "f\ta.c\t1\tx")
	got := s.Snapshot()
	all, own := tagNamed(t, got, "a.c:1 f"), tagNamed(t, &Snapshot{Tags: got.Processes[0].Tags}, "a.c:1 f")
	if all.InUse != 0 || all.Creates != 1 || own.InUse != 64 || own.Creates != 1 {
		t.Errorf("all have %+v, the process %+v", all, own)
	}
}

// plainRow is what one process, or all of them, have under a name, kept in the plainest way.
type plainRow struct {
	live, inUse, cached, peak, most, creates uint64
	reasons                                  [reasons]uint64
	trend                                    []uint64
}

func (w *plainRow) hold(bytes uint64) {
	w.inUse += bytes
	w.peak, w.most = max(w.peak, w.inUse), max(w.most, w.inUse)
}

// plainRows are those of process 0, which is all of them, 1, and 2.
type plainRows [3]map[string]*plainRow

func (all *plainRows) each(process uint32, name string, change func(*plainRow)) {
	for _, n := range []uint32{0, process} {
		if all[n] == nil {
			all[n] = map[string]*plainRow{}
		}
		if all[n][name] == nil {
			all[n][name] = &plainRow{trend: []uint64{}}
		}
		change(all[n][name])
	}
}

// turn ends a second.
func (all *plainRows) turn() {
	for _, rows := range all {
		for _, w := range rows {
			w.trend = append(w.trend, w.most)
			w.most = w.inUse
		}
	}
}

func (all *plainRows) check(t *testing.T, s *Snapshot) {
	t.Helper()
	for n := range len(s.Processes) + 1 {
		tags := s.Tags
		switch {
		case n > 0 && len(s.Processes) == 1:
			return
		case n > 0:
			tags = s.Processes[n-1].Tags
		}
		if len(tags) != len(all[n]) {
			t.Fatalf("process %d has %d rows, want %d", n, len(tags), len(all[n]))
		}
		for name, w := range all[n] {
			tag := tagNamed(t, &Snapshot{Tags: tags}, name)
			got := plainRow{tag.Live, tag.InUse, tag.Cached, tag.PeakInUse, w.most, tag.Creates, tag.MissReasons, tag.Trend.Points()}
			if diff := cmp.Diff(*w, got, cmp.AllowUnexported(plainRow{})); diff != "" {
				t.Fatalf("process %d, %s (-plain +model):\n%s", n, name, diff)
			}
		}
	}
}

// twoRun is a random run of a process that another one joins later. Both name their tags when they use them first.
type twoRun struct {
	*stream
	*rand.Rand
	plain      plainRows
	named      map[namedTag]bool
	held, free []plainBuffer
	buffers    uint64
}

type plainBuffer struct {
	process              uint32
	object, block, bytes uint64
	name                 string
}

func (r *twoRun) create() {
	n := namedTag{r.process, 1 + r.Uint32N(6)}
	name := "a.c:1 " + n.name()
	if !r.named[n] {
		r.named[n] = true
		r.site(n.tag, n.name()+"\ta.c\t1\tx")
	}
	r.buffers++
	b := plainBuffer{n.process, r.buffers, r.buffers, 64 << r.IntN(3), name}
	if at := slices.IndexFunc(r.free, func(f plainBuffer) bool { return f.process == n.process }); at >= 0 && r.IntN(2) == 0 {
		old := r.free[at]
		r.free = slices.Delete(r.free, at, at+1)
		b.block, b.bytes = old.block, old.bytes
		r.plain.each(n.process, old.name, func(w *plainRow) { w.cached -= b.bytes })
		r.plain.each(n.process, name, func(w *plainRow) { w.creates++; w.live++; w.hold(b.bytes) })
		r.hit(b.object, b.block, b.bytes, b.bytes, n.tag)
	} else {
		why := uint8(r.IntN(3))
		r.plain.each(n.process, name, func(w *plainRow) { w.creates++; w.live++; w.reasons[why]++; w.hold(b.bytes) })
		r.feed(wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: why, Object: b.object, Link: b.block, Size: b.bytes, Granted: b.bytes, Tag: n.tag,
		})
	}
	r.held = append(r.held, b)
}

func (r *twoRun) giveBack() {
	at := r.IntN(len(r.held))
	b := r.held[at]
	r.held = slices.Delete(r.held, at, at+1)
	r.free = append(r.free, b)
	r.process = b.process
	r.plain.each(b.process, b.name, func(w *plainRow) { w.live--; w.inUse -= b.bytes; w.cached += b.bytes })
	r.release(b.object, wire.OutcomeCached)
}

// TestFromOneProcessToTwo: when another process comes, each has its own figures, and the rows have the sums.
func TestFromOneProcessToTwo(t *testing.T) {
	for seed := range uint64(50) {
		r := &twoRun{stream: newStream(Options{}), Rand: rand.New(rand.NewPCG(seed, 1)), named: map[namedTag]bool{}}
		for i := range uint64(400) {
			if r.time = streamStart + i*50_000_000; i > 0 && i%20 == 0 {
				r.plain.turn()
			}
			r.AdvanceTime(r.time)
			r.process = 1
			if i > 200 {
				r.process += r.Uint32N(2)
			}
			if r.IntN(5) < 3 || len(r.held) == 0 {
				r.create()
			} else {
				r.giveBack()
			}
			if r.IntN(20) == 0 {
				r.plain.check(t, r.Snapshot())
			}
		}
		r.plain.check(t, r.Snapshot())
	}
}

// TestCodeNamedAtTheEnd: sites whose stacks have code without a name stay apart until the program has named it.
func TestCodeNamedAtTheEnd(t *testing.T) {
	s := newStream(Options{})
	const unnamed, step, warm = "create\ta.c\t1\tx+0x1\n\t\t0\t+0x%x\n", "create\ta.c\t1\tx+0x1\nJS.step\ts.js\t7\t+0x10\n", "create\ta.c\t1\tx+0x1\nJS.warm\ts.js\t9\t+0x20\n"
	for tag := uint32(1); tag <= 3; tag++ {
		s.miss(uint64(tag), uint64(tag), 64, 64, tag)
		s.site(tag, fmt.Sprintf(unnamed, 16*tag))
		s.release(uint64(tag), wire.OutcomeCached)
		s.hit(uint64(tag+10), uint64(tag), 64, 64, tag)
	}
	rows := func() map[string][2]uint64 {
		got := map[string][2]uint64{}
		for _, row := range s.Snapshot().Tags {
			sum := got[row.Name]
			got[row.Name] = [2]uint64{sum[0] + row.Creates, max(sum[1], row.PeakInUse)}
		}
		return got
	}
	if diff := cmp.Diff(map[string][2]uint64{"a.c:1 create": {6, 64}}, rows()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	s.site(1, step)
	s.site(2, warm)
	s.site(3, warm)
	s.site(3, step) // the last name stays
	want := map[string][2]uint64{"s.js:7 JS.step via create": {2, 64}, "s.js:9 JS.warm via create": {4, 128}}
	if diff := cmp.Diff(want, rows()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}
