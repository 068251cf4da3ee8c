package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// directedMost bounds the programs of one run that are directed.
const directedMost = 32

// director puts messages into the mailboxes of the programs that a session watches. It finds their shared memory at the session,
// which sends nothing itself without a dashboard.
type director struct {
	session int                         // its pid
	next    func(program, n int) string // the nth message for a program; empty: none now
	seen    map[uint64]bool             // inodes of shared memory that was found
	regions []*wire.Region
	sent    []int
	stop    chan struct{}
	stopped chan struct{}
}

// direct sends messages until the director stops.
func direct(session int, next func(program, n int) string) *director {
	d := &director{session: session, next: next, seen: map[uint64]bool{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(d.stopped)
		for {
			d.look()
			for program := range d.regions {
				d.send(program)
			}
			select {
			case <-d.stop:
				return
			case <-time.After(500 * time.Microsecond):
			}
		}
	}()
	return d
}

// end stops and returns how many messages were sent.
func (d *director) end() (sent int) {
	close(d.stop)
	<-d.stopped
	for _, n := range d.sent {
		sent += n
	}
	return sent
}

// look finds new programs.
func (d *director) look() {
	folder := fmt.Sprintf("/proc/%d/fd", d.session)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		target, err := os.Readlink(path)
		info, gone := os.Stat(path)
		if err != nil || gone != nil || !strings.HasPrefix(target, "/memfd:gpumemtop") || len(d.regions) == directedMost {
			continue
		}
		if status, ok := info.Sys().(*syscall.Stat_t); ok && !d.seen[status.Ino] {
			d.seen[status.Ino] = true
			d.enter(path)
		}
	}
}

// enter maps a program's shared memory.
func (d *director) enter(path string) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	mem, err := unix.Mmap(int(file.Fd()), 0, wire.RegionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return
	}
	region, err := wire.NewRegion(mem)
	if err != nil {
		return
	}
	d.regions, d.sent = append(d.regions, region), append(d.sent, 0)
}

// send gives a program the messages for which there is room.
func (d *director) send(program int) {
	region := d.regions[program]
	for {
		text := d.next(program, d.sent[program])
		if text == "" {
			return
		}
		message, err := wire.Control{Sequence: uint64(1_000_000 + d.sent[program]), Text: text}.Encode()
		if err != nil || !region.PostMessage(message) {
			return
		}
		d.sent[program]++
		const futexWake, all = 1, 1 << 30
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(region.FutexOfMailbox())), futexWake, all, 0, 0, 0)
	}
}

// farthest is a request that few programs of a soak reach.
const farthest = 4000

// upheaval sends experiments one after the other. It knows no numbers of requests: in each experiment, turns have ever larger
// numbers, and the core takes those that are yet to come.
func upheaval(seed uint64, alternatives []string) func(program, n int) string {
	random := rand.New(rand.NewPCG(seed, 52))
	type round struct {
		from   uint64
		begins time.Time
	}
	rounds := map[int]*round{}
	return func(program, n int) string {
		r := rounds[program]
		switch {
		case r == nil || r.from > farthest:
			wait := time.Duration(0)
			if r != nil {
				wait = time.Duration(5+random.IntN(60)) * time.Millisecond
			}
			rounds[program] = &round{begins: time.Now().Add(wait)}
			return ""
		case time.Now().Before(r.begins):
			return ""
		case r.from == 0:
			r.from = 1
			if n > 0 && random.IntN(8) == 0 {
				return "arms"
			}
			return "arms " + alternatives[random.IntN(len(alternatives))]
		}
		from := r.from
		r.from += 1 + r.from/32*random.Uint64N(3)
		return fmt.Sprintf("arm %d %d", random.IntN(2), from)
	}
}
