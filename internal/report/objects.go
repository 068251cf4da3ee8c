package report

import (
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ObjectSummary says how many objects of a type there were: events, kernels and so on.
type ObjectSummary struct {
	Type    string `json:"type"` // "event", "command_buffer" and so on
	Live    uint64 `json:"live"` // at the end, or at their process's end
	Peak    uint64 `json:"peak"`
	Created uint64 `json:"created"`
	Leaked  uint64 `json:"leaked"` // live objects of processes that ended without a signal
	// Untracked counts those created while too many were live to track more: Live and Leaked are then lower bounds.
	Untracked uint64             `json:"untracked,omitempty"`
	Growth    float64            `json:"growth_per_iteration,omitempty"` // in the phase that leaves the most, if an analysis finds it
	PerSite   []stats.ObjectSite `json:"per_site"`
}

func objectSummaries(counts []stats.ObjectCount) []ObjectSummary {
	list := []ObjectSummary{}
	for i := range counts {
		c := &counts[i]
		summary := ObjectSummary{Type: c.Type.JSONKey(), Live: c.Live, Peak: c.Peak, Created: c.Created, Leaked: c.Leaked, Untracked: c.Untracked, PerSite: append([]stats.ObjectSite{}, c.Sites...)}
		list = append(list, summary)
	}
	return list
}

// addObjectGrowth adds how many objects an iteration leaves behind.
func addObjectGrowth(list []ObjectSummary, phases []analysis.Phase) {
	for i := range list {
		list[i].Growth, _ = analysis.MostObjectGrowth(phases, list[i].Type)
	}
}

// objectLines name the call sites of many live objects. A summary does not mention a few that live until the end.
func (s *Summary) objectLines() []string {
	counts := s.snapshot.Objects
	if !slices.ContainsFunc(counts, func(c stats.ObjectCount) bool { return c.Live >= analysis.ObjectsLeast }) {
		return nil
	}
	var words []string
	leaked, running := false, s.Running > 0
	for i := range counts {
		if c := &counts[i]; c.Live > 0 {
			word := units.Plural(c.Live, c.Type.String(), c.Type.PluralWords())
			if c.Untracked > 0 {
				word = fmt.Sprintf("at least %s (and perhaps %d more)", word, c.Untracked)
			}
			words = append(words, word)
			leaked = leaked || c.Leaked > 0
		}
	}
	for i := range s.snapshot.Processes {
		running = running || s.snapshot.Processes[i].State == stats.Running
	}
	how := "held when " + s.snapshot.AbortedText()
	switch {
	case running && s.snapshot.Lost > 0:
		how = "perhaps live: events are lost"
	case running:
		how = "live"
	case s.snapshot.Lost > 0:
		how = "perhaps not released: events are lost"
	case leaked:
		how = "never released"
	}
	lines := []string{"  objects    " + strings.Join(words, ", ") + " " + how}
	sites := stats.SitesWithLiveObjects(counts, analysis.ObjectsLeast)
	shown, _ := units.KeepFirst(sites, topTags)
	names := distinctNames(shown, func(s *stats.TypedSite) string { return s.Tag })
	for i, site := range shown {
		lines = append(lines, fmt.Sprintf("             %s at %s", units.Plural(site.Live, site.Type.String(), site.Type.PluralWords()),
			names[i]))
		for _, frame := range site.Stack[:min(stackLines, len(site.Stack))] {
			lines = append(lines, "               "+units.Cut(frame, mistakeWidth))
		}
	}
	return lines
}

// unpairedLines name the maps without unmaps and the retains without releases.
func (s *Summary) unpairedLines() []string {
	var texts []string
	for _, d := range analysis.FindUnpairedCalls(s.snapshot, s.Attached) {
		texts = append(texts, units.Cut(d.Title+": "+d.Text, mistakeWidth))
	}
	return linesWithLabel("unpaired", texts)
}

// objectsSection lists what programs hold besides buffers.
func (v *view) objectsSection() section {
	s := section{ID: "objects", Title: "Objects", Intro: "None was counted."}
	counts := v.s.Objects
	if len(counts) == 0 {
		return s
	}
	s.Intro = "What programs created besides memory, and memory without bytes of its own. What is live at the end was never released, or its process was killed or goes on."
	t := v.newTable("Objects by type", len(counts), numberColumn("live"), numberColumn("peak"), numberColumn("created"), numberColumn("change since half"), wordsColumn("type").withFirstPlace())
	for i := range counts[:v.countRowsToShow(len(counts))] {
		c := &counts[i]
		t.addRow(v.countCell(c.Live), v.countCell(c.Peak), v.countCell(c.Created), objectChangeCell(c.Grown), wordCell(objectTypeText(c)))
	}
	sites := stats.SitesWithLiveObjects(counts, 1)
	by := v.newTable("Live objects by call site", len(sites), numberColumn("live"), numberColumn("created"),
		numberColumn("change since half"),
		wordsColumn("type"), wordsColumn("call site").withFirstPlace())
	by.heading = "live, by call site"
	for i := range sites[:v.countRowsToShow(len(sites))] {
		r := &sites[i]
		by.addRow(v.countCell(r.Live), v.countCell(r.Created), objectChangeCell(r.Grown), wordCell(r.Type.String()), v.siteCell(r.Tag, r.Stack))
	}
	s.Tables = []table{t, by}
	return s
}

// objectChangeCell shows how many more objects there are than before.
func objectChangeCell(more int64) cell { return numberCell(fmt.Sprintf("%+d", more), float64(more)) }

// objectTypeText returns the type, with a mark if counts are lower bounds.
func objectTypeText(c *stats.ObjectCount) string {
	if c.Untracked == 0 {
		return c.Type.String()
	}
	return fmt.Sprintf("%s (and perhaps %d more)", c.Type, c.Untracked)
}
