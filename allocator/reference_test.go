package allocator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// reference is a policy written as plainly as the contract reads: one list of blocks, scanned for every question. It
// predicts each plan with its reason, and each eviction.
type reference struct {
	policy string
	limits map[string]float64
	blocks []*refBlock
	gone   []*refBlock // evicted ones that a miss can be blamed on, the latest 1024
	closed map[Class]bool
	doomed []Block
	clock  int
}

type refBlock struct {
	block        Block
	size         uint64
	class        Class
	tag          Tag
	state        state
	hit          bool      // planned: existed before
	freed, since int       // when it was freed, and when it came into its state
	blame        wire.Miss // of a gone one; none once blamed
}

func newReference(p Policy) *reference {
	r := &reference{policy: p.Name(), limits: map[string]float64{}, closed: map[Class]bool{}}
	for _, l := range p.Limits() {
		r.limits[l.Name] = l.Value
	}
	return r
}

// grant is the size of a new block.
func (r *reference) grant(req Request) uint64 {
	switch r.policy {
	case "futhark":
		return max(req.Size, 4)
	case "pow2":
		size := uint64(1)
		for size < req.Size || size < uint64(r.limits["min_block"]) {
			size *= 2
		}
		if req.Max != 0 && size > req.Max {
			return max(req.Max, req.Size)
		}
		return size
	}
	return req.Size
}

func (r *reference) accepts(b *refBlock, req Request) bool {
	want := r.grant(req)
	switch r.policy {
	case "futhark":
		return b.size >= want && (b.size == want || float64(b.size) < r.limits["min_block"] || b.tag == req.Tag ||
			float64(b.size) < r.limits["max_waste_ratio"]*float64(want))
	case "pow2":
		return b.size == want
	}
	return false
}

// best returns the smallest acceptable block, of equal ones the one freed last.
func best(blocks []*refBlock, accept func(*refBlock) bool) (found *refBlock) {
	for _, b := range blocks {
		if accept(b) && (found == nil || b.size < found.size || b.size == found.size && b.freed > found.freed) {
			found = b
		}
	}
	return found
}

func (r *reference) in(s state, req Request) *refBlock {
	return best(r.blocks, func(b *refBlock) bool { return b.state == s && b.class == req.Class && r.accepts(b, req) })
}

// plan predicts a plan; a miss has no block number yet.
func (r *reference) plan(req Request) (Plan, *refBlock) {
	if b := r.in(cached, req); b != nil {
		b.state, b.hit = planned, true
		return Plan{Hit: true, Block: b.block, Size: b.size, Tag: req.Tag}, b
	}
	b := &refBlock{size: r.grant(req), class: req.Class, tag: req.Tag, state: planned}
	plan := Plan{Size: b.size, Reason: r.reason(req), Tag: req.Tag}
	r.blocks = append(r.blocks, b)
	return plan, b
}

func (r *reference) reason(req Request) wire.Miss {
	if r.policy == "none" {
		return wire.MissPolicy
	}
	if r.in(cooling, req) != nil {
		return wire.MissCooling
	}
	if b := best(r.gone, func(b *refBlock) bool {
		return b.blame != wire.MissNone && b.class == req.Class && r.accepts(b, req)
	}); b != nil {
		defer func() { b.blame = wire.MissNone }()
		return b.blame
	}
	free := func(accept func(*refBlock) bool) bool {
		return best(r.blocks, func(b *refBlock) bool { return b.state == cached && accept(b) }) != nil
	}
	switch {
	case free(func(b *refBlock) bool { return b.class == req.Class && b.size >= r.grant(req) }):
		return wire.MissTooWasteful
	case free(func(b *refBlock) bool { return b.class != req.Class && r.accepts(b, req) }):
		return wire.MissOtherClass
	case free(func(b *refBlock) bool { return b.class == req.Class }):
		return wire.MissTooSmall
	}
	return wire.MissCold
}

func (r *reference) find(b Block, s state) *refBlock {
	i := slices.IndexFunc(r.blocks, func(x *refBlock) bool { return x.block == b && x.state == s })
	if i < 0 {
		return nil
	}
	return r.blocks[i]
}

func (r *reference) drop(b *refBlock) {
	r.blocks = slices.DeleteFunc(r.blocks, func(x *refBlock) bool { return x == b })
}

func (r *reference) evict(b *refBlock, reason wire.Evict) Eviction {
	r.drop(b)
	blame := map[wire.Evict]wire.Miss{wire.EvictLimit: wire.MissLimit, wire.EvictDrain: wire.MissDrained, wire.EvictTrim: wire.MissDrained}[reason]
	if blame != wire.MissNone {
		r.clock++
		r.gone = append(r.gone, &refBlock{size: b.size, class: b.class, tag: b.tag, blame: blame, freed: r.clock})
		r.gone = r.gone[max(0, len(r.gone)-1024):]
	}
	return Eviction{b.block, b.size, b.tag, reason}
}

