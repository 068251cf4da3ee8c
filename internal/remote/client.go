package remote

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// answerTime bounds the time of an answer; the others bound the bytes of the first message and of an answer, the rows of an answer, and
// its bytes that are zero: each struct ends with such a byte, and takes more memory. 100,000 call sites have 1.1 million of them.
const (
	answerTime = 5 * time.Second
	aboutMax   = 64 << 10
	answerMax  = 64 << 20
	rowsMax    = 250_000
	zerosMax   = 2_000_000
)

// tag is what is first read of a call site.
type tag struct{ ID uint32 }

// rows are the large structs of an answer, to be counted before memory is taken for them. The first message has a program only. gob
// wants a type for each kind.
type rows struct {
	Program  string
	Snapshot struct {
		Tags      []tag
		Processes []struct {
			PID  int
			Tags []tag
		}
		PostMortems []struct{ PID int }
	}
}

func (r *rows) countRows() int {
	s := &r.Snapshot
	n := len(s.Processes) + len(s.PostMortems) + len(s.Tags)
	for i := range s.Processes {
		n += len(s.Processes[i].Tags)
	}
	return n
}

var errTooMuch = errors.New("an answer is larger than any session's")

// Client is a dashboard's connection to a server. Any goroutine may call its methods.
type Client struct {
	About About

	conn    *net.UnixConn
	from    io.Reader    // conn
	left    int          // bytes of the present answer that may come
	zeros   int          // likewise
	rows    *gob.Decoder // of from, for the first look
	said    bytes.Buffer // what that has read
	answers *gob.Decoder // of said

	until time.Time // deadline of the first answer; 0: it has come

	mu    sync.Mutex
	last  Answer // the last answer, with the latest snapshot
	next  uint64 // position in the output from which to ask next
	curve bool   // the curve is wanted
	err   error  // the error that ended the connection
}

// Dial connects to a server. The server must identify itself and answer the first AskForState before until.
func Dial(path string, until time.Time) (*Client, error) {
	dialer := net.Dialer{Deadline: until}
	dialed, err := dialer.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the session: %w", err)
	}
	conn := dialed.(*net.UnixConn)
	c := newClient(conn)
	c.conn, c.until = conn, until
	if uid, known := userOfPeer(conn); !known || int(uid) != os.Geteuid() && os.Geteuid() != 0 {
		return nil, errors.Join(fmt.Errorf("the session belongs to user %d", uid), conn.Close())
	}
	if err = conn.SetDeadline(until); err == nil {
		err = c.receiveAnswer(&c.About, aboutMax)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the session does not answer: %w", err), conn.Close())
	}
	if c.About.Version != version {
		return nil, errors.Join(fmt.Errorf("the session (pid %d) is of another version of gpumemtop", c.About.PID), conn.Close())
	}
	return c, nil
}

func newClient(from io.Reader) *Client {
	c := &Client{from: from}
	c.rows, c.answers = gob.NewDecoder(boundedReader{c}), gob.NewDecoder(&c.said)
	return c
}

// receiveAnswer reads an answer of at most some bytes, after a first look at its rows.
func (c *Client) receiveAnswer(what any, most int) error {
	c.left, c.zeros = most, zerosMax
	var look rows
	if err := c.rows.Decode(&look); err != nil {
		return err
	}
	if look.countRows() > rowsMax {
		return errTooMuch
	}
	return c.answers.Decode(what)
}

// boundedReader reads no more than the present answer may have.
type boundedReader struct{ *Client }

// Read implements io.Reader.
func (r boundedReader) Read(to []byte) (int, error) {
	n, err := r.from.Read(to)
	r.left -= n
	r.zeros -= bytes.Count(to[:n], []byte{0})
	if r.left < 0 || r.zeros < 0 {
		return 0, errTooMuch
	}
	r.said.Write(to[:n])
	return n, err
}

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() }

// askServer sends a line and returns the answer. After an error the connection cannot be used.
func (c *Client) askServer(line string) (a Answer, err error) {
	if c.err == nil {
		until := time.Now().Add(answerTime)
		if !c.until.IsZero() {
			until, c.until = c.until, time.Time{}
		}
		c.err = c.conn.SetDeadline(until)
	}
	if c.err == nil {
		_, c.err = c.conn.Write([]byte(line + "\n"))
	}
	if c.err == nil {
		c.err = c.receiveAnswer(&a, answerMax)
	}
	if c.err != nil {
		return a, fmt.Errorf("the session has ended: %w", c.err)
	}
	if a.Final {
		c.err = errors.New("it has said its last word")
	}
	return a, nil
}

// AskForState asks for the present state and returns the latest snapshot.
func (c *Client) AskForState() *stats.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("look %d", c.next)
	if c.curve {
		line += " curve"
	}
	a, err := c.askServer(line)
	if err != nil {
		if c.last.State.State == stats.Running { // whether and how it ended is unknown
			c.last.State.State, c.last.State.Status = stats.Exited, -1
		}
		c.last.Lines = nil
		return c.last.Snapshot
	}
	if a.Snapshot == nil {
		a.Snapshot = c.last.Snapshot
	}
	c.last = a
	return a.Snapshot
}

// State returns the state of the program at the last look.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.State
}

// Output returns what the program printed up to the last look, and the position to ask from next.
func (c *Client) Output(uint64) ([]view.OutputLine, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = c.last.Next
	return c.last.Lines, c.last.Next
}

// Curve returns the hit-rate curve of the last look, which it asks for from now on.
func (c *Client) Curve() *view.Curve {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.curve = true
	return c.last.Curve
}

// RequestChange asks for a change: "limit NAME VALUE", "policy NAME" or "adopt NAME". It returns the request's sequence number.
func (c *Client) RequestChange(line string) (sequence uint64, err error) {
	a, err := c.sendChangeRequest(line)
	return a.Sequence, err
}

// ToggleRecording starts a recording of the session, or stops the present one, and returns what to show.
func (c *Client) ToggleRecording() (string, error) {
	a, err := c.sendChangeRequest("record")
	return a.Text, err
}

// ToggleExperiment begins an experiment of the session, or ends the present one, and returns what to show.
func (c *Client) ToggleExperiment() (string, error) {
	a, err := c.sendChangeRequest("measure")
	return a.Text, err
}

func (c *Client) sendChangeRequest(line string) (Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.askServer(line)
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}
