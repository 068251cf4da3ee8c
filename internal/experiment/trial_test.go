package experiment

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisy is a simulated program: each block takes a nominal time, times a factor for each kind of noise.
type noisy struct {
	random   *rand.Rand
	sigma    float64 // of a block, lognormal
	tail     float64 // share of blocks with a heavy tail
	burst    float64 // chance that a noisy neighbour comes, for each block
	busy     int     // blocks that the neighbour stays
	slowdown float64 // the neighbour's factor
	drift    float64 // for each block
	step     float64 // factor of the step
	stepAt   int
	wave     float64 // amplitude of a periodic disturbance
	waveLen  float64 // blocks
	n        int
	effect   float64 // factor of Present
}

// newNoisy returns a random program in which any of the kinds of noise occur.
func newNoisy(seed uint64, effect float64) *noisy {
	r := rand.New(rand.NewPCG(seed, 7))
	p := &noisy{random: r, sigma: math.Exp(math.Log(0.003) + r.Float64()*math.Log(0.06/0.003)), effect: effect, slowdown: 1, step: 1, waveLen: 1}
	if r.IntN(2) == 0 {
		p.tail = r.Float64() * 0.15
	}
	if r.IntN(2) == 0 {
		p.burst, p.slowdown = r.Float64()*0.1, 1+r.Float64()
	}
	if r.IntN(2) == 0 {
		p.drift = (r.Float64() - 0.5) * 0.01
	}
	if r.IntN(2) == 0 {
		p.step, p.stepAt = 0.5+r.Float64(), r.IntN(200)
	}
	if r.IntN(2) == 0 {
		p.wave, p.waveLen = r.Float64()*0.2, 1.5+r.Float64()*10
	}
	return p
}

// block runs a block.
func (p *noisy) block(arm Arm) Block {
	r := p.random
	time := 1e6 * math.Exp(p.sigma*r.NormFloat64()+p.drift*float64(p.n))
	if r.Float64() < p.tail {
		time *= 1 + p.sigma*math.Pow(r.Float64(), -1.0) // Pareto, without a mean
	}
	if p.busy == 0 && r.Float64() < p.burst {
		p.busy = 1 + r.IntN(12)
	}
	if p.busy > 0 {
		p.busy--
		time *= p.slowdown
	}
	if p.n >= p.stepAt {
		time *= p.step
	}
	time *= 1 + p.wave*math.Sin(2*math.Pi*float64(p.n)/p.waveLen)
	p.n++
	if arm == Present {
		time *= p.effect
	}
	return Block{Arm: arm, Iterations: 20, LeftOut: 2, Time: time, Driver: time / 10, Bytes: 1 << 20}
}

// TestSameArms runs programs in which both arms are alike, and looks after each pair: few may claim a difference at any
// look.
func TestSameArms(t *testing.T) {
	const programs, pairs = 500, 200
	claims, driverClaims := 0, 0
	for seed := range uint64(programs) {
		p, order, trial := newNoisy(seed, 1), NewOrder(seed), NewTrial(Options{})
		claimed, driverClaimed := false, false
		for range pairs {
			trial.AddBlock(p.block(order.NextArm()))
			trial.AddBlock(p.block(order.NextArm()))
			a := trial.Answer()
			claimed = claimed || a.Certain
			driverClaimed = driverClaimed || a.Driver.Low > 0 || a.Driver.High < 0
		}
		if claimed {
			claims++
		}
		if driverClaimed {
			driverClaims++
		}
	}
	t.Logf("%d of %d claim a difference of time, %d of driver calls", claims, programs, driverClaims)
	if most := programs * 75 / 1000; claims > most || driverClaims > most {
		t.Errorf("%d of %d claim a difference of time, %d of driver calls; at most %d may", claims, programs, driverClaims, most)
	}
}

