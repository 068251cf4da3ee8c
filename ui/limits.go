package ui

import (
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// answerTime is how long a change may stay unanswered, in ns of snapshot time.
const answerTime = 5e9

// ackTime is how long an answer is marked, in ns of snapshot time.
const ackTime = 8e9

// smallestBytes is the first step of a size above 0.
const smallestBytes = 1 << 20

// limitBook knows which limit is chosen and which changes are on their way.
type limitBook struct {
	chosen string
	asked  map[string]change
	done   map[string]change

	supposed uint64 // a limit of cached bytes at which somebody looks at the curve; 0: none
}

// change is a change of one limit.
type change struct {
	from, to float64
	at       uint64 // snapshot time when it was asked for, then answered
	seen     bool   // the session has taken it up
	refusals uint64 // that there were before
}

func newLimitBook() limitBook {
	return limitBook{asked: map[string]change{}, done: map[string]change{}}
}

// chosenOf returns the chosen limit, the first one when none is chosen or it is gone. limits must not be empty.
func (b *limitBook) chosenOf(limits []model.Limit) *model.Limit {
	for i := range limits {
		if limits[i].Name == b.chosen {
			return &limits[i]
		}
	}
	return &limits[0]
}

func (b *limitBook) move(limits []model.Limit, by int) {
	if len(limits) == 0 {
		return
	}
	at := 0
	for i := range limits {
		if limits[i].Name == b.chosen {
			at = i
		}
	}
	b.chosen = limits[max(0, min(at+by, len(limits)-1))].Name
}

// wanted returns the value that the limit is going to have, and whether it has not got there yet.
func (b *limitBook) wanted(l *model.Limit) (float64, bool) {
	if c, ok := b.asked[l.Name]; ok {
		return c.to, true
	}
	if l.Pending {
		return l.Wanted, true
	}
	return l.Value, false
}

// ask notes a change of l and returns the value to ask for; false when the limit is at the end of its range, or cannot
// be stepped.
func (b *limitBook) ask(l *model.Limit, a action, s *model.Snapshot) (string, bool) {
	base, _ := b.wanted(l)
	to := clampLimit(l, nextValue(l, base, a, s.Device.Global))
	if to == base || math.IsNaN(to) {
		return "", false
	}
	b.chosen = l.Name
	b.asked[l.Name] = change{from: l.Value, to: to, at: s.Time, refusals: l.Refusals}
	delete(b.done, l.Name)
	return l.TextOf(to), true
}

// settle looks which changes the program has answered, and returns what there is to say about it.
func (b *limitBook) settle(s *model.Snapshot) (text string, st style) {
	for name, c := range b.done {
		if since(c.at, s.Time) > ackTime {
			delete(b.done, name)
		}
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		c, ok := b.asked[l.Name]
		if !ok {
			continue
		}
		if l.Pending {
			c.seen = true
			b.asked[l.Name] = c
			continue
		}
		switch {
		case c.refusedBy(l):
			text, st = "✗ "+l.Name+": "+l.Refused, badStyle
		case l.Value == c.to || c.seen:
			text, st = "✓ "+l.Name+" "+limitText(l, c.from)+" → "+limitText(l, l.Value)+" acknowledged", goodStyle
			c.to, c.at = l.Value, s.Time
			b.done[l.Name] = c
		case since(c.at, s.Time) > answerTime:
			text, st = "✗ "+l.Name+": the program does not answer", warnStyle
		default:
			continue
		}
		delete(b.asked, l.Name)
	}
	return text, st
}

// refusedBy reports whether the target has refused the change, be it between two frames.
func (c *change) refusedBy(l *model.Limit) bool {
	return l.Refused != "" && (c.seen || l.Refusals != c.refusals && l.RefusedText == l.TextOf(c.to))
}

// nextValue returns the value one step from base.
func nextValue(l *model.Limit, base float64, a action, device uint64) float64 {
	up := a == actMore || a == actDouble
	switch {
	case l.Kind == model.LimitSizes:
		return base
	case l.Words() && up:
		return base + 1
	case l.Words():
		return base - 1
	case l.Kind == model.LimitBytes && up:
		return moreBytes(l, base, device)
	case l.Kind == model.LimitBytes:
		return lessBytes(l, base, device)
	case a == actDouble:
		return base * 2
	case a == actHalve:
		return roundTo(base/2, l)
	case a == actMore:
		return roundTo(base+numberStep(l, base), l)
	}
	return roundTo(base-numberStep(l, base-numberStep(l, base)/2), l)
}

// moreBytes doubles a size. Above nothing comes a megabyte; what is already larger than the device goes to the end of
// the range.
func moreBytes(l *model.Limit, base float64, device uint64) float64 {
	switch {
	case base < smallestBytes && l.Min == 0:
		return smallestBytes
	case base >= unlimitedBytes, device > 0 && base >= float64(device) && l.Max > base:
		return max(base, l.Max)
	}
	return base * 2
}

// lessBytes halves a size. Below no limit comes the device, or 16 GiB where its size is unknown; below a megabyte
// nothing, for a limit that can be nothing.
func lessBytes(l *model.Limit, base float64, device uint64) float64 {
	switch {
	case base >= unlimitedBytes && device > 0:
		return float64(device)
	case base >= unlimitedBytes:
		return 1 << 34
	case base/2 < smallestBytes && l.Min == 0:
		return 0
	}
	return math.Floor(base / 2)
}

// numberStep returns the step at a value: a tenth to a quarter of it, round, and whole where the limit counts things.
func numberStep(l *model.Limit, base float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(max(math.Abs(base), 1e-3)/2.5)))
	for _, f := range [...]float64{5, 2} {
		if step*f <= math.Abs(base)/4 {
			step *= f
			break
		}
	}
	if isFraction(l) {
		return max(step, 0.01)
	}
	return max(1, math.Round(step))
}

// roundTo keeps counts whole, and of fractions six digits: sums of steps have more.
func roundTo(v float64, l *model.Limit) float64 {
	if isFraction(l) {
		return math.Round(v*1e6) / 1e6
	}
	return math.Floor(v)
}

// isFraction reports whether a limit is stepped by less than one.
func isFraction(l *model.Limit) bool {
	return l.Kind == model.LimitNumber || l.Value != math.Trunc(l.Value)
}

func clampLimit(l *model.Limit, v float64) float64 {
	switch {
	case l.Words():
		return max(0, min(v, float64(len(l.Choices)-1)))
	case l.Kind == model.LimitSizes:
		return v
	}
	if l.Max > l.Min {
		v = min(v, l.Max)
	}
	return max(v, l.Min)
}

// position returns where v lies in the range of l, from 0 to 1: by size on a logarithmic scale, as sizes are stepped.
func position(l *model.Limit, v float64, device uint64) float64 {
	low, high := l.Min, l.Max
	if l.Words() {
		low, high = 0, float64(len(l.Choices)-1)
	}
	if l.Kind == model.LimitBytes {
		if high >= unlimitedBytes || high <= low {
			high = float64(max(device, 1<<34)) * 2
		}
		scale := func(v float64) float64 { return math.Log2(max(v, smallestBytes/2)) }
		low, high, v = scale(low), scale(high), scale(v)
	} else if math.IsInf(high, 0) || high-low > 1e4 {
		low, high, v = math.Log2(1+max(low, 0)), math.Log2(1+min(high, 1e6)), math.Log2(1+max(v, 0))
	}
	if !(high > low) {
		return 0
	}
	p := (v - low) / (high - low)
	if math.IsNaN(p) {
		return 0
	}
	return max(0, min(p, 1))
}
