package labtest

import (
	"math/rand/v2"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// NewTapeOfSites returns a recording of a number of events by a program that holds live buffers, once it has created that many,
// and releases them in random order. Each of its call sites requests four sizes of its own. Equal arguments give equal
// recordings.
func NewTapeOfSites(events, sites, live int) *Tape {
	rng := rand.New(rand.NewPCG(1, 2))
	p := NewTape()
	p.Records = append(make([]wire.Record, 0, events+2), p.Records...)
	held := make([]uint64, live)
	for n := uint64(1); len(p.Records) < events; n++ {
		at := rng.IntN(live)
		if held[at] != 0 {
			p.AddRelease(held[at], wire.OutcomeCached)
		}
		held[at] = n
		site := rng.IntN(sites)
		r := p.AddCreate(n, uint64(1<<12+site*3000+rng.IntN(4)*256))
		r.Tag, r.Cost = uint32(site+1), 5000
	}
	return p
}
