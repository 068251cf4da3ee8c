package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const topStatuses = 3 // in texts

// FailedWith is how many creates failed with one status. Of a run, stats.StatusesMax statuses are counted apart.
type FailedWith struct {
	Status int32  `json:"status"`
	Name   string `json:"name"` // "CL_OUT_OF_RESOURCES"; empty when it is not known
	Count  uint64 `json:"count"`
}

// failedWith returns the most frequent status first.
func failedWith(t *stats.Totals) []FailedWith {
	list := []FailedWith{}
	for _, f := range t.FailedWith {
		if f.Count > 0 {
			list = append(list, FailedWith{f.Status, wire.StatusName(f.Status), f.Count})
		}
	}
	slices.SortStableFunc(list, func(a, b FailedWith) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// refusedText says how many of the creates that a program asked for failed.
func refusedText(t *stats.Totals) string {
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

// statusesText says with what creates failed, the most frequent first.
func statusesText(t *stats.Totals) string {
	shown, _ := units.Top(failedWith(t), topStatuses)
	var texts []string
	left := t.Failures
	for _, f := range shown {
		texts = append(texts, fmt.Sprintf("%d with %s", f.Count, statusText(f.Status)))
		left -= min(left, f.Count)
	}
	if left > 0 {
		texts = append(texts, fmt.Sprintf("%d with others", left))
	}
	return strings.Join(texts, ", ")
}

// statusText names what a call returned.
func statusText(status int32) string {
	if name := wire.StatusName(status); name != "" {
		return fmt.Sprintf("%s (%d)", name, status)
	}
	return fmt.Sprint(status)
}
