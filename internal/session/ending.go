package session

import (
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// bury removes the processes that ended and whose rings are empty.
func (c *collector) bury(now uint64) {
	var gone []*peer
	for _, p := range c.peers {
		if p.ended && !c.pending(p) {
			gone = append(gone, p)
		}
	}
	for _, p := range gone {
		c.guard(func() {
			if events, uses := p.losses(); events > 0 {
				c.put(&wire.Record{Process: p.number, Event: wire.Event{Time: now, Kind: wire.KindLost, Size: events, Granted: uses}})
			}
		})
		c.remove(p)
	}
}

// pending reports whether events of a process are still to be delivered.
func (c *collector) pending(p *peer) bool {
	return slices.ContainsFunc(c.merge.heap, func(s *source) bool { return s.peer == p })
}

// remove ends the watch over a process. The exit of the program itself is put off until its status is known.
func (c *collector) remove(p *peer) {
	i := slices.Index(c.peers, p)
	if i < 0 {
		return // its memory went away while it was buried
	}
	c.merge.drop(p)
	c.peers = slices.Delete(c.peers, i, i+1)
	p.close()
	c.leave()
	if p.stays {
		return
	}
	if p.pid == c.child() {
		p, c.waiting = c.waiting, p // it may have gone by another name before: exec
	}
	if p != nil {
		c.exited(p.number, Status{Code: -1}, c.clock())
	}
}

// complete drains all rings, including those of processes that still run, and ends the intake.
func (c *collector) complete(status Status) {
	now := c.clock()
	for _, p := range c.peers {
		p.stays = p.pid != c.child() && !p.gone()
		if p.stays {
			p.end(now) // it may write faster than this can read
		} else {
			p.end(math.MaxUint64)
		}
	}
	for drained := false; !drained; {
		drained = c.pass() == 0
	}
	if c.waiting != nil {
		c.exited(c.waiting.number, status, c.clock())
	}
	c.end()
}