// TestKnownEffects stops each trial where it stops by itself: the interval holds the truth as often as it says.
func TestKnownEffects(t *testing.T) {
	const runs, blocksMost = 2000, 240
	seed := uint64(1000)
	for _, percent := range []float64{0, 1, 3, 10, 50} {
		for _, sign := range []float64{-1, 1} {
			held, narrow, blocks := 0, 0, 0
			for range runs / 2 {
				seed++
				p, order, trial := newNoisy(seed, 1+sign*percent/100), NewOrder(seed), NewTrial(Options{Budget: 0.2})
				var a Answer
				for a.Stop == Continue && a.Blocks < blocksMost {
					for range blocksOfQuadruple {
						trial.AddBlock(p.block(order.NextArm()))
					}
					a = trial.Answer()
				}
				if truth := sign * percent / 100; a.Low <= truth && truth <= a.High {
					held++
				}
				if a.Narrow {
					narrow++
				}
				blocks += a.Blocks
			}
			t.Logf("%+.0f %%: %d of %d hold the truth, %d are narrow, %d blocks each", sign*percent, held, runs/2, narrow, blocks/(runs/2))
			if held*100 < runs/2*93 {
				t.Errorf("%+.0f %%: %d of %d hold the truth", sign*percent, held, runs/2)
			}
		}
	}
}

// TestIsNarrowSoon: where blocks differ by 3 %, the half-width reaches 2 % after 44 pairs (88 blocks) in half of the runs,
// after 58 in nine of ten.
func TestIsNarrowSoon(t *testing.T) {
	const runs = 200
	var pairs []float64
	for seed := range uint64(runs) {
		r, order, trial := rand.New(rand.NewPCG(seed, 9)), NewOrder(seed), NewTrial(Options{Budget: 1})
		for trial.Answer().Stop == Continue {
			trial.AddBlock(Block{Arm: order.NextArm(), Iterations: 1, Time: math.Exp(0.03 * r.NormFloat64())})
		}
		if a := trial.Answer(); a.Stop != Precise || !a.Narrow || a.High-a.Low > 0.04*(1+max(0, a.Difference)) {
			t.Fatalf("stops because %v: %+v", a.Stop, a)
		}
		pairs = insertSorted(pairs, float64(trial.Answer().Pairs))
	}
	if half, most := median(pairs), pairs[runs*9/10]; half > 44 || most > 58 {
		t.Errorf("half are narrow after %v pairs, nine of ten after %v", half, most)
	}
}

// TestIsCertainSoon: where blocks differ by 3 %, nine of ten runs are certain of 10 % and more after 16 pairs, of 3 %
// after 44.
func TestIsCertainSoon(t *testing.T) {
	const runs = 200
	for effect, most := range map[float64]float64{0.03: 44, 0.1: 16, 0.5: 16} {
		var pairs []float64
		for seed := range uint64(runs) {
			r, order, trial := rand.New(rand.NewPCG(seed, 11)), NewOrder(seed), NewTrial(Options{})
			for !trial.Answer().Certain {
				b := Block{Arm: order.NextArm(), Iterations: 1, Time: math.Exp(0.03 * r.NormFloat64())}
				if b.Arm == Present {
					b.Time *= 1 - effect
				}
				trial.AddBlock(b)
			}
			pairs = insertSorted(pairs, float64(trial.Answer().Pairs))
		}
		if got := pairs[runs*9/10]; got > most {
			t.Errorf("effect %v: nine of ten are certain after %v pairs, want %v", effect, got, most)
		}
	}
}

// steady adds quadruples of blocks that take the same time in each arm.
func steady(trial *Trial, order *Order, quadruples int, present, alternative float64, change func(*Block)) {
	for range quadruples * blocksOfQuadruple {
		b := Block{Arm: order.NextArm(), Iterations: 8, LeftOut: 2, Time: present, Driver: 5, Bytes: 300}
		if b.Arm == Alternative {
			b.Time, b.Driver, b.Bytes = alternative, 25, 200
		}
		if change != nil {
			change(&b)
		}
		trial.AddBlock(b)
	}
}

