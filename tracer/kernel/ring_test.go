package kernel

import (
	"encoding/binary"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fakeRing returns the kernel's side of a ring, in our memory.
func fakeRing(size int) *ring {
	return &ring{tail: new(uint64), head: new(uint64), data: make([]byte, 2*size), mask: uint64(size) - 1}
}

func (r *ring) put(flags uint32, record string) {
	size := len(r.data) / 2
	at := int(*r.head & r.mask)
	bytes := binary.NativeEndian.AppendUint32(nil, uint32(len(record))|flags)
	bytes = append(append(bytes, 0, 0, 0, 0), record...)
	for i, b := range bytes { // the second half maps the same memory
		r.data[(at+i)%size], r.data[(at+i)%size+size] = b, b
	}
	*r.head += uint64((len(bytes) + 7) &^ 7)
}

func TestRing(t *testing.T) {
	r := fakeRing(64)
	next := func(want string) {
		t.Helper()
		record, end := r.oldestRecord()
		if string(record) != want {
			t.Fatalf("the next record is %q, want %q", record, want)
		}
		if record != nil {
			r.freeUpTo(end)
		}
	}
	next("")
	for range 10 { // several rounds
		r.put(0, "first")
		r.put(recordDiscarded, "nothing")
		r.put(0, "second one")
		next("first")
		next("second one")
		next("")
		if r.unreadBytes() != 0 {
			t.Fatalf("%d bytes pending in an empty ring", r.unreadBytes())
		}
	}
	r.put(recordBusy, "half written")
	r.put(0, "later")
	next("")
	binary.NativeEndian.PutUint32(r.data[*r.tail&r.mask:], uint32(len("half written")))
	next("half written")
	next("later")
}

// A record that is not complete blocks those after it. Poll gives its writer time, and does not wake up again at once.
func TestPollRestsWhileARecordIsWritten(t *testing.T) {
	p, err := openPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	k := &Kernel{options: Options{RingBytes: 4096}, ring: fakeRing(4096), poller: p}
	call := string(wire.AppendSample(nil, &wire.Sample{}))
	poll := func(want int) (rested bool) {
		t.Helper()
		k.WakePoll()                           // ends the wait, or the next one
		p.looked = time.Now().Add(time.Minute) // so that the wait would be long
		if n, err := k.Poll(time.Hour, func(*wire.Sample) {}); n != want || err != nil {
			t.Fatalf("%d calls, %v; want %d", n, err, want)
		}
		woken, err := p.sleepUntilReadable(0)
		if err != nil {
			t.Fatal(err)
		}
		return !woken
	}
	k.ring.put(recordBusy, call)
	for range 4 {
		k.ring.put(0, call)
	}
	if !poll(0) {
		t.Error("Poll did not wait while the oldest record was incomplete")
	}
	binary.NativeEndian.PutUint32(k.ring.data[*k.ring.tail&k.ring.mask:], uint32(len(call)))
	if poll(5) {
		t.Error("Poll waited with much to read")
	}
}
