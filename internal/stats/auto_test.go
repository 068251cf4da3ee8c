package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestSessionSaysHowItsPolicyIsSteered: a live session says how its policy is steered, a recording only that it was.
func TestSessionSaysHowItsPolicyIsSteered(t *testing.T) {
	if s := newStream(Options{Policy: "futhark"}).Snapshot(); s.Auto != nil {
		t.Errorf("%+v of a policy that stays", s.Auto)
	}
	recorded := newStream(Options{Policy: "futhark", Auto: true})
	if s := recorded.Snapshot(); s.Auto == nil || !s.Auto.Steers || s.Auto.Said != "" {
		t.Errorf("%+v of a recording", s.Auto)
	}
	recorded.feed(wire.DiagFields{Diag: wire.DiagMeasure}.Record(nil).Event, []byte("auto, not measured: none: stays with futhark")...)
	if s := recorded.Snapshot(); s.Auto == nil || s.Auto.Said != "auto: stays with futhark" || s.Auto.Number != 1 {
		t.Errorf("%+v of a recording with a decision", s.Auto)
	}
	recorded.SetAutoSource(func() *Auto { return &Auto{} })
	if s := recorded.Snapshot(); s.Auto.Steers || s.Auto.Number != 1 {
		t.Errorf("%+v of a run that the user steers", s.Auto)
	}
}
