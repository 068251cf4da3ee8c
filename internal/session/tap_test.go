package session

import (
	"io"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// listener gets records, and notes what was asked of it. It has ghosts.
type listener struct {
	kinds           []wire.Kind
	flushed, closed int
}

func (l *listener) TakeRecord(r *wire.Record) { l.kinds = append(l.kinds, r.Kind) }
func (l *listener) Flush()                    { l.flushed++ }
func (l *listener) Close()                    { l.closed++ }
func (l *listener) board() *stats.Ghosts {
	return &stats.Ghosts{Events: uint64(len(l.kinds)), Waiting: l.closed}
}

// TestTapHearsOfEverything: whatever a session records, the tap hears of; it is closed before the last snapshot.
func TestTapHearsOfEverything(t *testing.T) {
	f := newFakeFeed([]wire.Record{introduced(1, 11, "a"), fed(1, create(2, 1), ""), gone(1, 0, 0)})
	f.last = io.EOF
	l, kept := &listener{}, &memoryRecorder{}
	a := newAttached(AttachOptions{Feed: f, Model: stats.New(stats.Options{Started: 1}), Recorder: kept, Tap: l})
	a.model.SetGhostSource(l.board)
	a.takeRecordsOfFeed()
	g := a.Wait().Snapshot.Ghosts
	if len(l.kinds) != len(kept.records) || len(l.kinds) < 3 || l.flushed == 0 || l.closed != 1 {
		t.Errorf("%d of %d records, flushed %d times, closed %d times", len(l.kinds), len(kept.records), l.flushed, l.closed)
	}
	if g == nil || g.Events != uint64(len(l.kinds)) || g.Waiting != 1 {
		t.Errorf("the last snapshot has %+v", g)
	}

	c, now := testCollector(nil)
	l = &listener{}
	c.tap = l
	c.model.SetGhostSource(l.board)
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	target.put(0, create(1, 1), "")
	*now += sweepNS
	c.readRings()
	c.publishNameSampleAndFlush()
	if g := c.model.PublishedSnapshot().Ghosts; g == nil || g.Events != 2 || l.closed != 0 {
		t.Errorf("while it runs: %+v", g)
	}
	_ = target.conn.Close()
	*now += sweepNS
	c.drainAndEndIntake(Status{})
	if g := c.model.PublishedSnapshot().Ghosts; g == nil || g.Waiting != 1 {
		t.Errorf("at the end: %+v", g)
	}
}

// TestTapOfAFailedStartIsClosed, because nothing else would close it.
func TestTapOfAFailedStartIsClosed(t *testing.T) {
	l := &listener{}
	library := func() (io.Reader, error) { return nil, io.ErrUnexpectedEOF }
	_, err := Start(Options{Command: []string{"/bin/true"}, Model: stats.New(stats.Options{}), Shim: library, Tap: l})
	if err == nil || l.closed != 1 {
		t.Errorf("%v, closed %d times", err, l.closed)
	}
}
