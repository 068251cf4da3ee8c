package edit

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MergedSource returns the records of part i with the numbers and the times that they have in the merged recording.
func (p *Plan) MergedSource(i int, src recording.Source) recording.Source {
	return &renumbered{Source: src, part: &p.parts[i]}
}

type renumbered struct {
	recording.Source
	part *Part
}

// Next implements recording.Source.
func (s *renumbered) Next(r *wire.Record) error {
	if err := s.Source.Next(r); err != nil {
		return err
	}
	r.Process, r.Time = s.part.mergedProcessNumber(r.Process), s.part.toCommonClock(r.Time)
	return nil
}

// recordingStartOfProcess returns the time on the common clock at which the recording of a process begins: records with earlier
// times, such as those of carried-over memory, get that time.
func (p *Plan) recordingStartOfProcess(process uint32) uint64 {
	i := sort.Search(len(p.parts), func(i int) bool { return p.parts[i].base+p.parts[i].highest >= process })
	if process == 0 || i == len(p.parts) {
		return 0
	}
	return p.parts[i].startOnCommonClock()
}

// WriteMerged writes all records of sources, as MergedSource gives them or an earlier Merge wrote them, into a sink, by their
// times; records of one source keep their order. It keeps one record of each.
func (p *Plan) WriteMerged(to Sink, sources []recording.Source) error {
	q := make(queue, 0, len(sources))
	for i := range sources {
		h := &head{src: sources[i], startOf: p.recordingStartOfProcess, place: i}
		more, err := h.readNextRecord()
		if err != nil {
			return err
		}
		if more {
			q = append(q, h)
		}
	}
	heap.Init(&q)
	for len(q) > 0 {
		h := q[0]
		if err := to.Append(&h.record); err != nil {
			return err
		}
		more, err := h.readNextRecord()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
	return nil
}

// head is the next record of a source. The payload is the source's, which waits until it is written.
type head struct {
	src     recording.Source
	startOf func(process uint32) uint64
	place   int
	key     uint64
	record  wire.Record
}

func (h *head) readNextRecord() (bool, error) {
	err := h.src.Next(&h.record)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("merge: %w", err)
	}
	h.key = max(h.startOf(h.record.Process), h.record.Time)
	return true, nil
}

// queue is a heap: the earliest first, and of the same time the first source's.
type queue []*head

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].key != q[j].key {
		return q[i].key < q[j].key
	}
	return q[i].place < q[j].place
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(*head)) }

func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
