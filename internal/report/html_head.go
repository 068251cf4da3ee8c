package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
)

// htmlDiagnosis is a card.
type htmlDiagnosis struct {
	Severity, Title, Text, Tag string
	Why                        string   // of its knob
	Command                    []string // words
}

// duration of the part that the report is about, ns.
func (v *htmlView) duration() uint64 {
	r := &v.a.Run
	end := max(v.s.Time, r.Started)
	if r.Whole {
		end = max(r.Footer.EndedNS, r.Started)
	}
	length := end - r.Started
	if r.Until > 0 {
		length = min(length, uint64(r.Until))
	}
	return length - min(length, uint64(max(r.Since, 0)))
}

func (v *htmlView) facts() []htmlFact {
	h := &v.a.Run.Header
	policy := name(h.Policy)
	if former := v.s.Change.Former; len(former) > 0 {
		policy = name(strings.Join(append(slices.Clone(former), v.s.Policy), ", then "))
	}
	if h.Auto {
		policy = "auto: " + policy
	}
	facts := []htmlFact{{Name: "policy", Text: policy}}
	if d := &v.s.Device; d.Name != "" {
		text := name(d.Name)
		if d.Global > 0 {
			text += ", " + bytesText(d.Global)
		}
		if d.Driver != "" {
			text += ", driver " + name(d.Driver)
		}
		facts = append(facts, htmlFact{Name: "device", Text: text})
	}
	if h.DeviceMemory > 0 {
		facts = append(facts, htmlFact{Name: "card played", Text: bytesText(h.DeviceMemory) + " of device memory for each process"})
	}
	if h.Host != "" {
		facts = append(facts, htmlFact{Name: "host", Text: name(h.Host)})
	}
	if !h.Created.IsZero() {
		facts = append(facts, htmlFact{Name: "date", Text: h.Created.Format("2006-01-02 15:04:05 -07:00")})
	}
	if h.Attached {
		text := "attached to a program that ran already"
		if n := v.a.Run.Before; n > 0 {
			text += "; " + things(n, "buffer") + " from before attach, sizes known as far as used"
		}
		facts = append(facts, htmlFact{Name: "recorded", Text: text})
	}
	facts = append(facts, htmlFact{Name: "duration", Text: durationText(v.duration()) + v.ended()})
	facts = append(facts, v.partFacts()...)
	if limits := v.limits(); len(limits) > 0 {
		facts = append(facts, htmlFact{Name: "limits", Words: limits})
	}
	return facts
}

// ended says how the program ended, where that is known.
func (v *htmlView) ended() string {
	f := &v.a.Run.Footer
	switch {
	case !v.a.Run.Whole:
		return ""
	case f.Signal != 0:
		return fmt.Sprintf(", ended by signal %d", f.Signal)
	case f.Status >= 0:
		return fmt.Sprintf(", exit status %d", f.Status)
	}
	return ""
}

// limits are those of the run with their values for people; of a policy that this version does not know, as they were
// recorded.
func (v *htmlView) limits() []string {
	var words []string
	for i := range v.s.Limits[:min(len(v.s.Limits), htmlCards)] {
		l := &v.s.Limits[i]
		words = append(words, name(l.Name+" = "+limitValue(l)))
	}
	if len(words) > 0 || len(v.s.Change.Former) > 0 { // the header's are the first policy's
		return moreWords(words, len(v.s.Limits))
	}
	limits := v.a.Run.Header.Limits
	names := slices.Sorted(maps.Keys(limits))
	for _, limit := range names[:min(len(names), htmlCards)] {
		words = append(words, name(limit+" = "+limits[limit]))
	}
	return moreWords(words, len(names))
}

// moreWords says behind a list how many of all are not in it.
func moreWords(words []string, all int) []string {
	if left := all - len(words); left > 0 {
		words = append(words, "and "+countText(uint64(left))+" more")
	}
	return words
}

// partFacts say which part of the recording this is, and what it was made of.
func (v *htmlView) partFacts() []htmlFact {
	r := &v.a.Run
	var facts []htmlFact
	switch {
	case r.Until > 0:
		facts = append(facts, htmlFact{Name: "part", Text: partText(r.Since) + " to " + partText(r.Until) + " after the start"})
	case r.Since > 0:
		facts = append(facts, htmlFact{Name: "part", Text: "from " + partText(r.Since) + " after the start on"})
	}
	if r.Process != "" {
		facts = append(facts, htmlFact{Name: "process", Text: name(r.Process) + " only"})
	}
	if r.Tag != "" {
		facts = append(facts, htmlFact{Name: "call sites", Text: "those that match " + name(r.Tag) + "; totals are those of all"})
	}
	if n := len(r.Header.Merged); n > 0 {
		facts = append(facts, htmlFact{Name: "merged", Text: "from " + things(uint64(n), "recording")})
	}
	if r.Footer.Message != "" {
		facts = append(facts, htmlFact{Name: "message", Text: shown(r.Footer.Message, htmlTextWidth)})
	}
	return facts
}

func partText(d time.Duration) string { return durationText(uint64(max(d, 0))) }

