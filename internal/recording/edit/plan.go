package edit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Part is a recording that a merge has surveyed.
type Part struct {
	header  recording.Header
	footer  recording.Footer
	whole   bool
	highest uint32 // number of a process
	ended   uint64 // latest time, on its own clock
	lost    uint64

	shift uint64 // to be added to its times; it may wrap around
	base  uint32 // to be added to its processes' numbers
}

// SurveyRecording reads a recording from its start to its end.
func SurveyRecording(in Recording) (Part, error) {
	p := Part{header: in.Header(), ended: in.Header().ClockNS}
	if err := in.Rewind(); err != nil {
		return p, fmt.Errorf("go to the start of the recording: %w", err)
	}
	err := eachRecord(in, func(r *wire.Record) error {
		p.highest, p.ended = max(p.highest, r.Process), max(p.ended, r.Time)
		if r.Kind == wire.KindLost {
			p.lost += r.AsLost().Events()
		}
		return nil
	})
	p.footer, p.whole = in.Footer()
	p.ended = max(p.ended, p.footer.EndedNS)
	return p, err
}

// Plan says how recordings become one.
type Plan struct {
	parts []Part
}

// PlanMerge gives the processes of recordings numbers one behind the other, and puts their times on one clock: that of
// the recording that began first. Recordings of one host since it was booted share CLOCK_MONOTONIC and keep their times
// to each other; the rest are put where their Created says.
func PlanMerge(parts []Part) (*Plan, error) {
	p := &Plan{parts: slices.Clone(parts)}
	if len(p.parts) == 0 {
		return nil, errors.New("no recording to merge")
	}
	base := uint64(0)
	for i := range p.parts {
		part := &p.parts[i]
		part.base = uint32(base)
		base += uint64(part.highest)
		if base > math.MaxUint32 {
			return nil, fmt.Errorf("the recordings number more processes than a recording can have: %d", base)
		}
	}
	p.computeClockShifts()
	return p, nil
}

// bootSlack is how far apart the times of boot may be that two recordings since the same one imply: the wall clock is
// set and slewed meanwhile.
const bootSlack = 10 * time.Second

// bootTime is the wall time at which a recording's clock was 0.
func (p *Part) bootTime() time.Time { return p.header.Created.Add(-time.Duration(p.header.ClockNS)) }

func (p *Part) hasSameClock(o *Part) bool {
	return p.header.Host == o.header.Host && p.bootTime().Sub(o.bootTime()).Abs() <= bootSlack
}

// computeClockShifts finds the shifts.
func (p *Plan) computeClockShifts() {
	order := make([]*Part, len(p.parts))
	for i := range p.parts {
		order[i] = &p.parts[i]
	}
	slices.SortStableFunc(order, func(a, b *Part) int {
		return cmp.Or(a.header.Created.Compare(b.header.Created), cmp.Compare(a.header.ClockNS, b.header.ClockNS))
	})
	first := order[0]
	var leaders []*Part // of each clock, the recording that began first
	for _, part := range order {
		at := slices.IndexFunc(leaders, func(l *Part) bool { return l.hasSameClock(part) })
		if at < 0 {
			later := uint64(part.header.Created.Sub(first.header.Created))
			part.shift = first.header.ClockNS + later - part.header.ClockNS
			leaders = append(leaders, part)
			continue
		}
		part.shift = leaders[at].shift
	}
}

// startOnCommonClock is when a recording begins on the common clock.
func (p *Part) startOnCommonClock() uint64 { return p.toCommonClock(p.header.ClockNS) }

// toCommonClock converts a time to the common clock; earlier times than its start are 0.
func (p *Part) toCommonClock(t uint64) uint64 {
	moved := t + p.shift
	if int64(p.shift) < 0 && moved > t {
		return 0
	}
	return moved
}

// earliestPart returns the part that begins first.
func (p *Plan) earliestPart() *Part {
	first := slices.MinFunc(p.parts, func(a, b Part) int { return cmp.Compare(a.startOnCommonClock(), b.startOnCommonClock()) })
	return &first
}

