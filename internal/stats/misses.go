package stats

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MissesMax is the most misses that a snapshot has.
const MissesMax = 20

// Miss is a request that the pool did not serve.
type Miss struct {
	Time    uint64 // when its create returned
	Size    uint64 // requested
	Reason  wire.Miss
	Tag     string // call site
	Process uint32 // number in the session
}

// misses are the latest ones, a ring.
type misses struct {
	list  [MissesMax]Miss // without Tag
	rows  [MissesMax]*row
	count uint64
}

func (m *misses) add(p *process, w *row, o *heap.Object) {
	at := m.count % MissesMax
	m.list[at] = Miss{Time: o.Started, Size: o.Size, Reason: wire.Miss(reason(uint8(o.Reason))), Process: p.shown.Number}
	m.rows[at] = w
	m.count++
}

// show returns the misses, the latest first.
func (m *misses) show() []Miss {
	n := min(m.count, MissesMax)
	list := make([]Miss, 0, n)
	for i := range n {
		at := (m.count - 1 - i) % MissesMax
		miss := m.list[at]
		miss.Tag = m.rows[at].final().whole.title()
		list = append(list, miss)
	}
	return list
}
