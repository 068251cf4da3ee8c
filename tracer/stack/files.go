package stack

import (
	"io"
	"os"
	"sync"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
)

// filesMax bounds the open files. Few files call OpenCL.
const filesMax = 256

// Files caches ELF files for the walkers of all processes. It opens each file once and reads unwind information only as
// needed. Any goroutine may call its methods.
type Files struct {
	mu     sync.Mutex
	images map[identity]*image
	open   []*os.File
	vdso   *image
	asked  bool // whether vdso was read
}

// identity identifies a file and its content.
type identity struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

// NewFiles returns an empty cache.
func NewFiles() *Files { return &Files{images: map[identity]*image{}} }

// Close closes the files. Walkers that share them find nothing in them afterwards.
func (f *Files) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.images)
	for _, file := range f.open {
		_ = file.Close() // only read
	}
	f.open = nil
	return nil
}

// imageOfFile returns the ELF file at a path, nil if the file is not ELF. ok is false if it could not be examined.
func (f *Files) imageOfFile(path string) (i *image, ok bool) {
	info, err := untrusted.StatRegular(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok = f.images[identifyFile(info)]; ok {
		return i, true
	}
	file, err := untrusted.OpenRegular(path, 0)
	if err != nil {
		return nil, false
	}
	if info, err = file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, false
	}
	return f.addFile(identifyFile(info), file), true
}

// addFile reads the file and adds it to the cache. The caller holds mu.
func (f *Files) addFile(id identity, file *os.File) *image {
	if len(f.images) >= filesMax {
		// Files that walkers still use are closed by the garbage collector.
		clear(f.images)
		f.open = nil
	}
	i := openImage(file)
	f.images[id] = i
	if i == nil || i.header == 0 {
		_ = file.Close() // nothing more will be read
		return i
	}
	f.open = append(f.open, file)
	return i
}

// vdsoImage returns the vdso, the ELF file that the kernel maps into every process.
func (f *Files) vdsoImage() *image {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked {
		f.asked = true
		f.vdso = openVDSO()
	}
	return f.vdso
}

func identifyFile(info os.FileInfo) identity {
	id := identity{size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode, id.changed = stat.Dev, stat.Ino, stat.Mtim
	}
	return id
}

// vdsoMax bounds the size of a vdso, which has two pages.
const vdsoMax = 1 << 20

// openVDSO reads our own vdso. It returns nil on failure.
func openVDSO() *image {
	auxiliary, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return nil
	}
	const vdsoEntry = 33 // AT_SYSINFO_EHDR
	c := cursor{data: auxiliary}
	for c.bytesLeft() > 0 {
		kind, value := c.readU64(), c.readU64()
		if kind != vdsoEntry {
			continue
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil
		}
		return openImage(io.NewSectionReader(memory, int64(value), vdsoMax)) // stays open as long as we run
	}
	return nil
}
