package model

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// limits follows the limits of the running program and the changes on their way to it.
type limits struct {
	list []Limit
	sent []uint64 // number of the latest change sent for each, while it is pending
}

func newLimits(list []Limit) limits {
	l := limits{list: slices.Clone(list), sent: make([]uint64, len(list))}
	for i := range l.list {
		l.list[i].Wanted = l.list[i].Value
	}
	return l
}

// want notes that a change was sent with a sequence number. A limit that is not in the list is ignored.
func (l *limits) want(name string, value float64, sequence uint64) {
	i := slices.IndexFunc(l.list, func(x Limit) bool { return x.Name == name })
	if i < 0 {
		return
	}
	l.list[i].Wanted, l.list[i].Pending, l.list[i].Refused = value, true, ""
	l.sent[i] = sequence
}

// answer applies the target's word: what it acknowledges holds, and the change is done unless a later one for the
// same limit is still on its way.
func (l *limits) answer(r *wire.Record) {
	if r.Status != 0 {
		l.refuse(r)
		return
	}
	name, value, ok := assignment(r.Payload)
	i := slices.IndexFunc(l.list, func(x Limit) bool { return x.Name == string(name) })
	if !ok || i < 0 {
		return
	}
	l.list[i].Value = value
	if !l.list[i].Pending || r.Object >= l.sent[i] {
		l.list[i].Pending, l.list[i].Refused, l.list[i].Wanted = false, "", value
	}
}

func (l *limits) refuse(r *wire.Record) {
	for i := range l.list {
		if x := &l.list[i]; x.Pending && l.sent[i] == r.Object {
			x.Pending, x.Wanted, x.Refused = false, x.Value, clean(r.Payload)
			if x.Refused == "" {
				x.Refused = "refused"
			}
		}
	}
}

// assignment splits "name=value".
func assignment(text []byte) (name []byte, value float64, ok bool) {
	name, number, found := bytes.Cut(bytes.TrimRight(text, "\x00"), []byte("="))
	if !found {
		return nil, 0, false
	}
	value, err := strconv.ParseFloat(string(number), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, 0, false
	}
	return name, value, true
}
