package lab

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Simulation plays a stream of records through a policy while it comes, as Replay does. One goroutine uses it.
type Simulation struct {
	resolver *resolver
	player   *player
	ops      []op
}

// NewSimulation starts one. An error says what is wrong with the policy or a setting.
func NewSimulation(o ReplayOptions) (*Simulation, error) {
	r := newResolver()
	p, err := newPlayer(o, &r.script)
	if err != nil {
		return nil, err
	}
	return &Simulation{resolver: r, player: p}, nil
}

// Take plays one record, of which it keeps nothing. Records come in the order of a recording. An error comes only when a
// process starts whose policy cannot be made any more, because SetLimit has made the settings contradict each other.
func (s *Simulation) Take(record *wire.Record) error {
	s.ops = s.resolver.take(record, s.ops[:0])
	return s.player.play(s.ops)
}

// finish plays what waits for records that do not come any more.
func (s *Simulation) finish() error {
	s.ops = s.resolver.finish(s.ops[:0])
	return s.player.play(s.ops)
}

// Result returns what the policy has done so far. It costs a step for each process.
func (s *Simulation) Result() ReplayResult {
	if s.player.options.Fit {
		s.player.options.Device = s.resolver.prices.device()
	}
	return s.player.sum()
}

// SetLimit changes a limit for all processes, those that are still to come included, at a time in ns on the records'
// clock. An error says what is wrong with the limit or its value.
func (s *Simulation) SetLimit(name, value string, time int64) error {
	r := s.player
	settings := make([]allocator.Setting, 0, len(r.options.Settings)+1)
	for _, setting := range r.options.Settings {
		if setting.Name != name {
			settings = append(settings, setting)
		}
	}
	settings = append(settings, allocator.Setting{Name: name, Value: value})
	policy, err := allocator.New(r.options.Policy, settings)
	if err != nil {
		return err
	}
	for _, p := range r.processes {
		if p == nil {
			continue
		}
		p.evictions, err = p.policy.SetLimit(name, value, time, p.evictions[:0])
		p.give()
		if err != nil { // the recording has changed another limit of this process, which this one contradicts
			return fmt.Errorf("one of the processes: %w", err)
		}
	}
	r.options.Settings, r.result.Limits = settings, policy.Limits()
	return nil
}
