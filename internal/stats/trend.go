package stats

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

const trendPoints = 60 // one per second

// Trend is the most that a gauge had in each second of the last minute, without the present second. It is kept as levels: most
// of 100,000 call sites have few. A Trend is immutable, so snapshots share it.
type Trend struct {
	levels     []level
	first, end uint64 // seconds since the start of the session; end is one second after the last
}

// level is the value of a gauge from a second on.
type level struct {
	value uint64
	from  uint64
}

// TrendOf returns a trend of these points, oldest first.
func TrendOf(points []uint64) Trend { return trendUntil(uint64(len(points)), points) }

func trendUntil(end uint64, points []uint64) Trend {
	t := Trend{first: end - uint64(len(points)), end: end}
	for i, value := range points {
		if i == 0 || value != points[i-1] {
			t.levels = append(t.levels, level{value, t.first + uint64(i)})
		}
	}
	return t
}

// Len returns how many points there are, at most 60.
func (t Trend) Len() int { return int(t.end - t.first) }

// Points returns them, oldest first.
func (t Trend) Points() []uint64 {
	points := make([]uint64, t.Len())
	t.FillWithLastPoints(points)
	return points
}

// FillWithLastPoints fills points with the last points. Points before the first are 0.
func (t Trend) FillWithLastPoints(points []uint64) {
	missing := max(0, len(points)-t.Len())
	clear(points[:missing])
	second, at := t.end-uint64(len(points)-missing), 0
	for i := missing; i < len(points); i++ {
		for at+1 < len(t.levels) && t.levels[at+1].from <= second {
			at++
		}
		points[i] = t.levels[at].value
		second++
	}
}

// SumWith returns the sum of two trends that end in the same second. A sum that is too large is the largest number.
func (t Trend) SumWith(o Trend) Trend {
	var sums, others [trendPoints]uint64
	n := min(max(t.Len(), o.Len()), trendPoints)
	t.FillWithLastPoints(sums[:n])
	o.FillWithLastPoints(others[:n])
	for i := range n {
		sums[i] += others[i]
		if sums[i] < others[i] {
			sums[i] = math.MaxUint64
		}
	}
	return trendUntil(max(t.end, o.end), sums[:n])
}

// Equal reports whether two trends have the same points.
func (t Trend) Equal(o Trend) bool { return slices.Equal(t.Points(), o.Points()) }

// trend keeps the most that a gauge had in each of the last trendPoints seconds. The value at the end of each second would not do:
// a program that allocates in a loop may hold nothing then.
type trend struct {
	kept   bool    // false: only the last point is kept
	levels []level // only ever appended to, as trends in snapshots share them
	last   uint64  // the point before second
	born   uint64  // the first second
	second uint64  // the present one: the last point is of the second before
	most   uint64  // in that second so far
}

// advanceToSecond ends the seconds before second. The gauge has had value since the last call.
func (t *trend) advanceToSecond(second, value uint64) {
	if t.raiseCurrent(value); second != t.second {
		t.endSeconds(second, value)
	}
}

func (t *trend) endSeconds(second, value uint64) {
	if second > t.second+trendPoints {
		t.levels = nil
		if t.kept {
			t.levels = []level{{value, second - trendPoints}}
		}
		t.second, t.last, t.most = second, value, value
		return
	}
	for ; t.second < second; t.second++ {
		if t.kept {
			t.addPoint()
		}
		t.last, t.most = t.most, value
	}
}

// addPoint adds the point of the present second.
func (t *trend) addPoint() {
	n := len(t.levels)
	if n > 0 && t.levels[n-1].value == t.most {
		return
	}
	past := 0
	for past+1 < n && t.levels[past+1].from+trendPoints <= t.second+1 {
		past++
	}
	kept := t.levels[past:]
	if n := len(kept); n == cap(kept) {
		kept = append(make([]level, 0, n+1+n/8), kept...) // little room: most call sites have few levels
	}
	t.levels = append(kept, level{t.most, t.second})
}

// countPoints is the number of points.
func (t *trend) countPoints() uint64 { return min(t.second-t.born, trendPoints) }

// raiseCurrent notes a value in the present second.
func (t *trend) raiseCurrent(value uint64) { t.most = max(t.most, value) }

// recentMost returns the most in the last full second and since.
func (t *trend) recentMost() uint64 {
	if t.second == t.born {
		return t.most
	}
	return max(t.most, t.last)
}

// pointsSoFar returns the points as they are.
func (t *trend) pointsSoFar() Trend {
	if !t.kept {
		return Trend{}
	}
	return Trend{levels: t.levels, first: t.second - t.countPoints(), end: t.second}
}

// detachCopy makes a copied trend append elsewhere than the original.
func (t *trend) detachCopy() { t.levels = slices.Clip(t.levels) }

// addTrend adds the points of another trend, second by second. The sum of the two peaks of a second is an upper bound of the peak of
// the sum, which is not known.
func (t *trend) addTrend(o *trend) {
	if t.kept && o.kept {
		t.levels = t.pointsSoFar().SumWith(o.pointsSoFar()).levels
	}
	t.last += o.last
	t.born = min(t.born, o.born)
	t.most += o.most
}

// GobEncode writes a trend for viewers in another terminal: the second after the last point, then each stretch of equal points
// with its length.
func (t Trend) GobEncode() ([]byte, error) {
	data := binary.AppendUvarint(nil, t.end)
	for i, level := range t.levels {
		until := t.end
		if i+1 < len(t.levels) {
			until = t.levels[i+1].from
		}
		if from := max(level.from, t.first); from < until {
			data = binary.AppendUvarint(binary.AppendUvarint(data, level.value), until-from)
		}
	}
	return data, nil
}

// GobDecode reads a trend that GobEncode wrote. It refuses more than a minute.
func (t *Trend) GobDecode(data []byte) error {
	end, n := binary.Uvarint(data)
	points := make([]uint64, 0, trendPoints)
	for at := n; n > 0 && at < len(data); {
		value, m := binary.Uvarint(data[at:])
		length, k := binary.Uvarint(data[at+max(m, 0):])
		if m <= 0 || k <= 0 || length > uint64(trendPoints-len(points)) {
			return errors.New("read a trend: it is damaged")
		}
		points = append(points, slices.Repeat([]uint64{value}, int(length))...)
		at += m + k
	}
	if n <= 0 || end < uint64(len(points)) {
		return errors.New("read a trend: it is damaged")
	}
	*t = trendUntil(end, points)
	return nil
}
