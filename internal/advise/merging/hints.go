package merging

import (
	"cmp"
	"maps"
	"slices"
)

// adviseShares plans the call sites of all runs together, without the buffers that coalescing removes.
func adviseShares(all []*evidence, o Options) ([]Advice, error) {
	var runs []map[string]*siteRun
	var loads []*load
	for _, e := range all {
		l, removed := e.lifetimesAfterCoalescing(e.form, e.copies)
		runs = append(runs, e.siteRunsByName(removed, l))
		holds := e.heldBlocks()
		load := newLoad(withoutEmptyBlocks(holds))
		for root := range removed {
			load.addBlock(holds[root], -1)
		}
		loads = append(loads, load)
	}
	leaveOutUnusedSites(runs)
	found, err := findShares(runs, loads, o.Max)
	var out []Advice
	for _, s := range found {
		advice := Advice{
			Topic: ShareBlock, Verdict: HoldsHere, Sites: s.sites, Count: s.count, Bytes: s.saved, Runs: s.runs, Run: None,
			Step: None, Grows: s.grows,
		}
		if len(s.sites) == 1 {
			advice.Topic = CreateOnce
		}
		if s.runs == len(all) && !s.severalThreads && countRecordings(all, allRuns(all)) > 1 {
			advice.Verdict = Safe
		}
		out = append(out, advice)
	}
	return append(out, adviseRotations(all, findRotations(runs, loads))...), err
}

// leaveOutUnusedSites leaves out sites whose buffers nothing uses in any run: no advice keeps what adviseHeldUnused says to do
// without.
func leaveOutUnusedSites(runs []map[string]*siteRun) {
	used := map[string]bool{}
	for _, run := range runs {
		for name, s := range run {
			used[name] = used[name] || len(s.uses) > 0
		}
	}
	for _, run := range runs {
		maps.DeleteFunc(run, func(name string, _ *siteRun) bool { return !used[name] })
	}
}

func adviseRotations(all []*evidence, found []rotation) []Advice {
	var out []Advice
	for _, r := range found {
		advice := Advice{
			Topic: KeepSeveral, Verdict: HoldsHere, Sites: []string{r.site}, Blocks: r.blocks, Count: r.saved, Runs: r.runs,
			Run: None, Step: None,
		}
		if r.same && !r.severalThreads && r.runs == len(all) && countRecordings(all, allRuns(all)) > 1 {
			advice.Verdict = Safe
		}
		out = append(out, advice)
	}
	return out
}

// bySites sums up hints about the same call sites.
type bySites struct {
	found map[[2]string]*Advice
	order [][2]string
	last  map[[2]string]int // the latest run that was counted
}

func newAdviceBySites() *bySites {
	return &bySites{found: map[[2]string]*Advice{}, last: map[[2]string]int{}}
}

