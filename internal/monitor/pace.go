package monitor

import (
	"context"
	"net/http"
	"time"
)

// pace makes clients that ask too often wait for their turn. An answer takes a third of a millisecond of processor time, most
// of it to wake up, and all clients together should take less than a hundredth of a core.
type pace struct {
	http.Handler
	pause time.Duration // between answers, after a burst of requests
	line  chan struct{} // holds an element while a request is first in line
	next  time.Time     // the next turn; only the request that is first in line uses it
}

const (
	answersPause = 50 * time.Millisecond
	answersBurst = 20
)

func newPace() pace { return pace{pause: answersPause, line: make(chan struct{}, 1)} }

// ServeHTTP implements http.Handler.
func (p *pace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.awaitTurnOfRequest(r.Context()) {
		p.Handler.ServeHTTP(w, r)
	}
}

// awaitTurnOfRequest returns true when it is the request's turn, or false when the client has left, which takes no turn from others.
func (p *pace) awaitTurnOfRequest(client context.Context) bool {
	select {
	case p.line <- struct{}{}:
	case <-client.Done():
		return false
	}
	defer func() { <-p.line }()
	if earliest := time.Now().Add(-(answersBurst - 1) * p.pause); p.next.Before(earliest) {
		p.next = earliest
	}
	turn := time.NewTimer(time.Until(p.next))
	defer turn.Stop()
	select {
	case <-turn.C:
		p.next = p.next.Add(p.pause)
		return true
	case <-client.Done():
		return false
	}
}
