package stack

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// module is an ELF file as mapped in a process.
type module struct {
	image *image // nil: cannot be used for unwinding
	path  string
	bias  uint64 // address in the process minus address in the file
	base  uint64 // lowest address, dli_fbase of dladdr
	known bool   // path and base are valid
}

// nowhere stands for code outside of modules, mostly generated at run time. kernels stands for the page to which probed
// functions return: only the kernel knows where they continue.
var nowhere, kernels = &module{}, &module{}

// uprobesPage is the name of that mapping.
const uprobesPage = "[uprobes]"

// modules are the mappings of a process and their modules.
type modules struct {
	space    Space
	files    *Files
	mappings []target.Mapping // by address
	found    []*module        // by mapping; nil: not looked up yet
	misses   int              // failed lookups since the mappings were read
	patience int              // failed lookups before they are read again
}

// patienceMax bounds patience.
const patienceMax = 1 << 16

// moduleAt returns the module at an address, nil if nothing is mapped there. changed says that the mappings were read again and
// have changed.
func (m *modules) moduleAt(address uint64) (in *module, changed bool) {
	i, ok := m.searchMapping(address)
	if !ok {
		if changed = m.rereadAfterMiss(); changed {
			i, ok = m.searchMapping(address)
		}
		if !ok {
			return nil, changed
		}
		m.patience = 1 // reading paid off, and may again
	}
	if m.found[i] == nil {
		m.found[i] = m.loadModule(i)
	}
	return m.found[i], changed
}

func (m *modules) searchMapping(address uint64) (int, bool) {
	i, exact := slices.BinarySearchFunc(m.mappings, address, func(p target.Mapping, address uint64) int {
		return cmp.Compare(p.Start, address)
	})
	if !exact {
		i--
	}
	return i, i >= 0 && address < m.mappings[i].End
}

// rereadAfterMiss reads the mappings again after the first failed lookup, and then after twice as many each time, so that stacks
// that never unwind cost little.
func (m *modules) rereadAfterMiss() (changed bool) {
	m.misses++
	if m.misses < m.patience {
		return false
	}
	m.misses, m.patience = 0, min(max(2*m.patience, 2), patienceMax)
	return m.rereadMappings()
}

// rereadMappings reads the mappings and reports whether they have changed.
func (m *modules) rereadMappings() bool {
	mappings, ok := m.readMappings()
	if !ok || slices.Equal(mappings, m.mappings) {
		return false
	}
	m.mappings, m.found = mappings, make([]*module, len(mappings))
	return true
}

// hasUprobesPage reports whether the page to which probed functions return is mapped.
func (m *modules) hasUprobesPage() bool {
	return slices.ContainsFunc(m.mappings, func(p target.Mapping) bool { return p.Path == uprobesPage })
}

// renewModules reads the mappings again and looks up all modules.
func (m *modules) renewModules() {
	m.misses, m.patience = 0, 0
	if mappings, ok := m.readMappings(); ok {
		m.mappings, m.found = mappings, make([]*module, len(mappings))
	}
}

// readMappings returns the mappings. ok is false if the process is gone: what we know of it then still holds for its last calls.
func (m *modules) readMappings() (mappings []target.Mapping, ok bool) {
	mappings, err := m.space.ReadMappings()
	return mappings, err == nil && len(mappings) > 0
}

// loadModule looks up the module of a mapping.
func (m *modules) loadModule(i int) *module {
	p := &m.mappings[i]
	switch p.Path {
	case "[vdso]":
		return moduleOfImage(m.files.vdsoImage(), p, p.Start)
	case uprobesPage:
		return kernels
	}
	if p.Inode == 0 || p.Path == "" || !p.Exec {
		return nowhere
	}
	first := &m.mappings[m.firstMappingOfFile(i)]
	image, readable := m.imageOf(first)
	switch {
	case image != nil && !image.foreign:
		return moduleOfImage(image, p, first.Start)
	case image != nil || !readable:
		return &module{path: p.Path, base: first.Start, known: true}
	}
	return nowhere // executable, but not ELF, so no dynamic linker has loaded it
}

// imageOf returns the ELF file of a mapping; see [Files.imageOfFile].
func (m *modules) imageOf(p *target.Mapping) (i *image, ok bool) {
	path, err := m.space.MappingPath(*p)
	if err != nil {
		return nil, false
	}
	return m.files.imageOfFile(path)
}

// moduleOfImage determines where an image is. lowest is where it seems to begin.
func moduleOfImage(image *image, p *target.Mapping, lowest uint64) *module {
	module := &module{path: p.Path, base: lowest, known: true}
	if image == nil {
		return module
	}
	if bias, ok := image.loadBias(p); ok {
		module.image, module.bias, module.base = image, bias, image.base+bias
	}
	return module
}

// loadBias returns the difference between addresses in the process and in the file, from the segment that the mapping shows.
// If two segments share a page of the file, it is the one at which the mapping begins.
func (i *image) loadBias(p *target.Mapping) (loadBias uint64, ok bool) {
	begins := false
	for _, s := range i.segments {
		page := s.offset &^ (pageSize - 1)
		if !s.exec || p.Offset >= s.offset+s.size || p.Offset+(p.End-p.Start) <= page {
			continue
		}
		if !ok || page == p.Offset && !begins {
			loadBias, ok, begins = p.Start-p.Offset+s.offset-s.address, true, page == p.Offset
		}
	}
	return loadBias, ok
}

// firstMappingOfFile returns the first of the mappings of one file that belong together: offsets rise with addresses, and only
// anonymous memory lies between them.
func (m *modules) firstMappingOfFile(i int) int {
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
