package session

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// onlooker notes what it sees.
type onlooker struct{ kinds []wire.Kind }

func (o *onlooker) Take(r *wire.Record) { o.kinds = append(o.kinds, r.Kind) }

// TestWatchersSeeEverything that is recorded.
func TestWatchersSeeEverything(t *testing.T) {
	c, now := testCollector(nil)
	one, other := &onlooker{}, &onlooker{}
	c.watchers = []Watcher{one, other}
	target := newFakeTarget(t)
	c.add(target.peer(7))
	target.put(0, create(1, 1), "")
	*now += sweepNS
	c.pass()
	if len(one.kinds) != 2 || one.kinds[1] != wire.KindCreate || len(other.kinds) != 2 {
		t.Errorf("seen: %v and %v", one.kinds, other.kinds)
	}
	_ = target.conn.Close()
}
