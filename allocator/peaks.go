package allocator

import "math"

const (
	never       = math.MaxInt64
	second      = 1_000_000_000 // ns
	peakSeconds = 60            // how long a peak counts
	peaksSize   = 64            // a power of two above peakSeconds
)

// peaks knows the most bytes in use of the last minute, to the second. It keeps the seconds that no later one reached: the
// first is the highest.
type peaks struct {
	ring         [peaksSize]secondPeak
	first, count int
	present      int64 // ns: when the present second began
	until        int64 // ns: its end
}

// secondPeak is the most bytes in use of one second.
type secondPeak struct {
	began int64 // ns
	bytes uint64
}

func (w *peaks) at(i int) *secondPeak { return &w.ring[(w.first+i)%peaksSize] }

// highest returns the most bytes in use of the last minute.
func (w *peaks) highest() uint64 {
	if w.count == 0 {
		return 0
	}
	return w.ring[w.first].bytes
}

// highestAt is highest at a time that has not come yet.
func (w *peaks) highestAt(time int64) uint64 {
	if i := w.firstAt(time); i < w.count {
		return w.at(i).bytes
	}
	return 0
}

// firstAt returns the index of the first second that still counts at a time, the count when none does.
func (w *peaks) firstAt(time int64) int {
	i := 0
	for i < w.count && time >= w.at(i).ends() {
		i++
	}
	return i
}

// ends returns when a second no longer counts.
func (s *secondPeak) ends() int64 { return s.began + (peakSeconds+1)*second }

// falls returns when the highest peak of a time no longer counts.
func (w *peaks) falls(time int64) int64 {
	if i := w.firstAt(time); i < w.count {
		return w.at(i).ends()
	}
	return time + (peakSeconds+1)*second
}

// pass begins another second, in which bytes are in use already.
func (w *peaks) pass(now int64, bytes uint64) {
	gone := w.firstAt(now)
	w.first, w.count = (w.first+gone)%peaksSize, w.count-gone
	w.present += (now - w.present) / second * second
	w.until = w.present + second
	w.raise(bytes)
}

// shift makes all that was a time ago happen later.
func (w *peaks) shift(by int64) {
	for i := range w.count {
		w.at(i).began += by
	}
	w.present += by
	w.until += by
}

// raise notes how many bytes are in use.
func (w *peaks) raise(bytes uint64) {
	last := w.count - 1
	if last >= 0 && w.at(last).began == w.present && w.at(last).bytes >= bytes {
		return
	}
	for ; last >= 0 && w.at(last).bytes <= bytes; last-- {
		w.count--
	}
	*w.at(w.count) = secondPeak{w.present, bytes}
	w.count++
}
