package export

import "io"

// encoder writes the events of a trace in one format. A call such as open or instant begins an event. Then come flow, args and
// the arguments, and close ends it. Names are JSON strings that are made once; keys end with a colon. Times are ns after the
// start. finish returns the first error.
type encoder interface {
	// nameProcess and thread name a process or thread.
	nameProcess(name string, at *place)
	nameThread(name string, at *place)
	// beginCall begins a call that took some ns.
	beginCall(name string, at *place, ns, took uint64)
	// openLifetime begins the start of a lifetime, and shut its end; id is one within process and category, in
	// compact JSON within category and trace.
	openLifetime(category category, name string, at *place, ns, id uint64)
	closeLifetime(category category, name string, at *place, ns, id uint64)
	// beginInstant begins a moment of a thread; scope says what it concerns: "g" the run, "p" the process.
	beginInstant(category, name, scope string, at *place, ns uint64)
	// beginCounter begins a set of values of a process.
	beginCounter(name string, at *place, ns uint64)

	// addFlow ties an event to the others with the same id. The first begins the arrow, the last ends it.
	addFlow(id uint64, begins, ends bool)
	// addStack appends the call stack of a tag, if there is one.
	addStack(t *tag)

	beginArguments()
	addNumber(key string, n uint64)
	addMicros(key string, ns uint64)    // as microseconds
	addHundredths(key string, n uint64) // n/100
	addStatus(code int32)
	addBool(key string, value bool)
	addPlainText(key, text string) // text needs no escapes
	addText(key, quoted string)
	// addFactsObject appends all members of a JSON object.
	addFactsObject(object []byte)
	endEvent()

	flush()
	finish() error
	firstError() error
	eventCount() uint64 // events
}

// gatheredMax is how many bytes are gathered before they are written.
const gatheredMax = 64 << 10

// output gathers what an encoder writes.
type output struct {
	w      io.Writer
	b      []byte
	events uint64
	err    error
}

// flush writes what was gathered: whole events.
func (o *output) flush() {
	if o.err == nil && len(o.b) > 0 {
		_, o.err = o.w.Write(o.b)
	}
	o.b = o.b[:0]
}

func (o *output) firstError() error { return o.err }

func (o *output) eventCount() uint64 { return o.events }

// category is the kind of a lifetime.
type category uint8

const (
	buffers    category = iota
	subBuffers          // and images of buffers
	onDevice            // commands, as timed by the device
	inCache             // blocks in the pool
	slabs
)

var categories = [...]string{"buf", "sub", "device", "cache", "slab"}

// place is where an event shows: a thread, a whole process or its pool.
type place struct {
	pid, tid uint64
	kind     placeKind
	json     string // `,"pid":7,"tid":8`
}

type placeKind uint8

const (
	onThread  placeKind = iota
	onProcess           // in formats without such a place: on the main thread
	inPool              // likewise
)

// style says what a trace shows, and in which format.
type style uint8

const (
	full    style = iota // Chrome trace JSON with everything
	growing              // the same while the program runs: each event lies within a page
	compact              // Chrome trace JSON, small
	packed               // Perfetto's format
)

func (s style) newEncoder(w io.Writer) encoder {
	if s == packed {
		return newPackets(w)
	}
	return &lines{output: output{w: w}, compact: s == compact, paged: s == growing}
}

// isLean reports whether only calls that reached the driver show, and the pool's blocks only when they come and go.
func (s style) isLean() bool { return s == compact || s == packed }
