package session

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// roleEnv makes the test binary play a target's part instead of running tests.
const roleEnv = "SESSION_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play(role)
	}
	os.Exit(m.Run())
}

func play(role string) {
	switch role {
	case "opencl": // connects, writes three events, and is gone
		target := connectedTarget(&bareTester{}, fakeHello(os.Getpid(), "fake\x00--flag\x00"))
		for i := range uint64(3) {
			target.put(0, create(MonotonicNow(), i+1), "")
		}
		target.put(0, wire.Event{Time: MonotonicNow(), Kind: wire.KindExit, Status: -1}, "")
		os.Exit(3)
	case "garbage": // says something else than hello
		connectedTarget(&bareTester{}, []byte("good morning"))
		os.Exit(0)
	default:
		number, err := strconv.Atoi(role)
		if err != nil {
			panic(err)
		}
		Status{Signal: number}.EndLikeTarget()
	}
}

// connectedTarget does what the shim does at the first OpenCL call.
func connectedTarget(t tester, hello []byte) *fakeTarget {
	target := newFakeTarget(t)
	path := filepath.Join(os.Getenv(wire.SessionEnv), wire.SocketName)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.WriteMsgUnix(hello, unix.UnixRights(target.fd), nil); err != nil {
		t.Fatal(err)
	}
	target.conn = conn
	return target
}

// bareTester serves where there is no test.
type bareTester struct{}

func (*bareTester) Helper()        {}
func (*bareTester) Cleanup(func()) {}
func (*bareTester) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(99)
}

// emptyLibrary builds a library that the dynamic linker preloads without a word.
func emptyLibrary(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "empty.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", path).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	library, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return library
}