// oldest returns the block that has been in a state longest.
func (r *reference) oldest(s state) (found *refBlock) {
	for _, b := range r.blocks {
		if b.state == s && (found == nil || b.since < found.since) {
			found = b
		}
	}
	return found
}

func (r *reference) cachedBytes() (sum uint64) {
	for _, b := range r.blocks {
		if b.state == cached {
			sum += b.size
		}
	}
	return sum
}

// owed returns what an earlier Abort could not report.
func (r *reference) owed() (out []Eviction) {
	for _, block := range r.doomed {
		if b := r.find(block, doomed); b != nil {
			reason := wire.EvictLimit
			if r.closed[b.class] {
				reason = wire.EvictContext
			}
			out = append(out, r.evict(b, reason))
		}
	}
	r.doomed = nil
	return out
}

func (r *reference) shrink(keep uint64, reason wire.Evict) (out []Eviction) {
	for r.cachedBytes() > keep {
		out = append(out, r.evict(r.oldest(cached), reason))
	}
	return out
}

func (r *reference) cap() uint64 { return uint64(r.limits["max_cached_bytes"]) }

func (r *reference) enter(b *refBlock, s state) {
	r.clock++
	b.state, b.since = s, r.clock
}

func (r *reference) store(b *refBlock) []Eviction {
	if b.size > r.cap() {
		return []Eviction{r.evict(b, wire.EvictLimit)}
	}
	r.enter(b, cached)
	return r.shrink(r.cap(), wire.EvictLimit)
}

func (r *reference) abort(b *refBlock) {
	switch {
	case !b.hit:
		r.drop(b)
	case r.closed[b.class] || r.cachedBytes()+b.size > r.cap():
		b.state = doomed
		r.doomed = append(r.doomed, b.block)
	default:
		r.enter(b, cached)
	}
}

func (r *reference) free(block Block, busy bool) []Eviction {
	out := r.owed()
	b := r.find(block, inUse)
	if b == nil {
		return out
	}
	r.clock++
	b.freed = r.clock
	switch {
	case r.policy == "none":
		return append(out, r.evict(b, wire.EvictPolicy))
	case r.closed[b.class]:
		return append(out, r.evict(b, wire.EvictContext))
	case busy:
		r.enter(b, cooling)
		return out
	}
	return append(out, r.store(b)...)
}

func (r *reference) cooled(block Block) []Eviction {
	out := r.owed()
	if b := r.find(block, cooling); b != nil {
		out = append(out, r.store(b)...)
	}
	return out
}

func (r *reference) drain(need uint64) []Eviction {
	out := r.owed()
	given := uint64(0)
	for b := r.oldest(cached); b != nil && given < max(need, 1); b = r.oldest(cached) {
		given += b.size
		out = append(out, r.evict(b, wire.EvictDrain))
	}
	if given > 0 {
		return out
	}
	for b := r.oldest(cooling); b != nil; b = r.oldest(cooling) {
		out = append(out, r.evict(b, wire.EvictDrain))
	}
	return out
}

func (r *reference) dropClass(c Class) []Eviction {
	out := r.owed()
	r.closed[c] = true
	for _, b := range slices.Clone(r.blocks) {
		if b.class == c && (b.state == cached || b.state == cooling) {
			out = append(out, r.evict(b, wire.EvictContext))
		}
	}
	for _, b := range r.gone {
		if b.class == c {
			b.blame = wire.MissNone
		}
	}
	return out
}

// duel runs a policy and the reference side by side.
type duel struct {
	testing.TB
	p     Policy
	r     *reference
	plans []Plan
	open  []*refBlock
	seen  map[Block]bool // ever created
	took  []byte
	at    int
}

