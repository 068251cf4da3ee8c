package main

import (
	"bytes"
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
	var b bytes.Buffer
	t.writeTable(&b)
	t.writeRecommended(&b)
	t.writeBound(&b)
	t.writeFolds(&b)
	t.writeMeasured(&b)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// writeTable writes the front, the fastest first, and what it is compared with.
func (t *tuner) writeTable(b *bytes.Buffer) {
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
	fmt.Fprintf(b, "Of %d configurations, %s, none is better both in time and in memory than those of the front. %s\n",
		len(r.Points), how, t.source())
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
	if t.result.PartCost.A > 0 {
		text += fmt.Sprintf("; what a part of a slab costs is not known there and taken for %s, as much as a create and release of nothing",
			duration(t.result.PartCost.A))
	}
	return text + "."
}

func (t *tuner) writeRecommended(b *bytes.Buffer) {
	r := t.result
	best := r.Recommended
	why := map[tune.Reason]string{
		tune.Close: "it saves nearly all that can be saved with at most a quarter more memory than without a pool",
		tune.Knee:  "more memory would gain little, less of it cost much time",
		tune.Fits:  "it saves nearly all that can be saved within --max-memory",
	}[r.Reason]
	fmt.Fprintf(b, "\nrecommended: %s\n  %s.\n  %s in the driver instead of %s without a pool, with %.2f times its memory.\n",
		flagsText(&best.Configuration), why, duration(best.DriverNS), duration(r.None.DriverNS),
		float64(best.PeakReserved)/float64(max(r.None.PeakReserved, 1)))
	if p := r.Present; p != nil {
		if p.Configuration.String() == best.Configuration.String() {
			b.WriteString("  That is what is in use now.\n")
		} else {
			fmt.Fprintf(b, "  What is in use now, %s, takes %s and %s.\n", configurationText(&p.Configuration), duration(p.DriverNS),
				size.FormatLong(p.PeakReserved))
		}
	}
	if t.config.write != "" {
		fmt.Fprintf(b, "  It is written to %s.\n", plain.Clean(t.config.write))
	}
}

func (t *tuner) writeBound(b *bytes.Buffer) {
	bound := t.result.Bound
	ns, share := t.result.Regret(t.result.Recommended)
	fmt.Fprintf(b, "regret: even with the future known, no policy could take less than %s by which each buffer has a block of its own,\n"+
		"  none at all less than %s, and none reserve less than %s. To its bound it lacks %s, %.1f %% of what could be saved.\n",
		duration(bound.Whole), duration(bound.Carved), size.FormatLong(bound.Peak), duration(ns), 100*share)
}

func (t *tuner) writeFolds(b *bytes.Buffer) {
	if len(t.folds) == 0 {
		b.WriteString("cross-validation: not done, for there is too little in the recording, or no time.\n")
		return
	}
	bad := 0
	for i := range t.folds {
		f := &t.folds[i]
		there := func(p *tune.Point) string {
			return fmt.Sprintf("%s, takes %s and %s there", configurationText(&p.Configuration), duration(p.DriverNS), size.FormatLong(p.PeakReserved))
		}
		fmt.Fprintf(b, "cross-validation: what is chosen without %s, %s", t.part(f.Held), there(&f.Chosen))
		if f.Chosen.Configuration.String() == f.Best.Configuration.String() {
			b.WriteString(", and is the choice by that alone, too")
		} else {
			fmt.Fprintf(b, "; the choice by that alone, %s", there(&f.Best))
		}
		verdict := "holds"
		if f.OverFits() {
			verdict = "OVER-FITS"
			bad++
		}
		fmt.Fprintf(b, ": %s.\n", verdict)
	}
	if bad > 0 {
		fmt.Fprintf(b, "  What was learned does not carry over (%d of %d): tune on recordings of all that the program does.\n", bad, len(t.folds))
	}
}

// part names what was left out of a choice.
func (t *tuner) part(held int) string {
	if len(t.tapes) == 1 {
		return [...]string{"the first half", "the second half"}[held]
	}
	return fmt.Sprintf("recording %d", held+1)
}

func (t *tuner) writeMeasured(b *bytes.Buffer) {
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
	b.WriteString("One run each: other work on the machine shows.")
	if m.differs() {
		b.WriteString(" What was measured is far from what was predicted: trust the measurement, and repeat it.")
	}
	b.WriteString("\n")
}

// duration writes simulated ns.
func duration(ns float64) string { return plain.Duration(uint64(max(ns, 0) + 0.5)) }
