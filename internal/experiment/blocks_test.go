package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// request is one of a simulated program: ns is the time that passes until the next.
type request struct {
	size uint64
	site uint32
	ns   float64
}

// plan returns the plan after a number of requests.
func plan(n int, next func(i int) request) Plan {
	var b Blocks
	time := 1e12
	for i := range n {
		r := next(i)
		b.AddRequest(r.size, r.site, 0, time)
		time += r.ns
	}
	return b.BlockPlan()
}

// cycle returns the requests of a program with iterations of some requests.
func cycle(requests uint64, ns float64) func(int) request {
	return func(i int) request {
		place := uint64(i) % requests
		return request{size: 1000 * (place%7 + 1), site: uint32(place), ns: ns / float64(requests)}
	}
}

func TestIterationsAreBlocks(t *testing.T) {
	for _, c := range []struct {
		requests uint64
		ns       float64 // of an iteration
		after    int     // requests
		want     Plan
	}{
		{5, 10e6, 40, Plan{Requests: 5, Iterations: 1, Slices: 6}},
		{5, 3e6, 40, Plan{Requests: 5, Iterations: 1, Slices: 17}},
		{1, 100e6, 30, Plan{Requests: 1, Iterations: 1, Slices: 6}},
		{3, 300e6, 40, Plan{Requests: 3, Iterations: 1, Slices: 3}},
		{3, 5e9, 40, Plan{Requests: 3, Iterations: 1, Slices: 3}},
		{2, 10e3, 40, Plan{Requests: 2 * 157, Iterations: 157, Slices: 32}},
		{700, 1.01e6, 7 * 700, Plan{Requests: 1400, Iterations: 2, Slices: 25}},
	} {
		got := plan(c.after, cycle(c.requests, c.ns))
		if want := c.ns * float64(c.want.Iterations); math.Abs(got.Time-want) > want/1e3 {
			t.Errorf("%d requests in %v ns: a slice takes %v ns, want %v", c.requests, c.ns, got.Time, want)
		}
		if got.Time = 0; got != c.want {
			t.Errorf("%d requests in %v ns: %+v, want %+v", c.requests, c.ns, got, c.want)
		}
	}
	if p := plan(8, cycle(5, 1e6)); p.Slices != 0 || p.Reason == "" {
		t.Errorf("after 8 requests: %+v", p)
	}
}

// TestIterationsMayDiffer: a request more in some iterations, an inner loop, another beginning, pauses.
func TestIterationsMayDiffer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	extra := 0
	interrupted := func(i int) request {
		if r.IntN(150) == 0 {
			extra++
			return request{size: 77, site: 99, ns: 1000}
		}
		return cycle(5, 3e6)(i - extra)
	}
	if p := plan(20000, interrupted); p.Iterations != 1 || p.Requests != 5 {
		t.Errorf("with requests between: %+v", p)
	}
	nested := func(i int) request { return request{size: 64, site: uint32(i % 300 / 299), ns: 1e5} }
	if p := plan(20000, nested); p.Requests != 300 {
		t.Errorf("with an inner loop: %+v", p)
	}
	begins := func(i int) request {
		if i < 3000 {
			return request{size: r.Uint64N(1 << 20), site: 7, ns: 1e5}
		}
		return cycle(5, 3e6)(i)
	}
	if p := plan(3100, begins); p.Requests != 5 {
		t.Errorf("after another beginning: %+v", p)
	}
	changes := func(i int) request {
		if i < 5000 {
			return cycle(3, 1e6)(i)
		}
		return cycle(5, 3e6)(i)
	}
	if p := plan(6500, changes); p.Requests != 5 {
		t.Errorf("after another loop: %+v", p)
	}
	pauses := func(i int) request {
		q := cycle(5, 3e6)(i)
		if i%50 == 0 {
			q.ns += 10e9
		}
		return q
	}
	if p := plan(500, pauses); p.Slices != 17 {
		t.Errorf("with pauses: %+v", p)
	}
}

