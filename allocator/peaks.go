package allocator

import "math"

const (
	never       = math.MaxInt64
	second      = 1_000_000_000 // ns
	peakSeconds = 60            // ticks for which a peak counts
	peaksSize   = 64            // a power of two above peakSeconds
)

// peaks knows the most bytes in use in a window: in the last minute with ticks of a second, or in a longer window with
// ticks of a 60th of it. It keeps only the ticks that no later tick reached, so the first tick is the highest.
type peaks struct {
	ring         [peaksSize]tickPeak
	first, count int
	present      int64 // ns: begin of the present tick
	until        int64 // ns: end of the present tick
	longer       int64 // ns by which a tick is longer than a second
}

// tickPeak is the most bytes in use of one tick.
type tickPeak struct {
	began int64 // ns
	bytes uint64
}

func (w *peaks) tickAt(i int) *tickPeak { return &w.ring[(w.first+i)%peaksSize] }

func (w *peaks) tickLength() int64 { return second + w.longer }

// setWindow makes a peak count for a window in ns, at least a minute. Peaks that fall into one of the new ticks become
// one: the highest of them, with the time of the latest.
func (w *peaks) setWindow(window int64) {
	was := w.tickLength()
	w.longer = max(window/peakSeconds, second) - second
	w.shiftTimes(max(was-w.tickLength(), 0)) // a peak may have come late in its tick
	w.until = w.present + w.tickLength()
	kept := w.count
	w.count = min(w.count, 1)
	for i := 1; i < kept; i++ {
		next, latest := *w.tickAt(i), w.tickAt(w.count-1)
		if next.began/w.tickLength() == latest.began/w.tickLength() {
			latest.began = next.began
			continue
		}
		*w.tickAt(w.count) = next
		w.count++
	}
}

// highestBytes returns the most bytes in use of the window.
func (w *peaks) highestBytes() uint64 {
	if w.count == 0 {
		return 0
	}
	return w.ring[w.first].bytes
}

// highestBytesAt is highest at a future time.
func (w *peaks) highestBytesAt(time int64) uint64 {
	if i := w.firstTickCountedAt(time); i < w.count {
		return w.tickAt(i).bytes
	}
	return 0
}

// firstTickCountedAt returns the index of the first tick that still counts at a time, w.count if no tick does.
func (w *peaks) firstTickCountedAt(time int64) int {
	i := 0
	for i < w.count && time >= w.tickEnd(i) {
		i++
	}
	return i
}

// tickEnd returns when a tick no longer counts.
func (w *peaks) tickEnd(i int) int64 { return w.tickAt(i).began + (peakSeconds+1)*w.tickLength() }

// highestPeakEnd returns when the peak that is highest at a time no longer counts.
func (w *peaks) highestPeakEnd(time int64) int64 {
	if i := w.firstTickCountedAt(time); i < w.count {
		return w.tickEnd(i)
	}
	return time + (peakSeconds+1)*w.tickLength()
}

// beginTick begins another tick, at whose begin bytes are in use.
func (w *peaks) beginTick(now int64, bytes uint64) {
	gone := w.firstTickCountedAt(now)
	w.first, w.count = (w.first+gone)%peaksSize, w.count-gone
	w.present += (now - w.present) / w.tickLength() * w.tickLength()
	w.until = w.present + w.tickLength()
	w.raisePeak(bytes)
}

// shiftTimes moves all times by a number of ns.
func (w *peaks) shiftTimes(by int64) {
	for i := range w.count {
		w.tickAt(i).began += by
	}
	w.present += by
	w.until += by
}

// raisePeak notes how many bytes are in use.
func (w *peaks) raisePeak(bytes uint64) {
	last := w.count - 1
	if last >= 0 && w.tickAt(last).began == w.present && w.tickAt(last).bytes >= bytes {
		return
	}
	for ; last >= 0 && w.tickAt(last).bytes <= bytes; last-- {
		w.count--
	}
	*w.tickAt(w.count) = tickPeak{w.present, bytes}
	w.count++
}
