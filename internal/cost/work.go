package cost

// Work is the calls of a policy on a driver. It can be priced for any device whose lines have the same breaks.
type Work struct{ Creates, Touches, Releases, Parts Tally }

// NewWork returns a Work without calls for a device.
func NewWork(d *Device) Work {
	return Work{
		Creates: Tally{from: d.Create.Below.Bytes}, Touches: Tally{from: d.Touch.Below.Bytes},
		Releases: Tally{from: d.Release.Below.Bytes}, Parts: Tally{from: d.Part.Below.Bytes},
	}
}

// TotalNS returns the time of all calls on a device.
func (w *Work) TotalNS(d *Device) float64 {
	return w.Creates.TotalNS(&d.Create) + w.Touches.TotalNS(&d.Touch) + w.Releases.TotalNS(&d.Release) + w.Parts.TotalNS(&d.Part)
}

// CallsSince returns the calls after an earlier state of the same Work.
func (w *Work) CallsSince(before *Work) Work {
	return Work{
		Creates: w.Creates.callsSince(&before.Creates), Touches: w.Touches.callsSince(&before.Touches),
		Releases: w.Releases.callsSince(&before.Releases), Parts: w.Parts.callsSince(&before.Parts),
	}
}

// Tally counts calls of one kind, separately for sizes below the break of a Line and for others.
type Tally struct {
	from         uint64 // the break, bytes
	small, large calls
}

// calls counts calls and their bytes.
type calls struct{ n, bytes uint64 }

// CountCall counts a call.
func (t *Tally) CountCall(size uint64) { t.CountCallForPart(size, size) }

// CountCallForPart counts a call for some of the bytes of a block. The size of the block decides how they are served.
func (t *Tally) CountCallForPart(block, bytes uint64) {
	c := &t.large
	if block < t.from {
		c = &t.small
	}
	c.n++
	c.bytes += bytes
}

// TotalNS returns the time of all calls. The line must have its break where the tally has it.
func (t *Tally) TotalNS(l *Line) float64 {
	return l.A*float64(t.large.n) + l.B*float64(t.large.bytes) + l.Below.A*float64(t.small.n) + l.Below.B*float64(t.small.bytes)
}

func (t *Tally) callsSince(before *Tally) Tally {
	return Tally{t.from, t.small.minusEarlier(before.small), t.large.minusEarlier(before.large)}
}

func (c calls) minusEarlier(before calls) calls { return calls{c.n - before.n, c.bytes - before.bytes} }
