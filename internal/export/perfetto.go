package export

import (
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// WritePerfetto writes a run as packets of a Perfetto trace. It reads src as often as Chrome does. Requests that
// the pool serves show as lifetimes only, and its blocks as flows from each lifetime in a block to the next.
func WritePerfetto(w io.Writer, src recording.Source, facts Facts, opts TraceOptions) (TraceReport, error) {
	return writeTrace(w, src, &facts, &opts, packed)
}

// sequence is the id of the one sequence of packets.
const sequence = 1

// packets writes a trace as packets of one sequence. Times are differences from packet to packet, so that most take two
// bytes; a time that goes back is absolute.
type packets struct {
	output
	names
	event    []byte // the TrackEvent that is being built
	head     []byte // fields of its packet before it
	note     []byte // an annotation of it
	at       uint64 // its time
	took     uint64 // duration of a call
	track    uint64 // its track
	dropped  bool   // it is not written
	counting trackKey
	clock    uint64   // time of the last packet with a difference
	ended    struct { // the end of a call, written before any later event
		at, track uint64
		open      bool
	}
}

func newPackets(w io.Writer) *packets {
	p := &packets{output: output{w: w}}
	p.names = newNames(p.writePacket)
	p.head = appendNumber(appendNumber(nil, packetFlags, sequenceCleared), packetFirst, 1)
	event := appendNumber(nil, eventDefaultTrack, firstThread)
	p.writePacket(packetDefaults, appendBytes(appendNumber(nil, defaultsClock, clockSteps), defaultsEvent, event))
	var clocks []byte
	for _, id := range []uint64{clockBoot, clockSteps, clockAbsolute} {
		clock := appendNumber(appendNumber(nil, clockID, id), clockTimestamp, 0)
		if id == clockSteps {
			clock = appendNumber(clock, clockIncremental, 1)
		}
		clocks = appendBytes(clocks, snapshotClock, clock)
	}
	p.writePacket(packetClocks, clocks)
	return p
}

// writePacket writes a packet with the fields of head and one message.
func (p *packets) writePacket(field protowire.Number, message []byte) {
	head := appendNumber(p.head, packetSequence, sequence)
	head = protowire.AppendTag(head, field, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(message)))
	p.b = protowire.AppendTag(p.b, tracePacket, protowire.BytesType)
	p.b = protowire.AppendVarint(p.b, uint64(len(head)+len(message)))
	p.b = append(append(p.b, head...), message...)
	p.head = head[:0]
	if len(p.b) >= gatheredMax {
		p.output.flush()
	}
}

// writeEventAt writes an event at a time.
func (p *packets) writeEventAt(ns uint64, event []byte) {
	if ns >= p.clock {
		p.head = appendNumber(p.head, packetTimestamp, ns-p.clock)
		p.clock = ns
	} else {
		p.head = appendNumber(appendNumber(p.head, packetTimestamp, ns), packetClock, clockAbsolute)
	}
	p.writePacket(packetEvent, event)
}

func (p *packets) beginEvent(kind, track, ns uint64) {
	if p.ended.open && p.ended.at <= ns {
		p.endCall()
	}
	p.at, p.track, p.took, p.dropped = ns, track, 0, false
	p.event = appendTrack(appendNumber(p.event[:0], eventType, kind), track)
}

func appendTrack(event []byte, track uint64) []byte {
	if track == firstThread {
		return event
	}
	return appendNumber(event, eventTrack, track)
}

func (p *packets) endCall() {
	p.ended.open = false
	p.writeEventAt(p.ended.at, appendTrack(appendNumber(p.note[:0], eventType, typeEnd), p.ended.track))
}

func (p *packets) endEvent() {
	if p.counting != (trackKey{}) || p.dropped {
		p.counting = trackKey{}
		return
	}
	p.writeEventAt(p.at, p.event)
	p.events++
	if p.took > 0 {
		if p.ended.open {
			p.endCall()
		}
		p.ended.at, p.ended.track, p.ended.open = p.at+p.took, p.track, true
	}
}

func (p *packets) flush() {
	if p.ended.open {
		p.endCall()
	}
	p.output.flush()
}

func (p *packets) finish() error {
	p.flush()
	return p.err
}

