package session

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// outsiders receives reports of processes that are not watched: a process became another user's, locked itself out, as with
// landlock, or started a program without the library, because it cannot reach the library, or because the library is for
// another machine. Forked children that use OpenCL also report here.
type outsiders struct {
	forked func(pid int, function string) // the process that is watched, and what its child called
	conns  []*net.UnixConn
	ears   sync.WaitGroup
	mu     sync.Mutex
	known  []string // reasons, each of another kind, in the order of their first times
	kinds  []string
	asked  []string // which devices they asked for before a context, each answer once
}

// listenToOutsiders opens the socket at a path, and the abstract socket of the same name.
func listenToOutsiders(path string, forked func(pid int, function string)) (*outsiders, error) {
	s := &outsiders{forked: forked}
	for _, name := range []string{path, "@" + path} {
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err == nil {
			s.conns = append(s.conns, conn)
			err = withDescriptor(conn, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
		}
		if err == nil && name == path {
			err = os.Chmod(path, 0o222) // to send takes the right to write
		}
		if err != nil {
			s.close()
			return nil, fmt.Errorf("open session socket: %w", err)
		}
	}
	for _, conn := range s.conns {
		s.ears.Go(func() { s.readReports(conn) })
	}
	return s, nil
}

// readReports notes the reports of processes, until it reads a message of our own.
func (s *outsiders) readReports(conn *net.UnixConn) {
	var text [wire.OutsiderMax]byte
	var room [256]byte
	for {
		n, rights, _, _, err := conn.ReadMsgUnix(text[:], room[:])
		if err != nil {
			return
		}
		messages, _ := unix.ParseSocketControlMessage(room[:rights])
		for i := range messages {
			who, err := unix.ParseUnixCredentials(&messages[i])
			if err == nil && int(who.Pid) == os.Getpid() {
				return
			}
			if report, forked := strings.CutPrefix(string(text[:n]), wire.OutsiderForked); forked && err == nil {
				s.passChildReport(who.Uid, strings.TrimRight(report, "\x00"))
			} else if err == nil {
				s.noteUnwatchedReason(who.Uid, strings.TrimRight(string(text[:n]), "\x00"))
			}
		}
	}
}

// passChildReport passes the report of a forked child on.
func (s *outsiders) passChildReport(uid uint32, report string) {
	pid, function, _ := strings.Cut(report, " ")
	if n, err := strconv.Atoi(pid); err == nil && int(uid) == os.Geteuid() {
		s.forked(n, function)
	}
}

// noteUnwatchedReason keeps the first reason of each kind.
func (s *outsiders) noteUnwatchedReason(uid uint32, program string) {
	kind, why := "user", fmt.Sprintf("it belongs to user %d", uid)
	foreign, isForeign := strings.CutPrefix(program, wire.OutsiderForeign)
	if answer, isAnswer := strings.CutPrefix(program, wire.OutsiderAsked); isAnswer {
		s.noteDeviceAnswer(answer)
		return
	}
	switch {
	case isForeign:
		kind, why = "machine", fmt.Sprintf("it started %q, a program of 32 bits, or for another processor or C library", foreign)
	case program != "":
		kind, why = "program", fmt.Sprintf("it started %q where the library was out of reach, as after chroot or a mount, or in a sandbox", program)
	case int(uid) == os.Geteuid():
		kind, why = "sandbox", "a sandbox, such as landlock, keeps it from the files of this session"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.kinds, kind) {
		s.kinds, s.known = append(s.kinds, kind), append(s.known, why)
	}
}

// answersMax bounds the answers that are kept: anything may send them.
const answersMax = 8

// noteDeviceAnswer keeps what clGetDeviceIDs returned.
func (s *outsiders) noteDeviceAnswer(answer string) {
	var kind uint64
	var status int32
	var found uint32
	if n, err := fmt.Sscanf(answer, "%x %d %d", &kind, &status, &found); n != 3 || err != nil {
		return
	}
	text := wire.DeviceIDsResultText(kind, status, found)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) < answersMax && !slices.Contains(s.asked, text) {
		s.asked = append(s.asked, text)
	}
}

// unwatchedReasons returns why processes that have reported so far are not watched, and ends readReports: it sends a message of our
// own, which comes after theirs.
func (s *outsiders) unwatchedReasons() []string {
	for _, conn := range s.conns {
		if own, err := net.DialUnix("unixgram", nil, conn.LocalAddr().(*net.UnixAddr)); err == nil {
			_ = own.SetWriteDeadline(time.Now().Add(helloTimeout))
			_, err = own.Write([]byte{0})
			_ = own.Close()
			if err == nil {
				continue
			}
		}
		_ = conn.Close()
	}
	s.ears.Wait()
	s.close()
	return s.known
}

func (s *outsiders) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}
