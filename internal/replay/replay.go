// Package replay simulates configurations on recordings and running programs. It reads no clock and does no I/O; time
// is in the events.
package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options describe a simulation.
type Options struct {
	Policy   string
	Settings []allocator.Setting
	Capacity uint64 // bytes that each process may have from the driver; 0: any number

	// HoldSettings keeps the limits in Settings as they are. Otherwise a limit that was changed during the recording
	// changes in the simulation, too. Limits that Settings does not name, and trims, always follow the recording.
	HoldSettings bool

	// AsRecorded says that policy, limits and capacity are those of the recording. Then changes of the policy are
	// followed, too. Where the recording numbers decisions, all calls on the policy are repeated, including failed
	// requests and requests to make room, whatever Capacity says.
	AsRecorded bool

	// OnLayout is called with each layout that a policy which takes layouts gets for a process of the recording; nil:
	// never.
	OnLayout func(process uint32, layout *learn.Layout)

	// GivenLayout returns the layout that a policy which takes layouts has for a process from the start, nil: none. If
	// GivenLayout is set, nothing is learned.
	GivenLayout func(process uint32) *learn.Layout

	Device cost.Device // driver costs; zero: calls cost nothing
	Fit    bool        // use the driver costs in the recording instead of Device
}

// Replay feeds the poolable requests, releases and coolings of each recorded process to a policy of its own and returns
// the result. Its memory grows with live buffers, not with records. To play a recording many times, use Load.
//
// Time does not change: buffers are created, released and cooled at the recorded times, however long a create would
// have taken. If the recording does not show when a buffer had cooled, as under a policy that does not pool, the buffer
// cools at the process's next wait or finish. Unpoolable creates are left out, and so are changes of the policy, unless
// AsRecorded is set. Where the recording numbers decisions, the simulated policy is called in the same order. A class
// is a context with its flags; the limits of the device are those of the context's first device. A request that failed
// for lack of memory is repeated if there is a capacity, and its memory is freed at once.
//
// The error is that of the source, or reports an invalid policy or setting.
func Replay(src recording.Source, o Options) (*Result, error) {
	s, err := newBatchOfOne(o)
	if err != nil {
		return nil, err
	}
	if err := eachRecord(src, s.readAndPlayRecord); err != nil {
		return nil, err
	}
	if err := s.playWaitingRecords(); err != nil {
		return nil, err
	}
	result := s.resultSoFar()
	return &result, nil
}

// single is a batch of one member, which plays each record at once.
type single struct{ *Batch }

func newBatchOfOne(o Options) (single, error) {
	b := NewBatch()
	_, err := b.AddSimulation(o)
	return single{b}, err
}

func (s single) onlyMember() *simulation { return s.members[0] }

func (s single) readAndPlayRecord(record *wire.Record) error {
	s.ReadRecord(record)
	return s.playReadRecords()
}

// playWaitingRecords plays what waited for records that do not come.
func (s single) playWaitingRecords() error {
	s.EndStream()
	return s.playReadRecords()
}

func (s single) playReadRecords() error {
	defer s.ForgetReadSteps()
	return s.PlayMember(0)
}

// resultSoFar returns the policy's result so far.
func (s single) resultSoFar() Result {
	device := s.onlyMember().options.Device
	if s.onlyMember().options.Fit {
		device, _, _ = s.LearnedCosts()
	}
	return s.ResultOfMember(0, device)
}

// eachRecord calls handle for each record of a source, from the start.
func eachRecord(src recording.Source, handle func(*wire.Record) error) error {
	for record, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		if err := handle(record); err != nil {
			return err
		}
	}
	return nil
}
