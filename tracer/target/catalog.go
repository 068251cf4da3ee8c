package target

import (
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Library is a file with OpenCL functions that a process has mapped: an ICD loader under any name, a program with a
// loader linked into it, or a vendor's library.
type Library struct {
	Path string // as the process sees it
	Open string // as we can open it, see Process.MappingPath
	Identity
	// Loader says that it is an ICD loader, or has the functions of one; otherwise it is a vendor's library.
	Loader bool
	// Functions are the offsets in the file to probe, by name, each offset once. For a vendor's library they include the
	// functions of OpenCL itself only if the process has no loader: otherwise calls would be reported twice. Do not change
	// the map; it is shared.
	Functions map[string]uint64
	// Missing are the extension functions of a vendor's library without a symbol and without a known address: see
	// QueryDrivers.
	Missing []string
	// Err says why a file that is named like an OpenCL library cannot be opened. All other fields but Path are then empty.
	Err error
}

// Catalog knows which files have OpenCL functions. It reads each file once, however many processes map it. It is for one
// goroutine.
type Catalog struct {
	core, extensions []string
	files            map[fileKey]*content // nil: no OpenCL
	learned          map[Identity]map[string]uint64
	linkers          map[fileKey]uint64 // offset of LinkerHook, 0: none
}

// filesMax bounds the cache.
const filesMax = 1 << 14

// fileKey changes whenever a file does, since ctime cannot be set back.
type fileKey struct {
	device, inode        uint64
	size, seconds, nanos int64
}

// content is what we found in a file. Its maps are shared and never change.
type content struct {
	identity   Identity
	loader     bool
	functions  map[string]uint64 // all to be probed
	extensions map[string]uint64 // those of extensions
	missing    []string
}

// NewCatalog returns a catalog that looks for these functions: those of OpenCL itself, which programs call through a
// loader, and those of extensions. If several names share an address, the first one stands for all, core names first: a
// breakpoint cannot tell them apart.
func NewCatalog(core, extensions []string) *Catalog {
	return &Catalog{
		core: core, extensions: extensions,
		files: map[fileKey]*content{}, learned: map[Identity]map[string]uint64{},
		linkers: map[fileKey]uint64{},
	}
}

// LibrariesOfProcess returns the files with OpenCL functions among a process's mappings, and with an error those that are named
// like an OpenCL library but cannot be opened. A process without any costs one stat(2) per file with code.
func (c *Catalog) LibrariesOfProcess(p *Process, maps []Mapping) []Library {
	var list []Library
	var contents []*content
	loader := false
	for _, m := range filesWithCode(maps) {
		library, found, err := c.readLibrary(p, m)
		if err == nil && found == nil || err != nil && !namedLikeOpenCL(m.Path) {
			continue
		}
		library.Err = err
		loader = loader || library.Loader
		list, contents = append(list, library), append(contents, found)
	}
	for i := range list {
		if contents[i] != nil {
			list[i].setFunctionsToProbe(contents[i], list[i].Loader || !loader)
		}
	}
	return list
}

// setFunctionsToProbe sets what to probe in a file: all functions, or only those that no loader has.
func (l *Library) setFunctionsToProbe(found *content, all bool) {
	l.Functions = found.extensions
	if all {
		l.Functions = found.functions
	}
	l.Missing = found.missing
}

func (c *Catalog) readLibrary(p *Process, m *Mapping) (Library, *content, error) {
	l := Library{Path: m.Path}
	path, info, err := p.openableFile(m)
	if err != nil {
		return l, nil, err
	}
	found, err := c.contentOfFile(path, info)
	if err != nil || found == nil {
		return l, nil, err
	}
	l.Open, l.Loader = path, found.loader
	l.Identity = found.identity
	return l, found, nil
}

// LibraryAt returns what is in a file that no process need have mapped. Functions is empty if it has no OpenCL functions.
func (c *Catalog) LibraryAt(path string) (Library, error) {
	l := Library{Path: path, Open: path}
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return l, err
	}
	found, err := c.contentOfFile(path, &info)
	if err != nil || found == nil {
		return l, err
	}
	l.Identity, l.Loader = found.identity, found.loader
	l.setFunctionsToProbe(found, found.loader)
	return l, nil
}

