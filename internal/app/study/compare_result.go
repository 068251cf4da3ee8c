package study

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Comparison is what the runs took. Scripts rely on its JSON keys; times are ns, sizes bytes.
type Comparison struct {
	Command       []string  `json:"command"`
	Configuration string    `json:"configuration"` // of the pool
	Pairs         int       `json:"pairs"`
	Bare          []uint64  `json:"bare_ns"` // by pair
	Pooled        []uint64  `json:"pooled_ns"`
	BareMedian    uint64    `json:"bare_median_ns"`
	PooledMedian  uint64    `json:"pooled_median_ns"`
	Speed         Interval  `json:"times_as_fast"`  // bare / pooled, of the pairs
	Requested     uint64    `json:"peak_requested"` // of any process, as is Reserved
	Reserved      uint64    `json:"peak_reserved"`  // with the pool
	ExitStatus    int       `json:"exit_status"`    // of all runs
	speeds        []float64 // of the pairs
}

// Interval is a median and where it lies. It comes from order statistics (the sign test), which need no distribution.
type Interval struct {
	Median     float64 `json:"median"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"` // that the median of all possible pairs is within; 0 for a single pair
}

// wantedConfidence is the confidence of an interval, if there are pairs enough.
const wantedConfidence = 0.95

// medianInterval takes values, at least one, and sorts them. The interval is the narrowest with the wanted confidence, else
// from the least value to the largest.
func medianInterval(values []float64) Interval {
	slices.Sort(values)
	n := len(values)
	in := Interval{Median: (values[(n-1)/2] + values[n/2]) / 2}
	outside := 0.0 // the chance of a median below values[k], or above its counterpart
	term := math.Pow(0.5, float64(n))
	for k := range (n + 1) / 2 {
		outside += 2 * term
		if k > 0 && 1-outside < wantedConfidence {
			break
		}
		in.Low, in.High, in.Confidence = values[k], values[n-1-k], max(0, 1-outside)
		term *= float64(n-k) / float64(k+1)
	}
	return in
}

// addPair takes one pair.
func (r *Comparison) addPair(bare, pooled *Outcome) {
	r.Pairs++
	r.Bare, r.Pooled = append(r.Bare, uint64(bare.Wall)), append(r.Pooled, uint64(pooled.Wall))
	r.speeds = append(r.speeds, float64(bare.Wall)/float64(max(pooled.Wall, 1)))
	r.Requested, r.Reserved = max(r.Requested, pooled.Asked), max(r.Reserved, pooled.Peak)
}

func (r *Comparison) computeMedians() {
	r.BareMedian, r.PooledMedian = median(r.Bare), median(r.Pooled)
	r.Speed = medianInterval(r.speeds)
}

func median(values []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + (high-low)/2
}

// WriteText writes the result for people.
func (r *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	var table units.Table
	table.Add("", "BARE", "WITH THE POOL")
	table.Add("median time", units.Duration(r.BareMedian), units.Duration(r.PooledMedian))
	table.Add("peak memory", units.FormatLong(r.Requested), units.FormatLong(r.Reserved))
	b.WriteString(table.String())
	b.WriteString(console.WrapIndented(r.Text(), 2, console.TextWidth(w)) + "\n")
	return console.WriteText(w, b.String())
}

// Text says in a paragraph how much faster the program is with the pool.
func (r *Comparison) Text() string {
	text := fmt.Sprintf("With %s the program is %.2f times as fast as bare", r.Configuration, r.Speed.Median)
	switch {
	case r.Pairs == 1:
		return text + ", by a single pair of runs, all with exit status 0: more give an interval."
	case r.Speed.Low <= 1 && r.Speed.High >= 1:
		text += ", which is no difference that these runs can show"
	}
	return fmt.Sprintf("%s: %.2f to %.2f with %.0f %% confidence (sign test of %d pairs). All runs ended with exit status 0.",
		text, r.Speed.Low, r.Speed.High, math.Floor(100*r.Speed.Confidence), r.Pairs)
}
