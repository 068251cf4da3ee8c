package wire

import (
	"sync/atomic"
	"unsafe"
)

// PostMessage puts an encoded message into the mailbox of the target, and reports whether there was room. The caller wakes the
// target, which waits for Bell to change.
func (r *Region) PostMessage(message []byte) bool {
	if r.posted-atomic.LoadUint32(&r.head.Taken) >= controls {
		return false
	}
	slot := &r.head.Control[r.posted%controls]
	copy((*[SizeofControl]byte)(unsafe.Pointer(slot))[:], message)
	r.posted++
	atomic.StoreUint32(&r.head.Posted, r.posted)
	return true
}

// FutexOfMailbox is the futex that Post changes.
func (r *Region) FutexOfMailbox() *uint32 { return &r.head.Posted }

// Mailbox is the target's end of its region's mailbox. One goroutine uses it.
type Mailbox struct {
	head  *rawRegion
	taken uint32
}

// NewMailbox reads the mailbox in a region's head.
func NewMailbox(head unsafe.Pointer) *Mailbox { return &Mailbox{head: (*rawRegion)(head)} }

// NextMessage takes the oldest message, and reports whether there was one.
func (m *Mailbox) NextMessage() (message Control, ok bool) {
	if atomic.LoadUint32(&m.head.Posted) == m.taken {
		return Control{}, false
	}
	slot := (*[SizeofControl]byte)(unsafe.Pointer(&m.head.Control[m.taken%controls]))
	message, _ = DecodeControl(slot[:]) // it has the right length
	m.taken++
	atomic.StoreUint32(&m.head.Taken, m.taken)
	return message, true
}

// FutexToWaitFor is the futex to wait for, and its value while the mailbox is empty.
func (m *Mailbox) FutexToWaitFor() (futex *uint32, empty uint32) { return &m.head.Posted, m.taken }
