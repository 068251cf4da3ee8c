package export

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tag is a call site as a trace shows it.
type tag struct {
	name, quoted string // quoted: as JSON
	stack        string // its frames as a JSON array, "" for none
	stackWritten bool   // an event has the stack, or there is none
	frames       []callsite.Frame
	stackID      uint64      // number of the stack, in formats that number stacks; 0: none yet
	inUse        int64       // bytes granted and not released, if counted
	counted      bool        // it is one of the largest, which have a counter
	moved        bool        // inUse has changed since the counter's last value
	failures     []failureOf // those with an instant, at most stats.StatusesMax
	bytes        uint64      // granted to all of its creates
	alive        int         // open lifetimes of its name
	chosen       bool        // the options want its slices and lifetimes
	shown        bool        // and the lifetimes
	named        bool        // a record has named it
	frame        string      // to guess the name from
	guessed      bool        // no such record came in time
}

func newTag(name string) *tag {
	return &tag{name: name, quoted: quoteJSON(name), chosen: true, shown: true, stackWritten: true}
}

func (t *tag) setName(name string, frames []callsite.Frame) {
	t.name, t.quoted, t.stack, t.stackWritten, t.frames = name, quoteJSON(name), "", len(frames) == 0, frames
	if t.stackWritten {
		return
	}
	quoted := make([]string, len(frames))
	for i := range frames {
		quoted[i] = quoteJSON(frames[i].LongText())
	}
	t.stack = "[" + strings.Join(quoted, ",") + "]"
}

// addInUse counts bytes that the objects of a tag have in use.
func (t *tag) addInUse(bytes int64) {
	if t.counted {
		t.inUse += bytes
		t.moved = true
	}
}

// surveyed is what is known of a process before its records are written; for a live trace, from the records so far.
type surveyed struct {
	number  uint32
	pid     uint64
	program string
	threads map[uint32]struct{}
	tags    map[uint32]*tag
	counted []*tag // the largest, by name
	latest  struct {
		id  uint32
		tag *tag
	}
}

func newSurveyed(number uint32) *surveyed {
	none := newTag(callsite.Untagged)
	none.named = true
	return &surveyed{number: number, threads: map[uint32]struct{}{}, tags: map[uint32]*tag{0: none}}
}

// tag returns the tag with an id. Without a name it is called by its number.
func (p *surveyed) tag(id uint32) *tag {
	if p.latest.tag != nil && p.latest.id == id {
		return p.latest.tag
	}
	t := p.tags[id]
	if t == nil {
		t = newTag(fmt.Sprintf("tag %d", id))
		p.tags[id] = t
	}
	p.latest.id, p.latest.tag = id, t
	return t
}

// slabTag returns the tag of slabs, which belong to no call site. It is among the tags so that options can choose it.
func (p *surveyed) slabTag() *tag {
	const none = math.MaxUint32 // a tag's number that the shim never gives
	t := p.tags[none]
	if t == nil {
		t = newTag(callsite.Slabs)
		p.tags[none] = t
	}
	return t
}

// shownThreadID returns the id under which a thread shows: records of the session itself have none.
func (p *surveyed) shownThreadID(tid uint32) uint64 {
	if tid == 0 {
		return p.pid
	}
	return uint64(tid)
}

// addCreatedBytes adds what a create was granted to its tag.
func (p *surveyed) addCreatedBytes(e wire.CreateView) { p.tag(e.Tag()).bytes += e.BytesServing() }

// namesOfLargestTags returns the names of the n tags with the most bytes, in all processes together.
func (s *survey) namesOfLargestTags(n int) map[string]bool {
	bytes := map[string]uint64{}
	for _, p := range s.processes {
		for _, t := range p.tags {
			bytes[t.name] += t.bytes
		}
	}
	names := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), cmp.Compare(a, b))
	})
	top := map[string]bool{}
	for _, name := range names[:min(n, len(names))] {
		top[name] = true
	}
	return top
}