// randomPrograms draw requests that do not repeat; their mix does not change.
func randomPrograms(r *rand.Rand) map[string]func(int) request {
	state := 0
	return map[string]func(int) request{
		"any size": func(int) request { return request{r.Uint64N(1 << 24), uint32(r.IntN(4)), 1e4} },
		"few":      func(int) request { return request{uint64(r.IntN(3)) * 4096, 1, 1e4} },
		"rare": func(int) request {
			if r.IntN(20) == 0 {
				return request{1 << 20, 2, 1e4}
			}
			return request{4096 + r.Uint64N(2)<<12, 1, 1e4}
		},
		"in runs": func(int) request { // a state stays for 20 requests
			if r.IntN(20) == 0 {
				state = r.IntN(4)
			}
			return request{uint64(4096<<(2*state)) + r.Uint64N(2048), uint32(state), 1e4}
		},
	}
}

func TestRandomRequestsAreBlocks(t *testing.T) {
	const seeds = 50
	r := rand.New(rand.NewPCG(2, 2))
	for name, next := range randomPrograms(r) {
		measured := 0
		for range seeds {
			p := plan(mixLeast+r.IntN(5000), next)
			if p.Slices > 0 {
				measured++
			}
			if p.Slices > 0 && (p.RequestsPerBlock() < SlicesLeast*requestsOfSlice || p.Iterations == 0 && p.Requests%requestsOfSlice != 0) {
				t.Errorf("%s: %+v", name, p)
			}
		}
		t.Logf("%s: %d of %d are measured", name, measured, seeds)
		if measured < seeds*95/100 {
			t.Errorf("%s: %d of %d are measured", name, measured, seeds)
		}
	}
}

func TestSaysWhyNot(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for name, c := range map[string]struct {
		n    int
		next func(int) request
		want string
	}{
		"few":      {300, func(int) request { return request{r.Uint64(), 1, 1e4} }, "300 of 2048"},
		"grow":     {8192, func(i int) request { return request{1<<(12+i/1000) + r.Uint64N(1<<12), 1, 1e4} }, "from about 256 KiB to about 512 KiB"},
		"step":     {3072, func(i int) request { return request{4096<<(i/2048*8) + r.Uint64N(4096), 1, 1e4} }, "from about 4 KiB to about 1 MiB"},
		"sites":    {3072, func(i int) request { return request{4096 + r.Uint64N(4096), uint32(i / 2048), 1e4} }, "sizes or call sites have other shares"},
		"no bytes": {3072, func(i int) request { return request{0, r.Uint32N(5) + uint32(i/2048)*50, 1e4} }, "about 1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(c.n, c.next); p.Slices != 0 || !strings.Contains(p.Reason, c.want) {
				t.Errorf("%+v, want %q", p, c.want)
			}
		})
	}
}

// TestMixLevel: of programs whose mix does not change, about as many are rejected at a look as the level says.
func TestMixLevel(t *testing.T) {
	const windows = 20000
	r := rand.New(rand.NewPCG(4, 4))
	for name, next := range randomPrograms(r) {
		var m mix
		rejected := 0
		for i := range windows * mixWindow / 8 {
			q := next(i)
			m.addRequest(q.size, q.site)
			if i > mixLeast && i%mixWindow == 0 && m.whyNotStationary() != "" {
				rejected++
			}
		}
		t.Logf("%s: %d of %d", name, rejected, windows/8)
		if rejected > windows/8*2/100 {
			t.Errorf("%s: %d of %d are rejected", name, rejected, windows/8)
		}
	}
}

func BenchmarkBlocks(b *testing.B) {
	for name, next := range map[string]func(int) request{"repeat": cycle(50, 1e6), "random": randomPrograms(rand.New(rand.NewPCG(1, 1)))["any size"]} {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			var blocks Blocks
			for i := 0; b.Loop(); i++ {
				q := next(i)
				blocks.AddRequest(q.size, q.site, 0, float64(i))
			}
		})
	}
}
