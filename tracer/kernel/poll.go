package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	// pollInterval is how long Poll lets records gather. A reader that has read everything is woken by the next record, at
	// the cost of the program that made it; a reader that never sleeps takes a processor from that program.
	pollInterval = time.Millisecond
	// wakeBytes is how many bytes are worth reading at once.
	wakeBytes = 256 << 10
)

// Batch is how many samples one Poll passes on at most. If it passes on fewer, the ring was empty.
const Batch = 16384

// poller is the state between two Polls.
type poller struct {
	wake   int // an eventfd
	looked time.Time
	sample wire.Sample
}

func openPoller() (*poller, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create an eventfd: %w", err)
	}
	return &poller{wake: wake}, nil
}

// Poll passes samples to sink, in the order of the ring: by time within a thread, almost so between threads. It waits at
// most wait for the first, less after Wake, and returns their number, which may be 0 earlier. A sample is valid until
// sink returns. One goroutine at a time may call it.
func (k *Kernel) Poll(wait time.Duration, sink func(*wire.Sample)) (int, error) {
	if err := k.awaitRecords(wait); err != nil {
		return 0, fmt.Errorf("wait for calls: %w", err)
	}
	p, n := k.poller, 0
	for ; n < Batch; n++ {
		record, end := k.ring.oldestRecord()
		if record == nil {
			break
		}
		err := wire.DecodeSample(record, &p.sample)
		if err == nil {
			k.shortened.Add(uint64(p.sample.Shortened))
			sink(&p.sample)
		}
		k.ring.freeUpTo(end)
		if err != nil {
			return n, fmt.Errorf("read the ring: %w", err)
		}
	}
	p.looked = time.Now()
	return n, nil
}

// WakePoll ends the wait of the running Poll, or of the next one. Any goroutine may call it, but not after Close.
func (k *Kernel) WakePoll() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(k.poller.wake, one[:]) // fails only if a wake is already pending
}

// awaitRecords waits until reading the ring is worthwhile. If the oldest record is not complete, no others can be read
// however many there are: its writer was interrupted, and may be waiting for the processor that we would take from it.
func (k *Kernel) awaitRecords(wait time.Duration) error {
	much := k.ring.unreadBytes() >= min(wakeBytes, uint64(k.options.RingBytes)/8)
	if wait <= 0 || much && !k.ring.isOldestIncomplete() {
		return nil
	}
	early := pollInterval - time.Since(k.poller.looked)
	if early > 0 {
		if woken, err := k.poller.sleepUntilReadable(min(early, wait)); woken || err != nil {
			return err
		}
		wait -= early
	}
	if k.ring.unreadBytes() > 0 || wait <= 0 {
		return nil
	}
	_, err := k.poller.sleepUntilReadable(wait, k.ring.fd)
	return err
}

// sleepUntilReadable returns after the time, when a descriptor is readable, or when Wake is called.
func (p *poller) sleepUntilReadable(wait time.Duration, fds ...int) (woken bool, err error) {
	polled := []unix.PollFd{{Fd: int32(p.wake), Events: unix.POLLIN}}
	for _, fd := range fds {
		polled = append(polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	timeout := unix.NsecToTimespec(wait.Nanoseconds())
	if _, err := unix.Ppoll(polled, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return false, err
	}
	if polled[0].Revents == 0 {
		return false, nil
	}
	var count [8]byte
	_, err = unix.Read(p.wake, count[:])
	if errors.Is(err, unix.EAGAIN) {
		err = nil
	}
	return true, err
}

func (p *poller) close() error { return unix.Close(p.wake) }
