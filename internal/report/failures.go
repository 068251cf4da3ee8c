package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	topStatuses = 3 // in texts
	topRefused  = 3 // in the summary
)

// FailedWith counts the creates that failed with one status. A run counts at most stats.StatusesMax statuses one by one.
type FailedWith struct {
	Status wire.Status `json:"status"`
	Name   string      `json:"name"` // "CL_OUT_OF_RESOURCES"; empty when it is not known
	Count  uint64      `json:"count"`
}

// failuresMostFrequentFirst returns the most frequent status first.
func failuresMostFrequentFirst(t *stats.Totals) []FailedWith {
	list := []FailedWith{}
	for _, f := range t.FailedWith {
		if f.Count > 0 {
			list = append(list, FailedWith{wire.Status(f.Status), wire.StatusName(f.Status), f.Count})
		}
	}
	slices.SortStableFunc(list, func(a, b FailedWith) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// failedCreatesText says how many of the program's creates failed.
func failedCreatesText(t *stats.Totals) string {
	switch {
	case t.Failures == 0:
		return "0 failed"
	case t.Creates > 0:
		return fmt.Sprintf("%d of them failed", t.Failures)
	case t.Failures == 1:
		return "it failed"
	}
	return "all of them failed"
}

// createsAndReleasesText counts creates and releases, apart from those on which no pool decides: of parts of other memory, and of memory
// of another API.
func createsAndReleasesText(t *stats.Totals) string {
	text := fmt.Sprintf("%d (%s, %d never eligible", t.Creates+t.Failures, failedCreatesText(t), t.Unpooled)
	if decided := t.Hits + t.Misses + t.Alternative + t.Unpooled; t.Creates > decided {
		text += fmt.Sprintf(", %d without memory of their own", t.Creates-decided)
	}
	return text + "), " + units.Count(t.Releases, "release")
}

// failureStatusesText says with what creates failed, the most frequent first.
func failureStatusesText(t *stats.Totals) string {
	shown, _ := units.KeepFirst(failuresMostFrequentFirst(t), topStatuses)
	var texts []string
	left := t.Failures
	for _, f := range shown {
		texts = append(texts, fmt.Sprintf("%d with %s", f.Count, wire.StatusNameAndNumber(int32(f.Status))))
		left -= min(left, f.Count)
	}
	if left > 0 {
		texts = append(texts, fmt.Sprintf("%d with others", left))
	}
	return strings.Join(texts, ", ")
}

// FailedCall is a call that failed, counted by call site and status.
type FailedCall struct {
	Call   string      `json:"call"` // "create of a buffer", or the OpenCL function
	Tag    string      `json:"tag"`  // call site; empty: unknown
	Status wire.Status `json:"status"`
	Name   string      `json:"name"` // of the status; empty when it is not known
	Why    string      `json:"why"`  // what the status means by the OpenCL standard, and what speaks against that; empty: nothing known
	Count  uint64      `json:"count"`
	Size   *uint64     `json:"size"`          // bytes that the first such call asked for; null if it has no size, like the next
	Last   *uint64     `json:"last_size"`     // bytes that the last such call asked for
	Who    string      `json:"who,omitempty"` // the process, where there are several and one alone had these failures
}

func listFailedCalls(s *stats.Snapshot) []FailedCall {
	list := []FailedCall{}
	for i := range s.FailedCalls {
		f := &s.FailedCalls[i]
		call := FailedCall{Call: f.Call, Tag: f.Tag, Status: wire.Status(f.Status), Name: wire.StatusName(f.Status), Why: f.Why, Count: f.Count, Who: f.Who}
		if f.HasSize() {
			call.Size, call.Last = &f.Size, &f.Last
		}
		list = append(list, call)
	}
	return list
}

// refusedCallLines returns lines of the summary about the first calls whose arguments were refused.
func refusedCallLines(s *stats.Snapshot) []string {
	refused := s.RefusedCalls()
	shown, left := units.KeepFirst(refused, topRefused)
	var texts []string
	for i := range shown {
		texts = append(texts, units.Cut(units.Clean(shown[i].SentenceWithMeaning(units.FormatLong)), mistakeWidth))
		if text := distinguishCallersText(shown[i].Wrapper); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if left > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", left))
	}
	return linesWithLabel("refused", texts)
}

// distinguishCallersText says how to distinguish the callers of a function; empty: it has only one.
func distinguishCallersText(function string) string {
	if function == "" {
		return ""
	}
	return "several callers come there: " + callsite.WrapperOption(function) + " names call sites after them"
}

// failedSection lists calls that failed, and the meanings of their statuses.
func (v *view) failedSection() section {
	list := v.s.FailedCalls
	if len(list) == 0 {
		return section{}
	}
	s := section{ID: "failed", Title: "Failed calls", Intro: "creates and other calls that returned an error, in the order of their first"}
	t := v.newTable("Failed calls", len(list), numberColumn("times"), numberColumn("asked for"), wordsColumn("status"), wordsColumn("call"), wordsColumn("call site"), wordsColumn("the standard has it where").withPageOnly())
	said := map[string]bool{}
	for i := range list[:v.countRowsToShow(len(list))] {
		f := &list[i]
		t.addRow(v.countCell(f.Count), cell{Text: f.SizesText(units.Format)}, wordCell(wire.StatusNameAndNumber(f.Status)), wordCell(units.Clean(f.Call)), v.siteCell(f.Tag, nil), wordCell(f.Why))
		if item := fmt.Sprintf("%s, %s: %s", f.Call, wire.StatusNameAndNumber(f.Status), f.StatusMeaning()); f.StatusMeaning() != "" && !said[item] {
			said[item] = true
			s.Items = append(s.Items, units.Clean(item))
		}
	}
	s.Tables = []table{t}
	if n := v.s.OtherFailed; n > 0 {
		s.Notes = append(s.Notes, units.Count(n, "more failure")+" of other calls")
	}
	return s
}

// NoContextText returns the report of a run in which no program had a context. asked lists the devices that programs asked for.
func NoContextText(asked []string) string {
	if len(asked) == 0 {
		return "no OpenCL call was seen (not watched: calls about platforms, or without a shared loader like libOpenCL.so.1; gpumemtop doctor checks drivers and devices)"
	}
	return units.Clean("no context was seen: " + strings.Join(asked, ", "))
}
