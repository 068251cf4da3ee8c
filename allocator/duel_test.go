package allocator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// dice are the bytes that decide what happens in a game.
type dice struct {
	took []byte
	at   int
	time int64
}

func (d *dice) next() int {
	if d.at >= len(d.took) {
		return 0
	}
	d.at++
	return int(d.took[d.at-1])
}

// duelBeyond is what a pool may hold beyond its proportion.
const duelBeyond = 5000

// clock goes forwards by little, sometimes by much, and sometimes back: threads do not agree on the time.
func (d *dice) clock() int64 {
	switch n := d.next(); {
	case n < 8:
		return d.time - int64(n)
	case n < 12:
		d.time += 40
	case n == 12:
		d.time += 9 * second
	default:
		d.time += int64(n % 4)
	}
	return d.time
}

// duel plays a policy of whole blocks and the reference side by side.
type duel struct {
	testing.TB
	dice
	p         *Pool
	r         *reference
	decisions []Decision
	open      []*refBlock
	seen      map[Block]bool // ever created
}

func (d *duel) same(what string, got, want []Eviction) {
	if !slices.Equal(got, want) {
		d.Fatalf("%s evicted %v, want %v", what, got, want)
	}
}

// some returns a block of the reference in any state, or one that does not exist.
func (d *duel) some() Block {
	i := d.next()
	if len(d.r.blocks) == 0 || i == 255 {
		return Block(i)<<32 | Block(i)
	}
	return d.r.blocks[i%len(d.r.blocks)].block
}

// sizes that lie around the limits below and around each other.
var sizes = [...]uint64{
	1, 3, 4, 5, 64, 100, 199, 200, 201, 1000, 1024, 1500, 2048, 4095, 4096, 5000, 8192, 9999, 1 << 20, 1<<20 + 1, 3 << 20,
}

// values worth trying for each limit. Those that empty the pool are rare, or nothing else would be seen.
var values = map[string][]string{
	"max_cached_bytes":    {"0", "5000", "20000", "4194304", "16777216", "1099511627776", "1099511627776", "1099511627776"},
	"max_cached_fraction": {"0.01", "0.5", "1", "1", "1"},
	"over_limit":          {"evict-old", "reject-new"},
	"max_per_tag":         {"0", "1", "2", "5"},
	"max_per_bucket":      {"0", "1", "2", "5"},
	"max_waste_ratio":     {"1", "1.1", "2", "10"},
	"min_block":           {"1", "4", "100", "4096"},
	"steal_other_tag":     {"off", "on"},
	"mantissa_bits":       {"0", "1", "2", "4", "8"},
	"bucket_sizes":        {netcl, "1000", "1024:4096", "100:200:5000"},
	"max_age":             {"0", "0", "0", "0.000000005", "0.0000001", "0.000001"},
	"proportion":          {"0", "1", "1.5", "1.5", "3"},
	"outgrown":            {"off", "on"},
	"drain_order":         {"slot", "largest-first", "oldest-first", "all"},
	"max_part":            {"0", "4096", "20000", "100000"},
	"heap_bytes":          {"0", "1048576", "16777216"},
	"slabs_per_heap":      {"1", "4", "62"},
	"page_bytes":          {"256", "1024", "4096"},
}

func (d *duel) decide() {
	req := Request{Size: sizes[d.next()%len(sizes)], Class: Class(1 + d.next()%3), Tag: someTags[d.next()%3], Time: d.clock()}
	kind := d.next()
	if kind%4 == 0 {
		req.Max = max(req.Size, 1500)
	}
	if kind%16 == 1 {
		req.Heap = 10_000 << (kind / 64)
	}
	switch kind % 32 {
	case 3, 4:
		req.Round = max(req.Size, 1500)
	case 5, 6:
		req.Round = req.Size
	case 7:
		req.Round = 1000
	}
	req.Pinned = kind%8 != 2
	want, b, evictions := d.r.decide(req)
	got, evicted := d.p.Decide(req, nil)
	d.same(fmt.Sprintf("request %+v", req), evicted, evictions)
	if !got.Hit {
		if got.Block == 0 || d.seen[got.Block] || slices.ContainsFunc(d.r.blocks, func(x *refBlock) bool {
			return x.block != 0 && x.block.Index() == got.Block.Index()
		}) {
			d.Fatalf("new block %x is not new", got.Block)
		}
		d.seen[got.Block] = true
		want.Block, b.block = got.Block, got.Block
	}
	want.Route = got.Route // the reference knows no layouts
	if got != want {
		d.Fatalf("request %+v: decision %+v, want %+v", req, got, want)
	}
	d.decisions, d.open = append(d.decisions, got), append(d.open, b)
}

