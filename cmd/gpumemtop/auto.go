package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/auto"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// steerEvery is how often a program under auto is looked at.
const steerEvery = 200 * time.Millisecond

// pilot steers a program under auto from configuration to configuration.
type pilot struct {
	*runner
	controller *auto.Controller
	started    time.Time
	taken      atomic.Bool // somebody else has changed the policy: it stays with that
	done       chan struct{}
}

// steer starts to steer, where the policy is auto.
func (r *runner) steer() {
	if !r.plan.auto {
		return
	}
	r.pilot = &pilot{runner: r, controller: auto.New(r.ghosts.First(), r.resting), started: time.Now(), done: make(chan struct{})}
	go r.pilot.run()
}

// takeOver leaves the policy to the user from here on.
func (r *runner) takeOver() {
	if r.pilot != nil && !r.pilot.taken.Swap(true) {
		r.auto.Store(&model.Auto{})
		r.notes.add("auto: the policy was changed by hand and stays with that")
	}
}

// landed waits until nothing is steered any more, when the program has ended.
func (r *runner) landed() {
	if r.pilot != nil {
		<-r.pilot.done
	}
}

func (p *pilot) run() {
	defer close(p.done)
	ticker := time.NewTicker(steerEvery)
	defer ticker.Stop()
	for !p.taken.Load() {
		select {
		case <-ticker.C:
			p.look()
		case <-p.session.Ended():
			return
		}
	}
}

func (p *pilot) look() {
	books := p.ghosts.Books()
	s := p.model.Published()
	t := &s.Totals
	choice, ok := p.controller.Look(auto.Look{
		Time: s.Time, Requests: t.Hits + t.Misses, Misses: t.Misses, RealNS: t.PoolNS, DriverNS: t.PoolNS - t.HitNS, Books: books,
	})
	p.tap.Rest(p.controller.Resting())
	if ok && !p.taken.Load() {
		p.goOver(&choice, books)
	}
}

// goOver changes the configuration and says why.
func (p *pilot) goOver(choice *auto.Choice, books *ghost.Books) {
	c := &choice.Configuration
	if err := p.session.SetPolicy(c.Policy, c.Settings); err != nil {
		p.notes.add(err.Error())
		return
	}
	why := fmt.Sprintf("%.3g %% less time in the driver than", 100*choice.Saves)
	if choice.Back {
		why = "the program took longer than it would under that with"
	}
	before := ""
	for i := range books.Rows {
		if books.Rows[i].Present {
			before = books.Rows[i].Name
		}
	}
	text := fmt.Sprintf("auto: %s after %v: %s %s", choice.Name, time.Since(p.started).Round(100*time.Millisecond), why, before)
	if last := p.auto.Load(); last.Steers {
		p.auto.CompareAndSwap(last, &model.Auto{Steers: true, Said: text, Number: last.Number + 1})
	}
	p.notes.add(text)
}
