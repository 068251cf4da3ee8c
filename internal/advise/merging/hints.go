package merging

import (
	"cmp"
	"slices"
)

// adviseShares plans the sites of all runs together, after the copies that are gone.
func adviseShares(all []*evidence, o Options) ([]Advice, error) {
	var runs []map[string]*siteRun
	var loads []*load
	for _, e := range all {
		l, gone := e.coalesced(e.form, e.copies)
		runs = append(runs, e.sites(gone, l))
		holds := e.holds()
		load := newLoad(compact(holds))
		for root := range gone {
			load.add(holds[root], -1)
		}
		loads = append(loads, load)
	}
	found, err := shares(runs, loads, o.Max)
	var out []Advice
	for _, s := range found {
		advice := Advice{
			Topic: ShareBlock, Verdict: HoldsHere, Sites: s.sites, Count: s.count, Bytes: s.saved, Runs: s.runs, Run: None,
			Step: None, Grows: s.grows,
		}
		if len(s.sites) == 1 {
			advice.Topic = CreateOnce
		}
		if s.runs == len(all) && !s.crossed && recordings(all, every(all)) > 1 {
			advice.Verdict = Safe
		}
		out = append(out, advice)
	}
	return append(out, adviseTurns(all, rotations(runs, loads))...), err
}

func adviseTurns(all []*evidence, found []rotation) []Advice {
	var out []Advice
	for _, r := range found {
		advice := Advice{
			Topic: KeepSeveral, Verdict: HoldsHere, Sites: []string{r.site}, Blocks: r.blocks, Count: r.saved, Runs: r.runs,
			Run: None, Step: None,
		}
		if r.same && !r.crossed && r.runs == len(all) && recordings(all, every(all)) > 1 {
			advice.Verdict = Safe
		}
		out = append(out, advice)
	}
	return out
}

// bySites adds up hints about the same sites.
type bySites struct {
	found map[[2]string]*Advice
	order [][2]string
	last  map[[2]string]int // run
}

func newBySites() *bySites {
	return &bySites{found: map[[2]string]*Advice{}, last: map[[2]string]int{}}
}

func (b *bySites) at(topic Topic, run int, x, y string) *Advice {
	key := [2]string{x, y}
	advice := b.found[key]
	if advice == nil {
		advice = &Advice{Topic: topic, Verdict: Hinted, Sites: []string{x}, Run: None, Step: None}
		if y != "" {
			advice.Sites = append(advice.Sites, y)
		}
		b.found[key] = advice
		b.order = append(b.order, key)
		b.last[key] = None
	}
	if b.last[key] != run {
		b.last[key] = run
		advice.Runs++
	}
	return advice
}

func (b *bySites) advice() []Advice {
	var out []Advice
	for _, key := range b.order {
		out = append(out, *b.found[key])
	}
	return out
}

// adviseInPlace finds kernels that read a buffer for the last time and write another of the same size and class for the
// first. Whether each thread reads before others write, only the kernel's source tells.
func adviseInPlace(all []*evidence) []Advice {
	hints := newBySites()
	for run, e := range all {
		p := e.Program
		ends := e.ends()
		for step, end := range ends {
			if p.Steps[step].Kind != KindKernel {
				continue
			}
			for _, y := range end.born {
				for _, x := range e.readers(step, y) {
					advice := hints.at(InPlace, run, p.Name(p.Buffers[x].Site), p.Name(p.Buffers[y].Site))
					if !slices.Contains(end.dies, x) { // not each time
						advice.Failed = Agreement
					}
					advice.Count++
					advice.Bytes += p.Buffers[y].Size
				}
			}
		}
	}
	out := slices.DeleteFunc(hints.advice(), func(a Advice) bool { return a.Failed != 0 })
	slices.SortStableFunc(out, func(x, y Advice) int { return slices.Compare(x.Sites, y.Sites) })
	return out
}

// readers returns what a step reads that could be written in the place of another buffer.
func (e *evidence) readers(step, other int) []int {
	var out []int
	y := &e.Program.Buffers[other]
	for _, u := range e.Program.Steps[step].Uses {
		root := int(e.roots[u.Buffer].root)
		x := &e.Program.Buffers[root]
		reads := u.Reads || !u.Writes
		if root != other && reads && e.movable(root) && x.Size == y.Size && x.Class == y.Class && !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out
}

// end is what a step uses for the last time, or for the first.
type end struct{ dies, born []int }

func (e *evidence) ends() map[int]*end {
	ends := map[int]*end{}
	at := func(step int) *end {
		if ends[step] == nil {
			ends[step] = &end{}
		}
		return ends[step]
	}
	for i := range e.Lives {
		if !e.movable(i) {
			continue
		}
		for _, c := range e.Lives[i].Contents {
			touches := e.touches(i)
			if last := &touches[c.end-1]; last.reads && c.end-c.begin > 1 {
				at(int(last.step)).dies = append(at(int(last.step)).dies, i)
			}
			if first := &touches[c.begin]; first.writes {
				at(int(first.step)).born = append(at(int(first.step)).born, i)
			}
		}
	}
	return ends
}

// adviseHeld finds what was held at the peak for nothing. Where as much is in use at once later, it would not help to
// hold less at that time, and there is no advice.
func adviseHeld(all []*evidence) []Advice {
	early, late := newBySites(), newBySites()
	for run, e := range all {
		most, peak := e.Lifetimes(API).Peak()
		if used, _ := e.Lifetimes(e.form).Peak(); used >= most {
			continue
		}
		held := map[*Advice]uint64{}
		released := e.releasedAfter(peak)
		for i := range e.Program.Buffers {
			l := &e.Lives[i]
			b := &e.Program.Buffers[i]
			if !e.root(i) || peak < l.Created || peak >= l.End || b.Pinned == Earlier { // commands of unknown start may use it
				continue
			}
			name := e.Program.Name(b.Site)
			var advice *Advice
			switch {
			case l.First == None || released < l.First:
				advice = early.at(HeldEarly, run, name, "")
				advice.Unused = (advice.Unused || advice.Count == 0) && l.First == None
			case l.First <= peak && peak >= l.Done:
				advice = late.at(HeldLate, run, name, "")
			default:
				continue
			}
			held[advice] += b.Size
			advice.Bytes = max(advice.Bytes, held[advice])
			advice.Count++
			advice.Verdict = HoldsHere
			if advice.Runs == len(all) && recordings(all, every(all)) > 1 {
				advice.Verdict = Safe
			}
		}
	}
	return append(early.advice(), late.advice()...)
}

// releasedAfter returns the first step behind another at which memory goes. What is first used before that is there at
// the peak however late it is created.
func (e *evidence) releasedAfter(step int) int {
	first := len(e.Program.Steps)
	for i := range e.Program.Buffers {
		if l := &e.Lives[i]; e.root(i) && l.End > step && l.Created <= step {
			first = min(first, l.End)
		}
	}
	return first
}

// sort puts the best verdict first, then the most bytes.
func (r *Report) sort() {
	slices.SortStableFunc(r.Advice, func(x, y Advice) int {
		return cmp.Or(cmp.Compare(y.Verdict, x.Verdict), cmp.Compare(y.Bytes, x.Bytes))
	})
}
