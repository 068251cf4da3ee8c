package session

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bell is the futex by which the target's processes report that a ring is half full. It lies at the start of the settings
// file, which all of them map. Its value never changes, so the processes need no right to write there.
type bell struct {
	mem   []byte
	value uint32
	start sync.Once
	over  atomic.Bool
	ended chan struct{}
}

// openBell maps the settings at a path.
func openBell(path string) (*bell, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("map settings: %w", err)
	}
	defer file.Close() //nolint:errcheck // the mapping stays
	mem, err := unix.Mmap(int(file.Fd()), 0, int(unsafe.Sizeof(uint32(0))), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map settings: %w", err)
	}
	b := &bell{mem: mem, ended: make(chan struct{})}
	b.value = *b.futex()
	return b, nil
}

func (b *bell) futex() *uint32 { return (*uint32)(unsafe.Pointer(&b.mem[0])) }

// listenForRings calls wake whenever the bell rings, until close.
func (b *bell) listenForRings(wake func()) {
	b.start.Do(func() {
		go func() {
			defer close(b.ended)
			for b.awaitRing() && !b.over.Load() {
				wake()
			}
		}()
	})
}

// awaitRing returns true when the bell rings, false when waiting has failed for good.
func (b *bell) awaitRing() bool {
	const futexWait = 0
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(b.futex())), futexWait, uintptr(b.value), 0, 0, 0)
	return err == 0 || err == unix.EINTR
}

// bellPatience is for how long close tries to wake listen.
const bellPatience = time.Second

// endListening ends listen, unless the program has shortened the file: no wake reaches who waits for its memory then.
func (b *bell) endListening() {
	b.over.Store(true)
	b.start.Do(func() { close(b.ended) })
	for began := time.Now(); time.Since(began) < bellPatience; {
		wakeAll(b.futex()) // which goes unheard while nothing waits yet
		select {
		case <-b.ended:
			_ = unix.Munmap(b.mem)
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
}
