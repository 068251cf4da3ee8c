package kernel

import (
	"encoding/binary"
	"testing"
)

// The kernel's part of a ring, in our memory.
func fakeRing(size int) *ring {
	return &ring{tail: new(uint64), head: new(uint64), data: make([]byte, 2*size), mask: uint64(size) - 1}
}

func (r *ring) put(flags uint32, record string) {
	size := len(r.data) / 2
	at := int(*r.head & r.mask)
	bytes := binary.NativeEndian.AppendUint32(nil, uint32(len(record))|flags)
	bytes = append(append(bytes, 0, 0, 0, 0), record...)
	for i, b := range bytes { // the second half is the same memory as the first
		r.data[(at+i)%size], r.data[(at+i)%size+size] = b, b
	}
	*r.head += uint64((len(bytes) + 7) &^ 7)
}

func TestRing(t *testing.T) {
	r := fakeRing(64)
	next := func(want string) {
		t.Helper()
		record, end := r.next()
		if string(record) != want {
			t.Fatalf("the next record is %q, want %q", record, want)
		}
		if record != nil {
			r.release(end)
		}
	}
	next("")
	for range 10 { // several times around
		r.put(0, "first")
		r.put(recordDiscarded, "nothing")
		r.put(0, "second one")
		next("first")
		next("second one")
		next("")
		if r.waiting() != 0 {
			t.Fatalf("%d bytes wait in an empty ring", r.waiting())
		}
	}
	r.put(recordBusy, "half written")
	r.put(0, "later")
	next("")
	binary.NativeEndian.PutUint32(r.data[*r.tail&r.mask:], uint32(len("half written")))
	next("half written")
	next("later")
}
