package model

// Auto is what there is to say of a session that goes over to other policies by itself. Nobody changes it any more.
type Auto struct {
	Steers bool   // it still does: nobody has changed the policy by hand
	Said   string // what it went over to last, when and why; empty: to nothing yet
	Number uint64 // of that
}

// SetAuto says whom each snapshot asks for how the policy is steered. It is called before the first event.
func (m *Model) SetAuto(auto func() *Auto) { m.auto = auto }

// steered returns what a snapshot says of it: of a recording only that it was.
func (m *Model) steered() *Auto {
	switch {
	case m.auto != nil:
		return m.auto()
	case m.options.Auto:
		return &Auto{Steers: true}
	}
	return nil
}
