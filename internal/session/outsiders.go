package session

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// outsiders hears of processes that load the library but may not come in: they became another user's, or locked themselves out
// as by landlock. The zero value hears nothing.
type outsiders struct{ conn *net.UnixConn }

func hearOutsiders(path string) (outsiders, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		err = control(conn, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	}
	if err == nil {
		err = os.Chmod(path, 0o222) // to send takes the right to write
	}
	if err != nil {
		return outsiders{}, fmt.Errorf("open session socket: %w", err)
	}
	return outsiders{conn}, nil
}

// knocked returns the user of a process that was not let in, if there was one. It does not wait.
func (s outsiders) knocked() (uid uint32, yes bool) {
	if s.conn == nil {
		return 0, false
	}
	var room [256]byte
	err := control(s.conn, func(fd int) error {
		_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), room[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err != nil {
			return err
		}
		messages, err := unix.ParseSocketControlMessage(room[:n])
		for i := range messages {
			if who, wrong := unix.ParseUnixCredentials(&messages[i]); wrong == nil {
				uid, yes = who.Uid, true
			}
		}
		return err
	})
	return uid, yes && err == nil
}

func (s outsiders) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