// MergedHeader returns the header of the merged recording.
func (p *Plan) MergedHeader() recording.Header {
	h := p.parts[0].header
	first := p.earliestPart()
	h.Created, h.ClockNS, h.Merged = first.header.Created, first.startOnCommonClock(), nil
	h.Program = commonHeaderValue(p.parts, "programs", func(h *recording.Header) string { return h.Program })
	h.Host = commonHeaderValue(p.parts, "hosts", func(h *recording.Header) string { return h.Host })
	h.Policy = commonHeaderValue(p.parts, "policies", func(h *recording.Header) string { return h.Policy })
	h.Tags = commonHeaderValue(p.parts, "kinds", func(h *recording.Header) string { return h.Tags })
	h.Scrub = commonHeaderValue(p.parts, "kinds", func(h *recording.Header) string { return h.Scrub })
	for i := range p.parts {
		o := &p.parts[i].header
		if !slices.Equal(o.Arguments, h.Arguments) || o.Program != h.Program {
			h.Arguments = nil
		}
		if !reflect.DeepEqual(o.Limits, h.Limits) || o.Policy != h.Policy {
			h.Limits = nil
		}
		if !reflect.DeepEqual(o.Environment, h.Environment) {
			h.Environment = nil
		}
		h.Identity = h.SharedWith(o.Identity)
		h.Attached = h.Attached && o.Attached
		h.Auto = h.Auto && o.Auto
		if o.DeviceMemory != h.DeviceMemory {
			h.DeviceMemory = 0
		}
		h.Merged = append(h.Merged, p.parts[i].renumberedOrigins()...)
	}
	return h
}

// commonHeaderValue returns what all headers say, and "3 programs" when they differ.
func commonHeaderValue(parts []Part, things string, of func(*recording.Header) string) string {
	seen := map[string]bool{}
	for i := range parts {
		seen[of(&parts[i].header)] = true
	}
	if len(seen) == 1 {
		return of(&parts[0].header)
	}
	return fmt.Sprintf("%d %s", len(seen), things)
}

// renumberedOrigins lists the recordings in a part, with the numbers that their processes get.
func (p *Part) renumberedOrigins() []recording.Origin {
	if len(p.header.Merged) == 0 {
		h := &p.header
		return []recording.Origin{{
			Host: h.Host, Program: h.Program, Arguments: h.Arguments, Policy: h.Policy, Limits: h.Limits, Created: h.Created, DeviceMemory: h.DeviceMemory,
			First: p.base + 1, Last: p.base + p.highest, Identity: h.Identity,
		}}
	}
	list := slices.Clone(p.header.Merged)
	for i := range list {
		list[i].First, list[i].Last = p.mergedProcessNumber(list[i].First), p.mergedProcessNumber(min(list[i].Last, p.highest))
	}
	return list
}

// mergedProcessNumber returns the number of a process of the part in the merged recording; 0: unknown.
func (p *Part) mergedProcessNumber(process uint32) uint32 {
	if process == 0 {
		return 0
	}
	return p.base + process
}

// MergedFooter returns the footer of the merged recording, with the sum of lost events and the worst end.
func (p *Plan) MergedFooter() recording.Footer {
	var footer recording.Footer
	messages := []string{fmt.Sprintf("merged of %d recordings", len(p.parts))}
	torn := 0
	for i := range p.parts {
		part := &p.parts[i]
		status, signal := part.footer.Status, part.footer.Signal
		if !part.whole {
			status = -1
			torn++
		}
		if severityOfEnd(status, signal) > severityOfEnd(footer.Status, footer.Signal) {
			footer.Status, footer.Signal = status, signal
		}
		footer.Lost += part.lost
		footer.Cut = footer.Cut || part.footer.Cut || !part.whole
		footer.EndedNS = max(footer.EndedNS, part.toCommonClock(part.ended))
		if m := part.footer.Message; m != "" && len(messages) < messagesMax && !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	if torn > 0 {
		messages = append(messages, fmt.Sprintf("%d had been cut off", torn))
	}
	footer.Message = strings.Join(messages, "; ")
	return footer
}

// messagesMax bounds the messages of the parts that are kept.
const messagesMax = 10

// severityOfEnd orders ends from best to worst: status 0, unknown, another status, a signal.
func severityOfEnd(status, signal int) int {
	switch {
	case signal != 0:
		return 1<<20 + signal
	case status > 0:
		return 1 + status
	case status < 0:
		return 1
	}
	return 0
}
