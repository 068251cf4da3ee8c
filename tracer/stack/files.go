package stack

import (
	"io"
	"os"
	"sync"
	"syscall"
)

// filesMax bounds the files kept open; the code that calls OpenCL lies in few.
const filesMax = 256

// Files keeps what was found in ELF files, for the walkers of all processes that map them: each file is opened once and
// its unwind information read bit by bit, as it is needed. All methods may be called from any goroutine.
type Files struct {
	mu     sync.Mutex
	images map[identity]*image
	open   []*os.File
	vdso   *image
	asked  bool // for vdso
}

// identity tells a file, and when it was written anew.
type identity struct {
	device, inode uint64
	size          int64
	changed       syscall.Timespec
}

// NewFiles returns a cache that has opened nothing yet.
func NewFiles() *Files { return &Files{images: map[identity]*image{}} }

// Close closes the files; walkers that share them then find nothing more in them.
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

// image returns the ELF file under a path, nil when it is none. ok is false when it could not be looked at.
func (f *Files) image(path string) (i *image, ok bool) {
	// A device that is mapped may do things when it is opened, and a pipe may wait.
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok = f.images[identify(info)]; ok {
		return i, true
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	if info, err = file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, false
	}
	return f.keep(identify(info), file), true
}

// keep reads the file and takes it in. Under mu.
func (f *Files) keep(id identity, file *os.File) *image {
	if len(f.images) >= filesMax {
		// What walkers still use stays open until they are gone, and the garbage collector closes it.
		clear(f.images)
		f.open = nil
	}
	i := openImage(file)
	f.images[id] = i
	if i == nil || i.header == 0 {
		_ = file.Close() // nothing more will be read of it
		return i
	}
	f.open = append(f.open, file)
	return i
}

// virtual returns the vdso, the ELF file that the kernel puts into every process: the same into ours.
func (f *Files) virtual() *image {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.asked {
		f.asked = true
		f.vdso = openVDSO()
	}
	return f.vdso
}

func identify(info os.FileInfo) identity {
	id := identity{size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode, id.changed = stat.Dev, stat.Ino, stat.Mtim
	}
	return id
}

// vdsoMax is more than a vdso has: two pages.
const vdsoMax = 1 << 20

// openVDSO reads our own vdso, nil when it cannot.
func openVDSO() *image {
	auxiliary, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return nil
	}
	const vdsoEntry = 33 // AT_SYSINFO_EHDR
	c := cursor{data: auxiliary}
	for c.left() > 0 {
		kind, value := c.u64(), c.u64()
		if kind != vdsoEntry {
			continue
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return nil
		}
		return openImage(io.NewSectionReader(memory, int64(value), vdsoMax)) // open for as long as we run
	}
	return nil
}
