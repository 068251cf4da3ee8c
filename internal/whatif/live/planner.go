package live

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Planner learns layouts for the program's processes while the program's policy takes layouts. It is a Listener.
type Planner struct {
	current replay.Configuration
	send    func(process uint32, layout *learn.Layout)
	batch   *replay.Batch
	member  int // its index in the batch; -1: not in the batch
}

// NewPlanner returns a planner for a program that starts under a configuration. send gets each layout, on the
// dispatcher's goroutine.
func NewPlanner(current replay.Configuration, send func(process uint32, layout *learn.Layout)) *Planner {
	return &Planner{current: current, send: send, member: -1}
}

// Begin implements Listener. After missing records the planner learns from the beginning.
func (p *Planner) Begin(batch *replay.Batch, _ uint64) {
	p.batch, p.member = batch, -1
	p.joinIfLayoutsTaken()
}

// Play implements Listener.
func (p *Planner) Play(part *Part) bool {
	if p.member >= 0 {
		if err := p.batch.PlayMember(p.member); err != nil {
			return false
		}
	}
	if part.Change != nil {
		p.current, _ = p.current.AfterChange(part.Change)
		p.joinIfLayoutsTaken()
	}
	return true
}

// CanSkip implements Listener: a policy that takes layouts needs the whole stream.
func (p *Planner) CanSkip() bool { return p.member < 0 }

// Publish implements Listener. Layouts are sent as soon as they are learned, so nothing is left to publish.
func (p *Planner) Publish(*Load) {}

// joinIfLayoutsTaken joins the batch if the current policy takes layouts, and leaves it if not.
func (p *Planner) joinIfLayoutsTaken() {
	wanted := p.current.Policy == replay.LayoutPolicy
	if wanted == (p.member >= 0) {
		return
	}
	if !wanted {
		p.batch.RemoveMember(p.member)
		p.member = -1
		return
	}
	options := p.current.OptionsKeepingLimits()
	options.OnLayout = p.send
	member, err := p.batch.AddSimulation(options)
	if err != nil { // the target has refused these settings, too
		return
	}
	p.member = member
}
