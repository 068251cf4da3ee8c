package kernel

import (
	"errors"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// What the kernel writes in front of a record: kernel/bpf/ringbuf.c, struct bpf_ringbuf_hdr.
const (
	recordHeader    = 8
	recordBusy      = 1 << 31 // reserved, and not yet written
	recordDiscarded = 1 << 30
)

// ring reads a BPF ring buffer where it lies. The reader of the ebpf package copies every record and spins, with the
// ring held up, while one is not yet written: its writer may have been interrupted for long.
type ring struct {
	fd                 int
	positions, records []byte
	tail               *uint64 // ours: read up to here
	head               *uint64 // the kernel's
	data               []byte  // the ring, twice in a row, so that no record is cut
	mask               uint64
}

func openRing(m *ebpf.Map) (*ring, error) {
	size, page := int(m.MaxEntries()), os.Getpagesize()
	positions, err := unix.Mmap(m.FD(), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, explain("map the ring's position", err)
	}
	records, err := unix.Mmap(m.FD(), int64(page), page+2*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Munmap(positions)
		return nil, explain("map the ring", err)
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

// waiting returns how many bytes wait to be read.
func (r *ring) waiting() uint64 { return atomic.LoadUint64(r.head) - atomic.LoadUint64(r.tail) }

// header returns what the kernel says of the record at a position.
func (r *ring) header(position uint64) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.data[position&r.mask])))
}

// held reports whether the oldest record of a ring that is not empty is not yet written.
func (r *ring) held() bool { return r.header(*r.tail)&recordBusy != 0 }

// next returns the oldest record and where the one after it begins. The record is valid until release is called with
// that. Nothing is returned when there is none or it is not yet written.
func (r *ring) next() (record []byte, end uint64) {
	tail := *r.tail // nobody else writes it
	for tail < atomic.LoadUint64(r.head) {
		at, header := tail&r.mask, r.header(tail)
		if header&recordBusy != 0 {
			return nil, 0
		}
		size := uint64(header &^ recordDiscarded)
		tail += recordHeader + (size+7)&^7
		if header&recordDiscarded == 0 {
			return r.data[at+recordHeader:][:size:size], tail
		}
		r.release(tail)
	}
	return nil, 0
}

// release gives the room of everything before end back.
func (r *ring) release(end uint64) { atomic.StoreUint64(r.tail, end) }
