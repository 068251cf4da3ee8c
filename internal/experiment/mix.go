package experiment

import (
	"fmt"
	"math"
	"math/bits"
)

const (
	mixWindow   = 128                    // requests of a window
	mixWindows  = 16                     // latest windows that are compared: the older half with the newer one
	mixLeast    = mixWindow * mixWindows // requests until there is a verdict
	mixKindBits = 6                      // kinds of requests: call site and power of two of the size, hashed to 64
	mixQuantile = 3.09                   // normal quantile of the level 0.001: the test is repeated with each window
)

// mix tests whether the mix of sizes and call sites is stationary.
type mix struct {
	windows [mixWindows]mixCounts // the latest, at their number modulo the length
	present mixCounts
	count   uint64 // requests
}

// mixCounts are the requests of a window or of several.
type mixCounts struct {
	kinds [1 << mixKindBits]uint32
	sizes [65]uint32 // by the bits of the size
}

func (m *mix) addRequest(size uint64, site uint32) {
	class := bits.Len64(size)
	kind := (uint64(site)<<7 | uint64(class)) * 0x9e3779b97f4a7c15 >> (64 - mixKindBits)
	m.present.kinds[kind]++
	m.present.sizes[class]++
	m.count++
	if m.count%mixWindow == 0 {
		m.windows[m.count/mixWindow%mixWindows] = m.present
		m.present = mixCounts{}
	}
}

// whyNotStationary returns why the mix is no ground for a comparison, "" if it is stationary.
//
// The test is a chi-square test of the older half of the windows against the newer one, at a level of 0.1 %. Requests
// depend on those before them, which makes any two windows differ by more than independent ones; so the statistic is
// divided by what neighbouring windows show (as Rao and Scott, J. Amer. Statist. Assoc. 76, 1981, correct for surveys),
// without the two that differ most: a step is between two of them.
func (m *mix) whyNotStationary() string {
	if m.count < mixLeast {
		return fmt.Sprintf("requests do not repeat so far, and %d of %d have come that show whether their mix is steady", m.count, mixLeast)
	}
	var halves [2]mixCounts
	sum, largest := 0.0, 0.0
	last := m.count / mixWindow
	for i := range uint64(mixWindows) {
		w := &m.windows[(last+1+i)%mixWindows]
		halves[2*i/mixWindows].addCounts(w)
		if i > 0 {
			square, freedom := w.chiSquareAgainst(&m.windows[(last+i)%mixWindows])
			excess := square / max(1, freedom)
			sum, largest = sum+excess, max(largest, excess)
		}
	}
	excess := max(1, (sum-largest)/(mixWindows-2))
	square, freedom := halves[0].chiSquareAgainst(&halves[1])
	if freedom == 0 || square <= chiSquareQuantile(freedom)*excess {
		return ""
	}
	from, to := halves[0].medianSizeText(), halves[1].medianSizeText()
	if from == to {
		return fmt.Sprintf("requests do not repeat, and their mix changes: sizes are about %s, but sizes or call sites have other shares", from)
	}
	return fmt.Sprintf("requests do not repeat, and their mix changes: from about %s to about %s", from, to)
}

func (c *mixCounts) addCounts(other *mixCounts) {
	for i, n := range other.kinds {
		c.kinds[i] += n
	}
	for i, n := range other.sizes {
		c.sizes[i] += n
	}
}

// chiSquareAgainst returns the statistic of two counts with equal sums, and its degrees of freedom.
func (c *mixCounts) chiSquareAgainst(other *mixCounts) (square, freedom float64) {
	kinds := 0
	for i, n := range c.kinds {
		sum, difference := float64(n)+float64(other.kinds[i]), float64(n)-float64(other.kinds[i])
		if sum > 0 {
			square += difference * difference / sum
			kinds++
		}
	}
	return square, float64(max(0, kinds-1))
}

// chiSquareQuantile returns the quantile of chi-square, as Wilson and Hilferty approximate it (Proc. Nat. Acad. Sci. 17, 1931).
func chiSquareQuantile(freedom float64) float64 {
	v := 2 / (9 * freedom)
	return freedom * math.Pow(1-v+mixQuantile*math.Sqrt(v), 3)
}

// medianSizeText returns the median size, down to a power of two, as people write it.
func (c *mixCounts) medianSizeText() string {
	all := uint32(0)
	for _, n := range c.sizes {
		all += n
	}
	class, below := 0, c.sizes[0]
	for 2*below < all {
		class++
		below += c.sizes[class]
	}
	power := max(0, class-1)
	unit := [...]string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[power/10]
	return fmt.Sprintf("%d %s", 1<<(power%10), unit)
}
