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

// textWidth is how many columns the text has at most, mostRuns how many runs of a program it shows, mostGroups how many
// groups of a run.
const (
	textWidth  = 100
	mostRuns   = 8
	mostGroups = 8
)

// Text writes what was found for people, at most 100 columns wide, with at most n pieces of advice for each program,
// and few of its runs; a negative number shows all. The error is the writer's.
func (r *Result) Text(w io.Writer, most int) error {
	var b bytes.Buffer
	for _, name := range r.Empty {
		units.Wrap(&b, textWidth, "", name+" has no records of memory, so there is nothing to advise.")
	}
	for i := range r.Programs {
		if b.Len() > 0 {
			fmt.Fprintln(&b)
		}
		r.Programs[i].text(&b, most)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

func (p *Program) text(b *bytes.Buffer, most int) {
	fmt.Fprintf(b, "%s, %s\n", p.Name, units.Count(uint64(len(p.Runs)), "run"))
	runs := p.Runs
	if most >= 0 {
		runs = runs[:min(len(runs), mostRuns)]
	}
	for i := range runs {
		runs[i].text(b)
	}
	if left := len(p.Runs) - len(runs); left > 0 {
		fmt.Fprintf(b, "\n%s more: --max 0 shows all\n", units.Count(uint64(left), "run"))
	}
	fmt.Fprint(b, "\nADVICE\n")
	if len(p.Advice) == 0 {
		units.Wrap(b, textWidth, "", p.none())
	}
	shown, _ := units.Top(p.worthwhile(most), most)
	left := len(p.Advice) - len(shown)
	if len(shown) == 0 && left > 0 {
		fmt.Fprintln(b, "none that matters: what is held too early or too late is below 1 % of the peak")
	}
	for i := range shown {
		a := &shown[i]
		units.Wrap(b, textWidth, "- ", a.Verdict.String()+": "+a.Sentence)
	}
	if left > 0 {
		fmt.Fprintf(b, "%d more: --max 0 shows all\n", left)
	}
}

// worthShare is the part of the peak that advice about held memory alone must concern to be worth a line.
const worthShare = 0.01

// worthwhile returns the advice that is worth a line, or all of it where all is wanted.
func (p *Program) worthwhile(most int) []merging.Advice {
	var peak uint64
	for i := range p.Runs {
		peak = max(peak, p.Runs[i].Found.Now.Peak)
	}
	return slices.DeleteFunc(slices.Clone(p.Advice), func(a merging.Advice) bool {
		held := a.Topic == merging.HeldEarly || a.Topic == merging.HeldLate
		return held && most >= 0 && float64(a.Bytes) < worthShare*float64(peak)
	})
}

// none says why there is no advice. One function that makes all buffers of a program is one call site.
func (p *Program) none() string {
	if slices.ContainsFunc(p.Runs, func(r Run) bool { return len(r.Found.Reuse.Groups) > 0 }) {
		return "none: some buffers could share a block, but not all of any call site. Record with --tags stack to separate buffers that one function creates for many callers."
	}
	return "none: no copy could be spared, and no block shared"
}

func (r *Run) text(b *bytes.Buffer) {
	who := r.Recording
	if r.PID != 0 {
		who += fmt.Sprintf(", process %d", r.PID)
	}
	fmt.Fprintln(b)
	units.Wrap(b, textWidth, "", "RUN "+who)
	now, then := &r.Found.Now, &r.Found.Merged
	sizes := func(name string, x, y uint64) []string {
		return []string{name, units.FormatLong(x), units.FormatLong(y)}
	}
	table(b, [][]string{
		{"", "now", "merged"},
		sizes("peak", now.Peak, then.Peak),
		{"time", units.Duration(now.NS), units.Duration(then.NS)},
		sizes("allocated", now.Allocated, then.Allocated),
		sizes("freed", now.Freed, then.Freed),
		{"coalescings", "0", strconv.Itoa(then.Coalescings)},
		{"reuses", "0", strconv.Itoa(then.Reuses)},
		{"copies", strconv.Itoa(r.Found.Copies), strconv.Itoa(r.left())},
	})
	r.blocks(b)
	r.groups(b)
	for _, lack := range r.Lacks {
		units.Wrap(b, textWidth, "! ", lack)
	}
}

// blocks writes how few blocks would do.
func (r *Run) blocks(b *bytes.Buffer) {
	u := r.Found.Reuse
	row := func(name string, d merging.Demand) []string {
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
	plan := func(name string, d merging.Demand) []string {
		return row(name, merging.Demand{Blocks: d.Blocks + u.Fixed.Blocks, Peak: d.Peak + u.Fixed.Peak})
	}
	rows := [][]string{{"", "blocks", "bytes"}, row("now", u.Before), row("as advised", u.After), plan("lower bound", u.Bound)}
	if u.Linear.Blocks > 0 {
		rows = append(rows, plan("linear scan", u.Linear))
	}
	fmt.Fprintf(b, "\nBLOCKS by %s, %s\n", lifetimes(u.Form), sizeRule(u.Max))
	table(b, append(rows, plan(best, u.Best)))
	units.Wrap(b, textWidth, "", "Blocks are all that are made. Bytes now and as advised are the most at once, those of plans all blocks.")
}

func lifetimes(f merging.Form) string {
	switch f {
	case merging.API:
		return "create and release"
	case merging.Uses:
		return "first and last use, in the order of the one queue"
	default:
		return "first use and completion"
	}
}

func sizeRule(grow bool) string {
	if grow {
		return "sizes may differ"
	}
	return "equal sizes"
}

// groups writes which call sites' buffers share blocks.
func (r *Run) groups(b *bytes.Buffer) {
	groups := r.Groups()
	if len(groups) == 0 {
		return
	}
	fmt.Fprint(b, "\nSHARED\n")
	shown, left := units.Top(groups, mostGroups)
	for i := range shown {
		g := &shown[i]
		units.Wrap(b, textWidth, "- ", fmt.Sprintf("%s of %s for %s of %s", units.Count(uint64(g.Blocks), "block"),
			units.FormatLong(g.Bytes), units.Count(uint64(g.Buffers), "buffer"), strings.Join(g.Sites, "; ")))
	}
	if left > 0 {
		fmt.Fprintf(b, "%d more groups of call sites\n", left)
	}
}

// table writes rows whose first column is aligned to the left and whose others are aligned to the right.
func table(b *bytes.Buffer, rows [][]string) {
	t := units.Table{Align: "lr", Indent: "  "}
	for _, row := range rows {
		t.Add(row...)
	}
	b.WriteString(t.String())
}
