package live

import (
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Planner makes plans for the program's processes while its policy takes any. It is a Listener.
type Planner struct {
	present replay.Configuration
	send    func(process uint32, plan *learn.Plan)
	chorus  *replay.Batch
	voice   int // -1: none
	figures atomic.Pointer[replay.Arena]
}

// NewPlanner returns one for a program that begins under a configuration. send gets each plan, on the goroutine that
// plays.
func NewPlanner(present replay.Configuration, send func(process uint32, plan *learn.Plan)) *Planner {
	return &Planner{present: present, send: send, voice: -1}
}

// Figures returns what plans did in the latest simulation that had any; nil when there is none.
func (p *Planner) Figures() *replay.Arena { return p.figures.Load() }

// Begin implements Listener. After records that are missing it learns anew.
func (p *Planner) Begin(c *replay.Batch, _ uint64) {
	p.chorus, p.voice = c, -1
	p.follow()
}

// Play implements Listener.
func (p *Planner) Play(part *Part) bool {
	if p.voice >= 0 {
		if err := p.chorus.Play(p.voice); err != nil {
			return false
		}
	}
	if part.Change != nil {
		p.present, _ = p.present.After(part.Change)
		p.follow()
	}
	return true
}

// Publish implements Listener: a plan does not wait for it.
func (p *Planner) Publish(*Load) {
	if p.voice < 0 {
		return
	}
	r := p.chorus.Result(p.voice, cost.Device{})
	if r.Arena.Plans > 0 || p.figures.Load() == nil {
		p.figures.Store(&r.Arena)
	}
}

// follow starts or ends to learn, as the present policy is.
func (p *Planner) follow() {
	learns := p.present.Policy == replay.Learns
	if learns == (p.voice >= 0) {
		return
	}
	if !learns {
		p.chorus.Remove(p.voice)
		p.voice = -1
		return
	}
	options := p.present.Held()
	options.Learned = p.send
	voice, err := p.chorus.Add(options)
	if err != nil { // settings that the target has refused as well
		return
	}
	p.voice = voice
}