func (p *packets) beginCall(name string, at *place, ns, took uint64) {
	kind := uint64(typeBegin)
	if took < longCall { // an end would double the bytes of the call
		kind, took = typeInstant, 0
	}
	p.beginEvent(kind, p.trackOfPlace(at), ns)
	p.took = took
	p.event = appendNumber(p.event, eventName, p.titleNumber(name))
}

func (p *packets) openLifetime(category category, name string, at *place, ns, id uint64) {
	p.beginEvent(typeBegin, p.beginLane(lifeKey{at.pid, id, category}, name, ns), ns)
	if category != buffers {
		p.event = appendNumber(p.event, eventCategories, p.categoryNumber(categories[category]))
	}
	p.event = appendNumber(p.event, eventName, p.titleNumber(name))
}

func (p *packets) closeLifetime(category category, _ string, at *place, ns, id uint64) {
	track, known := p.endLane(lifeKey{at.pid, id, category}, ns)
	p.beginEvent(typeEnd, track, ns)
	p.dropped = !known
}

func (p *packets) beginInstant(category, name, _ string, at *place, ns uint64) {
	p.beginEvent(typeInstant, p.trackOfPlace(at), ns)
	p.event = appendNumber(p.event, eventCategories, p.categoryNumber(category))
	p.event = appendNumber(p.event, eventName, p.titleNumber(name))
}

func (p *packets) beginCounter(name string, at *place, ns uint64) {
	p.counting = trackKey{pid: at.pid, name: name}
	p.at = ns
}

// writeCounter writes the value of a counter if it has changed.
func (p *packets) writeCounter(key string, bits uint64, value func(event []byte) []byte) {
	p.counting.key = key
	c := p.counterTrack(p.counting)
	if c.written && c.last == bits {
		return
	}
	c.written, c.last = true, bits
	p.beginEvent(typeCounter, c.id, p.at)
	p.writeEventAt(p.at, value(p.event))
	p.events++
}

func (p *packets) addFlow(id uint64, begins, _ bool) {
	field := eventFlows
	if !begins {
		field = eventLastFlows
	}
	p.event = appendFixed(p.event, field, id)
}

func (p *packets) addStack(t *tag) {
	if t.stackID == 0 && len(t.frames) > 0 {
		t.stackID = p.callstackNumber(t.frames)
	}
	if t.stackID > 0 {
		p.event = appendNumber(p.event, eventStack, t.stackID)
	}
}

func (p *packets) beginArguments() {}

// annotate appends an argument.
func (p *packets) annotate(key string, value func(note []byte) []byte) {
	p.note = value(appendNumber(p.note[:0], annotationKey, p.keyNumber(key)))
	p.event = appendBytes(p.event, eventAnnotations, p.note)
}

func (p *packets) addNumber(key string, n uint64) {
	if p.counting.name != "" {
		p.writeCounter(key, n, func(event []byte) []byte { return appendNumber(event, eventCounter, n) })
		return
	}
	p.annotate(key, func(note []byte) []byte { return appendNumber(note, annotationNumber, n) })
}

func (p *packets) addHundredths(key string, n uint64) {
	bits := math.Float64bits(float64(n) / 100)
	p.writeCounter(key, bits, func(event []byte) []byte { return appendFixed(event, eventDoubleCount, bits) })
}

func (p *packets) addMicros(key string, ns uint64) {
	bits := math.Float64bits(float64(ns) / 1000)
	p.annotate(key, func(note []byte) []byte { return appendFixed(note, annotationDouble, bits) })
}

func (p *packets) addStatus(code int32) {
	p.annotate(`"status":`, func(note []byte) []byte { return appendNumber(note, annotationSigned, uint64(code)) })
}

func (p *packets) addBool(key string, value bool) {
	p.annotate(key, func(note []byte) []byte { return appendNumber(note, annotationTruth, protowire.EncodeBool(value)) })
}

func (p *packets) addPlainText(key, text string) {
	p.annotate(key, func(note []byte) []byte { return appendBytes(note, annotationText, text) })
}

func (p *packets) addText(key, quoted string) { p.addPlainText(key, unquote(quoted)) }

func (p *packets) addFactsObject(object []byte) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // cannot fail: it is an object
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value := string(members[key])
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			p.addNumber(`"`+key+`":`, n)
		} else {
			p.addText(`"`+key+`":`, value)
		}
	}
}
