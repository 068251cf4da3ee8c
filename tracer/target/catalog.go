package target

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Library is a file that a process has mapped and that has functions of OpenCL: an ICD loader under any name, a program
// with a loader linked into it, or a vendor's library.
type Library struct {
	Path string // as the process sees it
	Open string // as we can open it, see Process.File
	Identity
	// Loader says that it is an ICD loader, or is called like one; else it is a vendor's library.
	Loader bool
	// Functions are the places to probe: names to offsets in the file. Each offset is there once. A vendor's library has
	// the functions of OpenCL itself only where the process has no loader: else they would be told twice. It is shared:
	// not to be changed.
	Functions map[string]uint64
	// Missing are the extension functions of a vendor's library that have no symbol and that nobody has learned: see
	// AskVendors.
	Missing []string
	// Err says why a library that looks like OpenCL by its name cannot be opened; all but Path is empty then.
	Err error
}

// Catalog knows which files have functions of OpenCL. A file is read once, however many processes map it. It is used by
// one goroutine.
type Catalog struct {
	core, extensions []string
	files            map[fileKey]*content // nil: nothing of OpenCL
	learned          map[Identity]map[string]uint64
	linkers          map[fileKey]uint64 // see hook
}

// filesMax bounds what is remembered. Nothing is lost with it but time.
const filesMax = 1 << 14

// fileKey changes when a file does: ctime cannot be set back.
type fileKey struct {
	device, inode        uint64
	size, seconds, nanos int64
}

// content is what was found in a file. The maps are never changed once they are there: others have them.
type content struct {
	identity   Identity
	loader     bool
	functions  map[string]uint64 // all that are wanted
	extensions map[string]uint64 // only those of extensions
	missing    []string
}

// NewCatalog returns a catalog of files that have these functions: those of OpenCL itself, which programs call through a
// loader, and those of extensions. Where two names have one address, the earlier one stands for both, and one of OpenCL
// itself before one of an extension: a breakpoint cannot tell under which name it was reached.
func NewCatalog(core, extensions []string) *Catalog {
	return &Catalog{
		core: core, extensions: extensions,
		files: map[fileKey]*content{}, learned: map[Identity]map[string]uint64{},
		linkers: map[fileKey]uint64{},
	}
}

// Libraries returns the files with functions of OpenCL among a process's mappings. What looks like OpenCL by its name
// but cannot be opened is there with its error. A process that has none costs one stat(2) for each file with code.
func (c *Catalog) Libraries(p *Process, maps []Mapping) []Library {
	var list []Library
	var contents []*content
	loader := false
	for _, m := range code(maps) {
		library, found, err := c.library(p, m)
		if err == nil && found == nil || err != nil && !promising(m.Path) {
			continue
		}
		library.Err = err
		loader = loader || library.Loader
		list, contents = append(list, library), append(contents, found)
	}
	for i := range list {
		if contents[i] != nil {
			list[i].fill(contents[i], list[i].Loader || !loader)
		}
	}
	return list
}

// fill says what of a file is to be probed: all, or only what no loader has.
func (l *Library) fill(found *content, all bool) {
	l.Functions = found.extensions
	if all {
		l.Functions = found.functions
	}
	l.Missing = found.missing
}

func (c *Catalog) library(p *Process, m *Mapping) (Library, *content, error) {
	l := Library{Path: m.Path}
	path, info, err := p.file(m)
	if err != nil {
		return l, nil, err
	}
	found, err := c.content(path, info)
	if err != nil || found == nil {
		return l, nil, err
	}
	l.Open, l.Loader = path, found.loader
	l.Identity = found.identity
	return l, found, nil
}

// File returns what is in a file that no process needs to have mapped yet. Functions is empty when it has nothing of
// OpenCL.
func (c *Catalog) File(path string) (Library, error) {
	l := Library{Path: path, Open: path}
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return l, err
	}
	found, err := c.content(path, &info)
	if err != nil || found == nil {
		return l, err
	}
	l.Identity, l.Loader = found.identity, found.loader
	l.fill(found, found.loader)
	return l, nil
}

// code returns the files of which code is mapped, each by its first mapping. The files of our own library are left out:
// it has functions of OpenCL in front of those of the loader.
func code(list []Mapping) []*Mapping {
	type file struct {
		device, inode uint64
		path          string
	}
	var order []*Mapping
	first := map[file]*Mapping{}
	runs := map[file]bool{}
	for i := range list {
		m := &list[i]
		if !isFile(m) || filepath.Base(m.Path) == wire.ShimName {
			continue
		}
		key := file{m.Device, m.Inode, m.Path}
		if first[key] == nil {
			first[key] = m
			order = append(order, m)
		}
		runs[key] = runs[key] || m.Exec
	}
	kept := order[:0]
	for _, m := range order {
		if runs[file{m.Device, m.Inode, m.Path}] {
			kept = append(kept, m)
		}
	}
	return kept
}

func promising(path string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(path)), "opencl")
}

func keyOf(info *unix.Stat_t) fileKey {
	return fileKey{info.Dev, info.Ino, info.Size, info.Ctim.Sec, info.Ctim.Nsec}
}

