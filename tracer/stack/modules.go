package stack

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// module is an ELF file where a process has it.
type module struct {
	image *image // nil: of no use for unwinding
	path  string
	bias  uint64 // address in the process minus address in the file
	base  uint64 // lowest address, as dladdr has it in dli_fbase
	known bool   // it is a module at all: path and base hold
}

// nowhere stands for what is no module: code made at run time, most often. kernels is where functions return to whose
// return is being watched by the kernel: it alone knows where they go on.
var nowhere, kernels = &module{}, &module{}

// uprobesPage is the name of that mapping.
const uprobesPage = "[uprobes]"

// modules are the mappings of a process and the modules found in them.
type modules struct {
	space    Space
	files    *Files
	mappings []target.Mapping // by address
	found    []*module        // of each mapping, nil: not looked for yet
	misses   int              // addresses asked for in vain since the mappings were read
	patience int              // misses at which they are read again
}

// patienceMax bounds how many addresses are asked for in vain before the mappings are read again.
const patienceMax = 1 << 16

// at returns the module of the mapping that holds an address, nil when there is no such mapping. changed says that the
// mappings were read again and are others now.
func (m *modules) at(address uint64) (in *module, changed bool) {
	i, ok := m.search(address)
	if !ok {
		if changed = m.missed(); changed {
			i, ok = m.search(address)
		}
		if !ok {
			return nil, changed
		}
		m.patience = 1 // reading was worth it, it will be again
	}
	if m.found[i] == nil {
		m.found[i] = m.load(i)
	}
	return m.found[i], changed
}

func (m *modules) search(address uint64) (int, bool) {
	i, exact := slices.BinarySearchFunc(m.mappings, address, func(p target.Mapping, address uint64) int {
		return cmp.Compare(p.Start, address)
	})
	if !exact {
		i--
	}
	return i, i >= 0 && address < m.mappings[i].End
}

// missed reads the mappings again when that may help: after the first address asked for in vain, then after twice as
// many each time, so that a stack that is walked wrongly for ever costs little.
func (m *modules) missed() (changed bool) {
	m.misses++
	if m.misses < m.patience {
		return false
	}
	m.misses, m.patience = 0, min(max(2*m.patience, 2), patienceMax)
	return m.read()
}

// read reads the mappings and reports whether they are others than before.
func (m *modules) read() bool {
	mappings, ok := m.now()
	if !ok || slices.Equal(mappings, m.mappings) {
		return false
	}
	m.mappings, m.found = mappings, make([]*module, len(mappings))
	return true
}

// watched reports whether the mappings have the page of the kernel's own returns, of which there is one.
func (m *modules) watched() bool {
	return slices.ContainsFunc(m.mappings, func(p target.Mapping) bool { return p.Path == uprobesPage })
}

// renew reads the mappings, and finds the modules anew.
func (m *modules) renew() {
	m.misses, m.patience = 0, 0
	if mappings, ok := m.now(); ok {
		m.mappings, m.found = mappings, make([]*module, len(mappings))
	}
}

// now returns the mappings. ok is false when the process is gone: what is known of it holds for what it told before.
func (m *modules) now() (mappings []target.Mapping, ok bool) {
	mappings, err := m.space.Maps()
	return mappings, err == nil && len(mappings) > 0
}

// load finds the module of a mapping.
func (m *modules) load(i int) *module {
	p := &m.mappings[i]
	switch p.Path {
	case "[vdso]":
		return place(m.files.virtual(), p, p.Start)
	case uprobesPage:
		return kernels
	}
	if p.Inode == 0 || p.Path == "" || !p.Exec {
		return nowhere
	}
	first := &m.mappings[m.first(i)]
	image, readable := m.image(first)
	switch {
	case image != nil && !image.foreign:
		return place(image, p, first.Start)
	case image != nil || !readable:
		return &module{path: p.Path, base: first.Start, known: true}
	}
	return nowhere // a file of code that is no ELF file, which no dynamic linker has loaded
}

// image returns the ELF file that a mapping shows; see [Files.image].
func (m *modules) image(p *target.Mapping) (i *image, ok bool) {
	path, err := m.space.File(*p)
	if err != nil {
		return nil, false
	}
	return m.files.image(path)
}

// place works out where an image is; lowest is where it seems to begin.
func place(image *image, p *target.Mapping, lowest uint64) *module {
	module := &module{path: p.Path, base: lowest, known: true}
	if image == nil {
		return module
	}
	if bias, ok := image.bias(p); ok {
		module.image, module.bias, module.base = image, bias, image.base+bias
	}
	return module
}

// bias works out what to add to the file's addresses, by the segment whose pages the mapping shows. Where one segment
// ends and the next begins in the same page of the file, it is the one that the mapping begins with.
func (i *image) bias(p *target.Mapping) (bias uint64, ok bool) {
	begins := false
	for _, s := range i.segments {
		page := s.offset &^ (pageSize - 1)
		if !s.exec || p.Offset >= s.offset+s.size || p.Offset+(p.End-p.Start) <= page {
			continue
		}
		if !ok || page == p.Offset && !begins {
			bias, ok, begins = p.Start-p.Offset+s.offset-s.address, true, page == p.Offset
		}
	}
	return bias, ok
}

// first returns the first of the mappings of one file that belong together: their offsets rise with their addresses,
// and only memory without a file lies between them.
func (m *modules) first(i int) int {
	p := &m.mappings[i]
	first, offset := i, p.Offset
	for j := i - 1; j >= 0; j-- {
		q := &m.mappings[j]
		if q.Inode == 0 && q.Path == "" {
			continue
		}
		if q.Inode != p.Inode || q.Device != p.Device || q.Offset > offset {
			break
		}
		first, offset = j, q.Offset
	}
	return first
}
