package merging

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInterferenceStepByStep compares interference with a count at each step.
func TestInterferenceStepByStep(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := randomProgram(rng, 2)
		a, err := Analyse(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []Form{API, Completion, Uses} {
			l := a.Lifetimes(form)
			live := make([][]bool, len(p.Buffers))
			for i := range p.Buffers {
				live[i] = a.naive(form, i)
			}
			for x := range p.Buffers {
				for y := range x {
					want := false
					for s := range live[x] {
						want = want || live[x][s] && live[y][s]
					}
					if haveOverlap(l.Spans[x], l.Spans[y]) != want || haveOverlap(l.Spans[y], l.Spans[x]) != want {
						t.Fatalf("seed %d, %s: %d and %d: interfere %v, want %v", seed, form, y, x, !want, want)
					}
				}
			}
		}
	}
}

// naive returns for each step whether a buffer is live: by the definition, from the contents.
func (a *Analysis) naive(form Form, buffer int) []bool {
	live := make([]bool, len(a.Program.Steps)+1)
	life := &a.Lives[buffer]
	for s := range live {
		if !a.isRoot(buffer) {
			continue
		}
		if form == API {
			live[s] = life.Created <= s && s < life.End
			continue
		}
		for _, c := range life.Contents {
			live[s] = live[s] || c.First <= s && (s <= c.Last || form == Completion && s < c.Done)
		}
	}
	return live
}

// TestContentsAreWhatReadsNeed goes back from each step: a byte is needed if it is read before it is overwritten, and
// then its buffer is live.
func TestContentsAreWhatReadsNeed(t *testing.T) {
	gaps := 0
	for seed := range uint64(2000) {
		p := randomProgram(rand.New(rand.NewPCG(seed, 3)), 1)
		a, err := Analyse(p)
		if err != nil {
			t.Fatal(err)
		}
		for root := range p.Buffers {
			live := a.naive(Uses, root)
			needed := make([]bool, p.Buffers[root].Size)
			touches := a.touchesOf(root)
			for i := len(touches) - 1; i > 0; i-- {
				for b := touches[i].lo; b < touches[i].hi; b++ {
					needed[b] = touches[i].reads || needed[b] && !touches[i].certain
				}
				for s := touches[i-1].step + 1; s < touches[i].step; s++ {
					for b := range needed {
						if needed[b] && !live[s] && a.defined(root, b, i) {
							t.Fatalf("seed %d: byte %d of buffer %d is needed at step %d, where it is not live", seed, b, root, s)
						}
					}
					if !live[s] {
						gaps++
					}
				}
			}
		}
	}
	if gaps < 100 {
		t.Errorf("%d steps between contents: too few to tell", gaps)
	}
}

// defined reports whether a byte was written before a touch.
func (a *Analysis) defined(root, b, before int) bool {
	for _, t := range a.touchesOf(root)[:before] {
		if t.writes && t.lo <= uint64(b) && uint64(b) < t.hi {
			return true
		}
	}
	return false
}

func randomProblem(rng *rand.Rand, n int) *Problem {
	p := &Problem{Max: rng.IntN(2) == 0}
	graph := rng.IntN(2) == 0
	for i := range n {
		b := Block{Size: uint64(1 + rng.IntN(4)), Class: uint32(rng.IntN(5) / 4), Created: rng.IntN(8)}
		b.Known = rng.IntN(b.Created + 1)
		b.Fixed = rng.IntN(8) == 0
		for at := rng.IntN(6); at < 12 && len(b.Spans) < 2; at += 2 + rng.IntN(5) {
			to := at + 1 + rng.IntN(4)
			b.Spans = append(b.Spans, Span{at, to})
			at = to
		}
		p.Blocks = append(p.Blocks, b)
		if graph {
			p.Edges = append(p.Edges, map[int]bool{})
			for j := range i {
				if rng.IntN(3) == 0 {
					p.Edges[i][j], p.Edges[j][i] = true, true
				}
			}
		}
	}
	return p
}

// TestGroupingsAreValidAndTheBestIsExhaustive tries all partitions.
func TestGroupingsAreValidAndTheBestIsExhaustive(t *testing.T) {
	beaten := 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 4))
		p := randomProblem(rng, 2+rng.IntN(6))
		linear, _ := p.GroupLinearly()
		colour, _ := p.GroupByColouring()
		plans := []*Grouping{linear, colour}
		if p.Edges == nil {
			plans = append(plans, p.GroupBestFit())
		}
		for _, byCount := range []bool{false, true} {
			best := p.FindBestGrouping(Bound{}, byCount)
			plans = append(plans, best)
			want := exhaustive(p, byCount)
			if isBetterGrouping(want, best, byCount) || isBetterGrouping(best, want, byCount) || !best.Optimal {
				t.Fatalf("seed %d, by count %v: %+v, want %+v\n%+v", seed, byCount, best, want, p)
			}
			if byCount && len(best.Groups) < len(linear.Groups) {
				beaten++
			}
		}
		for _, plan := range plans {
			if found := p.FindConflicts(plan); len(found) > 0 {
				t.Fatalf("seed %d: %s: %v in %+v\n%+v", seed, plan.Method, found, plan, p)
			}
		}
	}
	if beaten < 5 {
		t.Errorf("the linear scan was beaten %d times: too few to tell", beaten)
	}
}

