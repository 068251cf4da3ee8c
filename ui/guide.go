package ui

import "codeberg.org/gpumemtop/gpumemtop/internal/stats"

// hint is a key and what it does. A hint without a key says what the last key brought.
type hint struct{ key, text string }

// drawGuide tells someone who is new to the dashboard what to press next.
func (d *dashboard) drawGuide(r region, s *stats.Snapshot) {
	items := []item{{0, []span{{" next ", bannerStyle}}}}
	hints := d.guideHints(s)
	if d.zoom != noPane && !d.hasProgramEnded() {
		hints = append(hints, hint{"esc", "back"})
	}
	for i, h := range hints {
		if h.key == "" {
			items = append(items, item{i, []span{{h.text, goodStyle}}})
			continue
		}
		items = append(items, item{i, []span{{h.key, keyStyle}, {" " + h.text, dim}}})
	}
	r.writeAllItems(1, 0, 2, fitItems(items, r.w-2, 2))
}

// guideHints leads the user from the findings to a change, and to what that gained.
func (d *dashboard) guideHints(s *stats.Snapshot) []hint {
	quit := hint{"q", "quit: what was found follows"}
	last := d.ledger.latestUndoableChange()
	switch running := s.Measured.RunningResult(); {
	case d.hasProgramEnded():
		return []hint{{"", "the program has ended"}, quit, {"!", "what stood out"}}
	case d.zoom == panePoints && (last == nil || !d.hasNoKeyFix()):
		return d.findingHints()
	case d.zoom != noPane && last == nil:
		return nil
	case running != nil:
		return []hint{{"", "measuring: " + running.AlternativeText()}, {"E", "end that"}}
	case last != nil && len(last.after) == 0:
		return []hint{{"", "✓ done: what it changes is known in 3 s"}, {"u", "undo"}}
	case last != nil:
		if m := s.Measured.LatestKnown(); m != nil {
			return []hint{{"", "measured: " + m.ChangeText() + " time than " + m.AlternativeText()}, quit}
		}
		served, _ := last.beforeAndAfterText(false)
		sign, _ := last.signOfOutcome()
		list := []hint{{"", sign + served}}
		if d.o.Measure != nil {
			list = append(list, hint{"E", "measure the pool"})
		}
		return append(list, hint{"u", "undo"})
	case len(d.points.found) > 0:
		return []hint{{"!", "what stands out, and what to do about it"}, {"?", "what all this is"}}
	}
	return []hint{{"", "it runs: faults show above, others in the report"}, {"?", "what all this is"}}
}

// hasNoKeyFix reports whether no finding can be mended with a key.
func (d *dashboard) hasNoKeyFix() bool {
	_, why := d.points.nextPointToApply()
	return why != ""
}

// findingHints returns the hints in the list of findings.
func (d *dashboard) findingHints() []hint {
	list := []hint{{"enter", "where it happens"}}
	for i := range d.points.found {
		if text := d.points.keysText(&d.points.found[i]); text != "" && text[0] == 'y' {
			if i == d.points.at {
				return []hint{{"y", "do it: " + d.points.actionText(&d.points.found[i], false)}, list[0]}
			}
			return append([]hint{{"j", "to what y can do"}}, list...)
		}
	}
	return list
}
