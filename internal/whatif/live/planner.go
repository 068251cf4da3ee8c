package live

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Planner makes plans for the program's processes while its policy takes any. It is a Listener.
type Planner struct {
	present replay.Configuration
	send    func(process uint32, plan *learn.Plan)
	chorus  *replay.Batch
	voice   int // -1: none
}

// NewPlanner returns one for a program that begins under a configuration. send gets each plan, on the goroutine that
// plays.
func NewPlanner(present replay.Configuration, send func(process uint32, plan *learn.Plan)) *Planner {
	return &Planner{present: present, send: send, voice: -1}
}

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

// Sated implements Listener: only a policy that takes plans needs all of the stream.
func (p *Planner) Sated() bool { return p.voice < 0 }

// Publish implements Listener: a plan does not wait for it.
func (p *Planner) Publish(*Load) {}

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