func exhaustive(p *Problem, byCount bool) *Grouping {
	var best *Grouping
	var groups [][]int
	var place func(x int)
	place = func(x int) {
		if x == len(p.Blocks) {
			plan := &Grouping{Groups: groups}
			for _, g := range groups {
				var most uint64
				for _, m := range g {
					most = max(most, p.Blocks[m].Size)
				}
				plan.Bytes += most
			}
			if !slices.ContainsFunc(groups, p.isNaivelyWrong) && (best == nil || isBetterGrouping(plan, best, byCount)) {
				kept := *plan
				kept.Groups = append([][]int(nil), groups...)
				best = &kept
			}
			return
		}
		for i := range groups {
			old := groups[i]
			groups[i] = append(append([]int(nil), old...), x)
			place(x + 1)
			groups[i] = old
		}
		groups = append(groups, []int{x})
		place(x + 1)
		groups = groups[:len(groups)-1]
	}
	place(0)
	return best
}

// isNaivelyWrong reports whether members cannot share a block: when its first member is created, the block gets the size of a member that is
// known then, and all of them must fit.
func (p *Problem) isNaivelyWrong(members []int) bool {
	head := slices.MinFunc(members, p.compareByCreation)
	first, largest := p.Blocks[head], uint64(0)
	for i, x := range members {
		b := p.Blocks[x]
		if largest = max(largest, b.Size); b.Class != first.Class || x != head && b.Fixed || !p.Max && b.Size != first.Size {
			return true
		}
		if slices.ContainsFunc(members[:i], func(y int) bool { return p.blocksInterfere(x, y) }) {
			return true
		}
	}
	return !slices.ContainsFunc(members, func(x int) bool {
		return p.Blocks[x].Size == largest && (x == head || !first.Fixed && p.Blocks[x].Known <= first.Created)
	})
}

// TestOneBlockServesAllWhereOneSizeIsKnown: a block that was made for a large buffer serves later ones of that size, whenever their size is
// known.
func TestOneBlockServesAllWhereOneSizeIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		known []int // of the large buffers, the second, fourth and so on, each created twice as late as its number
		want  int
	}{
		"all from the start": {[]int{0, 0, 0}, 1},
		"one from the start": {[]int{0, 3, 5}, 1},
		"none":               {[]int{1, 3, 5}, 2},
	} {
		p := &Problem{Max: true}
		for i, known := range c.known {
			at := 2 * i
			p.Blocks = append(p.Blocks, Block{Size: 16, Created: at, Known: at, Spans: []Span{{at, at + 1}}},
				Block{Size: 32, Created: at + 1, Known: known, Spans: []Span{{at + 1, at + 2}}})
		}
		best := p.FindBestGrouping(Bound{}, false)
		if len(best.Groups) != c.want || !best.Optimal || len(p.FindConflicts(best)) > 0 || exhaustive(p, false).Bytes != best.Bytes {
			t.Errorf("%s: %+v, want %d blocks", name, best, c.want)
		}
	}
}

// TestCheckAgainstNaiveCheck compares both on random groupings, most of them wrong.
func TestCheckAgainstNaiveCheck(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := randomProblem(rng, 2+rng.IntN(8))
		plan := &Grouping{Groups: make([][]int, 3)}
		wrong := false
		for x := range p.Blocks {
			g := rng.IntN(3)
			for _, y := range plan.Groups[g] {
				wrong = wrong || p.blocksInterfere(x, y)
			}
			plan.Groups[g] = append(plan.Groups[g], x)
		}
		found := false
		for _, c := range p.FindConflicts(plan) {
			found = found || c.Why == "interfere"
		}
		if found != wrong {
			t.Fatalf("seed %d: found %v, want %v: %v in %+v", seed, found, wrong, plan.Groups, p)
		}
	}
}

// TestChoiceIsTheBestOfAll tries all sets of copies that hold, each no further up its chain than possible.
func TestChoiceIsTheBestOfAll(t *testing.T) {
	chains := 0
	for seed := range uint64(5000) {
		p := randomProgram(rand.New(rand.NewPCG(seed, 6)), 1)
		a, err := Analyse(p)
		if err != nil {
			t.Fatal(err)
		}
		copies := a.CheckCopies()
		k := &checker{Analysis: a}
		var able []*Copy
		up := map[*Copy]*Copy{}
		var got uint64
		for i := range copies {
			if c := &copies[i]; c.MeetsConditions() {
				able = append(able, c)
				if c.Taken {
					got += k.savedBytes(c)
				}
			}
		}
		for _, c := range able {
			for _, next := range able {
				if next.Source == c.Destination && next.sourceContent == c.destinationContent && next.Step > c.Step {
					up[c] = next
					chains++
				}
			}
		}
		if want := bestChoice(k, able, up); got != want {
			t.Fatalf("seed %d: the choice saves %d bytes, the best %d", seed, got, want)
		}
	}
	if chains < 20 {
		t.Errorf("%d chains: too few to tell", chains)
	}
}

func bestChoice(k *checker, able []*Copy, up map[*Copy]*Copy) uint64 {
	var best uint64
	for set := range 1 << len(able) {
		taken := map[*Copy]bool{}
		var sum uint64
		for i, c := range able {
			if set>>i&1 == 1 {
				taken[c] = true
				sum += k.savedBytes(c)
			}
		}
		ok := true
		for c := range taken {
			run := 0
			for at := c; at != nil && taken[at]; at = up[at] {
				run++
			}
			ok = ok && run <= c.reach
		}
		if ok {
			best = max(best, sum)
		}
	}
	return best
}
