package session

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// A program that finds no memory asks, through its session, the pools of this user's other programs on the device: those of
// its own session, then those of each other session, over a socket in its folder. A message is what is needed in bytes and the
// device's identities; the answer is what went back to the driver. Every wait is bounded, and no session answers an ask by
// asking: two that ask each other go on.

const (
	neighboursName = "relief"
	giveWithin     = 400 * time.Millisecond // the program waits for 500
	askMax         = 4096                   // bytes of a message
)

// neighbours answers other sessions that need memory.
type neighbours struct {
	listener *net.UnixListener
	give     func(need uint64, identities []string) uint64
}

// listenToNeighbours answers at a path.
func listenToNeighbours(path string, give func(need uint64, identities []string) uint64) (*neighbours, error) {
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("open session socket: %w", err)
	}
	n := &neighbours{listener, give}
	go n.serveNeighbours()
	return n, nil
}

func (n *neighbours) serveNeighbours() {
	for {
		conn, err := n.listener.AcceptUnix()
		if err != nil {
			return
		}
		n.answerNeighbour(conn)
	}
}

func (n *neighbours) close() {
	if n != nil {
		_ = n.listener.Close()
	}
}

// answerNeighbour takes an ask of a session of this user.
func (n *neighbours) answerNeighbour(conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // the other end notices
	if who := peerCredentials(conn); int(who.Uid) != os.Geteuid() {
		return
	}
	var text [askMax]byte
	_ = conn.SetDeadline(time.Now().Add(giveWithin))
	length, err := conn.Read(text[:])
	if err != nil {
		return
	}
	bytes, identities, _ := strings.Cut(string(text[:length]), "\n")
	need, err := strconv.ParseUint(bytes, 10, 64)
	if err != nil {
		return
	}
	given := n.give(need, strings.FieldsFunc(identities, func(r rune) bool { return r == '\n' }))
	_ = conn.SetDeadline(time.Now().Add(giveWithin))
	_, _ = conn.Write(strconv.AppendUint(nil, given, 10))
}

// askNeighbours asks other sessions, one after the other, until they have given back enough bytes or the time is over.
func askNeighbours(own string, need uint64, identities []string, until time.Time) (given uint64) {
	message := strconv.FormatUint(need, 10) + "\n" + strings.Join(identities, "\n")
	for _, socket := range socketsNamed(neighboursName) {
		if filepath.Dir(socket) == own || given >= need || !time.Now().Before(until) {
			continue
		}
		given += askNeighbour(socket, message, until)
	}
	return given
}

func askNeighbour(socket, message string, until time.Time) uint64 {
	dialer := net.Dialer{Deadline: until}
	conn, err := dialer.Dial("unixpacket", socket)
	if err != nil {
		return 0
	}
	defer conn.Close() //nolint:errcheck // the answer is there, or comes too late
	if who := peerCredentials(conn.(*net.UnixConn)); int(who.Uid) != os.Geteuid() {
		return 0
	}
	_ = conn.SetDeadline(until)
	if _, err := conn.Write([]byte(message)); err != nil {
		return 0
	}
	var text [32]byte
	n, err := conn.Read(text[:])
	if err != nil {
		return 0
	}
	given, _ := strconv.ParseUint(string(text[:n]), 10, 64)
	return given
}

// haveCommonDevice reports whether two processes share a device, as far as identities show.
func haveCommonDevice(a, b []string) bool {
	return slices.ContainsFunc(a, func(identity string) bool { return slices.Contains(b, identity) })
}

// collectFromPools asks the pools on a device for the bytes that another program needs, and returns how many the pools gave back
// within giveWithin. It does not ask the process except; 0: it asks all.
func (c *collector) collectFromPools(need uint64, identities []string, except uint32) uint64 {
	before, asked := c.sampler.relief.totalGivenBack(), make(chan uint64, 1)
	began, until := MonotonicNow(), time.Now().Add(giveWithin)
	var ask func()
	ask = func() {
		if c.read < began && time.Now().Before(until) { // what was released just now is not known to be idle yet
			time.AfterFunc(pollMin, func() { c.queueCall(ask) })
			return
		}
		asked <- c.askPools(need, identities, except)
	}
	c.queueCall(ask)
	var want uint64
	select {
	case want = <-asked:
	case <-c.done:
		return 0
	}
	for want > 0 && time.Now().Before(until) {
		if given := c.sampler.relief.totalGivenBack() - before; given >= want {
			return given
		}
		time.Sleep(pollMin)
		c.wakeUp()
	}
	return c.sampler.relief.totalGivenBack() - before
}

// askPools asks pools for what is needed, those with the most first, and returns how many they should give.
func (c *collector) askPools(need uint64, identities []string, except uint32) (asked uint64) {
	type pool struct {
		process uint32
		cached  uint64
	}
	var pools []pool
	for process, at := range c.places {
		if p := c.model.Heap().FindProcess(process); p != nil && process != except && p.FreeBytes() > 0 &&
			haveCommonDevice(identities, at.identities) {
			pools = append(pools, pool{process, p.FreeBytes()})
		}
	}
	slices.SortFunc(pools, func(a, b pool) int { return cmp.Or(cmp.Compare(b.cached, a.cached), cmp.Compare(a.process, b.process)) })
	for _, p := range pools {
		if part := min(need-asked, p.cached); part > 0 {
			c.sampler.relief.notePoolAsked(p.process, part)
			c.askForRelief(p.process, wire.Relief{Asked: part, Why: wire.ReliefAsked})
			asked += part
		}
	}
	return asked
}

// checkForShortage checks whether a process has found no memory. It then asks other pools for memory, once the record of the
// process's device has come.
func (c *collector) checkForShortage(p *peer) {
	need, ask := p.region.BytesTargetLacks()
	if ask == p.ask || c.folder == "" || need == 0 {
		return
	}
	identities := c.places[p.number].identities
	if len(identities) == 0 {
		return
	}
	p.ask = ask
	go func() {
		until := time.Now().Add(giveWithin)
		given := c.collectFromPools(need, identities, p.number)
		if given < need {
			given += askNeighbours(c.folder, need-given, identities, until)
		}
		c.queueCall(func() {
			if slices.Contains(c.peers, p) {
				c.runUnlessProcessFaults(func() { p.region.AnswerMemoryAsk(ask, given > 0) })
			}
		})
	}()
}
