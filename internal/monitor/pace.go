package monitor

import (
	"net/http"
	"sync"
	"time"
)

// pace makes clients that ask too often wait for their turn: an answer takes a third of a millisecond of processor time, most
// of it to wake up, and being looked at should take less than a hundredth of a core however many clients there are.
type pace struct {
	http.Handler
	pause time.Duration // between answers, once burst came at once

	mu   sync.Mutex
	next time.Time // the turn of a request that would come now
}

const (
	answersPause = 50 * time.Millisecond
	answersBurst = 20
)

// ServeHTTP implements http.Handler.
func (p *pace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wait := time.NewTimer(p.turn(time.Now()))
	defer wait.Stop()
	select {
	case <-wait.C:
		p.Handler.ServeHTTP(w, r)
	case <-r.Context().Done(): // the client has left
	}
}

// turn returns how long a request that comes now has to wait.
func (p *pace) turn(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-answersBurst * p.pause); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(p.pause)
	return p.next.Sub(now)
}
