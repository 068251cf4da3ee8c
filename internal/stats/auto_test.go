package stats

import "testing"

// TestAuto: a live session says how its policy is steered, a recording only that it was.
func TestAuto(t *testing.T) {
	if s := newStream(Options{Policy: "futhark"}).Snapshot(); s.Auto != nil {
		t.Errorf("%+v of a policy that stays", s.Auto)
	}
	recorded := newStream(Options{Policy: "futhark", Auto: true})
	if s := recorded.Snapshot(); s.Auto == nil || !s.Auto.Steers || s.Auto.Said != "" {
		t.Errorf("%+v of a recording", s.Auto)
	}
	said := &Auto{Steers: true, Said: "auto: slab", Number: 1}
	recorded.SetAuto(func() *Auto { return said })
	if s := recorded.Snapshot(); s.Auto != said {
		t.Errorf("%+v, want %+v", s.Auto, said)
	}
}
