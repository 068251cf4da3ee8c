package ui

// outputMax bounds the lines kept for looking back; the session has them all.
const outputMax = 5000

// outputLog keeps the latest lines of the program.
type outputLog struct {
	lines  []OutputLine // cleaned
	next   uint64       // position to ask from
	count  uint64       // lines seen
	errors uint64       // of these, on stderr
	back   int          // how many lines the view lies above the end
	page   int          // rows drawn last
}

// take adds what the program printed and reports whether that changed anything.
func (l *outputLog) take(lines []OutputLine, next uint64) bool {
	l.next = next
	if len(lines) == 0 {
		return false
	}
	l.count += uint64(len(lines))
	for i := range lines {
		if lines[i].Stderr {
			l.errors++
		}
	}
	lines = lines[max(0, len(lines)-outputMax):]
	if extra := len(l.lines) + len(lines) - outputMax; extra > 0 {
		l.lines = append(l.lines[:0], l.lines[extra:]...)
	}
	for _, line := range lines {
		l.lines = append(l.lines, OutputLine{cleanLine(line.Text), line.Stderr})
	}
	if l.back > 0 { // whoever looks back keeps looking at the same lines
		l.back = min(l.back+len(lines), len(l.lines))
	}
	return true
}

// visible returns the lines for n rows.
func (l *outputLog) visible(n int) []OutputLine {
	end := max(0, min(len(l.lines), len(l.lines)-l.back))
	if end < n {
		end = min(n, len(l.lines))
	}
	return l.lines[max(0, end-n):end]
}
