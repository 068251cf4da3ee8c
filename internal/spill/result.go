package spill

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Result says what --spill would do for a recording. Scripts rely on its JSON keys.
type Result struct {
	Peak      uint64     `json:"peak"`        // the most bytes of one process in use
	Least     uint64     `json:"least"`       // the most that one command needs, including memory that cannot be spilled
	Site      string     `json:"least_at"`    // call site of that command's largest object
	Duration  uint64     `json:"duration_ns"` // of the recording
	ToDevice  float64    `json:"to_device"`
	ToHost    float64    `json:"to_host"`  // bytes per second, 0: unknown
	Measured  bool       `json:"measured"` // the rates are the best in the recording; false: they are stated
	Estimates []Estimate `json:"estimates"`
}

// Estimate is the expected effect of less memory.
type Estimate struct {
	Percent uint64  `json:"percent"` // of the peak
	Memory  uint64  `json:"memory"`
	Fits    bool    `json:"fits"`
	Moves           // if the least recently used object is spilled first, as --spill does without a period
	Best    Moves   `json:"best"` // if the object whose next use is farthest is spilled first
	MovesNS uint64  `json:"moves_ns"`
	Slower  float64 `json:"slower"` // moves as a share of the recording; 0: unknown
}

// shares are the percentages of the peak that are simulated.
var shares = [...]uint64{90, 75, 50}

// SimulateSpill simulates a recording. bandwidth, in bytes per second each way, replaces the rates in the recording; 0 uses the
// recording's. Errors are those of the source.
func SimulateSpill(src recording.Source, bandwidth uint64) (*Result, error) {
	f, err := tracesOfProcesses(src)
	if err != nil {
		return nil, err
	}
	toDevice, toHost := f.rates[wire.CommandWrite], f.rates[wire.CommandRead]
	r := &Result{Duration: f.final - f.first, Measured: bandwidth == 0 && toDevice > 0 && toHost > 0}
	r.ToDevice, r.ToHost = float64(bandwidth), float64(bandwidth)
	if r.Measured {
		r.ToDevice, r.ToHost = toDevice, toHost
	}
	for _, t := range f.processes {
		r.Peak = max(r.Peak, t.peak)
		if least, object := t.leastMemoryNeeded(); least > r.Least {
			r.Least, r.Site = least, t.names.Site(t.objects[object].tag).Name
		}
	}
	for _, percent := range shares {
		r.Estimates = append(r.Estimates, f.simulateAtShareOfPeak(r, percent))
	}
	return r, nil
}

// simulateAtShareOfPeak simulates all processes with a share of the peak.
func (f *fold) simulateAtShareOfPeak(r *Result, percent uint64) Estimate {
	e := Estimate{Percent: percent, Memory: r.Peak * percent / 100, Fits: true}
	for _, t := range f.processes {
		moves, best, fits := t.simulateBothOrders(e.Memory)
		e.Fits = e.Fits && fits
		e.Out, e.In = e.Out+moves.Out, e.In+moves.In
		e.Best.Out, e.Best.In = e.Best.Out+best.Out, e.Best.In+best.In
	}
	if !e.Fits {
		return Estimate{Percent: percent, Memory: e.Memory}
	}
	if r.ToDevice > 0 {
		e.MovesNS = uint64(float64(e.In)/r.ToDevice*1e9 + float64(e.Out)/r.ToHost*1e9)
		if r.Duration > 0 {
			e.Slower = float64(e.MovesNS) / float64(r.Duration)
		}
	}
	return e
}

func (t *trace) simulateBothOrders(capacity uint64) (moves, best Moves, fits bool) {
	next := t.nextUses()
	best, _ = t.simulateSpilling(capacity, Farthest, next)
	moves, fits = t.simulateSpilling(capacity, Oldest, next)
	return moves, best, fits
}

// Text writes the result for people; its table has at most width columns.
func (r *Result) Text(width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "peak %s; with --spill %s", units.FormatLong(r.Peak), units.FormatLong(r.Least))
	if r.Peak > 0 {
		fmt.Fprintf(&b, " (%.0f %%)", 100*float64(r.Least)/float64(r.Peak))
	}
	fmt.Fprintf(&b, " is enough: what one command needs at once, the largest from %s\n", units.Clean(r.Site))
	table := units.Table{Width: width, Least: []string{"AT BEST", "OF THE PEAK"}}
	table.Add("DEVICE MEMORY", "OF THE PEAK", "TO THE HOST", "BACK", "AT BEST", "SLOWER (ESTIMATED)")
	for i := range r.Estimates {
		e := &r.Estimates[i]
		line := []string{units.FormatLong(e.Memory), fmt.Sprintf("%d %%", e.Percent), "too little", "", "", ""}
		if e.Fits {
			slower := "unknown"
			if r.ToDevice > 0 {
				slower = fmt.Sprintf("%s (%.0f %%)", units.Duration(e.MovesNS), 100*e.Slower)
			}
			line = append(line[:2], units.FormatLong(e.Out), units.FormatLong(e.In), units.FormatLong(e.Best.Out+e.Best.In), slower)
		}
		table.Add(line...)
	}
	b.WriteString(table.String())
	switch {
	case r.Measured:
		fmt.Fprintf(&b, "Estimated at %s/s to the device and %s/s back, the best that the recording shows.\n",
			units.FormatLong(uint64(r.ToDevice)), units.FormatLong(uint64(r.ToHost)))
	case r.ToDevice > 0:
		fmt.Fprintf(&b, "Estimated at %s/s each way, as stated.\n", units.FormatLong(uint64(r.ToDevice)))
	default:
		b.WriteString("The recording has no transfers of 64 KiB or more both ways that waited for nothing else, which show a speed: state one with --bandwidth.\n")
	}
	return b.String()
}
