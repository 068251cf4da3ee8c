package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// tuned is a dashboard that may change everything, and what it asked for.
func tuned(w, h int) (*dashboard, *calls, *[]string) {
	var c calls
	var policies []string
	o := c.options()
	o.ParseLimit = func(policy, name, value string) (string, error) {
		if value == "96M" && policy == "futhark" && name == "max_cached_bytes" {
			return "100663296", nil
		}
		if value == "0" || value == "oldest-first" {
			return value, nil
		}
		return "", errors.New("limit " + name + ": bad value " + value)
	}
	o.SetPolicy = func(name string) (uint64, error) {
		policies = append(policies, name)
		return uint64(len(policies)), nil
	}
	o.Policies = []Policy{{"futhark", "a"}, {"slab", "b"}}
	return newTest(o, w, h, sampleSnapshot()), &c, &policies
}

// answered gives the dashboard a snapshot in which the first limit has a value, some time after the start, with hits and misses.
func answered(d *dashboard, asked uint64, value float64, after time.Duration, hits, misses uint64) {
	s := limitSnapshot(asked, value, value, "")
	s.Time += uint64(after)
	s.Totals.Hits += hits
	s.Totals.Misses += misses
	s.Totals.DriverCreates += misses
	s.Totals.Cached += hits * mib
	d.Update(frameMsg{now: testStart.Add(after), snap: s})
}

func TestTypedValues(t *testing.T) {
	d, c, _ := tuned(120, 36)
	press(d, "=", "9", "6", "X", "backspace", "M")
	shows(t, d, "max_cached_bytes = 96M_", "enter set it  esc back")
	press(d, "enter")
	if !slices.Equal(c.limits, []string{"max_cached_bytes"}) || !slices.Equal(c.values, []string{"100663296"}) {
		t.Fatalf("asked for %v %v", c.limits, c.values)
	}
	shows(t, d, "96.0M …")
	press(d, "=", "q", "enter")
	shows(t, d, "✗ limit max_cached_bytes: bad value q")
	press(d, "=", "5", "esc")
	hides(t, d, "= 5")
	press(d, "6", "j", "j", "=")
	d.Update(pasted("no limit"))
	press(d, "enter")
	if got := c.limits[len(c.limits)-1] + "=" + c.values[len(c.values)-1]; got != "max_per_tag=0" {
		t.Errorf("asked for %s", got)
	}
	press(d, "j", "j", "j", "=", "oldest-first", "enter")
	if got := c.limits[len(c.limits)-1] + "=" + c.values[len(c.values)-1]; got != "drain_order=oldest-first" {
		t.Errorf("asked for %s", got)
	}
	if len(c.limits) != 3 {
		t.Errorf("asked for %v %v", c.limits, c.values)
	}
	o := c.options()
	o.ReadOnly = true
	d = newTest(o, 120, 36, sampleSnapshot())
	press(d, "=")
	if d.prompt != nil {
		t.Error("a value can be typed though it is read only")
	}
}

// TestEffects: what came of a change 3 s and 30 s later, against the 3 s before.
func TestEffects(t *testing.T) {
	d, c, _ := tuned(160, 45)
	answered(d, 0, 512*mib, 3*time.Second, 1, 3)
	press(d, "]")
	answered(d, 1, gib, 3*time.Second+1, 1, 3)
	shows(t, d, "✓ max_cached_bytes 512.0M → 1.00G acknowledged")
	answered(d, 1, gib, 6*time.Second, 10, 3)
	hides(t, d, "3 s after")
	answered(d, 1, gib, 6*time.Second+1, 10, 3)
	shows(t, d, "· max_cached_bytes 512.0M → 1.00G: hit 25.0 % before, 100.0 % 3 s after (u undoes); cached 385.0M → 394.0M; driver calls 1.0 → 0.0 /s") // so few requests judge nothing
	answered(d, 1, gib, 30*time.Second, 30, 33)
	answered(d, 1, gib, 33*time.Second+1, 40, 33)
	shows(t, d, "hit 25.0 % before, 100.0 % 30 s after (u undoes); cached 385.0M → 424.0M;")
	press(d, "6")
	shows(t, d, "hit 25.0 % before, 100.0 % 3 s after, 100.0 % 30 s after", "cached 385.0M → 394.0M → 424.0M; driver calls 1.0 → 0.0 → 0.0 /s")
	golden.RequireEqual(t, screen(d))
	press(d, "6", "u")
	if want := []string{"1073741824", "536870912"}; !slices.Equal(c.values, want) {
		t.Fatalf("asked for %v, want %v", c.values, want)
	}
	answered(d, 2, 512*mib, 34*time.Second, 40, 33)
	press(d, "u")
	shows(t, d, "nothing to undo")
	if len(c.values) != 2 {
		t.Errorf("the undo was undone: %v", c.values)
	}
}