func TestAnswer(t *testing.T) {
	trial, order := NewTrial(Options{Budget: 1}), NewOrder(1)
	if a := trial.Answer(); a.Looks != 0 || a.Low != -1 || a.Certain || a.Narrow || a.Cost != 0 || a.Stop != Continue {
		t.Errorf("without blocks: %+v", a)
	}
	steady(trial, order, firstLook-1, 50, 100, nil)
	if a := trial.Answer(); math.Abs(a.Difference+0.5) > 1e-9 || a.Looks != 0 || a.Certain || a.Stop != Continue {
		t.Errorf("before the first look: %+v", a)
	}
	steady(trial, order, 1, 50, 100, nil)
	a := trial.Answer()
	want := Answer{
		Present: Estimate{50, 5, 300}, Alternative: Estimate{100, 25, 200}, Driver: Interval{-20, -20, -20},
		Difference: a.Difference, Low: a.Low, High: a.High, Looks: 1, Certain: true, Narrow: true,
		Blocks: 32, Pairs: 16, Iterations: 256, Cost: 50 * 16 * 10, Stop: Precise,
	}
	if a != want || max(math.Abs(a.Difference+0.5), math.Abs(a.Low+0.5), math.Abs(a.High+0.5)) > 1e-9 {
		t.Errorf("%+v\nwant %+v", a, want)
	}
}

// TestEqualTimes: times of a coarse clock that are equal are no difference.
func TestEqualTimes(t *testing.T) {
	trial := NewTrial(Options{})
	steady(trial, NewOrder(2), 100, 100, 100, func(b *Block) { b.Driver = 5 })
	if a := trial.Answer(); a.Certain || a.Low != 0 || a.High != 0 || a.Driver != (Interval{}) || !a.Narrow {
		t.Errorf("%+v", a)
	}
}

func TestLeavesVoidQuadruplesOut(t *testing.T) {
	trial, order := NewTrial(Options{}), NewOrder(3)
	for _, spoil := range []func(*Block){
		func(b *Block) { b.Void = true },
		func(b *Block) { b.Iterations = 0 },
		func(b *Block) { b.Time = math.NaN() },
		func(b *Block) { b.Time = 0 },
		func(b *Block) { b.Arm = 1 - b.Arm },
	} {
		n := 0
		steady(trial, order, 1, 50, 100, func(b *Block) {
			if n++; n == 2 || n == 3 {
				spoil(b)
			}
		})
	}
	if a := trial.Answer(); a.Blocks != 0 {
		t.Errorf("%d blocks count", a.Blocks)
	}
	steady(trial, order, 2, 50, 100, nil)
	if a := trial.Answer(); a.Blocks != 8 || a.Iterations != 64 {
		t.Errorf("%d blocks count, want those of two quadruples", a.Blocks)
	}
}

// TestTrialStopsAtItsBudget: a trial stops when the slower arm has cost its share, a longer run lets it continue.
func TestTrialStopsAtItsBudget(t *testing.T) {
	trial, order := NewTrial(Options{Until: 1e-9}), NewOrder(4)
	elapsed := 1e4
	jitter := func(b *Block) { elapsed += 10 * b.Time; b.Time *= 1 + 0.01*math.Sin(elapsed); b.Elapsed = elapsed }
	steady(trial, order, firstLook, 50, 100, jitter)
	if a := trial.Answer(); a.Stop != OverSpent || !a.Certain {
		t.Errorf("after %v ns: stops because %v, cost %v", elapsed, a.Stop, a.Cost)
	}
	elapsed *= 100
	steady(trial, order, 1, 50, 100, jitter)
	if a := trial.Answer(); a.Stop != Continue || a.Cost < 50*16*10*0.9 {
		t.Errorf("after %v ns: stops because %v, cost %v", elapsed, a.Stop, a.Cost)
	}
	steady(trial, order, quadruplesMax, 50, 50, func(b *Block) { jitter(b); b.Elapsed = 1e12 })
	if a := trial.Answer(); a.Stop != Full || a.Pairs != 2*quadruplesMax {
		t.Errorf("stops because %v after %d pairs", a.Stop, a.Pairs)
	}
}

func BenchmarkAdd(b *testing.B) {
	trial, p, order := NewTrial(Options{}), newNoisy(1, 1), NewOrder(1)
	for b.Loop() {
		if len(trial.times) == quadruplesMax {
			trial = NewTrial(Options{})
		}
		trial.AddBlock(p.block(order.NextArm()))
	}
}

func BenchmarkAnswer(b *testing.B) {
	trial, p, order := NewTrial(Options{}), newNoisy(1, 1), NewOrder(1)
	for range 1000 {
		trial.AddBlock(p.block(order.NextArm()))
	}
	for b.Loop() {
		trial.Answer()
	}
}