// warnings say why figures may be too low.
func (v *htmlView) warnings() []string {
	var warnings []string
	if v.a.Damage != "" {
		warnings = append(warnings, "The recording is damaged: "+shown(v.a.Damage, htmlTextWidth))
	}
	if !v.a.Run.Whole {
		warnings = append(warnings, "The recording did not end in order: what came last may be missing.")
	}
	if r := &v.a.Run; r.Events == 0 && (r.Since > 0 || r.Until > 0) {
		warnings = append(warnings, "Nothing happened in this part.")
	}
	if v.s.Lost > 0 {
		text := things(v.s.Lost, "event") + " lost, missing from these figures"
		if v.s.LostUses > 0 {
			text += " (" + countText(v.s.LostUses) + " of them uses)"
		}
		warnings = append(warnings, text+".")
	}
	if v.s.Unknown > 0 {
		warnings = append(warnings, things(v.s.Unknown, "event")+" about objects that were never seen created.")
	}
	if h := &v.a.Run.Header; h.Scrub != "" {
		warnings = append(warnings, "Recycled blocks were filled ("+name(h.Scrub)+"): creates took longer than they would have.")
	}
	if len(v.s.Processes) == 0 {
		warnings = append(warnings, "No OpenCL call was seen.")
	}
	return warnings
}

func (v *htmlView) diagnoses() []htmlDiagnosis {
	var cards []htmlDiagnosis
	for i := range v.a.Diagnoses[:min(len(v.a.Diagnoses), htmlCards)] {
		d := &v.a.Diagnoses[i]
		card := htmlDiagnosis{Severity: severityClass(d.Severity), Title: shown(d.Title, htmlNameWidth), Text: shown(d.Text, htmlTextWidth)}
		if d.Tag != "" {
			card.Tag = name(d.Tag)
		}
		if d.Knob.Limit != "" {
			card.Command, card.Why = v.tryCommand(d.Knob.Limit, d.Knob.Value), shown(d.Knob.Why, htmlTextWidth)
		}
		cards = append(cards, card)
	}
	return cards
}

// goesOn reports whether the program may go on behind the end of the part: what is in use there may be no leak.
func (v *htmlView) goesOn() bool {
	r := &v.a.Run
	return !r.Whole || r.Footer.Cut || r.Until > 0 && r.Footer.EndedNS > r.Started && uint64(r.Until) < r.Footer.EndedNS-r.Started
}

// unsure reports whether what is listed as never released is only what is in use where the part ends: no process ended.
func (v *htmlView) unsure() bool {
	return v.goesOn() && !slices.ContainsFunc(v.s.Processes, func(p model.Process) bool { return p.State != model.Running })
}

// severityClass bounds what becomes a class in the page to what the style sheet knows.
func severityClass(s analysis.Severity) string {
	if s == analysis.Problem || s == analysis.Advice {
		return string(s)
	}
	return string(analysis.Note)
}

// watchedTiles are those of programs that were only watched.
func (v *htmlView) watchedTiles(peak uint64) []htmlTile {
	t := &v.s.Totals
	at := "at " + durationText(v.a.Peak.Time)
	if before := plain.BeforeAttach(v.s); before != nil {
		at += "; at least, for sizes from before attach are known as far as used"
	}
	return []htmlTile{
		{"peak in use", bytesText(peak), at},
		{"creates", fmt.Sprint(t.Creates), things(t.Releases, "release")},
		{"time in creates", durationText(t.DriverNS), "the probes' own time in it, some µs each"},
	}
}

func (v *htmlView) tiles() []htmlTile {
	t := &v.s.Totals
	peak := max(v.a.Peak.InUse, t.PeakInUse)
	tiles := []htmlTile{
		{"peak in use", bytesText(peak), "at " + durationText(v.a.Peak.Time) + "; " + bytesText(t.PeakReserved) + " reserved at most"},
		{"hit rate", rateText(t.HitRate(), t.Hits+t.Misses), "steady " + rateText(t.SteadyHitRate(), t.SteadyRequests) +
			"; " + things(t.Hits+t.Misses, "request")},
		{"driver time", durationText(t.DriverNS), things(t.DriverCreates, "create") + ", " + things(t.DriverReleases, "release")},
		{"time saved", "≈\u202f" + durationText(t.SavedNS), "an estimate: " + things(t.Hits, "driver create") + " avoided"},
	}
	if v.a.Run.Header.Attached {
		tiles = v.watchedTiles(peak)
	}
	var buffers, bytes uint64
	for i := range v.a.Leaks {
		buffers += v.a.Leaks[i].Buffers
		bytes += v.a.Leaks[i].Bytes
	}
	leaked := htmlTile{"leaked", "none", "every buffer was released"}
	switch {
	case v.goesOn() && t.InUse > 0 && (buffers == 0 || v.unsure()):
		leaked = htmlTile{"in use at the end", bytesText(t.InUse), "the program goes on there: it may release all of it"}
	case buffers > 0:
		leaked = htmlTile{"leaked", bytesText(bytes), things(buffers, "buffer") + " at " + things(uint64(len(v.a.Leaks)), "call site")}
	}
	return append(tiles, leaked)
}
