package ui

import (
	"regexp"
	"slices"
	"strings"
)

// filter selects rows by their text.
type filter struct {
	text       string // as typed; empty: all rows
	word       string // in lower case, that a row must have
	expression *regexp.Regexp
	not        bool
}

// parseFilter reads a filter: text in any case, "re:" and a regular expression, either with "!" before it for all others.
func parseFilter(text string) (filter, error) {
	f := filter{text: text}
	rest, not := strings.CutPrefix(text, "!")
	f.not = not && rest != ""
	pattern, isExpression := strings.CutPrefix(rest, "re:")
	if !isExpression {
		f.word = strings.ToLower(rest)
		return f, nil
	}
	var err error
	f.expression, err = regexp.Compile(pattern)
	return f, err
}

// letsThrough reports whether a filter lets a row through.
func (f *filter) letsThrough(text string) bool {
	if f.text == "" {
		return true
	}
	var found bool
	if f.expression != nil {
		found = f.expression.MatchString(text)
	} else {
		found = strings.Contains(strings.ToLower(text), f.word)
	}
	return found != f.not
}

// applyFilter returns the entries of a list that a filter lets through.
func applyFilter[T any](f *filter, list []T, text func(*T) string) []T {
	if f.text == "" {
		return list
	}
	var taken []T
	for i := range list {
		if f.letsThrough(text(&list[i])) {
			taken = append(taken, list[i])
		}
	}
	return taken
}

// titleSpans returns the words about a filter in the title of its pane.
func (f *filter) titleSpans() []span {
	if f.text == "" {
		return nil
	}
	return []span{{"  /" + f.text, keyStyle}}
}

// filterable are the panes with rows that a filter selects.
var filterable = []paneID{paneTags, paneMisses, paneOutput, paneTransfers, paneObjects}

// searchedPane returns the pane that is searched: the one that is alone on the screen or in focus, else the tags.
func (d *dashboard) searchedPane() paneID {
	for _, p := range []paneID{d.zoom, d.focus} {
		if slices.Contains(filterable, p) {
			return p
		}
	}
	return paneTags
}

// askFilter asks for a filter, and applies it while it is typed.
func (d *dashboard) askFilter() {
	p := d.searchedPane()
	before := d.filters[p]
	d.prompt = &prompt{
		label: "/", text: before.text,
		keys: []word{{"enter", "keep"}, {"esc", "as before"}, {"!", "not"}, {"re:", "regular expression"}},
		changed: func(text string) {
			if f, err := parseFilter(text); err == nil {
				d.setFilter(p, f)
			}
		},
		done: func(text string) {
			f, err := parseFilter(text)
			if err != nil {
				d.setFilter(p, before)
				d.sayMessage(badStyle, "✗ "+err.Error())
				return
			}
			d.setFilter(p, f)
		},
		leave: func() { d.setFilter(p, before) },
	}
}

func (d *dashboard) setFilter(p paneID, f filter) {
	d.filters[p] = f
	d.output.back = 0
	d.tags.orderRows(d.shownSnapshot())
}