// TestBeforeIsBeforeTheKey: what happens until the answer is not before the change.
func TestBeforeIsBeforeTheKey(t *testing.T) {
	d, _, _ := tuned(160, 45)
	answered(d, 0, 512*mib, 3*time.Second, 30, 0)
	press(d, "]")
	answered(d, 0, 512*mib, 4*time.Second, 30, 500)
	answered(d, 1, gib, 5*time.Second, 90, 1000)
	shows(t, d, "acknowledged")
	answered(d, 1, gib, 8*time.Second, 120, 1000)
	shows(t, d, "hit 100.0 % before, 100.0 % 3 s after (u undoes); cached 414.0M → 504.0M; driver calls 0.0 → 0.0 /s")
}

// TestQuickSuccession: before is before the first of several changes, which are one where they are of one limit.
func TestQuickSuccession(t *testing.T) {
	d, c, _ := tuned(160, 45)
	answered(d, 0, 512*mib, 3*time.Second, 30, 10)
	for i, value := range []float64{gib, 2 * gib, 4 * gib} {
		press(d, "]")
		answered(d, uint64(i+1), value, 3*time.Second+time.Duration(i+1)*500*time.Millisecond, 30, 10+100*uint64(i+1))
	}
	shows(t, d, "✓ max_cached_bytes 512.0M → 4.00G acknowledged")
	answered(d, 3, 4*gib, 8*time.Second, 40, 310)
	shows(t, d, "· max_cached_bytes 512.0M → 4.00G: hit 75.0 % before, 100.0 % 3 s after")
	press(d, "u")
	if got := c.values[len(c.values)-1]; got != "536870912" || len(d.ledger.changes) != 1 {
		t.Errorf("took back %v of %d changes", c.values, len(d.ledger.changes))
	}
	d, _, _ = tuned(160, 45)
	press(d, "]")
	answered(d, 1, gib, time.Second, 0, 0)
	press(d, "[")
	answered(d, 2, 512*mib, 2*time.Second, 0, 0)
	shows(t, d, "✓ max_cached_bytes 1.00G → 512.0M acknowledged")
	answered(d, 2, 512*mib, 6*time.Second, 0, 9)
	hides(t, d, "3 s after", "u undoes")
	press(d, "u")
	shows(t, d, "nothing to undo")
}

// TestWorseIsAmber: the verdict says so, and what takes the change back; a change that is hardly worse is as it was.
func TestWorseIsAmber(t *testing.T) {
	change := func(misses uint64) *dashboard {
		d, _, _ := tuned(120, 36)
		answered(d, 0, 512*mib, 3*time.Second, 100, 0)
		press(d, "]")
		answered(d, 1, gib, 3*time.Second+1, 100, 0)
		answered(d, 1, gib, 6*time.Second+1, 200-misses, misses)
		answered(d, 1, gib, 7*time.Second+1, 200-misses, misses)
		return d
	}
	d := change(5)
	shows(t, d, "! worse since max_cached_bytes 512.0M → 1.00G: hit rate 100.0 % before, 95.0 % after", "! list  u undo",
		"! max_cached_bytes 512.0M → 1.00G: hit 100.0 % before, 95.0 % 3 s after (u undoes)")
	if _, st := d.currentMessage(d.live); st != warnStyle {
		t.Errorf("style %d", st)
	}
	press(d, "!", "enter")
	if d.zoom != paneLimits {
		t.Errorf("enter leads to pane %d", d.zoom)
	}
	d = change(4)
	hides(t, d, "worse", "u undo ")
	if _, st := d.currentMessage(d.live); st != plain {
		t.Errorf("style %d", st)
	}
}

