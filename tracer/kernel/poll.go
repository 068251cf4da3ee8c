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
	// nap is how long Poll lets records gather before it looks again. The kernel rouses a reader that has read everything
	// with the next record, at the cost of the program that made it, and a reader that is always awake takes a processor
	// from it.
	nap = time.Millisecond
	// plenty is how many bytes are worth looking for at once.
	plenty = 256 << 10
)

// Batch bounds what one Poll hands over. When it is fewer, nothing more was there.
const Batch = 16384

// poller is what Poll knows from one call to the next.
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

// Poll hands over what was told, in the order of the ring: that of the calls' moments within one thread, and nearly that
// between threads. It waits at most wait for the first, less after Wake, and returns how many there were; there may be
// none earlier. What sink gets is valid until it returns. One goroutine may call it.
func (k *Kernel) Poll(wait time.Duration, sink func(*wire.Sample)) (int, error) {
	if err := k.rest(wait); err != nil {
		return 0, fmt.Errorf("wait for calls: %w", err)
	}
	p, n := k.poller, 0
	for ; n < Batch; n++ {
		record, end := k.ring.next()
		if record == nil {
			break
		}
		err := wire.DecodeSample(record, &p.sample)
		if err == nil {
			k.shortened.Add(uint64(p.sample.Shortened))
			sink(&p.sample)
		}
		k.ring.release(end)
		if err != nil {
			return n, fmt.Errorf("read the ring: %w", err)
		}
	}
	p.looked = time.Now()
	return n, nil
}

// Wake ends the wait of a Poll that runs, or of the next one, from any goroutine. It must not come after Close.
func (k *Kernel) Wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(k.poller.wake, one[:]) // it fails only when the count is full: then there is a wake already
}

// rest waits until it is worth looking into the ring. However much is in it, a record that is not yet written holds it up:
// its writer was interrupted, and may be waiting for the processor that we would take from it.
func (k *Kernel) rest(wait time.Duration) error {
	much := k.ring.waiting() >= min(plenty, uint64(k.options.RingBytes)/8)
	if wait <= 0 || much && !k.ring.held() {
		return nil
	}
	early := nap - time.Since(k.poller.looked)
	if early > 0 {
		if woken, err := k.poller.sleep(min(early, wait)); woken || err != nil {
			return err
		}
		wait -= early
	}
	if k.ring.waiting() > 0 || wait <= 0 {
		return nil
	}
	_, err := k.poller.sleep(wait, k.ring.fd)
	return err
}

// sleep returns after the time, or when one of the descriptors has something to read, or when it is woken.
func (p *poller) sleep(wait time.Duration, fds ...int) (woken bool, err error) {
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
