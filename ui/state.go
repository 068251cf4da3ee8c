package ui

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is how the user left the dashboard. The next dashboard opens in this state.
type State struct {
	Layout  string        `json:"layout,omitempty"` // the name of a layout
	Hidden  string        `json:"hidden,omitempty"` // the numbers of panes
	Sort    string        `json:"sort,omitempty"`   // the title of a column; empty: the usual one
	Reverse bool          `json:"reverse,omitempty"`
	Refresh time.Duration `json:"refresh,omitempty"` // chosen with a key; 0: none was
}

// stateToSave returns how the dashboard is now.
func (d *dashboard) stateToSave() State {
	s := State{Layout: presets[d.preset].name, Reverse: d.tags.reverse, Refresh: d.refreshed}
	for id, hidden := range d.hidden {
		if hidden {
			s.Hidden += strconv.Itoa(id)
		}
	}
	if d.tags.sorted {
		s.Sort = tagColumns[d.tags.column].title
	}
	return s
}

// restoreState makes the dashboard as it was left. What this version or this mode does not have stays as usual.
func (d *dashboard) restoreState(s State) {
	d.preset = max(0, slices.IndexFunc(presets, func(p preset) bool { return p.name == s.Layout }))
	for id := paneMemory; id <= paneOutput; id++ {
		d.hidden[id] = id != paneTags && strings.Contains(s.Hidden, strconv.Itoa(int(id)))
	}
	if at := slices.IndexFunc(tagColumns[:], func(c tagColumn) bool { return c.title == s.Sort }); at >= 0 && d.tags.canSortBy(at) {
		d.tags.sorted, d.tags.column = true, at
	}
	d.tags.reverse = s.Reverse
	d.refreshed = s.Refresh
	d.kept = d.stateToSave()
}

// saveStateIfChanged keeps the state, if the user has changed it.
func (d *dashboard) saveStateIfChanged() {
	if s := d.stateToSave(); s != d.kept && d.o.Keep != nil {
		d.kept = s
		d.o.Keep(s)
	}
}