// TestUndoneChangesAreSilent: what is taken back reports nothing, and no report takes another message's place.
func TestUndoneChangesAreSilent(t *testing.T) {
	d, _, _ := tuned(160, 45)
	answered(d, 0, 512*mib, 3*time.Second, 100, 0)
	press(d, "]")
	answered(d, 1, gib, 4*time.Second, 100, 0)
	press(d, "u")
	answered(d, 2, 512*mib, 5*time.Second, 100, 50)
	d.sayMessage(goodStyle, "✓ exported: x")
	for after := 7 * time.Second; after < 40*time.Second; after += 3 * time.Second {
		answered(d, 2, 512*mib, after, 100, 100)
		if after < 11*time.Second {
			shows(t, d, "✓ exported: x")
		}
		hides(t, d, "3 s after", "worse", "measuring")
	}
	answered(d, 2, 512*mib, 40*time.Second, 200, 100)
	press(d, "]")
	answered(d, 3, gib, 41*time.Second, 200, 100)
	d.sayMessage(goodStyle, "✓ exported: y")
	answered(d, 3, gib, 44*time.Second, 200, 100)
	shows(t, d, "✓ exported: y")
}

// TestRefusedUndo: a change after a refused undo can be taken back.
func TestRefusedUndo(t *testing.T) {
	d, c, _ := tuned(120, 36)
	press(d, "]")
	answered(d, 1, gib, time.Second, 0, 0)
	press(d, "u")
	s := limitSnapshot(2, gib, gib, "no")
	s.Time += 2e9
	d.Update(frameMsg{now: testStart, snap: s})
	press(d, "]")
	answered(d, 2, gib, 5*time.Second, 0, 0)
	answered(d, 3, 2*gib, 6*time.Second, 0, 0)
	press(d, "u")
	if got := c.values[len(c.values)-1]; got != "1073741824" {
		t.Errorf("asked for %v", c.values)
	}
	press(d, "u")
	d.Update(frameMsg{now: testStart, snap: lateSnapshot(5, 2*gib, 4*time.Second)})
	d.Update(frameMsg{now: testStart, snap: lateSnapshot(5, 2*gib, 20*time.Second)})
	shows(t, d, "does not answer")
	press(d, "u")
	if got := len(c.values); got != 6 {
		t.Errorf("what was not answered cannot be taken back again: asked for %v", c.values)
	}
}

// lateSnapshot has a change of the first limit that is pending some time after the start.
func lateSnapshot(asked uint64, value float64, after time.Duration) *stats.Snapshot {
	s := limitSnapshot(asked, value, value/2, "")
	s.Time += uint64(after)
	return s
}

// TestUndoKnowsItsOwn: what is acknowledged while an undo is on its way is a change of its own.
func TestUndoKnowsItsOwn(t *testing.T) {
	d, c, _ := tuned(120, 36)
	press(d, "]")
	answered(d, 1, gib, time.Second, 0, 0)
	press(d, "6", "j", "]", "k")
	d.limits.chosen = "max_cached_bytes"
	press(d, "u")
	s := limitSnapshot(1, gib, gib, "")
	s.Limits[1].Request, s.Limits[1].Value, s.Time = stats.Request{Sequence: 2, AnsweredAt: s.Time}, 2.5, s.Time+2e9
	d.Update(frameMsg{now: testStart, snap: s})
	s.Limits = slices.Clone(s.Limits)
	s.Limits[0].Sequence, s.Limits[0].Value = 3, 512*mib
	d.Update(frameMsg{now: testStart, snap: s})
	press(d, "u")
	if got := c.limits[len(c.limits)-1] + "=" + c.values[len(c.values)-1]; got != "max_waste_ratio=2" {
		t.Errorf("took back %s of %v", got, c.limits)
	}
}

