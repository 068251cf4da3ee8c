package life

import (
	"bytes"
	"errors"
	"fmt"
	"io"

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
	Name  string   // "file.c:88 function", "module+0x1234", or "tag 7" when it is not known
	Stack []string // innermost first, empty when unknown
}

// Untagged is the site of what has no tag.
const Untagged = "(untagged)"

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
	case wire.KindTag, wire.KindSite:
		if name := model.TagName(r, model.DefaultWrappers()); name != "" {
			site := n.Process(r.Process).Site(r.Tag)
			site.Name = name
			if r.Kind == wire.KindSite {
				site.Stack = model.SiteStack(r.Payload)
			}
		}
	default:
	}
}

// Process returns the names in a process, which it makes on first mention.
func (n *Names) Process(number uint32) *ProcessNames {
	p := n.processes[number]
	if p == nil {
		p = &ProcessNames{Number: number, sites: map[uint32]*Site{}}
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

// Site returns what a tag is called; of one that was never named, that is its number.
func (p *ProcessNames) Site(tag uint32) *Site {
	s := p.sites[tag]
	if s == nil {
		s = &Site{Name: fmt.Sprintf("tag %d", tag)}
		if tag == 0 {
			s.Name = Untagged
		}
		p.sites[tag] = s
	}
	return s
}