// filesWithCode returns the files with mapped code, each by its first mapping. It leaves out our own library, whose OpenCL
// functions stand in front of the loader's.
func filesWithCode(list []Mapping) []*Mapping {
	type file struct {
		device, inode uint64
		path          string
	}
	var order []*Mapping
	first := map[file]*Mapping{}
	runs := map[file]bool{}
	for i := range list {
		m := &list[i]
		if !isMappingOfFile(m) || filepath.Base(m.Path) == wire.ShimName {
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

func namedLikeOpenCL(path string) bool {
	return strings.Contains(strings.ToLower(filepath.Base(path)), "opencl")
}

func keyOfFile(info *unix.Stat_t) fileKey {
	return fileKey{info.Dev, info.Ino, info.Size, info.Ctim.Sec, info.Ctim.Nsec}
}

// contentOfFile returns what is in a file, nil if it has no OpenCL functions.
func (c *Catalog) contentOfFile(path string, info *unix.Stat_t) (*content, error) {
	key := keyOfFile(info)
	found, known := c.files[key]
	if known {
		return found, nil
	}
	file, opened, err := openIfSame(path, info)
	if err != nil || file == nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	found = c.contentToProbe(readSymbols(file), identifyOpenFile(path, opened))
	if len(c.files) >= filesMax {
		clear(c.files)
	}
	c.files[keyOfFile(opened)] = found
	return found, nil
}

// openIfSame opens the file that a path led to when info was read, and returns its current status. The file is nil if it was
// replaced since.
func openIfSame(path string, info *unix.Stat_t) (*os.File, *unix.Stat_t, error) {
	file, err := untrusted.OpenRegular(path, 0)
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

// kind classifies a file by the names of its functions.
type kind int

const (
	other kind = iota
	loader
	vendor
)

// Functions by which files are classified. Vendor libraries that programs can link against directly have all of them.
const (
	platforms    = "clGetPlatformIDs"
	buffers      = "clCreateBuffer"
	icdPlatforms = "IcdGetPlatformIDsKHR"
	addresses    = "GetExtensionFunctionAddress"
)

func kindByNames(names map[string]uint64) kind {
	asked := false
	for name := range names {
		switch {
		case hasPrefixAndRest(name, icdPlatforms):
			return vendor // loaders ask for it, none has it
		case hasPrefixAndRest(name, addresses):
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

// hasPrefixAndRest reports whether a name is a prefix and rest. The prefix is cl, or a vendor's that ends with it, as in POcl.
func hasPrefixAndRest(name, rest string) bool {
	prefix, found := strings.CutSuffix(name, rest)
	return found && strings.HasSuffix(strings.ToLower(prefix), "cl")
}

// contentToProbe returns the functions of a file that are to be probed.
func (c *Catalog) contentToProbe(s *symbols, id Identity) *content {
	found := &content{identity: id, functions: map[string]uint64{}, extensions: map[string]uint64{}}
	if s != nil {
		kind := kindByNames(s.dynamic)
		if kind == other {
			kind = kindByNames(s.all)
		}
		if kind != other {
			found.loader = kind == loader
			c.collectFunctions(found, s)
		}
	}
	found = c.withLearnedFunctions(found)
	if len(found.functions) == 0 && len(found.missing) == 0 {
		return nil
	}
	return found
}

// collectFunctions takes over the functions to be probed, each address once.
func (c *Catalog) collectFunctions(found *content, s *symbols) {
	taken := map[uint64]bool{}
	for _, name := range c.core {
		if offset, ok := s.all[name]; ok && !taken[offset] {
			taken[offset] = true
			found.functions[name] = offset
		}
	}
	prefixes := s.functionPrefixes()
	for _, name := range c.extensions {
		offset, ok := s.extensionOffset(name, prefixes)
		switch {
		case !ok && !found.loader:
			found.missing = append(found.missing, name)
		case ok && !taken[offset]:
			taken[offset] = true
			found.functions[name], found.extensions[name] = offset, offset
		}
	}
}

// functionPrefixes returns the prefixes of the file's functions: cl, and what the vendor uses instead.
func (s *symbols) functionPrefixes() []string {
	list := []string{"cl"}
	for name := range s.all {
		if prefix, found := strings.CutSuffix(name, addresses); found && prefix != "cl" && hasPrefixAndRest(name, addresses) {
			list = append(list, prefix)
		}
	}
	return list
}

func (s *symbols) extensionOffset(name string, prefixes []string) (uint64, bool) {
	for _, prefix := range prefixes {
		if offset, ok := s.all[prefix+strings.TrimPrefix(name, "cl")]; ok {
			return offset, true
		}
	}
	return 0, false
}

// LearnExtensions adds the addresses of extension functions without a symbol, for known and for later files. It does not change
// what Libraries has returned.
func (c *Catalog) LearnExtensions(list []Extension) {
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
			c.files[key] = c.withLearnedFunctions(found)
		case inodes[key.inode]:
			delete(c.files, key) // it may have functions after all
		}
	}
}

// withLearnedFunctions returns the content with the learned functions of its file.
func (c *Catalog) withLearnedFunctions(found *content) *content {
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
