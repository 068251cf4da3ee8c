package kernel

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Header of a record: kernel/bpf/ringbuf.c, struct bpf_ringbuf_hdr.
const (
	recordHeader    = 8
	recordBusy      = 1 << 31 // reserved, not complete
	recordDiscarded = 1 << 30
)

// ring reads a BPF ring buffer in place. The reader of the ebpf package copies every record, and spins while the oldest
// is not complete, which may take long if its writer was interrupted.
type ring struct {
	fd                 int
	positions, records []byte
	tail               *uint64 // ours: end of what was read
	head               *uint64 // the kernel's: end of what was written
	data               []byte  // the ring, mapped twice in a row so that no record is split
	mask               uint64
}

func openRing(m *ebpf.Map) (*ring, error) {
	size, page := int(m.MaxEntries()), os.Getpagesize()
	positions, err := unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, explainKernelError("map the ring's position", err)
	}
	records, err := unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(positions)
		return nil, explainKernelError("map the ring", err)
	}
	return &ring{
		fd: m.FD(), positions: positions, records: records,
		tail: (*uint64)(unsafe.Pointer(&positions[0])), head: (*uint64)(unsafe.Pointer(&records[0])),
		data: records[page:], mask: uint64(size) - 1,
	}, nil
}

func (r *ring) close() error {
	return errors.Join(unix.Munmap(r.positions), unix.Munmap(r.records))
}

// unreadBytes returns how many bytes are unread.
func (r *ring) unreadBytes() uint64 { return atomic.LoadUint64(r.head) - atomic.LoadUint64(r.tail) }

// headerAt returns the header word of the record at a position.
func (r *ring) headerAt(position uint64) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[position&r.mask])))
}

// isOldestIncomplete reports whether the oldest record is not complete. The ring must not be empty.
func (r *ring) isOldestIncomplete() bool { return r.headerAt(*r.tail)&recordBusy != 0 }

// oldestRecord returns the oldest record and its end, to be passed to release when the record is no longer used. It returns nil
// if there is none or it is not complete.
func (r *ring) oldestRecord() (record []byte, end uint64) {
	tail := *r.tail // only we write it
	for tail < atomic.LoadUint64(r.head) {
		at, header := tail&r.mask, r.headerAt(tail)
		if header&recordBusy != 0 {
			return nil, 0
		}
		size := uint64(header &^ recordDiscarded)
		tail += recordHeader + (size+7)&^7
		if header&recordDiscarded == 0 {
			return r.data[at+recordHeader:][:size:size], tail
		}
		r.freeUpTo(tail)
	}
	return nil, 0
}

// freeUpTo frees the ring up to end.
func (r *ring) freeUpTo(end uint64) { atomic.StoreUint64(r.tail, end) }
