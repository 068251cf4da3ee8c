package export

import (
	"bytes"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// pageBytes is the least that the kernel writes as a whole: a kill may come between two pages of one write.
const pageBytes = 4 << 10

// lines writes the events of a trace, one per line, in the array form, which can be read up to any line.
type lines struct {
	output
	start int  // index in b of the event that is being written
	bare  bool // the event has no arguments so far

	compact bool // ids hold for the whole trace, and events without arguments have no braces for them
	paged   bool // no event crosses the end of a page, unless it is longer than a page
	at      int  // where in a page the next write begins
}

// placeOfProcess returns the place of events that belong to a whole process.
func placeOfProcess(pid uint64) *place {
	at := newPlace(pid, pid)
	at.kind = onProcess
	return at
}

func newPlace(pid, tid uint64) *place {
	return &place{pid: pid, tid: tid, json: `,"pid":` + strconv.FormatUint(pid, 10) + `,"tid":` + strconv.FormatUint(tid, 10)}
}

// beginTimedEvent begins an event: head is `{"ph":"X","name":` or the like. name is JSON already; ns are relative to the start.
func (l *lines) beginTimedEvent(head, name string, at *place, ns uint64) {
	l.beginEvent(head, name, at)
	l.appendThousandths(`,"ts":`, ns)
}

// beginEvent begins an event without a time.
func (l *lines) beginEvent(head, name string, at *place) {
	separator := ",\n"
	if l.events == 0 {
		separator = "[\n"
	}
	l.start = len(l.b)
	l.events++
	l.b = append(l.b, separator...)
	l.b = append(l.b, head...)
	l.b = append(l.b, name...)
	l.b = append(l.b, at.json...)
}

func (l *lines) nameProcess(name string, at *place) {
	l.writeMeta(`{"ph":"M","name":"process_name"`, name, at)
}

func (l *lines) nameThread(name string, at *place) {
	l.writeMeta(`{"ph":"M","name":"thread_name"`, name, at)
}

func (l *lines) writeMeta(head, name string, at *place) {
	l.beginEvent(head, "", at)
	l.beginArguments()
	l.addText(`"name":`, name)
	l.endEvent()
}

func (l *lines) beginCall(name string, at *place, ns, took uint64) {
	head := `{"ph":"X","cat":"call","name":`
	if l.compact {
		head = `{"ph":"X","name":`
	}
	l.beginTimedEvent(head, name, at, ns)
	l.appendThousandths(`,"dur":`, took)
}

func (l *lines) openLifetime(category category, name string, at *place, ns, id uint64) {
	l.beginTimedEvent(openHeads[category], name, at, ns)
	l.addLifetimeID(id)
}

func (l *lines) closeLifetime(category category, name string, at *place, ns, id uint64) {
	l.beginTimedEvent(shutHeads[category], name, at, ns)
	l.addLifetimeID(id)
}

// openHeads and shutHeads are the beginnings of the lines for a lifetime's begin and end.
var openHeads, shutHeads = lifetimeHeads("b"), lifetimeHeads("e")

func lifetimeHeads(phase string) (list [len(categories)]string) {
	for i, category := range categories {
		list[i] = `{"ph":"` + phase + `","cat":"` + category + `","name":`
	}
	return list
}

// addLifetimeID appends the number of an async track: within its process, or in the whole trace, which takes 12 bytes less.
func (l *lines) addLifetimeID(n uint64) {
	if l.compact {
		l.addHex(`,"id":`, n)
		return
	}
	l.addHex(`,"id2":{"local":`, n)
	l.b = append(l.b, '}')
}

func (l *lines) beginInstant(category, name, scope string, at *place, ns uint64) {
	l.beginTimedEvent(`{"ph":"i","cat":"`+category+`","name":`, name, at, ns)
	l.b = append(l.b, `,"s":"`...)
	l.b = append(l.b, scope...)
	l.b = append(l.b, '"')
}

func (l *lines) beginCounter(name string, at *place, ns uint64) {
	l.beginTimedEvent(`{"ph":"C","name":`, `"`+name+`"`, at, ns)
}

func (l *lines) addFlow(id uint64, begins, ends bool) {
	l.addHex(`,"bind_id":`, id)
	if begins {
		l.b = append(l.b, `,"flow_out":true`...)
	}
	if ends {
		l.b = append(l.b, `,"flow_in":true`...)
	}
}

// addStack appends the frames of a tag if they were not written before.
func (l *lines) addStack(t *tag) {
	if !t.stackWritten {
		t.stackWritten = true
		l.addText(`"stack":`, t.stack)
	}
}

// beginArguments begins the arguments.
func (l *lines) beginArguments() {
	if l.bare = true; !l.compact {
		l.b = append(l.b, `,"args":{`...)
	}
}

// beginArgument begins an argument.
func (l *lines) beginArgument(beginArg string) {
	switch {
	case !l.bare:
		l.b = append(l.b, ',')
	case l.compact:
		l.b = append(l.b, `,"args":{`...)
	}
	l.bare = false
	l.b = append(l.b, beginArg...)
}

func (l *lines) addFactsObject(object []byte) {
	l.bare = false
	l.b = append(l.b, `,"args":`...)
	l.b = append(l.b, bytes.TrimSuffix(object, []byte("}"))...)
}

// endEvent ends an event with its arguments.
func (l *lines) endEvent() {
	if !l.bare || !l.compact {
		l.b = append(l.b, '}')
	}
	l.b = append(l.b, '}')
	if l.paged {
		l.beginPage()
	}
	if len(l.b) >= gatheredMax {
		l.flush()
	}
}

// beginPage moves the last event to the next page if it does not fit, and fills the rest of the page with spaces.
func (l *lines) beginPage() {
	from := (l.at + l.start) % pageBytes
	if from > 0 && from+len(l.b)-l.start > pageBytes {
		l.b = slices.Insert(l.b, l.start, blank[from:]...)
	}
}

// blank is an empty page.
var blank = bytes.Repeat([]byte{' '}, pageBytes)

// finish ends the trace.
func (l *lines) finish() error {
	l.b = append(l.b, "\n]\n"...)
	l.flush()
	return l.err
}

// flush writes what was gathered.
func (l *lines) flush() {
	l.at = (l.at + len(l.b)) % pageBytes
	l.start = 0
	l.output.flush()
}

func (l *lines) addNumber(key string, n uint64) {
	l.beginArgument(key)
	l.b = strconv.AppendUint(l.b, n, 10)
}

func (l *lines) addStatus(code int32) {
	l.beginArgument(`"status":`)
	if code == wire.ReturnedNULL {
		l.b = append(l.b, "null"...)
		return
	}
	l.b = strconv.AppendInt(l.b, int64(code), 10)
}

// addHex appends a number as Perfetto takes ids: in base 16, as a string.
func (l *lines) addHex(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = append(l.b, `"0x`...)
	l.b = strconv.AppendUint(l.b, n, 16)
	l.b = append(l.b, '"')
}

func (l *lines) addPlainText(key, text string) {
	l.beginArgument(key)
	l.b = append(l.b, '"')
	l.b = append(l.b, text...)
	l.b = append(l.b, '"')
}

func (l *lines) addText(key, quoted string) {
	l.beginArgument(key)
	l.b = append(l.b, quoted...)
}

func (l *lines) addBool(key string, value bool) {
	l.beginArgument(key)
	l.b = strconv.AppendBool(l.b, value)
}

func (l *lines) addMicros(key string, ns uint64) {
	l.beginArgument(key)
	l.appendThousandths("", ns)
}

// appendThousandths appends n/1000 with three decimals.
func (l *lines) appendThousandths(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, n/1000, 10)
	rest := n % 1000
	l.b = append(l.b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

func (l *lines) addHundredths(key string, n uint64) {
	l.beginArgument(key)
	l.b = strconv.AppendUint(l.b, n/100, 10)
	l.b = append(l.b, '.', byte('0'+n/10%10), byte('0'+n%10))
}

// shareInHundredths returns part in hundredths of a percent of whole; 0 if whole is 0.
func shareInHundredths(part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return uint64(10000*(float64(part)/float64(whole)) + 0.5)
}
