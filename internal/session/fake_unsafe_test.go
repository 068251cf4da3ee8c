package session

import (
	"net"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Places in a region, as event.h lays it out. They are written down a second time so that a change of the header
// that forgets the reader shows up here.
const (
	fakeMagic    = 0x31504d474d45474d
	fakeUsed     = 4144
	fakeRings    = 8192
	fakeRingSize = 192 + fakeSlots*64
	fakeEvents   = 192
	fakeSlots    = 16384
)

// tester is what *testing.T, *testing.B and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}

// fakeTarget is the producer's side of a region, as the shim has it.
type fakeTarget struct {
	t    tester
	fd   int
	mem  []byte
	conn *net.UnixConn

	mailbox *wire.Mailbox
}

func newFakeTarget(t tester) *fakeTarget {
	t.Helper()
	fd, err := unix.MemfdCreate("fake", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, wire.RegionSize); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fd, 0, wire.RegionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeTarget{t: t, fd: fd, mem: mem}
	*(*uint64)(f.at(0)) = fakeMagic
	for i, v := range []uint32{wire.Version, wire.Rings, fakeSlots, uint32(os.Getpid())} {
		*(*uint32)(f.at(8 + 4*i)) = v
	}
	t.Cleanup(f.vanish)
	return f
}

// vanish gives back what the kernel takes from a process that ends, except the socket.
func (f *fakeTarget) vanish() {
	if f.mem == nil {
		return
	}
	_ = unix.Close(f.fd)
	_ = unix.Munmap(f.mem)
	f.mem = nil
}

func (f *fakeTarget) at(offset int) unsafe.Pointer { return unsafe.Pointer(&f.mem[offset]) }

func (f *fakeTarget) word(ring, offset int) *uint64 {
	return (*uint64)(f.at(fakeRings + ring*fakeRingSize + offset))
}

// put writes an event with its payload into a ring.
func (f *fakeTarget) put(ring int, e wire.Event, payload string) {
	if payload != "" {
		e.Size = uint64(len(payload))
	}
	f.use(ring)
	head := *f.word(ring, 0)
	slot := func(n uint64) int { return fakeRings + ring*fakeRingSize + fakeEvents + int(n%fakeSlots)*64 }
	*(*wire.Event)(f.at(slot(head))) = e
	head++
	for ; payload != ""; head++ {
		n := copy(f.mem[slot(head):slot(head)+64], payload)
		payload = payload[n:]
	}
	atomic.StoreUint64(f.word(ring, 0), head)
}

// use gives a ring an owner.
func (f *fakeTarget) use(ring int) {
	used := (*uint32)(f.at(fakeUsed))
	atomic.StoreUint32(used, max(atomic.LoadUint32(used), uint32(ring+1)))
}

// lose counts events that did not fit.
func (f *fakeTarget) lose(ring int, lost, uses uint64) {
	f.use(ring)
	atomic.AddUint64(f.word(ring, 128), lost)
	atomic.AddUint64(f.word(ring, 136), uses)
}

// fakeHello returns the first message of a process.
func fakeHello(pid int, text string) []byte {
	b := make([]byte, wire.SizeofHello)
	*(*uint64)(unsafe.Pointer(&b[0])) = fakeMagic
	for i, v := range []uint32{wire.Version, uint32(pid), 1, uint32(len(text))} {
		*(*uint32)(unsafe.Pointer(&b[8+4*i])) = v
	}
	copy(b[24:], text)
	return b
}

// peer makes the consumer's side in this process, with a socket whose other end is f.conn, and no lease.
func (f *fakeTarget) peer(pid int) *peer {
	p := f.leased(pid)
	p.lease.release()
	p.lease = noLease
	return p
}

// leased is peer with a lease.
func (f *fakeTarget) leased(pid int) *peer {
	f.t.Helper()
	mem, held, err := mapRegion(f.fd)
	if err != nil {
		f.t.Fatal(err)
	}
	region, err := wire.NewRegion(mem)
	if err != nil {
		f.t.Fatal(err)
	}
	ours, theirs := socketPair(f.t)
	f.conn = theirs
	return &peer{conn: ours, lease: held, mem: mem, region: region, pid: pid, command: []string{"fake", "arg"}}
}

// message takes the oldest message from the mailbox.
func (f *fakeTarget) message() (wire.Control, bool) {
	if f.mailbox == nil {
		f.mailbox = wire.NewMailbox(f.at(0))
	}
	return f.mailbox.NextMessage()
}

func socketPair(t tester) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := [2]*net.UnixConn{}
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		conns[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conns[0], conns[1]
}
