package allocator

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// newArenaDriver makes a policy with a layout of one period: two buffers that live together, a third in the place of the
// first, and one of another site where the second was.
func newArenaDriver(t testing.TB) *driver {
	t.Helper()
	d := newPartDriver(t, "arena")
	d.install(threePlaces())
	return d
}

func threePlaces() Layout {
	return Layout{
		Arenas: []Arena{{Size: 3 * mib, Align: 64}},
		Places: []Place{
			{Tag: 1, Size: mib, Offset: 0},
			{Tag: 1, Size: 2 * mib, Offset: mib},
			{Tag: 1, Size: mib / 2, Offset: 0},
			{Tag: 2, Size: mib, Offset: mib},
		},
	}
}

func (d *driver) install(l Layout) {
	d.t.Helper()
	out, err := d.policy.InstallLayout(l, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.release(out)
}

// period makes the requests of newArenaDriver's layout, and returns the decisions.
func (d *driver) period() (decisions []Decision) {
	d.t.Helper()
	first, second := d.alloc(mib, 1, 1), d.alloc(2*mib, 1, 1)
	d.free(first.Block, false)
	third := d.alloc(mib/2, 1, 1)
	d.free(second.Block, false)
	fourth := d.alloc(mib, 1, 2)
	d.free(third.Block, false)
	d.free(fourth.Block, false)
	d.check()
	return []Decision{first, second, third, fourth}
}

// departed returns the departures that there were.
func (d *driver) departed() (list []Departure) {
	for why, n := range d.policy.Stats().Departures {
		for range n {
			list = append(list, Departure(why))
		}
	}
	return list
}

func TestAPlanServes(t *testing.T) {
	d := newArenaDriver(t)
	for range 3 {
		decisions := d.period()
		for i, want := range []uint64{0, mib, 0, mib} {
			if decisions[i].Slab == 0 || decisions[i].Offset != want || decisions[i].Slab != decisions[0].Slab {
				t.Errorf("request %d: %+v, want it at %d", i, decisions[i], want)
			}
		}
	}
	if s := d.policy.Stats(); s.Planned != 12 || s.Misses != 1 || len(d.departed()) != 0 || s.PeakReserved != 3*mib {
		t.Errorf("%+v, want one miss in 12 requests and the arena's 3 MiB", s)
	}
}

// blockPlan is for requests that no sub-allocation can serve: two blocks, one for three places.
func blockPlan() Layout {
	return Layout{
		Arenas: []Arena{{Size: 3 * mib}},
		Places: []Place{
			{Tag: 1, Size: mib, Offset: 2 * mib}, {Tag: 1, Size: 2 * mib}, {Tag: 1, Size: mib / 2}, {Tag: 2, Size: mib},
		},
	}
}

// blockPeriod makes its requests.
func (d *driver) blockPeriod() {
	d.t.Helper()
	first, second := d.alloc(mib, 1, 1), d.alloc(2*mib, 1, 1)
	d.free(second.Block, false)
	third := d.alloc(mib/2, 1, 1)
	d.free(third.Block, true)
	d.cooled(third.Block)
	fourth := d.alloc(mib, 1, 2)
	if third.Block != second.Block || fourth.Block != second.Block || fourth.Size != 2*mib || first.Slab != 0 {
		d.t.Errorf("blocks %+v, %+v, %+v, %+v", first, second, third, fourth)
	}
	d.free(first.Block, false)
	d.free(fourth.Block, false)
	d.check()
}

// TestALayoutOfBlocks: blocks serve the places of their layout, and no request that departs; they go with the layout.
func TestALayoutOfBlocks(t *testing.T) {
	d := newDriver(t, "arena", "")
	d.install(blockPlan())
	for range 3 {
		d.blockPeriod()
	}
	if s := d.policy.Stats(); s.Planned != 12 || s.Misses != 2 || len(d.departed()) != 0 || s.PeakReserved != 3*mib {
		t.Errorf("%+v, want two misses in 12 requests and 3 MiB", s)
	}
	if other := d.alloc(mib, 1, 9); other.Hit {
		t.Errorf("a block of the layout serves another site: %+v", other)
	}
	first := d.alloc(mib, 1, 1)
	d.install(threePlaces())
	d.align = 64
	d.alloc(mib, 1, 1)
	d.align = 0
	d.free(first.Block, false)
	if s := d.policy.Stats(); s.BytesCached != 2*mib {
		t.Errorf("%d bytes are cached, want the new arena's other 2 MiB", s.BytesCached)
	}
	d.check()
}

// TestBlocksOfADroppedClass go, and after a change of policy they serve what the next one would have created them for.
func TestBlocksOfADroppedClass(t *testing.T) {
	d := newDriver(t, "arena", "")
	d.install(blockPlan())
	d.blockPeriod()
	next, _ := New("futhark", nil)
	d.release(d.policy.SwitchPolicy(next, d.now, nil))
	if !d.alloc(2*mib, 1, 9).Hit || d.policy.Validate() != nil {
		t.Error("a block of the layout was not kept")
	}
	d = newDriver(t, "arena", "")
	d.install(blockPlan())
	d.blockPeriod()
	busy, _ := d.alloc(mib, 1, 1), d.alloc(2*mib, 1, 1)
	d.free(busy.Block, true)
	d.policy.DropClass(1, nil) // gives up what cools as well
	if s := d.policy.Stats(); s.BytesCached != 0 || s.BytesCooling != 0 || d.policy.Validate() != nil {
		t.Errorf("after the drop: %+v", s)
	}
}

// TestNoBlockFits where less than the block may serve the request, or what is too much cannot be spared.
func TestNoBlockFits(t *testing.T) {
	for want, change := range map[Departure]func(*Request){
		OtherClass: func(r *Request) { r.Round = mib / 2 },
		NoArena:    func(r *Request) { r.Exact = true },
	} {
		d := newDriver(t, "arena", "")
		l := blockPlan()
		l.Places = l.Places[2:]
		l.Places[0].Offset = l.Places[1].Offset
		d.install(l)
		req := d.request(mib/2, 1, 1)
		change(&req)
		decision, _ := d.policy.Decide(req, nil)
		if d.policy.Commit(decision); decision.Size != mib/2 || d.policy.Stats().Departures[want] != 1 {
			t.Errorf("%v: %+v, %+v", want, decision, d.policy.Stats())
		}
	}
}

func TestDepartures(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  func(d *driver)
		want []Departure
	}{
		{"before the first of the period", func(d *driver) { d.alloc(2*mib, 1, 1) }, []Departure{NoLayout}},
		{"another site", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(mib, 1, 7) }, []Departure{OtherSite}},
		{"another class", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(mib, 2, 2) }, []Departure{OtherClass}},
		{"another alignment", func(d *driver) { d.alloc(mib, 1, 1); d.align = 128; d.alloc(mib, 1, 2) }, []Departure{OtherClass}},
		{"no part can serve", func(d *driver) { d.alloc(mib, 1, 1); d.align = 0; d.alloc(mib, 1, 2) }, []Departure{OtherClass}},
		{"another size", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(2*mib+1, 1, 1) }, []Departure{OtherSize}},
		{"range in use", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(2*mib, 1, 1); d.alloc(mib/2, 1, 1) }, []Departure{RangeInUse}},
		{"range lost", func(d *driver) { d.forget(d.alloc(mib, 1, 1).Block); d.alloc(2*mib, 1, 1); d.alloc(mib/2, 1, 1) }, []Departure{RangeCooling}},
		{"range cooling", func(d *driver) {
			d.free(d.alloc(mib, 1, 1).Block, true)
			d.alloc(2*mib, 1, 1)
			d.alloc(mib/2, 1, 1)
		}, []Departure{RangeCooling}},
		{"left out", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(mib/2, 1, 1) }, []Departure{RangeInUse}},
		{"smaller, as large when rounded", func(d *driver) { d.alloc(mib, 1, 1); d.alloc(2*mib-5, 1, 1) }, nil},
		{"a dropped class", func(d *driver) {
			d.free(d.alloc(mib, 1, 1).Block, false)
			d.release(d.policy.DropClass(1, nil))
			d.alloc(2*mib, 1, 1)
		}, []Departure{OtherClass}},
		{"a class after a dropped one", func(d *driver) {
			d.free(d.alloc(mib, 1, 1).Block, false)
			d.release(d.policy.DropClass(1, nil))
			d.alloc(2*mib, 2, 1)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newArenaDriver(t)
			c.ask(d)
			if got := d.departed(); !slices.Equal(got, c.want) {
				t.Errorf("departures %v, want %v", got, c.want)
			}
			if err := d.policy.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFarOutOfOrder: a request that a site makes much later in the period is not served ahead of time, and the site goes
// on behind it.
func TestFarOutOfOrder(t *testing.T) {
	d := newPartDriver(t, "arena")
	l := Layout{Arenas: []Arena{{Size: mib, Align: 64}}}
	for i := range uint64(20) {
		l.Places = append(l.Places, Place{Tag: 1, Size: 1000 * (i + 1), Offset: 20480 * i})
	}
	d.install(l)
	for _, size := range []uint64{1000, 16000, 17000} {
		d.alloc(size, 1, 1)
	}
	if s := d.policy.Stats(); s.Planned != 2 || s.Departures[OtherOrder] != 1 {
		t.Errorf("%+v, want one out of order", s)
	}
	d.check()
}

// TestTheNextPeriodIsAsPlanned after one in which a request was left out, one came twice, and one was larger.
func TestTheNextPeriodIsAsPlanned(t *testing.T) {
	for name, spoil := range map[string]func(d *driver){
		"left out": func(d *driver) { d.free(d.alloc(mib, 1, 1).Block, false) },
		"twice": func(d *driver) {
			for range 2 {
				d.free(d.alloc(mib, 1, 1).Block, false)
			}
		},
		"larger": func(d *driver) { d.free(d.alloc(mib, 1, 1).Block, false); d.free(d.alloc(5*mib, 1, 1).Block, false) },
		"longer": func(d *driver) {
			long := d.alloc(mib, 1, 1)
			d.free(d.alloc(2*mib, 1, 1).Block, false)
			d.free(d.alloc(mib/2, 1, 1).Block, false)
			d.free(long.Block, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newArenaDriver(t)
			d.period()
			spoil(d)
			d.period() // the sites begin again in it
			before := d.policy.Stats()
			for i, decision := range d.period() {
				if want := []uint64{0, mib, 0, mib}[i]; decision.Offset != want {
					t.Errorf("request %d at %d, want %d", i, decision.Offset, want)
				}
			}
			if s := d.policy.Stats(); s.Planned != before.Planned+4 {
				t.Errorf("%d planned of 4", s.Planned-before.Planned)
			}
		})
	}
}

// TestAnArenaReplacesWhatTheBasePolicyHad: what is free goes before the arena is created, what is in use when it comes
// back.
func TestAnArenaReplacesWhatTheBasePolicyHad(t *testing.T) {
	d := newPartDriver(t, "arena")
	used, large := d.alloc(mib/2, 1, 5), d.alloc(32*mib, 1, 5)
	other := d.alloc(mib, 2, 5)
	d.free(d.alloc(mib, 1, 5).Block, false)
	d.free(other.Block, false)
	d.install(threePlaces())
	d.period()
	if d.blocks[used.Block] == nil || d.blocks[large.Block] == nil || d.blocks[other.Block] == nil || len(d.blocks) != 4 {
		t.Errorf("%d blocks: want what is in use, what another class has, and the arena", len(d.blocks))
	}
	for _, decision := range []Decision{used, large} {
		if out := d.free(decision.Block, false); len(out) != 1 || out[0].Reason != wire.EvictPolicy {
			t.Errorf("%+v comes back, and %v went", decision, out)
		}
	}
	d.check()
	if s := d.policy.Stats(); s.ReservedBytes() != 3*mib+other.Size {
		t.Errorf("%d bytes are reserved", s.ReservedBytes())
	}
}

// TestALayoutReplacesAnother at its first request. The old arena goes with its last part.
func TestALayoutReplacesAnother(t *testing.T) {
	d := newArenaDriver(t)
	first := d.alloc(mib, 1, 1)
	second := Layout{Arenas: []Arena{{Size: 4 * mib, Align: 64}}, Places: []Place{{Tag: 2, Size: mib, Offset: 3 * mib}}}
	d.install(second)
	if decision := d.alloc(2*mib, 1, 1); decision.Slab != first.Slab {
		t.Errorf("%+v, want the layout in force", decision)
	}
	if decision := d.alloc(mib, 1, 2); decision.Slab == first.Slab || decision.Offset != 3*mib {
		t.Errorf("%+v, want the new layout", decision)
	}
	d.check()
	d.free(first.Block, false)
	if len(d.blocks) == 0 || d.blocks[first.Slab] == nil {
		t.Error("the old arena went with a part of it in use")
	}
	for block, b := range d.blocks {
		if b.slab == first.Slab {
			if out := d.free(block, false); len(out) != 1 || out[0].Block != first.Slab || out[0].Reason != wire.EvictPolicy {
				t.Errorf("%v went with the last part", out)
			}
		}
	}
	d.check()
	d.install(Layout{})
	d.check()
	if decision := d.alloc(mib, 1, 2); decision.Offset == 3*mib {
		t.Errorf("%+v after the end of the layout", decision)
	}
	d.check()
}

// TestARefusedArena is asked for again after some time, and longer each time.
func TestARefusedArena(t *testing.T) {
	d := newArenaDriver(t)
	for _, want := range []int{leastPatience - 1, 2*leastPatience - 1} {
		decision := d.decide(mib, 1, 1)
		if decision.SlabSize != 3*mib {
			t.Fatalf("%+v, want the arena", decision)
		}
		d.policy.Abort(decision)
		before := d.policy.Stats().Departures[NoArena]
		for range want {
			d.free(d.alloc(mib, 1, 2).Block, false)
		}
		if n := d.policy.Stats().Departures[NoArena] - before; n != uint64(want) {
			t.Errorf("%d requests found no arena, want %d", n, want)
		}
		d.check()
	}
	d.period()
}

// TestNoArenaFits where the device does not create such blocks, or has no memory to spare.
func TestNoArenaFits(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"largest block": func(r *Request) { r.Max = 3*mib - 1 },
		"small device":  func(r *Request) { r.Heap = 64 * mib },
		"little memory": func(r *Request) { r.Heap = 300 * mib; r.Size = mib },
	} {
		t.Run(name, func(t *testing.T) {
			d := newArenaDriver(t)
			if name == "little memory" {
				d.install(Layout{Arenas: []Arena{{Size: 200 * mib, Align: 64}}, Places: threePlaces().Places})
			}
			req := d.request(mib, 1, 1)
			change(&req)
			decision, _ := d.policy.Decide(req, nil)
			if decision.SlabSize >= 3*mib {
				t.Errorf("%+v", decision)
			}
			d.policy.Commit(decision)
			if s := d.policy.Stats(); s.Departures[NoArena] != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestBadLayouts(t *testing.T) {
	for want, change := range map[string]func(l *Layout){
		"blocks of 4194304":      func(l *Layout) { l.Arenas[0].Align = 0; l.Places[3].Offset = 2 * mib },
		"alignment 3":            func(l *Layout) { l.Arenas[0].Align = 3 },
		"alignment 4096":         func(l *Layout) { l.Arenas[0].Align = 4096 },
		"size 0":                 func(l *Layout) { l.Arenas[0].Size = 0 },
		"size 3145729":           func(l *Layout) { l.Arenas[0].Size++ },
		"arena 1: size":          func(l *Layout) { l.Arenas[0].Size = 1 << 60 },
		"there is no arena 2":    func(l *Layout) { l.Places[2].Arena = 1 },
		"there is no arena 0":    func(l *Layout) { l.Places[2].Arena = -1 },
		"place 2: 0 bytes":       func(l *Layout) { l.Places[1].Size = 0 },
		"place 4: 1048576 bytes": func(l *Layout) { l.Places[3].Offset = 1<<64 - 64 },
		"place 1: 1048576 bytes": func(l *Layout) { l.Places[0].Offset = 32 },
		"17 arenas":              func(l *Layout) { l.Arenas = make([]Arena, 17) },
	} {
		l := threePlaces()
		change(&l)
		_, err := newPolicy(t, "arena", "").InstallLayout(l, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := newPolicy(t, "slab", "").InstallLayout(threePlaces(), nil); err == nil {
		t.Error("slab took a layout")
	}
}

// install gives the policy a random layout, mostly one that requests of the yard match.
func (y *yard) install() {
	l := Layout{}
	for range 1 + y.next()%3 {
		l.Arenas = append(l.Arenas, Arena{Size: uint64(1+y.next()) * 16 * 1024, Align: unit << (y.next() % 3)})
		if y.next()%4 == 0 {
			l.Arenas[len(l.Arenas)-1].Align = 0
		}
	}
	for range y.next() % 32 {
		arena := y.next() % len(l.Arenas)
		a := l.Arenas[arena]
		l.Places = append(l.Places, Place{
			Arena: arena, Tag: Tag(y.next() % 3), Size: partSizes[y.next()%len(partSizes)],
			Offset: uint64(y.next()) * a.Size / 300 &^ (max(a.Align, 1) - 1),
		})
		last := &l.Places[len(l.Places)-1]
		if a.Align == 0 { // four blocks
			last.Offset = last.Offset / (a.Size / 4) * (a.Size / 4)
			last.Size = min(last.Size, a.Size/4+uint64(y.next()/255))
		}
		if last.Offset+last.Size > a.Size && y.next()%64 != 0 {
			last.Offset, last.Size = 0, min(last.Size, a.Size)
		}
	}
	out, err := y.p.InstallLayout(l, nil)
	if (err == nil) != (l.Check() == nil && y.p.PolicyName() == "arena") {
		y.Fatalf("%+v: %v", l, err)
	}
	y.release(out, false)
}

func newPlannedYard(tb testing.TB, ops []byte) *yard {
	tb.Helper()
	y := newYard(tb, "arena", ops)
	y.switches, y.layouts = true, true
	y.install()
	return y
}

var programsFlag = flag.Uint64("plans.programs", 40, "how many random programs TestRandomPlans plays")

// TestRandomPlans: although few random plans fit the program, nothing is handed out twice, given up while it is used,
// or lost, and each request is served from the layout or departs.
func TestRandomPlans(t *testing.T) {
	var all Stats
	for seed := range *programsFlag {
		y := newPlannedYard(t, noise(500+seed, 4000))
		y.run()
		s := y.p.Stats()
		planned := s.Planned
		for why, n := range s.Departures {
			planned += n
			all.Departures[why] += n
		}
		all.Planned += s.Planned
		if planned != s.Hits+s.Misses {
			t.Errorf("%d requests, %d accounted for", s.Hits+s.Misses, planned)
		}
	}
	for why, n := range all.Departures {
		if n == 0 && Departure(why) != OtherOrder || all.Planned < 100 {
			t.Errorf("%d planned, departures %v: the games are too easy", all.Planned, all.Departures)
		}
	}
}

func FuzzPlans(f *testing.F) {
	for i := range uint64(4) {
		f.Add(noise(i, 400))
	}
	f.Fuzz(func(t *testing.T, ops []byte) { newPlannedYard(t, ops[:min(len(ops), 2000)]).run() })
}

func TestPlannedHitsAllocateNothing(t *testing.T) {
	p := arenaPool(t, 64)
	if n := testing.AllocsPerRun(100, func() { playPeriod(p, 64) }); n != 0 {
		t.Errorf("%v allocations in a period", n)
	}
}

// arenaPool returns a policy with a layout of that many places at as many sites.
func arenaPool(tb testing.TB, places int) *Pool {
	tb.Helper()
	p := newPolicy(tb, "arena", "")
	l := Layout{Arenas: []Arena{{Size: uint64(places) * 4096, Align: 64}}}
	for i := range places {
		l.Places = append(l.Places, Place{Tag: Tag(1 + i), Size: 4000, Offset: uint64(i) * 4096})
	}
	if _, err := p.InstallLayout(l, nil); err != nil {
		tb.Fatal(err)
	}
	playPeriod(p, places)
	return p
}

var scratchBlocks [1 << 16]Block

func playPeriod(p *Pool, places int) {
	for i := range places {
		decision, _ := p.Decide(Request{Size: 4000, Align: 64, Class: 1, Tag: Tag(1 + i)}, nil)
		if decision.SlabSize != 0 {
			p.SlabCreated(decision)
		}
		p.Commit(decision)
		scratchBlocks[i] = decision.Block
	}
	for i := range places {
		p.Free(scratchBlocks[i], false, 0, nil)
	}
}

// BenchmarkPlanned serves the requests of a period: by the layout, by the base policy after a look at the layout, and by
// slab.
func BenchmarkPlanned(b *testing.B) {
	for _, places := range []int{16, 256, 4096} {
		for _, c := range []string{"planned", "departed", "slab"} {
			b.Run(fmt.Sprintf("%s/places=%d", c, places), func(b *testing.B) {
				p := arenaPool(b, places)
				switch c {
				case "slab":
					p = newPolicy(b, "slab", "")
				case "departed":
					if _, err := p.InstallLayout(Layout{
						Arenas: []Arena{{Size: mib, Align: 64}}, Places: []Place{{Tag: 1, Size: 64}, {Tag: 1 << 20, Size: 64}},
					}, nil); err != nil {
						b.Fatal(err)
					}
				}
				playPeriod(p, places)
				b.ReportAllocs()
				for n := 0; n < b.N; n += places {
					playPeriod(p, places)
				}
			})
		}
	}
}

// TestWhatDepartedGoes: a block of the base policy goes back when some periods have not needed it, and stays while they do.
func TestWhatDepartedGoes(t *testing.T) {
	d := newArenaDriver(t)
	d.period()
	odd, used := d.alloc(5*mib, 1, 7), d.alloc(6*mib, 1, 7)
	d.free(odd.Block, false)
	d.free(used.Block, false)
	for n := range 2 * unneeded {
		d.period()
		again := d.alloc(6*mib, 1, 7)
		d.free(again.Block, false)
		if _, there := d.blocks[odd.Block]; there != (n < unneeded) || again.Block != used.Block {
			t.Errorf("after %d periods the block that none needed is there: %v; the other is %v, was %v", n+1, there, again.Block, used.Block)
		}
	}
	d.check()
}