// content returns what is in a file, nil for nothing of OpenCL.
func (c *Catalog) content(path string, info *unix.Stat_t) (*content, error) {
	key := keyOf(info)
	found, known := c.files[key]
	if known {
		return found, nil
	}
	file, opened, err := openAs(path, info)
	if err != nil || file == nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	found = c.classify(readSymbols(file), identify(path, opened))
	if len(c.files) >= filesMax {
		clear(c.files)
	}
	c.files[keyOf(opened)] = found
	return found, nil
}

// openAs opens the file that a path led to when it was asked what that is, and tells the latest of it. The file is nil if
// it was replaced since: what is there now is not what was asked about.
func openAs(path string, info *unix.Stat_t) (*os.File, *unix.Stat_t, error) {
	file, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	var opened unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &opened)
	if err != nil || opened.Dev != info.Dev || opened.Ino != info.Ino {
		_ = file.Close()
		return nil, nil, err
	}
	return file, &opened, nil
}

// kind is what a file is by the names of its functions.
type kind int

const (
	other kind = iota
	loader
	vendor
)

// Functions by which files are known. Vendors that are also linked against directly have all of them.
const (
	platforms    = "clGetPlatformIDs"
	buffers      = "clCreateBuffer"
	icdPlatforms = "IcdGetPlatformIDsKHR"
	addresses    = "GetExtensionFunctionAddress"
)

func kindOf(names map[string]uint64) kind {
	asked := false
	for name := range names {
		switch {
		case hasPrefixed(name, icdPlatforms):
			return vendor // no loader has it: it is what loaders ask for
		case hasPrefixed(name, addresses):
			asked = true
		}
	}
	_, lists := names[platforms]
	_, creates := names[buffers]
	switch {
	case lists && creates:
		return loader
	case asked:
		return vendor
	}
	return other
}

// hasPrefixed reports whether a name is cl and a rest, or that of a vendor: POcl and that rest.
func hasPrefixed(name, rest string) bool {
	prefix, found := strings.CutSuffix(name, rest)
	return found && strings.HasSuffix(strings.ToLower(prefix), "cl")
}

// classify makes of a file's functions what is wanted of them.
func (c *Catalog) classify(s *symbols, id Identity) *content {
	found := &content{identity: id, functions: map[string]uint64{}, extensions: map[string]uint64{}}
	if s != nil {
		kind := kindOf(s.dynamic)
		if kind == other {
			kind = kindOf(s.all)
		}
		if kind != other {
			found.loader = kind == loader
			c.collect(found, s)
		}
	}
	found = c.withLearned(found)
	if len(found.functions) == 0 && len(found.missing) == 0 {
		return nil
	}
	return found
}

// collect takes the wanted functions over, each address once.
func (c *Catalog) collect(found *content, s *symbols) {
	taken := map[uint64]bool{}
	for _, name := range c.core {
		if offset, ok := s.all[name]; ok && !taken[offset] {
			taken[offset] = true
			found.functions[name] = offset
		}
	}
	prefixes := s.prefixes()
	for _, name := range c.extensions {
		offset, ok := s.extension(name, prefixes)
		switch {
		case !ok && !found.loader:
			found.missing = append(found.missing, name)
		case ok && !taken[offset]:
			taken[offset] = true
			found.functions[name], found.extensions[name] = offset, offset
		}
	}
}

// prefixes returns what the file's functions have in front of their names: cl, and what the vendor has there instead.
func (s *symbols) prefixes() []string {
	list := []string{"cl"}
	for name := range s.all {
		if prefix, found := strings.CutSuffix(name, addresses); found && prefix != "cl" && hasPrefixed(name, addresses) {
			list = append(list, prefix)
		}
	}
	return list
}

func (s *symbols) extension(name string, prefixes []string) (uint64, bool) {
	for _, prefix := range prefixes {
		if offset, ok := s.all[prefix+strings.TrimPrefix(name, "cl")]; ok {
			return offset, true
		}
	}
	return 0, false
}

// Learn takes in where extension functions lie that have no symbol: those of the files that are known, and of those to
// come. What Libraries has returned before stays as it was.
func (c *Catalog) Learn(list []Extension) {
	inodes := map[uint64]bool{}
	for _, e := range list {
		inodes[e.Inode] = true
		if c.learned[e.Identity] == nil {
			c.learned[e.Identity] = map[string]uint64{}
		}
		c.learned[e.Identity][e.Name] = e.Offset
	}
	for key, found := range c.files {
		switch {
		case found != nil:
			c.files[key] = c.withLearned(found)
		case inodes[key.inode]:
			delete(c.files, key) // it may have something after all
		}
	}
}

// withLearned returns the content with what was learned of its file.
func (c *Catalog) withLearned(found *content) *content {
	learned := c.learned[found.identity]
	if learned == nil {
		return found
	}
	more := &content{
		identity: found.identity, loader: found.loader,
		functions: maps.Clone(found.functions), extensions: maps.Clone(found.extensions),
	}
	taken := map[uint64]bool{}
	for _, offset := range found.functions {
		taken[offset] = true
	}
	for _, name := range c.extensions {
		offset, ok := learned[name]
		if _, there := more.functions[name]; ok && !there && !taken[offset] {
			taken[offset] = true
			more.functions[name], more.extensions[name] = offset, offset
		}
	}
	for _, name := range found.missing {
		if _, ok := learned[name]; !ok {
			more.missing = append(more.missing, name)
		}
	}
	return more
}
