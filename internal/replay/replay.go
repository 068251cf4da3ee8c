// Package replay asks what would have been: it plays recordings through policies. It reads no clock and does no I/O;
// time is in the events.
package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say what a recording is played through.
type Options struct {
	Policy   string
	Settings []allocator.Setting
	Capacity uint64 // bytes that each process may have from the driver; 0: any

	// HoldSettings keeps the limits in Settings as they are. Without it a limit that was changed during the recording
	// changes here, too. Limits that Settings do not name, and trims, follow the recording anyway.
	HoldSettings bool

	// AsRecorded says that the policy, its limits and the capacity are those of the recording. Then changes of the
	// policy are made here, too, and where the recording numbers decisions, all calls on the policy are repeated: what
	// it was asked in vain, and to make room when the driver had none, whatever Capacity says.
	AsRecorded bool

	// Learned is called with each plan that a policy which takes plans has got for a process of the recording; nil: never.
	Learned func(process uint32, plan *learn.Plan)

	// Given returns the plan that a policy which takes plans has for a process of the recording from the start, nil: none.
	// With it nothing is learned.
	Given func(process uint32) *learn.Plan

	Device cost.Device // what the driver takes; zero: costs nothing
	Fit    bool        // the driver takes what it took in the recording; Device does not count
}

// Replay feeds the poolable requests, releases and coolings of each recorded process to a policy of its own and returns
// what that did with them. Memory grows with live buffers, not with records. To play a recording many times, load a
// Tape.
//
// Time does not change: buffers come, go and cool when they did in the recording, however long a create would have
// taken. Where the recording does not show when a buffer had cooled, as under a policy that does not pool, what
// commands still used cools at the process's next wait or finish. What was not poolable in the recording is left out,
// and so are changes of the policy during it, unless AsRecorded. The policy hears all in the order in which the
// recorded one did, where the recording tells. A class is a context with its flags; what the device can do comes from
// the context's first device. A request that failed for lack of memory is made again where there is a capacity, and
// gets nothing, as it did.
//
// An error is that of the source, or says what is wrong with the policy or a setting.
func Replay(src recording.Source, o Options) (*Result, error) {
	s, err := newSingle(o)
	if err != nil {
		return nil, err
	}
	if err := each(src, s.take); err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	result := s.result()
	return &result, nil
}

// single is a batch of one voice, which plays each record at once.
type single struct{ *Batch }

func newSingle(o Options) (single, error) {
	b := NewBatch()
	_, err := b.Add(o)
	return single{b}, err
}

func (s single) player() *player { return s.players[0] }

func (s single) take(record *wire.Record) error {
	s.Read(record)
	return s.play()
}

// finish plays what waits for records that do not come any more.
func (s single) finish() error {
	s.Finish()
	return s.play()
}

func (s single) play() error {
	defer s.Clear()
	return s.Play(0)
}

// result returns what the policy has done so far.
func (s single) result() Result {
	device := s.player().options.Device
	if s.player().options.Fit {
		device, _, _ = s.Device()
	}
	return s.Result(0, device)
}

// each calls take for each record of a source, from the start.
func each(src recording.Source, take func(*wire.Record) error) error {
	for record, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		if err := take(record); err != nil {
			return err
		}
	}
	return nil
}
