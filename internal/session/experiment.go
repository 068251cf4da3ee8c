package session

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// SendMessage gives one process of the target a message, "arms POLICY [LIMIT=VALUE,...]" and what follows it, and returns the number
// under which a LIMIT event answers. It never waits.
func (s *Session) SendMessage(process uint32, text string) (sequence uint64) {
	sequence = s.sequence.Add(1)
	message, err := wire.Control{Sequence: sequence, Text: text}.Encode()
	if err != nil {
		s.options.Warn(err.Error())
		return sequence
	}
	c := s.collector
	c.queueCall(func() {
		for _, p := range slices.Clone(c.peers) { // guard may remove one
			if p.number == process {
				c.runUnlessProcessFaults(func() { p.queueMessage(message) })
			}
		}
	})
	return sequence
}

// RecordDiag adds a DIAG to the records of a process. Only a Tap may call it, in Take or Flush.
func (s *Session) RecordDiag(process uint32, time uint64, diag wire.Diag, text string) {
	r := wire.DiagFields{Time: time, Diag: diag}.Record([]byte(text))
	r.Process = process
	s.collector.acceptRecord(&r)
}

// FreeBeyondHeadroom returns how many bytes beyond the headroom were free, within the last second, in the memory that a process shares with
// others. known is false if the machine does not report that.
func (s *Session) FreeBeyondHeadroom(process uint32) (bytes uint64, known bool) {
	if s.collector.sampler == nil || s.collector.sampler.relief == nil {
		return 0, false
	}
	return s.collector.sampler.relief.freeBytesAroundPool(process)
}
