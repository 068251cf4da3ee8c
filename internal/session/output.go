package session

import (
	"bytes"
	"io"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Bounds of the lines kept for the dashboard; the spool has everything.
const (
	linesMax     = 10_000
	lineBytesMax = 4 << 20
	lineMax      = 4 << 10 // longer lines are split
)

// Streams of the target.
const (
	stdout = 0
	stderr = 1
)

// output collects what the target prints on captured streams: the latest lines for the dashboard, and all of it for
// replay. After reveal it passes everything straight through. Any goroutine may call it.
type output struct {
	mu      sync.Mutex
	spool   spool
	to      [2]io.Writer
	through bool
	shown   bool // output has reached, or will reach, the terminal
	last    byte // printed last

	lines   []view.OutputLine
	first   uint64 // position of lines[0]
	bytes   int
	partial [2][]byte // the last, unfinished line of each stream

	screen bool   // the program has the alternate screen
	tail   []byte // the end of the last chunk of stdout, which may begin a sequence
}

func newOutput(out, err io.Writer) *output { return &output{to: [2]io.Writer{out, err}} }

// takeOutputChunk takes a chunk of a stream, which is not empty. Before reveal it never waits; afterwards it may wait for the terminal.
func (o *output) takeOutputChunk(stream int, chunk []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = chunk[len(chunk)-1]
	if o.through {
		o.shown = true
		_, _ = o.to[stream].Write(chunk) // closed by its reader: the program would not learn of it either
		return
	}
	o.spool.appendChunk(stream, chunk)
	if stream == stdout {
		o.followAlternateScreen(chunk)
	}
	o.splitLines(stream, chunk)
}

// alternate are the sequences that take the alternate screen, without their last letter: h takes it, l gives it back (xterm's
// ctlseqs, private modes 47, 1047 and 1049).
var alternate = [][]byte{[]byte("\x1b[?1049"), []byte("\x1b[?1047"), []byte("\x1b[?47")}

// followAlternateScreen looks for sequences that take the alternate screen or give it back.
func (o *output) followAlternateScreen(chunk []byte) {
	text := chunk
	if len(o.tail) > 0 {
		text = append(o.tail, chunk...)
	}
	last := -1
	for _, sequence := range alternate {
		if at := bytes.LastIndex(text, sequence); at > last && at+len(sequence) < len(text) {
			if end := text[at+len(sequence)]; end == 'h' || end == 'l' {
				last, o.screen = at, end == 'h'
			}
		}
	}
	o.tail = o.tail[:0]
	if at := bytes.LastIndexByte(text, 0x1b); at >= 0 && len(text)-at <= len(alternate[0]) {
		o.tail = append(o.tail, text[at:]...)
	}
}

// isFullScreen reports whether the program has the alternate screen.
func (o *output) isFullScreen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.screen
}

// splitLines cuts a chunk into lines.
func (o *output) splitLines(stream int, chunk []byte) {
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		part, whole := chunk, end >= 0
		if whole {
			part = chunk[:end]
		}
		room := lineMax - len(o.partial[stream])
		if len(part) > room {
			o.extendLine(stream, part[:room])
			o.finishLine(stream)
			chunk = chunk[room:]
			continue
		}
		o.extendLine(stream, part)
		if !whole {
			return
		}
		o.finishLine(stream)
		chunk = chunk[end+1:]
	}
}

// extendLine adds to the unfinished line of a stream. What follows a carriage return overwrites what was before it.
func (o *output) extendLine(stream int, part []byte) {
	line := append(o.partial[stream], part...)
	if at := bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r'); at >= 0 {
		line = line[:copy(line, line[at+1:])]
	}
	o.partial[stream] = line
}

// finishLine makes the unfinished line of a stream a line.
func (o *output) finishLine(stream int) {
	o.lines = append(o.lines, view.OutputLine{Text: string(o.partial[stream]), Stderr: stream == stderr})
	o.bytes += len(o.partial[stream])
	o.partial[stream] = o.partial[stream][:0]
	drop := 0
	for len(o.lines)-drop > linesMax || o.bytes > lineBytesMax {
		o.bytes -= len(o.lines[drop].Text)
		drop++
	}
	o.lines = o.lines[drop:]
	o.first += uint64(drop)
}

// linesFrom returns the lines from a position on, as far as they are kept, and the position after them. Unfinished lines come
// last and again each time; they have no position yet.
func (o *output) linesFrom(position uint64) ([]view.OutputLine, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.first + uint64(len(o.lines))
	from := min(max(position, o.first), next)
	lines := make([]view.OutputLine, next-from)
	copy(lines, o.lines[from-o.first:])
	for stream, text := range o.partial {
		if len(text) > 0 {
			lines = append(lines, view.OutputLine{Text: string(text), Stderr: stream == stderr, Open: true})
		}
	}
	return lines, next
}

// endCapture replays what was captured, if it is wanted, and passes the rest straight through.
func (o *output) endCapture(replay bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.through {
		return nil
	}
	o.through = true
	defer o.spool.close()
	if !replay {
		return nil
	}
	o.shown = o.last != 0
	return o.spool.writeToStreams(o.to)
}

// endsInOpenLine reports whether what was shown ends in the middle of a line.
func (o *output) endsInOpenLine() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown && o.last != '\n'
}