// TestStepsAreOneChange: steps that follow before the answer are taken back together.
func TestStepsAreOneChange(t *testing.T) {
	d, c, _ := tuned(160, 45)
	press(d, "]", "]")
	answered(d, 1, gib, time.Second, 0, 0)
	answered(d, 2, 2*gib, 2*time.Second, 0, 0)
	shows(t, d, "✓ max_cached_bytes 512.0M → 2.00G acknowledged")
	press(d, "u")
	if got := c.values[len(c.values)-1]; got != "536870912" {
		t.Errorf("asked for %v", c.values)
	}
}

// TestPolicyIsUndone: the policy comes back with its limits.
func TestPolicyIsUndone(t *testing.T) {
	d, c, policies := tuned(120, 36)
	press(d, "a", "j", "enter")
	s := sampleSnapshot()
	s.Change.Request = stats.Request{Sequence: 1, AnsweredAt: s.Time}
	s.Policy, s.Change.Done, s.Limits = "slab", 1, []stats.Limit{{Name: "max_part", Kind: stats.LimitBytes, Max: gib}}
	d.Update(frameMsg{now: testStart, snap: s})
	press(d, "esc", "u")
	if !slices.Equal(*policies, []string{"slab", "futhark"}) {
		t.Fatalf("asked for %v", *policies)
	}
	s = sampleSnapshot()
	s.Change.Done, s.Change.Request, s.Limits[0].Value = 2, stats.Request{Sequence: 2, AnsweredAt: s.Time}, 4*gib
	d.Update(frameMsg{now: testStart, snap: s})
	if !slices.Equal(c.limits, []string{"max_cached_bytes"}) || !slices.Equal(c.values, []string{"536870912"}) {
		t.Errorf("the policy is back with %v %v", c.limits, c.values)
	}
	s = limitSnapshot(1, 512*mib, 512*mib, "")
	s.Change.Done, s.Change.Request = 2, stats.Request{Sequence: 2, AnsweredAt: s.Time}
	d.Update(frameMsg{now: testStart, snap: s})
	press(d, "u")
	shows(t, d, "nothing to undo")
}

func TestSettingsAreSaved(t *testing.T) {
	d, _, _ := tuned(120, 36)
	press(d, "W")
	if d.prompt != nil {
		t.Fatal("it asks for a file that nothing writes")
	}
	var saved []string
	d.o.Save = func(path, policy string, limits []stats.Limit) error {
		if len(saved) > 0 {
			return errors.New(path + " exists: type another name")
		}
		saved = append(saved, path, policy, limits[0].Name)
		return nil
	}
	press(d, "W")
	shows(t, d, "save policy and limits as: gpumemtop.toml_")
	press(d, "enter")
	if got := strings.Join(saved, " "); got != "gpumemtop.toml futhark max_cached_bytes" {
		t.Errorf("saved %q", got)
	}
	shows(t, d, "✓ saved: gpumemtop --config gpumemtop.toml ./app uses them")
	press(d, "W", "ctrl+u", "a", "enter")
	shows(t, d, "✗ a exists: type another name")
}

// TestChoicesAreWords: a limit that takes words shows the others.
func TestChoicesAreWords(t *testing.T) {
	d, _, _ := tuned(140, 42)
	press(d, "6")
	shows(t, d, "slot oldest-first all", "on   off")
	s := sampleSnapshot()
	s.Limits[2].Value = 0
	d.Update(frameMsg{now: testStart, snap: s})
	shows(t, d, "no limit", "━●▸")
}
