package export

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// firstFreePID is above what Linux gives to processes: the place for those whose own number is unknown or taken.
const firstFreePID = 1 << 22

// survey is what a first pass over a source learns: everything that must be known before the first line is written.
type survey struct {
	base      uint64 // time that all others are relative to
	last      uint64 // time of the last record
	lost      uint64 // events
	processes map[uint32]*surveyed
}

// surveyed is one process.
type surveyed struct {
	number  uint32
	pid     uint64
	program string
	last    uint64 // time of its last record
	threads map[uint32]struct{}
	tags    map[uint32]*tag
}

// tag is a name, as text and as JSON.
type tag struct{ name, quoted string }

func newTag(name string) *tag { return &tag{name: name, quoted: quote(name)} }

// look reads a source to its end.
func look(src trace.Source, clock uint64, wrappers []*regexp.Regexp) (*survey, error) {
	s := &survey{base: clock, processes: map[uint32]*surveyed{}}
	var r wire.Record
	for {
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look through the recording: %w", err)
		}
		s.note(&r, wrappers)
	}
	s.settlePIDs()
	return s, nil
}

func (s *survey) note(r *wire.Record, wrappers []*regexp.Regexp) {
	s.last = max(s.last, r.Time)
	if start := r.Start(); s.base == 0 || start < s.base && start > 0 {
		s.base = start
	}
	if r.Kind == wire.KindLost {
		s.lost += r.Size
		return
	}
	p := s.process(r.Process)
	p.last = max(p.last, r.Time)
	switch r.Kind {
	case wire.KindProcess:
		p.pid = r.Object
		program, _, _ := bytes.Cut(r.Payload, []byte{0})
		p.program = string(program)
	case wire.KindCreate, wire.KindRelease, wire.KindSync, wire.KindSlab:
		p.threads[r.Thread] = struct{}{}
	case wire.KindDiag:
		if wire.Diag(r.Op).Finding() {
			p.threads[r.Thread] = struct{}{}
		}
	case wire.KindTag, wire.KindSite:
		if name := model.TagName(r, wrappers); name != "" && p.tags[r.Tag] == nil {
			p.tags[r.Tag] = newTag(name)
		}
	}
}

func (s *survey) process(number uint32) *surveyed {
	p := s.processes[number]
	if p == nil {
		p = &surveyed{number: number, threads: map[uint32]struct{}{}, tags: map[uint32]*tag{0: newTag(untagged)}}
		s.processes[number] = p
	}
	return p
}

// sorted returns the processes by their numbers.
func (s *survey) sorted() []*surveyed {
	return slices.SortedFunc(maps.Values(s.processes), func(a, b *surveyed) int { return cmp.Compare(a.number, b.number) })
}

// settlePIDs makes the pids distinct, because object numbers are only so within a process.
func (s *survey) settlePIDs() {
	taken := map[uint64]bool{}
	for _, p := range s.sorted() {
		if p.pid == 0 || p.pid >= firstFreePID || taken[p.pid] {
			p.pid = firstFreePID + uint64(p.number)
		}
		taken[p.pid] = true
	}
}

// tag returns the tag with an id; one that was never named is called by its number.
func (p *surveyed) tag(id uint32) *tag {
	t := p.tags[id]
	if t == nil {
		t = newTag(fmt.Sprintf("tag %d", id))
		p.tags[id] = t
	}
	return t
}

// thread returns the id under which a thread shows: records of the session itself have none.
func (p *surveyed) thread(tid uint32) uint64 {
	if tid == 0 {
		return p.pid
	}
	return uint64(tid)
}

// slabs returns the tag of what is no site's: that of slabs. It is among the tags so that options can choose it.
func (p *surveyed) slabs() *tag {
	const none = math.MaxUint32 // a tag's number that the shim never gives
	t := p.tags[none]
	if t == nil {
		t = newTag(slabs)
		p.tags[none] = t
	}
	return t
}
