package life

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Names are what processes, call sites and kernels of a run are called, and its devices.
type Names struct {
	processes map[uint32]*ProcessNames
}

// ProcessNames are the names in one process.
type ProcessNames struct {
	Number    uint32 // in the session
	PID       int    // 0 when unknown
	Parent    int
	Program   string
	Arguments []string
	Devices   []Device
	Kernels   model.Kernels
	sites     map[uint32]*Site
	builds    map[string]string // build ids by path
	contexts  map[uint16]uint64 // numbers of first devices by context
}

// Device is one that the process saw.
type Device struct {
	Number       uint64
	Name, Driver string
	Global       uint64 // bytes of memory, 0 when unknown
	LargestAlloc uint64
}

// Site is what a tag is called.
type Site struct {
	Name   string        // "file.c:88 function", "module+0x1234", or "tag 7" when it is not known
	Stack  []string      // innermost first, empty when unknown
	Frames []model.Frame // those of Stack from the one that names the site
}

// NewNames returns names that know nothing.
func NewNames() *Names { return &Names{processes: map[uint32]*ProcessNames{}} }

// definer is a source that has what names things without its events; *trace.Reader is one.
type definer interface {
	Definitions(func(*wire.Record) error) error
}

// ReadNames goes through a source for its names and leaves it rewound. A source that has Definitions is asked for
// those, which takes far less time.
func ReadNames(src trace.Source) (*Names, error) {
	names := NewNames()
	if d, ok := src.(definer); ok {
		err := d.Definitions(func(r *wire.Record) error {
			names.Add(r)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("look through the recording: %w", err)
		}
		if err := src.Rewind(); err != nil {
			return nil, fmt.Errorf("go to the start of the recording: %w", err)
		}
		return names, nil
	}
	if err := src.Rewind(); err != nil {
		return nil, fmt.Errorf("go to the start of the recording: %w", err)
	}
	var r wire.Record
	for {
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("look through the recording: %w", err)
		}
		names.Add(&r)
	}
	if err := src.Rewind(); err != nil {
		return nil, fmt.Errorf("go to the start of the recording: %w", err)
	}
	return names, nil
}

// Add takes a record; those that name nothing change nothing.
func (n *Names) Add(r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		n.Process(r.Process).introduce(r)
	case wire.KindDevice:
		n.Process(r.Process).device(r)
	case wire.KindKernel:
		n.Process(r.Process).Kernels.Add(r.Object, r.Payload)
	case wire.KindModule:
		n.Process(r.Process).module(r)
	case wire.KindContext:
		if wire.Life(r.Op) == wire.LifeCreate {
			n.Process(r.Process).contexts[uint16(r.Object)] = r.Link
		}
	case wire.KindTag, wire.KindSite:
		if name := model.TagName(r, model.DefaultWrappers()); name != "" {
			site := n.Process(r.Process).Site(r.Tag)
			site.Name = name
			if r.Kind == wire.KindSite {
				site.Stack = model.SiteStack(r.Payload)
				site.Frames = model.SiteFrames(r.Payload, model.DefaultWrappers())
			}
		}
	default:
	}
}

// Processes returns the names in all processes that anything was named in, by their numbers.
func (n *Names) Processes() []*ProcessNames {
	return slices.SortedFunc(maps.Values(n.processes), func(a, b *ProcessNames) int { return cmp.Compare(a.Number, b.Number) })
}

// Process returns the names in a process, which it makes on first mention.
func (n *Names) Process(number uint32) *ProcessNames {
	p := n.processes[number]
	if p == nil {
		p = &ProcessNames{
			Number: number, sites: map[uint32]*Site{}, builds: map[string]string{}, contexts: map[uint16]uint64{},
		}
		n.processes[number] = p
	}
	return p
}

func (p *ProcessNames) introduce(r *wire.Record) {
	p.PID, p.Parent = int(r.Object), int(r.Link)
	p.Program, p.Arguments = "", nil
	for i, word := range bytes.Split(bytes.TrimSuffix(r.Payload, []byte{0}), []byte{0}) {
		if i == 0 {
			p.Program = model.Clean(word)
			continue
		}
		p.Arguments = append(p.Arguments, model.Clean(word))
	}
}

func (p *ProcessNames) device(r *wire.Record) {
	name, driver, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte{0})
	p.Devices = append(p.Devices, Device{
		Number: r.Object, Name: model.Clean(name), Driver: model.Clean(driver), Global: r.Granted, LargestAlloc: r.Link,
	})
}

// module takes "path" or "path NUL build-id".
func (p *ProcessNames) module(r *wire.Record) {
	path, build, _ := bytes.Cut(bytes.TrimRight(r.Payload, "\x00"), []byte{0})
	if len(build) > 0 {
		p.builds[model.Clean(path)] = model.Clean(build)
	}
}

// BuildID returns the build id of a module by its path, in hexadecimal; empty when it is not known.
func (p *ProcessNames) BuildID(path string) string { return p.builds[path] }

// Device returns the place in Devices of the first device of a context, 0 when it is not known.
func (p *ProcessNames) Device(scope uint16) int {
	number, ok := p.contexts[scope]
	if !ok {
		return 0
	}
	return max(0, slices.IndexFunc(p.Devices, func(d Device) bool { return d.Number == number }))
}

// Site returns what a tag is called; of one that was never named, that is its number.
func (p *ProcessNames) Site(tag uint32) *Site {
	s := p.sites[tag]
	if s == nil {
		s = &Site{Name: fmt.Sprintf("tag %d", tag)}
		if tag == 0 {
			s.Name = model.UntaggedName
		}
		p.sites[tag] = s
	}
	return s
}

// Tags returns the tags that were named or asked for, in ascending order.
func (p *ProcessNames) Tags() iter.Seq[uint32] {
	return slices.Values(slices.Sorted(maps.Keys(p.sites)))
}
