package advise

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// runsMax is how many runs of a program the text shows, and groupsMax how many groups of a run.
const (
	runsMax   = 8
	groupsMax = 8
)

// page is a text whose sentences have at most width columns.
type page struct {
	bytes.Buffer
	width int
}

func (p *page) writeWrapped(label, text string) { units.Wrap(&p.Buffer, p.width, label, text) }

// WriteText writes the result for people, at most width columns wide, with at most the given number of pieces of advice for
// each program, and few of its runs; a negative number shows all. The error is the writer's.
func (r *Result) WriteText(w io.Writer, most, width int) error {
	b := page{width: width}
	for _, name := range r.Empty {
		b.writeWrapped("", name+" has no records of memory, so there is nothing to advise.")
	}
	for i := range r.Programs {
		if b.Len() > 0 {
			fmt.Fprintln(&b)
		}
		r.Programs[i].writeText(&b, most)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

func (p *Program) writeText(b *page, most int) {
	fmt.Fprintf(b, "%s, %s\n", p.Name, units.Count(uint64(len(p.Runs)), "run"))
	p.writeAdvice(b, most)
	runs := p.Runs
	if most >= 0 {
		runs = runs[:min(len(runs), runsMax)]
	}
	for i := range runs {
		runs[i].writeText(b)
	}
	if left := len(p.Runs) - len(runs); left > 0 {
		fmt.Fprintf(b, "\n%s more: --max 0 shows all\n", units.Count(uint64(left), "run"))
	}
}

func (p *Program) writeAdvice(b *page, most int) {
	fmt.Fprint(b, "\nADVICE\n")
	if len(p.Advice) == 0 {
		b.writeWrapped("", p.noAdviceText())
	}
	shown, _ := units.KeepFirst(p.adviceWorthShowing(most), most)
	left := len(p.Advice) - len(shown)
	if len(shown) == 0 && left > 0 {
		fmt.Fprintln(b, "none that matters: each is below 1 % of the run's time and of the peak")
	}
	shown = merging.Reconcile(shown) // a sentence refers to no advice that is not shown
	for i := range shown {
		a := &shown[i]
		b.writeWrapped("- ", a.Verdict.String()+": "+a.Sentence)
	}
	if left > 0 {
		fmt.Fprintf(b, "%d more: --max 0 shows all\n", left)
	}
}

// worthShare is the share of the runs' time, or of the peak, that advice must concern to be shown.
const worthShare = 0.01

// adviceWorthShowing returns the advice to show, all of it for a negative number.
func (p *Program) adviceWorthShowing(most int) []merging.Advice {
	if most < 0 {
		return p.Advice
	}
	var peak, all uint64 // all: the time of the runs
	making := map[string]uint64{}
	for i := range p.Runs {
		run := &p.Runs[i]
		all, peak = all+run.NS, max(peak, run.Found.Now.Peak)
		for site, ns := range run.Making {
			making[run.Program.NameOfSite(site)] += ns
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Advice), func(a merging.Advice) bool {
		ns, bytes := a.Nanos, a.Bytes
		little := func(is, of uint64) bool { return float64(is) < worthShare*float64(of) }
		switch a.Topic {
		case merging.HeldEarly, merging.HeldLate: // which is no matter of time
			return little(bytes, peak)
		case merging.Coalesce, merging.Concat, merging.NoOpCopy: // how long their copies take is not known
			return false
		default:
			for _, site := range a.Sites {
				ns += making[site]
			}
		}
		return little(ns, all) && little(bytes, peak)
	})
}

// noAdviceText says why there is no advice. If one function creates all buffers of a program, it is a single call site.
func (p *Program) noAdviceText() string {
	if slices.ContainsFunc(p.Runs, func(r Run) bool { return len(r.Found.Reuse.Groups) > 0 }) {
		return "none: buffers could share blocks, as SHARED says, but no change was found that makes them"
	}
	fixed := func(b merging.Buffer) bool { return b.Pinned != merging.Free }
	if slices.ContainsFunc(p.Runs, func(r Run) bool { return slices.ContainsFunc(r.Program.Buffers, fixed) }) {
		return "none: no copy could be spared, and no block shared. Not tried: to share SVM, images, and memory that the program or another interface provides."
	}
	return "none: no copy could be spared, and no block shared"
}

func (r *Run) writeText(b *page) {
	who := r.Recording
	if r.PID != 0 {
		who += fmt.Sprintf(", process %d", r.PID)
	}
	fmt.Fprintln(b)
	b.writeWrapped("", "RUN "+who)
	now, then := &r.Found.Now, &r.Found.Merged
	sizes := func(name string, x, y uint64) []string {
		return []string{name, units.FormatLong(x), units.FormatLong(y)}
	}
	writeTable(b, [][]string{
		{"", "now", "merged"},
		sizes("peak", now.Peak, then.Peak),
		{"first to last step", units.Duration(now.NS), ""},
		sizes("allocated", now.Allocated, then.Allocated),
		sizes("freed", now.Freed, then.Freed),
		{"coalescings", "0", strconv.Itoa(then.Coalescings)},
		{"reuses", "0", strconv.Itoa(then.Reuses)},
		{"copies", strconv.Itoa(r.Found.Copies), strconv.Itoa(r.countRemainingCopies())},
	})
	r.writeFewestBlocks(b)
	r.writeGroups(b)
	for _, lack := range r.Lacks {
		b.writeWrapped("! ", lack)
	}
}

// writeFewestBlocks writes how few blocks would suffice.
func (r *Run) writeFewestBlocks(b *page) {
	u := r.Found.Reuse
	row := func(name string, d merging.Footprint) []string {
		return []string{name, strconv.Itoa(d.Blocks), units.FormatLong(d.Peak)}
	}
	best := "best: " + u.Method
	switch fewer := u.Best.Blocks+u.Fixed.Blocks < u.Before.Blocks; {
	case !fewer && u.Best.Peak+u.Fixed.Peak >= u.Before.Peak:
		best = "no better: " + u.Method
	case u.Best.Peak+u.Fixed.Peak > u.Before.Peak:
		best = "fewest blocks: " + u.Method
	}
	if u.Optimal {
		best += ", optimal"
	}
	plan := func(name string, d merging.Footprint) []string {
		return row(name, merging.Footprint{Blocks: d.Blocks + u.Fixed.Blocks, Peak: d.Peak + u.Fixed.Peak})
	}
	rows := [][]string{{"", "blocks", "bytes"}, row("now", u.Before), row("as shared", u.After)}
	fmt.Fprintln(b)
	b.writeWrapped("", fmt.Sprintf("BLOCKS by %s, %s", lifetimesText(u.Form), sizeRuleText(u.Max)))
	if least := u.Bound.Peak + u.Fixed.Peak; least > u.Before.Peak { // not all blocks are there at once
		writeTable(b, rows)
		b.writeWrapped("", "Blocks are all that are made, bytes the most at once. Blocks that stay to the end would need "+units.FormatLong(least)+" or more.")
		return
	}
	rows = append(rows, plan("lower bound", u.Bound))
	if u.Linear.Blocks > 0 {
		rows = append(rows, plan("linear scan", u.Linear))
	}
	writeTable(b, append(rows, plan(best, u.Best)))
	b.writeWrapped("", "Blocks are all that are made. Bytes now and as shared are the most at once, those of plans all blocks.")
}

func lifetimesText(f merging.Form) string {
	switch f {
	case merging.API:
		return "create and release"
	case merging.Uses:
		return "first and last use, in the order of the one queue"
	default:
		return "first use and completion"
	}
}

func sizeRuleText(grow bool) string {
	if grow {
		return "sizes may differ"
	}
	return "equal sizes"
}

// writeGroups writes which call sites' buffers share blocks.
func (r *Run) writeGroups(b *page) {
	groups := r.GroupsBySites()
	if len(groups) == 0 {
		return
	}
	fmt.Fprint(b, "\nSHARED\n")
	shown, left := units.KeepFirst(groups, groupsMax)
	for i := range shown {
		g := &shown[i]
		size := " of " + units.FormatLong(g.Bytes)
		if g.Blocks > 1 {
			size = fmt.Sprintf(", %s in all,", units.FormatLong(g.Bytes))
		}
		b.writeWrapped("- ", fmt.Sprintf("%s%s for %s of %s", units.Count(uint64(g.Blocks), "block"), size,
			units.Count(uint64(g.Buffers), "buffer"), strings.Join(g.Sites, "; ")))
	}
	if left > 0 {
		fmt.Fprintf(b, "%d more groups of call sites\n", left)
	}
}

// writeTable writes rows whose first column is aligned to the left and whose other columns are aligned to the right.
func writeTable(b *page, rows [][]string) {
	t := units.Table{Align: "lr", Indent: "  "}
	for _, row := range rows {
		t.Add(row...)
	}
	b.WriteString(t.String())
}