// settle commits or aborts one open decision, any of them.
func (d *duel) settle(commit bool) {
	if len(d.decisions) == 0 {
		return
	}
	i := d.next() % len(d.decisions)
	decision, b := d.decisions[i], d.open[i]
	d.decisions, d.open = slices.Delete(d.decisions, i, i+1), slices.Delete(d.open, i, i+1)
	if commit {
		d.p.Commit(decision)
		d.r.commit(b, decision)
	} else {
		d.p.Abort(decision)
		d.r.abort(b)
	}
}

func (d *duel) setLimit() {
	limits := d.p.Limits()
	if len(limits) == 0 {
		return
	}
	name := limits[d.next()%len(limits)].Name
	value, time := values[name][d.next()%len(values[name])], d.clock()
	want := d.r.setLimit(name, value, time)
	got, err := d.p.SetLimit(name, value, time, nil)
	if err != nil {
		d.Fatal(err)
	}
	d.same(name+"="+value, got, want)
}

func (d *duel) expire() {
	time := d.clock()
	want, due := d.r.expire(time)
	got, next := d.p.Expire(time, nil)
	d.same("expire", got, want)
	if next != due {
		d.Fatalf("expire at %d is due at %d, want %d", time, next, due)
	}
}

func (d *duel) dropClass() {
	c := Class(1 + d.next()%3)
	got, want := d.p.DropClass(c, nil), d.r.dropClass(c)
	byBlock := func(a, b Eviction) int { return cmp.Compare(a.Block, b.Block) }
	slices.SortFunc(got, byBlock)
	slices.SortFunc(want, byBlock)
	d.same("drop class", got, want)
}

func (d *duel) step() {
	switch op := d.next() % 64; {
	case op < 18:
		d.decide()
	case op < 33:
		d.settle(op != 32)
	case op < 49:
		b, busy, time := d.some(), d.next()%4 == 0, d.clock()
		d.same("free", d.p.Free(b, busy, time, nil), d.r.free(b, busy, time))
	case op < 55:
		b, time := d.some(), d.clock()
		d.same("cooled", d.p.CoolingEnded(b, time, nil), d.r.cooled(b, time))
	case op < 57:
		b := d.some()
		d.p.Forget(b)
		d.r.forget(b)
	case op == 57:
		need := sizes[d.next()%len(sizes)] - 1
		d.same("drain", d.p.Drain(need, nil), d.r.drain(need))
	case op == 58:
		keep := sizes[d.next()%len(sizes)]
		d.same("trim", d.p.Trim(keep, nil), d.r.shrink(keep, wire.EvictTrim, d.r.owed()))
	case op == 59:
		need, idle, time := sizes[d.next()%len(sizes)]-1, int64(d.next()%2*20), d.clock()
		if time%4 == 3 {
			d.same("time release", d.p.EvictForTiming(need, nil), d.r.timeRelease(need))
			return
		}
		d.same("relieve", d.p.EvictForOthers(need, idle, time, nil), d.r.relieve(need, idle, time))
	case op < 61:
		d.setLimit()
	case op == 61:
		period := int64(d.next() % 3 * 10)
		d.p.SetIterationTime(period)
		d.r.period = period
	case op == 62:
		d.expire()
	case d.next()%32 == 0:
		d.dropClass()
	}
}

// agree compares all that a policy reports with the reference.
func (d *duel) agree() {
	if err := d.p.Validate(); err != nil {
		d.Fatal(err)
	}
	got, want := d.p.Stats(), d.r.stats()
	got.Departures[NoLayout] = 0 // the reference knows no layouts
	if got != want {
		d.Fatalf("stats are %+v,\na recount says %+v", got, want)
	}
}

func runDuel(tb testing.TB, name string, ops []byte) {
	tb.Helper()
	runDuelOf(tb, newPolicy(tb, name, ""), ops)
}

func runDuelOf(tb testing.TB, p *Pool, ops []byte) {
	tb.Helper()
	p.small, p.beyond = 0, duelBeyond // its devices and pools are all small
	d := &duel{TB: tb, p: p, r: newReference(p), seen: map[Block]bool{}, dice: dice{took: ops}}
	for d.at < len(d.took) {
		d.step()
		d.agree()
	}
}

// noise is a game to be played, the same in every run.
func noise(seed uint64, length int) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	ops := make([]byte, length)
	for i := range ops {
		ops[i] = byte(rng.Uint32())
	}
	return ops
}

// whole lists the policies that hand out whole blocks only.
func whole() (names []string) {
	for _, name := range PolicyNames() {
		if findPolicy(name).carver == nil {
			names = append(names, name)
		}
	}
	return names
}

// TestReference plays long random games; FuzzReference looks for others.
func TestReference(t *testing.T) {
	for _, name := range whole() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				runDuel(t, name, noise(seed, 5000))
			})
		}
	}
}

func FuzzReference(f *testing.F) {
	names := whole()
	for i := range names {
		f.Add(byte(i), noise(uint64(i), 400))
	}
	f.Fuzz(func(t *testing.T, policy byte, ops []byte) {
		runDuel(t, names[int(policy)%len(names)], ops[:min(len(ops), 2000)])
	})
}