func (d *duel) next() int {
	if d.at >= len(d.took) {
		return 0
	}
	d.at++
	return int(d.took[d.at-1])
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

var sizes = [...]uint64{1, 3, 4, 5, 64, 100, 1000, 1024, 1500, 2048, 4095, 4096, 5000, 8192, 9999, 1 << 20, 1<<20 + 1, 3 << 20}

func (d *duel) plan() {
	req := Request{Size: sizes[d.next()%len(sizes)], Class: Class(1 + d.next()%3), Tag: Tag(d.next() % 3)}
	if d.next()%4 == 0 {
		req.Max = max(req.Size, 1500)
	}
	owed := d.r.owed()
	want, b := d.r.plan(req)
	got, evicted := d.p.Plan(req, nil)
	d.same("plan", evicted, owed)
	if !got.Hit {
		if got.Block == 0 || d.seen[got.Block] || slices.ContainsFunc(d.r.blocks, func(x *refBlock) bool {
			return x.block != 0 && x.block.Index() == got.Block.Index()
		}) {
			d.Fatalf("new block %x is not new", got.Block)
		}
		d.seen[got.Block] = true
		want.Block, b.block = got.Block, got.Block
	}
	if got != want {
		d.Fatalf("request %+v: plan %+v, want %+v", req, got, want)
	}
	d.plans, d.open = append(d.plans, got), append(d.open, b)
}

// settle commits or aborts one open plan.
func (d *duel) settle(commit bool) {
	if len(d.plans) == 0 {
		return
	}
	i := d.next() % len(d.plans)
	plan, b := d.plans[i], d.open[i]
	d.plans, d.open = slices.Delete(d.plans, i, i+1), slices.Delete(d.open, i, i+1)
	if !commit {
		d.p.Abort(plan)
		d.r.abort(b)
		return
	}
	d.p.Commit(plan)
	b.state, b.tag = inUse, plan.Tag
}

func (d *duel) setLimit() {
	limits := d.p.Limits()
	if len(limits) == 0 {
		return
	}
	l := limits[d.next()%len(limits)]
	value := map[string][]float64{
		"max_cached_bytes": {0, 1000, 5000, 1 << 20, 4 << 20, 1 << 40},
		"max_waste_ratio":  {1, 1.1, 2, 10},
		"min_block":        {1, 4, 100, 4096},
	}[l.Name]
	v := value[d.next()%len(value)]
	d.r.limits[l.Name] = v
	want := append(d.r.owed(), d.r.shrink(d.r.cap(), wire.EvictLimit)...)
	got, err := d.p.SetLimit(l.Name, number(v), 0, nil)
	if err != nil {
		d.Fatal(err)
	}
	d.same("set limit", got, want)
}

func (d *duel) step() {
	switch op := d.next() % 32; {
	case op < 9:
		d.plan()
	case op < 16:
		d.settle(op != 15)
	case op < 24:
		b, busy := d.some(), d.next()%4 == 0
		d.same("free", d.p.Free(b, busy, 0, nil), d.r.free(b, busy))
	case op < 27:
		b := d.some()
		d.same("cooled", d.p.Cooled(b, 0, nil), d.r.cooled(b))
	case op == 27:
		b := d.some()
		d.p.Forget(b)
		for _, s := range []state{inUse, cooling} {
			if x := d.r.find(b, s); x != nil {
				d.r.drop(x)
			}
		}
	case op == 28:
		need := sizes[d.next()%len(sizes)] - 1
		d.same("drain", d.p.Drain(need, nil), d.r.drain(need))
	case op == 29:
		keep := sizes[d.next()%len(sizes)]
		want := append(d.r.owed(), d.r.shrink(keep, wire.EvictTrim)...)
		d.same("trim", d.p.Trim(keep, nil), want)
	case op == 30:
		d.setLimit()
	case d.next()%32 == 0:
		c := Class(1 + d.next()%3)
		got, want := d.p.DropClass(c, nil), d.r.dropClass(c)
		byBlock := func(a, b Eviction) int { return cmp.Compare(a.Block, b.Block) }
		slices.SortFunc(got, byBlock)
		slices.SortFunc(want, byBlock)
		d.same("drop class", got, want)
	}
}

func runDuel(tb testing.TB, name string, ops []byte) {
	tb.Helper()
	p, err := New(name, nil)
	if err != nil {
		tb.Fatal(err)
	}
	d := &duel{TB: tb, p: p, r: newReference(p), seen: map[Block]bool{}, took: ops}
	for d.at < len(d.took) {
		d.step()
		if err := p.Validate(); err != nil {
			tb.Fatal(err)
		}
		if got, want := p.Stats().BytesCached, d.r.cachedBytes(); got != want {
			tb.Fatalf("%d bytes cached, want %d", got, want)
		}
	}
}

// TestReference plays long random games; FuzzReference looks for others.
func TestReference(t *testing.T) {
	for _, name := range Names() {
		for seed := range uint64(60) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				ops := make([]byte, 3000)
				for i := range ops {
					ops[i] = byte(rng.Uint32())
				}
				runDuel(t, name, ops)
			})
		}
	}
}

func FuzzReference(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 9, 0, 16, 0, 1, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		ops = ops[:min(len(ops), 2000)]
		for _, name := range Names() {
			runDuel(t, name, ops)
		}
	})
}
