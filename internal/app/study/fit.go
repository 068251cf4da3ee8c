package study

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// FitOptions say how to search.
type FitOptions struct {
	Setup      watch.SetupOptions // with the pool that is compared with none
	Resolution string             // a size; empty: 1 % of the peak, at least 64 KiB
	Timeout    time.Duration      // a run that takes longer does not survive; 0: no limit
}

// resolutionMin is the finest resolution without --resolution.
const resolutionMin = 64 << 10

// fitSearch looks for the least memory that a program survives with.
type fitSearch struct {
	program    *Program
	setups     []*watch.Setup // without the pool and with it
	resolution uint64         // bytes, 0: from the peak
}

// FindLeastMemory runs a program until the least memory is known, without the pool and with it. The error carries a status if a signal
// ended the search.
func FindLeastMemory(o *FitOptions, command []string) (*FitResult, error) {
	s, err := newFitSearch(o, command)
	if err != nil {
		return nil, err
	}
	defer s.program.StopOnSignals()()
	result := &FitResult{Command: command}
	if err := s.measureUnlimited(result); err != nil {
		return nil, err
	}
	for _, setup := range s.setups {
		least := Least{Policy: setup.Policy.PolicyName()}
		bytes, found, err := bisectLeastBytes(result.Peak, result.Resolution, func(bytes uint64) (bool, error) {
			least.Runs++
			return s.survivesWith(setup, bytes)
		})
		if err != nil {
			return nil, err
		}
		if found {
			least.Bytes = &bytes
		}
		result.Results = append(result.Results, least)
	}
	return result, nil
}

// newFitSearch checks the options.
func newFitSearch(o *FitOptions, command []string) (*fitSearch, error) {
	s := &fitSearch{}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("bad value %v for --timeout: want a time, or 0s for no limit", o.Timeout)
	}
	if o.Setup.Policy == "none" {
		return nil, errors.New("fit compares a pool with none: name a policy with a pool with --policy")
	}
	var err error
	if o.Resolution != "" {
		if s.resolution, err = units.ParseSize(o.Resolution); err != nil {
			return nil, fmt.Errorf("--resolution: %w", err)
		}
		if s.resolution == 0 {
			return nil, fmt.Errorf("bad value %q for --resolution: want more than nothing", o.Resolution)
		}
	}
	bare := o.Setup
	bare.PolicyChoice = watch.PolicyChoice{Policy: "none"}
	for _, options := range []*watch.SetupOptions{&bare, &o.Setup} {
		setup, err := watch.NewSetup(options)
		if err != nil {
			return nil, err
		}
		s.setups = append(s.setups, setup)
	}
	if s.program, err = FindProgram(command); err != nil {
		return nil, err
	}
	s.program.Timeout = o.Timeout
	return s, nil
}

// measureUnlimited runs the program without a limit, to learn its peak and whether it works at all.
func (s *fitSearch) measureUnlimited(result *FitResult) error {
	o, err := s.program.RunRecorded(s.setups[0], "")
	if err != nil {
		return err
	}
	switch {
	case !o.Survived():
		o.ShowLastOutput()
		return fmt.Errorf("the program fails without any limit (%s): fit needs a program that works", o)
	case o.Nothing != "":
		return errors.New(o.Nothing + ": there is nothing to fit")
	case o.Peak == 0:
		return errors.New("the program never allocates device memory: it fits everywhere")
	}
	result.Peak, result.Devices = o.Peak, o.Devices
	result.Resolution = s.resolution
	if result.Resolution == 0 {
		result.Resolution = max(o.Peak/100, resolutionMin)
	}
	s.sayProgress("without a limit: it takes " + units.FormatLong(o.Peak))
	return nil
}

// survivesWith runs the program with some device memory.
func (s *fitSearch) survivesWith(setup *watch.Setup, bytes uint64) (bool, error) {
	limited := *setup
	limited.Memory = bytes
	o, err := s.program.RunRecorded(&limited, "")
	if err != nil {
		return false, err
	}
	word := "survives"
	if !o.Survived() {
		word = o.String()
	}
	pool := setup.Policy.PolicyName()
	if pool == "none" {
		pool = "no pool"
	}
	s.sayProgress(fmt.Sprintf("%s, %s: %s", units.FormatLong(bytes), pool, word))
	return o.Survived(), nil
}

func (s *fitSearch) sayProgress(text string) { console.SayLine("run %d: %s", s.program.Runs, text) }

// doublings bounds how far beyond the peak the search looks for a first size that works.
const doublings = 3

// bisectLeastBytes looks for the least number of bytes that a program survives with, to within step. It starts at the peak, and
// goes further up, doubling at most three times, until a run survives; then it halves what lies between the largest
// size known to fail below and the least one known to survive, until that is no more than step. found is false when
// nothing survived. What it returns was tried, and is the least of what was tried and survived, even for a program that
// survives with some size and not with a larger one. Neither peak nor step is 0; survives is never asked about 0 bytes.
func bisectLeastBytes(peak, step uint64, survives func(bytes uint64) (bool, error)) (least uint64, found bool, err error) {
	low, high := uint64(0), peak // low fails, or is 0
	for range doublings + 1 {
		if found, err = survives(high); err != nil || found {
			break
		}
		if high > math.MaxUint64/2 {
			break
		}
		low, high = high, 2*high
	}
	if err != nil || !found {
		return 0, false, err
	}
	for high-low > step {
		middle := low + (high-low)/2
		ok, err := survives(middle)
		if err != nil {
			return 0, false, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true, nil
}

// FitResult is what fit found. Scripts rely on its JSON keys.
type FitResult struct {
	Command    []string `json:"command"`
	Peak       uint64   `json:"peak"`       // bytes that the program takes without a limit
	Resolution uint64   `json:"resolution"` // bytes
	Devices    int      `json:"devices"`    // that the program uses; the sizes are those of one device in place of all of them
	Results    []Least  `json:"results"`    // without the pool, with it
}

// Least is the result for one policy.
type Least struct {
	Policy string  `json:"policy"`
	Bytes  *uint64 `json:"least"` // the smallest size that the program survived; null: not even eight times the peak
	Runs   int     `json:"runs"`
}

// WriteText writes the result for people.
func (r *FitResult) WriteText(w io.Writer) error {
	var b strings.Builder
	var table units.Table
	table.Add("POLICY", "LEAST DEVICE MEMORY", "OF THE PEAK", "RUNS")
	for i := range r.Results {
		line := &r.Results[i]
		least, part := "none that was tried", "-"
		if line.Bytes != nil {
			least = units.FormatLong(*line.Bytes)
			part = fmt.Sprintf("%.0f %%", 100*float64(*line.Bytes)/float64(r.Peak))
		}
		table.Add(line.Policy, least, part, fmt.Sprint(line.Runs))
	}
	b.WriteString(table.String())
	fmt.Fprintf(&b, "Without a limit the program takes %s. Smallest sizes that succeeded (±%s).\n",
		units.FormatLong(r.Peak), units.FormatLong(r.Resolution))
	if r.Devices > 1 {
		fmt.Fprintf(&b, "It uses %d devices: the sizes are those of one device in place of all. What each needs is not known.\n", r.Devices)
	}
	return console.WriteText(w, b.String())
}
