package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// settingText writes a setting so that --set and a configuration take it back: "max_part=1M".
func settingText(policy string, s allocator.Setting) (name, value string) {
	changed, err := allocator.New(policy, []allocator.Setting{s})
	if err == nil {
		for _, l := range changed.Limits() {
			if l.Name == s.Name {
				return s.Name, valueText(&l)
			}
		}
	}
	return s.Name, s.Value
}

// configurationText writes a configuration for people: "slab max_part=1M".
func configurationText(c *lab.Configuration) string {
	words := []string{c.Policy}
	for _, s := range c.Settings {
		name, value := settingText(c.Policy, s)
		words = append(words, name+"="+value)
	}
	return strings.Join(words, " ")
}

// flagsText writes a configuration as flags.
func flagsText(c *lab.Configuration) string {
	text := "--policy " + c.Policy
	for _, s := range c.Settings {
		name, value := settingText(c.Policy, s)
		text += " --set " + name + "=" + value
	}
	return text
}

// writeConfiguration writes what is recommended in TOML: the policy, and a table of limits that differ from its defaults.
func (t *tuner) writeConfiguration(w io.Writer) error {
	best := t.result.Recommended
	var b strings.Builder
	fmt.Fprintf(&b, "# gpumemtop tune, of %s: %s in the driver by replay, %s without a pool\n", plain.Clean(t.what),
		duration(best.DriverNS), duration(t.result.None.DriverNS))
	fmt.Fprintf(&b, "policy = %q\n", best.Configuration.Policy)
	for i, s := range best.Configuration.Settings {
		if i == 0 {
			b.WriteString("\n[set]\n")
		}
		name, value := settingText(best.Configuration.Policy, s)
		fmt.Fprintf(&b, "%s = %q\n", name, value)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// write writes the file that is wanted, and what was found.
func (t *tuner) write(w io.Writer) error {
	if err := t.save(); err != nil {
		return err
	}
	if t.config.tuneFormat == "json" {
		return t.writeJSON(w)
	}
	text := &prose{width: columns(w)}
	t.writeTable(text)
	t.writeRecommended(text)
	t.writeBound(text)
	t.writeFolds(text)
	t.writeMeasured(text)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// prose is a text with paragraphs as wide as the terminal.
type prose struct {
	strings.Builder
	width int
}

// paragraph writes one; all lines but the first are indented.
func (p *prose) paragraph(format string, a ...any) {
	writeFrom(&p.Builder, fmt.Sprintf(format, a...), 0, "  ", p.width)
}

// writeTable writes the front, the fastest first, and what it is compared with.
func (t *tuner) writeTable(b *prose) {
	r := t.result
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tDRIVER\tPEAK RESERVED\tHIT RATE\tREGRET\tCONFIGURATION")
	row := func(mark string, p *tune.Point, note string) {
		ns, share := r.Regret(p)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s (%.1f %%)\t%s%s\n", mark, duration(p.DriverNS), size.FormatLong(p.PeakReserved),
			plain.Percent(p.HitRate(), p.Requests), duration(ns), 100*share, configurationText(&p.Configuration), note)
	}
	for i := range r.Front {
		mark := ""
		if r.Front[i].Configuration.String() == r.Recommended.Configuration.String() {
			mark = "*"
		}
		row(mark, &r.Front[i], t.noteOf(&r.Front[i]))
	}
	others := []*tune.Point{&r.None}
	if r.Present != nil && r.Present.Configuration.String() != r.None.Configuration.String() {
		others = []*tune.Point{r.Present, &r.None}
	}
	for _, p := range others {
		if !slices.ContainsFunc(r.Front, func(q tune.Point) bool { return q.Configuration.String() == p.Configuration.String() }) {
			row("", p, t.noteOf(p))
		}
	}
	_ = table.Flush() // to memory
	how := map[tune.Ending]string{
		tune.Enough:    "as many as were asked for",
		tune.Exhausted: "all there are",
		tune.Cut:       "as many as there was time for",
	}[r.Ending]
	b.paragraph("Of %d configurations, %s, these are the front: none is better both in time and in memory. %s", len(r.Points), how, t.source())
}

// noteOf says what a configuration is besides.
func (t *tuner) noteOf(p *tune.Point) string {
	switch {
	case t.result.Present != nil && p.Configuration.String() == t.result.Present.Configuration.String():
		return ", in use now"
	case p.Configuration.Policy == "none":
		return ", no pool"
	}
	return ""
}

// source says where times come from.
func (t *tuner) source() string {
	text := "Times are simulated, by what the driver took in the recording"
	switch p := t.result.Present; {
	case t.device != "":
		text = "Times are simulated, by the costs of " + plain.Clean(t.device)
	case t.learned:
		text = "Times are simulated, by what the driver took without a pool"
	case p != nil && p.Configuration.Policy != "none":
		text += " (with a pool few creates are timed; --policy none or --device-cost tell more)"
	}
	if ns := t.result.PartNS; ns > 0 {
		text += fmt.Sprintf("; what a part of a slab costs is not known there, and assumed to be %s", duration(ns))
	}
	return text + "."
}

func (t *tuner) writeRecommended(b *prose) {
	r := t.result
	best := r.Recommended
	fmt.Fprintf(b, "\nrecommended: %s\n", flagsText(&best.Configuration))
	b.WriteString("  ")
	why := map[tune.Reason]string{
		tune.Close: "It saves nearly as much time as any, with at most a quarter more memory than without a pool",
		tune.Knee:  "More memory would gain little time, and less would cost much",
		tune.Fits:  "It saves nearly as much time as any within --max-memory",
	}[r.Reason]
	if r.Reason == tune.Vain {
		b.paragraph("Nothing that was tried%s takes less time than no pool, %s.", t.within(), duration(r.None.DriverNS))
	} else {
		b.paragraph("%s: %s in the driver instead of %s without a pool, with %.2f times its memory.", why,
			duration(best.DriverNS), duration(r.None.DriverNS), float64(best.PeakReserved)/float64(max(r.None.PeakReserved, 1)))
	}
	if p := r.Present; p != nil {
		if p.Configuration.String() == best.Configuration.String() {
			b.WriteString("  That is what is in use now.\n")
		} else {
			b.WriteString("  ")
			b.paragraph("What is in use now, %s, takes %s and %s.", configurationText(&p.Configuration), duration(p.DriverNS),
				size.FormatLong(p.PeakReserved))
		}
	}
	if t.config.write != "" {
		fmt.Fprintf(b, "  It is written to %s.\n", plain.Clean(t.config.write))
	}
}

// within names the bound that there is to memory.
func (t *tuner) within() string {
	if t.options.MaxMemory == 0 {
		return ""
	}
	return " within --max-memory"
}

func (t *tuner) writeBound(b *prose) {
	r := t.result
	c := &r.Recommended.Configuration
	which := "first"
	if r.BoundOf(c) != r.Bound.Whole {
		which = "second"
	}
	more := "no more than the " + which
	if ns, share := r.Regret(r.Recommended); ns >= 0.5 {
		more = fmt.Sprintf("%s more than the %s, %.1f %% of what could be saved", duration(ns), which, 100*share)
	}
	b.paragraph("regret: even a policy that knew the future would take at least %s where each buffer has a block of its own, %s where buffers "+
		"are parts of slabs, and reserve at least %s. %s takes %s.", duration(r.Bound.Whole), duration(r.Bound.Carved),
		size.FormatLong(r.Bound.Peak), configurationText(c), more)
}

func (t *tuner) writeFolds(b *prose) {
	if len(t.folds) == 0 {
		why := "there is too little in what was recorded"
		if t.stopped {
			why = "it was interrupted"
		}
		b.paragraph("cross-validation: not done, for %s.", why)
		return
	}
	bad := 0
	for i := range t.folds {
		f := &t.folds[i]
		takes := func(p *tune.Point) string { return duration(p.DriverNS) + " and " + size.FormatLong(p.PeakReserved) }
		same, verdict := "the same", "holds"
		if f.Chosen.Configuration.String() != f.Best.Configuration.String() {
			same = fmt.Sprintf("%s, with %s", configurationText(&f.Best.Configuration), takes(&f.Best))
		}
		if f.OverFits() {
			verdict = "OVER-FITS"
			bad++
		}
		b.paragraph("cross-validation: chosen without %s, %s takes %s there; that alone would choose %s: %s.", t.part(f.Held),
			configurationText(&f.Chosen.Configuration), takes(&f.Chosen), same, verdict)
	}
	if bad > 0 {
		b.WriteString("  ")
		b.paragraph("What was learned does not carry over (%d of %d): tune on recordings of all that the program does.", bad, len(t.folds))
	}
}

// part names what was left out of a choice.
func (t *tuner) part(held int) string {
	if len(t.tapes) == 1 {
		return [...]string{"the first half", "the second half"}[held]
	}
	return fmt.Sprintf("recording %d", held+1)
}

func (t *tuner) writeMeasured(b *prose) {
	m := t.measured
	if m == nil {
		return
	}
	change := func(before, after float64) string {
		if before <= 0 {
			return "-"
		}
		return fmt.Sprintf("%+.1f %%", 100*(after-before)/before)
	}
	before, after := &m.before, &m.after
	b.WriteString("\n")
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURED\tBEFORE\tAFTER\tCHANGE\tPREDICTED")
	fmt.Fprintf(table, "time in the driver\t%s\t%s\t%s\t%s\n", plain.Duration(before.driverNS), plain.Duration(after.driverNS),
		change(float64(before.driverNS), float64(after.driverNS)), change(m.predicted[0], m.predicted[1]))
	fmt.Fprintf(table, "peak reserved\t%s\t%s\t%s\t%s\n", size.FormatLong(before.peak), size.FormatLong(after.peak),
		change(float64(before.peak), float64(after.peak)), change(float64(t.result.Present.PeakReserved), float64(t.result.Recommended.PeakReserved)))
	fmt.Fprintf(table, "wall time\t%s\t%s\t%s\t\n", plain.Duration(before.wallNS), plain.Duration(after.wallNS),
		change(float64(before.wallNS), float64(after.wallNS)))
	_ = table.Flush() // to memory
	warning := ""
	if m.differs() {
		warning = " What was measured is far from what was predicted: trust the measurement, and repeat it."
	}
	b.paragraph("One run each: other work on the machine shows.%s", warning)
}

// duration writes simulated ns.
func duration(ns float64) string { return plain.Duration(uint64(max(ns, 0) + 0.5)) }
