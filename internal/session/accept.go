package session

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	// peersMax bounds the processes that are watched at once: each one maps a region of 134 MB of address space.
	peersMax = 4096
	// helloTimeout bounds how long a connection may stay silent. A shim sends its hello right after connecting.
	helloTimeout = time.Second
)

// acceptor takes in the processes of the target.
type acceptor struct {
	listener  *net.UnixListener
	join      func(*peer) // called from many goroutines
	warn      func(string)
	hellos    sync.WaitGroup
	refusal   sync.Once
	outsiders *outsiders
	slots     chan struct{}
	settled   chan struct{} // closed when the connection of stopAccepting has been accepted
}

func listenForProcesses(path string, join func(*peer), warn func(string)) (*acceptor, error) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("open session socket: %w", err)
	}
	return &acceptor{
		listener: listener, join: join, warn: warn,
		slots: make(chan struct{}, peersMax), settled: make(chan struct{}),
	}, nil
}

// acceptProcesses accepts connections until the listener is closed.
func (a *acceptor) acceptProcesses() {
	warned := false
	for {
		conn, err := a.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// The process stays in the queue. It is accepted once another process has ended.
			if !warned {
				a.warn(acceptErrorText(err))
			}
			warned = true
			time.Sleep(10 * time.Millisecond)
			continue
		}
		warned = false
		if peerCredentials(conn).Pid == int32(os.Getpid()) {
			_ = conn.Close()
			close(a.settled)
			return
		}
		a.hellos.Go(func() { a.receiveProcess(conn) })
	}
}

// acceptErrorText says why a process has to wait.
func acceptErrorText(err error) string {
	if errors.Is(err, unix.EMFILE) {
		return "processes are not watched while too many files are open: ulimit -n allows more"
	}
	return fmt.Sprintf("processes are not watched for now: %v", err)
}

// stopAccepting waits until every process that connected so far has joined, and accepts no more. To know when that is, it puts a
// connection of our own at the end of the queue. It returns why other processes are not watched.
func (a *acceptor) stopAccepting() []string {
	conn, err := net.DialUnix("unixpacket", nil, a.listener.Addr().(*net.UnixAddr))
	if err == nil {
		select {
		case <-a.settled:
		case <-time.After(helloTimeout):
		}
		_ = conn.Close()
	}
	_ = a.listener.Close()
	a.hellos.Wait()
	return a.outsiders.unwatchedReasons()
}

func (a *acceptor) receiveProcess(conn *net.UnixConn) {
	select {
	case a.slots <- struct{}{}:
	default:
		a.refuseConnection(conn, errors.New("too many at a time"))
		return
	}
	p, err := receiveHello(conn)
	if err != nil {
		<-a.slots
		a.refuseConnection(conn, err)
		return
	}
	a.join(p)
}

// refuseConnection ends a connection, and warns of the first: a program could make any number of them.
func (a *acceptor) refuseConnection(conn *net.UnixConn, why error) {
	a.refusal.Do(func() { a.warn(fmt.Sprintf("a process is not watched: %v; more like it are not reported", why)) })
	_ = conn.Close()
}

// freeSlot makes room for another process.
func (a *acceptor) freeSlot() { <-a.slots }

// regionIn returns the region in mem, whose events then have times of our clock.
func regionIn(mem []byte) (*wire.Region, error) {
	region, err := wire.NewRegion(mem)
	if err == nil {
		region.SetClockShift(MonotonicNow(), uint64(time.Now().UnixNano()))
	}
	return region, err
}

// receiveHello reads a hello with its descriptor and maps the region. Nothing in it is trusted.
func receiveHello(conn *net.UnixConn) (*peer, error) {
	who := peerCredentials(conn)
	if int(who.Uid) != os.Geteuid() && int(who.Uid) != os.Getuid() {
		return nil, fmt.Errorf("it belongs to user %d", who.Uid)
	}
	hello, fd, err := readHello(conn)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // lease and mapping stay
	mem, held, err := mapRegion(fd)
	if err != nil {
		return nil, err
	}
	var region *wire.Region
	if runCatchingFault(func() { region, err = regionIn(mem) }) != 0 {
		err = errors.New("its shared memory went away")
	}
	if err != nil {
		_ = unix.Munmap(mem)
		held.release()
		return nil, err
	}
	p := &peer{conn: conn, lease: held, mem: mem, region: region, pid: hello.PID, own: hello.PID, parent: hello.Parent, command: hello.Arguments}
	p.place = untrusted.ReadProcessPlace(fmt.Sprintf("/proc/%d", who.Pid))
	if who.Pid > 0 { // what we can see it as, should it live in a pid namespace of its own
		p.pid = int(who.Pid)
	}
	return p, nil
}

// peerCredentials returns who made a connection, unknown ids if the kernel does not say.
func peerCredentials(conn *net.UnixConn) unix.Ucred {
	unknown := unix.Ucred{Uid: ^uint32(0), Gid: ^uint32(0)}
	var who *unix.Ucred
	err := withDescriptor(conn, func(fd int) (err error) {
		who, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return unknown
	}
	return *who
}

// readHello returns the message and the one descriptor that comes with it.
func readHello(conn *net.UnixConn) (wire.Hello, int, error) {
	var message [wire.SizeofHello + 1]byte
	var rights [256]byte
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return wire.Hello{}, -1, err
	}
	n, rightsLen, _, _, err := conn.ReadMsgUnix(message[:], rights[:])
	if err != nil {
		return wire.Hello{}, -1, fmt.Errorf("read its hello: %w", err)
	}
	fds := parseDescriptors(rights[:rightsLen])
	hello, err := wire.DecodeHello(message[:n])
	if err == nil && len(fds) == 0 {
		err = fmt.Errorf("it may not share the %d MiB of memory that a session reserves: ulimit -f or -v allows less", wire.RegionSize>>20)
	}
	if err == nil && len(fds) > 1 {
		err = fmt.Errorf("its hello carries %d descriptors, want 1", len(fds))
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return wire.Hello{}, -1, err
	}
	return hello, fds[0], nil
}

func parseDescriptors(rights []byte) []int {
	var fds []int
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

// mapRegion maps a descriptor that ought to be a memfd of the right size.
func mapRegion(fd int) ([]byte, lease, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, noLease, fmt.Errorf("stat its shared memory: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < wire.RegionSize {
		return nil, noLease, fmt.Errorf("its shared memory has %d bytes, want %d", st.Size, wire.RegionSize)
	}
	l := lockSentFile(fd)
	if l != noLease {
		fd = int(l)
	}
	mem, err := unix.Mmap(fd, 0, wire.RegionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		l.release()
		return nil, noLease, fmt.Errorf("map its shared memory: %w", err)
	}
	return mem, l, nil
}
