package merging

import "slices"

// share is sites that could have one block for all their buffers, in all runs.
type share struct {
	sites   []string
	saved   uint64 // bytes that the peak of a run falls by
	count   int    // buffers that need no create of their own
	runs    int    // that have all of the sites
	grows   bool   // sizes of a site differ: the first may not be the largest
	crossed bool   // several threads use them in a run
}

// sharing is sites that are being given one block, in all runs.
type sharing struct {
	runs   []map[string]*siteRun
	loads  []*load
	limits []uint64 // of each run: its peak before
	blocks []hold   // of each run: what the sites share; no spans when it has none of them
	sites  []string
}

func beginSharing(runs []map[string]*siteRun, loads []*load) *sharing {
	g := &sharing{runs: runs, loads: loads, blocks: make([]hold, len(runs))}
	for _, l := range loads {
		g.limits = append(g.limits, l.peak())
	}
	return g
}

// take gives sites the block, too, unless that takes the peak of a run above what it was before any had it. It takes time for
// what the program held for these sites, not for that of those before.
func (g *sharing) take(sites ...string) bool {
	before := slices.Clone(g.blocks)
	fits := true
	for i := range g.runs {
		g.join(i, sites)
		fits = fits && g.loads[i].peak() <= g.limits[i]
	}
	if fits {
		g.sites = append(g.sites, sites...)
		return true
	}
	for i := range g.runs {
		g.leave(i, sites, before[i])
	}
	return false
}

// join puts the block in the place of what a run held for sites.
func (g *sharing) join(run int, sites []string) {
	block := g.blocks[run]
	for _, part := range g.parts(run, sites) {
		if block.spans == nil {
			block = part
		} else {
			block = join(block, part)
		}
		g.loads[run].add(part, -1)
	}
	g.exchange(run, block)
}

// leave undoes a join.
func (g *sharing) leave(run int, sites []string, before hold) {
	for _, part := range g.parts(run, sites) {
		g.loads[run].add(part, 1)
	}
	g.exchange(run, before)
}

// parts returns what a run held for sites.
func (g *sharing) parts(run int, sites []string) []hold {
	var parts []hold
	for _, name := range sites {
		if s := g.runs[run][name]; s != nil {
			parts = append(parts, s.holds...)
		}
	}
	return parts
}

func (g *sharing) exchange(run int, block hold) {
	g.loads[run].add(g.blocks[run], -1)
	g.loads[run].add(block, 1)
	g.blocks[run] = block
}

// accept splits a group of sites where one block for them would be held for so long that a run's peak rises. A site
// alone is a group when it creates more than once: it could keep its buffer.
func accept(runs []map[string]*siteRun, loads []*load, sites []string) []share {
	var out []share
	g := beginSharing(runs, loads)
	if g.take(sites...) { // all at once: one for fewer may be one more
		return g.end(out)
	}
	for _, site := range sites {
		if g.take(site) {
			continue
		}
		out = g.end(out)
		g = beginSharing(runs, loads)
		g.take(site)
	}
	return g.end(out)
}

// end keeps what the sites save.
func (g *sharing) end(out []share) []share {
	sh := share{sites: g.sites}
	for i, run := range g.runs {
		sh.saved = max(sh.saved, g.limits[i]-g.loads[i].peak())
		n, have, thread := 0, 0, int64(nobody)
		for _, name := range g.sites {
			if s := run[name]; s != nil {
				n += len(s.buffers)
				sh.grows = sh.grows || !s.equal
				thread = mix(thread, s.thread)
				have++
			}
		}
		sh.crossed = sh.crossed || thread == many
		sh.count += max(n-1, 0)
		if have == len(g.sites) {
			sh.runs++
		}
	}
	if sh.count == 0 {
		return out
	}
	return append(out, sh)
}
