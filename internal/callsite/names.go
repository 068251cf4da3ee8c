package callsite

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Names holds the names of the processes, call sites and kernels of a run, and its devices.
type Names struct {
	processes map[uint32]*ProcessNames
}

// ProcessNames holds the names of one process.
type ProcessNames struct {
	Number    uint32 // in the session
	PID       int    // 0 when unknown
	Parent    int
	Program   string
	Arguments []string
	Place     wire.Place
	Devices   []Device
	Kernels   Kernels
	sites     map[uint32]*Site
	depths    map[uint32]int    // frames that the shim recorded of each stack, by tag
	builds    map[string]string // build ids by path
	contexts  map[uint16]uint64 // numbers of first devices by context
}

// Device is a device that the process uses.
type Device struct {
	Number       uint64 // of the DEVICE event
	Name, Driver string
	Identity     string // PCI address, UUID or both, or "local N"; empty: unknown
	Global       uint64 // bytes of memory, 0 when unknown
}

// Site is the call site of a tag.
type Site struct {
	Name   string   // "file.c:88 function", "module+0x1234", or "tag 7" when it is unknown
	Stack  []string // innermost first, empty when unknown
	Frames []Frame  // of Stack, from the one that names the site
}

// NewNames returns empty Names.
func NewNames() *Names { return &Names{processes: map[uint32]*ProcessNames{}} }

// definer is a source that can return only the records that define names, such as *recording.Reader.
type definer interface {
	EachDefinition(func(*wire.Record) error) error
}

// ReadNames reads the names of a source and leaves it rewound. It reads only the Definitions of a source that has them,
// which takes far less time.
func ReadNames(src recording.Source) (*Names, error) {
	names := NewNames()
	if err := names.readRecords(src); err != nil {
		return nil, err
	}
	if err := src.Rewind(); err != nil {
		return nil, fmt.Errorf("go to the start of the recording: %w", err)
	}
	return names, nil
}

func (n *Names) readRecords(src recording.Source) error {
	if d, ok := src.(definer); ok {
		return d.EachDefinition(func(r *wire.Record) error {
			n.AddRecord(r)
			return nil
		})
	}
	for r, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		n.AddRecord(r)
	}
	return nil
}

// AddRecord takes a record. Records that name nothing change nothing.
func (n *Names) AddRecord(r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		n.Process(r.Process).noteProcess(r)
	case wire.KindDevice:
		n.Process(r.Process).noteDevice(r)
	case wire.KindDiag:
		if r.AsDiag().Diag() == wire.DiagPlace {
			n.Process(r.Process).Place = wire.ParsePlace(r.Payload)
		}
	case wire.KindKernel:
		n.Process(r.Process).Kernels.AddKernel(r.AsKernel().Kernel(), r.Payload)
	case wire.KindModule:
		n.Process(r.Process).noteModule(r)
	case wire.KindContext:
		if e := r.AsContext(); e.Life() == wire.LifeCreate {
			n.Process(r.Process).contexts[uint16(e.Context())] = e.Device()
		}
	case wire.KindTag, wire.KindSite:
		if r.Kind == wire.KindTag && r.AsTag().Mode() == wire.TagsStack {
			n.Process(r.Process).depths[r.DefinedTag()] = len(r.Payload) / wire.SizeofFrame
		}
		if name := TagNameOf(r); name != "" {
			site := n.Process(r.Process).Site(r.DefinedTag())
			site.Name = name
			if r.Kind == wire.KindSite {
				site.Stack = StackTexts(r.Payload)
				site.Frames = FramesAfterWrappers(r.Payload)
			}
		}
	default:
	}
}

// HasNoMatchingSite reports whether call sites are known, but none has a name that matches.
func (n *Names) HasNoMatchingSite(pattern *regexp.Regexp) bool {
	known := false
	for _, p := range n.processes {
		for _, site := range p.sites {
			if known = true; pattern.MatchString(site.Name) {
				return false
			}
		}
	}
	return known
}

// NamedProcesses returns the processes that have names, in the order of their numbers.
func (n *Names) NamedProcesses() []*ProcessNames {
	return slices.SortedFunc(maps.Values(n.processes), func(a, b *ProcessNames) int { return cmp.Compare(a.Number, b.Number) })
}

// Process returns the names of a process. It adds an empty one if there is none.
func (n *Names) Process(number uint32) *ProcessNames {
	p := n.processes[number]
	if p == nil {
		p = &ProcessNames{
			Number: number, sites: map[uint32]*Site{}, depths: map[uint32]int{}, builds: map[string]string{}, contexts: map[uint16]uint64{},
		}
		n.processes[number] = p
	}
	return p
}

func (p *ProcessNames) noteProcess(r *wire.Record) {
	program, arguments := wire.ParseProcess(r.Payload)
	p.PID, p.Parent = int(r.AsProcess().PID()), int(r.AsProcess().Parent())
	p.Program, p.Arguments = CleanText(program), nil
	for word := range arguments {
		p.Arguments = append(p.Arguments, CleanText(word))
	}
}

// AppName returns the name of a process's program in a recording: the name that the user chose, or else that of its file, or of the
// script that it runs.
func (p *ProcessNames) AppName(h *recording.Header) string {
	id := p.IdentityOfRun(h)
	return CleanFunctionName([]byte(cmp.Or(id.App, wire.ProgramNameOf(cmp.Or(p.Program, h.Program), p.Arguments))))
}

// IdentityOfRun returns the identity of a process's run, with the place of the process.
func (p *ProcessNames) IdentityOfRun(h *recording.Header) recording.Identity {
	id := h.IdentityOf(p.Number)
	id.Place = p.Place.WithMissingFrom(id.Place)
	return id
}

func (p *ProcessNames) noteDevice(r *wire.Record) {
	e := r.AsDevice()
	name, driver, identity := wire.ParseDevice(r.Payload)
	p.Devices = append(p.Devices, Device{
		Number: e.Device(), Name: CleanText(name), Driver: CleanText(driver), Identity: CleanText(identity), Global: e.Memory(),
	})
}

func (p *ProcessNames) noteModule(r *wire.Record) {
	path, build := wire.ParseModule(r.Payload)
	if len(build) > 0 {
		p.builds[CleanText(path)] = CleanText(build)
	}
}

// BuildID returns the build id of a module by its path, in hexadecimal; empty when it is unknown.
func (p *ProcessNames) BuildID(path string) string { return p.builds[path] }

// BuildIDOfBase returns the build id of a module by the last element of its path; empty when it is unknown.
func (p *ProcessNames) BuildIDOfBase(base string) string {
	for _, path := range slices.Sorted(maps.Keys(p.builds)) {
		if BaseName(path) == base {
			return p.builds[path]
		}
	}
	return ""
}

// DeviceIndex returns the index in Devices of the first device of a context, 0 when it is unknown.
func (p *ProcessNames) DeviceIndex(scope uint16) int {
	number, ok := p.contexts[scope]
	if !ok {
		return 0
	}
	return max(0, slices.IndexFunc(p.Devices, func(d Device) bool { return d.Number == number }))
}

// Site returns the call site of a tag. A tag without a name shows its number.
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

// Tags returns the tags that were named or looked up, in ascending order.
func (p *ProcessNames) Tags() iter.Seq[uint32] {
	return slices.Values(slices.Sorted(maps.Keys(p.sites)))
}
