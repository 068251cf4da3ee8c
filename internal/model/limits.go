package model

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// LimitKind is what a limit's value is, as in package allocator.
type LimitKind uint8

// The kinds of limits.
const (
	LimitNumber  LimitKind = iota
	LimitCount             // a whole number
	LimitBytes             // whole
	LimitSeconds           // a decimal number
	LimitSwitch            // one of Choices: "off", "on"
	LimitChoice            // one of Choices
	LimitSizes             // ascending sizes in bytes, "1024:4096"
)

// Limit is one allocator limit in the running program.
type Limit struct {
	Name     string
	Kind     LimitKind
	Text     string  // as acknowledged by the target, which takes it in this form
	Value    float64 // the same as a number: the place among Choices, how many Sizes
	Min, Max float64
	Choices  []string // for Switch and Choice
	// Wanted differs from Value while a change is on its way.
	Wanted  float64
	Pending bool
	// Refused is the target's word when it said no to the latest change, RefusedText the value that it refused, and
	// Refusals how often it has said no.
	Refused     string
	RefusedText string
	Refusals    uint64
}

// Words reports whether the limit takes words.
func (l *Limit) Words() bool { return l.Kind == LimitSwitch || l.Kind == LimitChoice }

// Number returns what a text means as a Value, false when it means nothing for this limit.
func (l *Limit) Number(text string) (float64, bool) {
	switch {
	case l.Words():
		at := slices.Index(l.Choices, text)
		return float64(at), at >= 0
	case l.Kind == LimitSizes:
		for size := range strings.SplitSeq(text, ":") {
			if _, err := strconv.ParseUint(size, 10, 64); err != nil {
				return 0, false
			}
		}
		return float64(strings.Count(text, ":") + 1), true
	}
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// TextOf writes a Value in the form that the target takes. Sizes cannot be written so: they are the Text.
func (l *Limit) TextOf(value float64) string {
	switch {
	case l.Kind == LimitSizes:
		return l.Text
	case l.Words():
		if at := int(value); at >= 0 && at < len(l.Choices) {
			return l.Choices[at]
		}
		return ""
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// Set gives the limit the value that a text means; a text that means nothing is ignored.
func (l *Limit) Set(text string) bool {
	value, ok := l.Number(text)
	if ok {
		l.Text, l.Value = text, value
	}
	return ok
}

// limits follows the limits of the running program and the changes on their way to it.
type limits struct {
	list []Limit
	sent []sent // the latest change sent for each, while it is pending
}

// sent is a change on its way.
type sent struct {
	number uint64
	text   string
}

func newLimits(list []Limit) limits {
	l := limits{list: slices.Clone(list), sent: make([]sent, len(list))}
	for i := range l.list {
		l.list[i].Wanted = l.list[i].Value
	}
	return l
}

// find returns the place of a limit, -1 when it is not in the list.
func (l *limits) find(name string) int {
	return slices.IndexFunc(l.list, func(x Limit) bool { return x.Name == name })
}

// want notes that a change was sent with a sequence number. A limit that is not in the list, or a value that means
// nothing for it, is ignored.
func (l *limits) want(name, text string, sequence uint64) {
	i := l.find(name)
	if i < 0 {
		return
	}
	x := &l.list[i]
	value, ok := x.Number(text)
	if !ok {
		return
	}
	x.Wanted, x.Pending, x.Refused, x.RefusedText = value, true, "", ""
	l.sent[i] = sent{sequence, text}
}

// answer applies the target's word: what it acknowledges holds, and the change is done unless a later one for the
// same limit is still on its way.
func (l *limits) answer(r *wire.Record) {
	if r.Status != 0 {
		l.refuse(r)
		return
	}
	name, text, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte("="))
	i := l.find(string(name))
	if i < 0 || !l.list[i].Set(string(text)) {
		return
	}
	if x := &l.list[i]; !x.Pending || r.Object >= l.sent[i].number {
		x.Pending, x.Refused, x.RefusedText, x.Wanted = false, "", "", x.Value
	}
}

func (l *limits) refuse(r *wire.Record) {
	for i := range l.list {
		if x := &l.list[i]; x.Pending && l.sent[i].number == r.Object {
			x.Pending, x.Wanted, x.Refused = false, x.Value, Clean(r.Payload)
			x.RefusedText, x.Refusals = l.sent[i].text, x.Refusals+1
			if x.Refused == "" {
				x.Refused = "refused"
			}
		}
	}
}

// MaxCachedBytes is the limit of cached bytes, of policies that have one.
const MaxCachedBytes = "max_cached_bytes"

// CachedMost returns how many bytes the policy keeps cached at most in each process: the lower of max_cached_bytes and
// max_cached_fraction of the device's memory. It returns false when the policy has no such limit.
func (s *Snapshot) CachedMost() (uint64, bool) {
	most, known := math.Inf(1), false
	for i := range s.Limits {
		switch l := &s.Limits[i]; {
		case l.Name == MaxCachedBytes:
			most, known = min(most, max(l.Value, 0)), true
		case l.Name == "max_cached_fraction" && l.Value < 1 && s.Device.Global > 0:
			most, known = min(most, max(l.Value, 0)*float64(s.Device.Global)), true
		}
	}
	if most >= math.MaxUint64 {
		return math.MaxUint64, known
	}
	return uint64(most), known
}