func (b *bySites) countAdvice(topic Topic, run int, x, y string) *Advice {
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

func (b *bySites) allAdvice() []Advice {
	var out []Advice
	for _, key := range b.order {
		out = append(out, *b.found[key])
	}
	return out
}

// adviseInPlaceKernels finds kernels that use one buffer last, reading it, and another of the same class, and mostly of the
// same size, first, writing it. Only the kernel's source shows whether each thread reads before others write.
func adviseInPlaceKernels(all []*evidence) []Advice {
	hints := newAdviceBySites()
	odd := map[[2]string]int{} // times that such buffers were of two sizes
	for run, e := range all {
		p := e.Program
		byStep := e.firstAndLastUsesByStep()
		for step, uses := range byStep {
			if p.Steps[step].Kind != KindKernel {
				continue
			}
			for _, y := range uses.first {
				for _, x := range e.replaceableReads(step, y) {
					last := slices.Contains(uses.last, x)
					if p.Buffers[x].Size != p.Buffers[y].Size {
						if last {
							odd[[2]string{p.NameOfSite(p.Buffers[x].Site), p.NameOfSite(p.Buffers[y].Site)}]++
						}
						continue
					}
					advice := hints.countAdvice(InPlace, run, p.NameOfSite(p.Buffers[x].Site), p.NameOfSite(p.Buffers[y].Site))
					if !last { // x is used later this time
						advice.Failed = Agreement
					}
					advice.Count++
					advice.Bytes += p.Buffers[y].Size
				}
			}
		}
	}
	out := slices.DeleteFunc(hints.allAdvice(), func(a Advice) bool {
		return a.Failed != 0 || odd[[2]string{a.Sites[0], a.Sites[len(a.Sites)-1]}] > a.Count
	})
	slices.SortStableFunc(out, func(x, y Advice) int { return slices.Compare(x.Sites, y.Sites) })
	return out
}

// replaceableReads returns the buffers that a step reads and in whose place another buffer could be written.
func (e *evidence) replaceableReads(step, other int) []int {
	var out []int
	y := &e.Program.Buffers[other]
	for _, u := range e.Program.Steps[step].Uses {
		root := int(e.roots[u.Buffer].root)
		x := &e.Program.Buffers[root]
		reads := u.Reads || !u.Writes
		if root != other && reads && e.isMovable(root) && x.Class == y.Class && !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out
}

// firstAndLastUses are the buffers that a step uses last, or first.
type firstAndLastUses struct{ last, first []int }

func (e *evidence) firstAndLastUsesByStep() map[int]*firstAndLastUses {
	byStep := map[int]*firstAndLastUses{}
	usesAt := func(step int) *firstAndLastUses {
		if byStep[step] == nil {
			byStep[step] = &firstAndLastUses{}
		}
		return byStep[step]
	}
	for i := range e.Lives {
		if !e.isMovable(i) {
			continue
		}
		for _, c := range e.Lives[i].Contents {
			touches := e.touchesOf(i)
			if last := &touches[c.end-1]; last.reads && c.end-c.begin > 1 {
				usesAt(int(last.step)).last = append(usesAt(int(last.step)).last, i)
			}
			if first := &touches[c.begin]; first.writes {
				usesAt(int(first.step)).first = append(usesAt(int(first.step)).first, i)
			}
		}
	}
	return byStep
}

// adviseHeldUnused finds memory that was held at the peak but not in use. If as much is in use at one time later, holding
// less would not lower the peak, and there is no advice.
func adviseHeldUnused(all []*evidence) []Advice {
	early, late := newAdviceBySites(), newAdviceBySites()
	for run, e := range all {
		most, peak := e.Lifetimes(API).Peak()
		if used, _ := e.Lifetimes(e.form).Peak(); used >= most {
			continue
		}
		held := map[*Advice]uint64{}
		released := e.firstReleaseAfter(peak)
		for i := range e.Program.Buffers {
			l := &e.Lives[i]
			b := &e.Program.Buffers[i]
			if !e.isRoot(i) || peak < l.Created || peak >= l.End || b.Pinned == Earlier { // commands from before the recording may use it
				continue
			}
			name := e.Program.NameOfSite(b.Site)
			unused := l.First == None || l.Last == l.Created // by more than a create that copies into it
			var advice *Advice
			switch {
			case unused || released < l.First:
				advice = early.countAdvice(HeldEarly, run, name, "")
				advice.Unused = (advice.Unused || advice.Count == 0) && unused
			case l.First <= peak && peak >= l.Done:
				advice = late.countAdvice(HeldLate, run, name, "")
			default:
				continue
			}
			held[advice] += b.Size
			advice.Bytes = max(advice.Bytes, held[advice])
			advice.Count++
			advice.Verdict = HoldsHere
			if advice.Runs == len(all) && countRecordings(all, allRuns(all)) > 1 {
				advice.Verdict = Safe
			}
		}
	}
	return append(early.allAdvice(), late.allAdvice()...)
}

// Reconcile leaves out advice to hold a site's buffers for less time where other advice keeps or shares them and saves half of that
// memory, or more. What remains says that only one can be followed.
func Reconcile(list []Advice) []Advice {
	var out []Advice
	for _, held := range list {
		keeps := func(least uint64) bool {
			return slices.ContainsFunc(list, func(a Advice) bool {
				return a.isForKeeping() && a.Bytes >= least && slices.Contains(a.Sites, held.Sites[0])
			})
		}
		if held.Topic == HeldLate || held.Topic == HeldEarly && !held.Unused {
			if keeps(held.Bytes / 2) {
				continue
			}
			held.Instead = keeps(0)
			held.Sentence = held.adviceSentence()
		}
		out = append(out, held)
	}
	return out
}

// isForKeeping reports whether a program that follows the advice holds buffers for longer.
func (a *Advice) isForKeeping() bool {
	return a.Topic == ShareBlock || a.Topic == CreateOnce || a.Topic == KeepSeveral || a.Topic == WriteInto
}

// firstReleaseAfter returns the first step after another at which memory is released. A buffer that is first used before
// then would be there at the peak however late it is created.
func (e *evidence) firstReleaseAfter(step int) int {
	first := len(e.Program.Steps)
	for i := range e.Program.Buffers {
		if l := &e.Lives[i]; e.isRoot(i) && l.End > step && l.Created <= step {
			first = min(first, l.End)
		}
	}
	return first
}

// sortAdvice sorts by verdict, best first, then by bytes.
func (r *Report) sortAdvice() {
	slices.SortStableFunc(r.Advice, func(x, y Advice) int {
		return cmp.Or(cmp.Compare(y.Verdict, x.Verdict), cmp.Compare(y.Bytes, x.Bytes))
	})
}
